/* Logs what a process does to files below a folder, and makes single operations fail: see shim.py.

   SHIM_LOG=FILE   append each operation below SHIM_ROOT, and each file that is opened, as a line and its bytes
   SHIM_ROOT=PATH  the folder whose operations count
   SHIM_FAIL=N:ERRNO  the N-th counted operation below SHIM_ROOT fails; N+:ERRNO: that one and all later ones
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int log_fd = -2, counted = 0, fail_at = 0, fail_after = 0, fail_with = 0;
static char root[PATH_MAX];

/* Reads the environment: before the first operation, and again whenever a process asks for it. */
void shim_begin(void) {
  if (log_fd >= 0) syscall(SYS_close, log_fd);
  counted = fail_at = fail_after = 0;
  const char *file = getenv("SHIM_LOG"), *fail = getenv("SHIM_FAIL"), *at = getenv("SHIM_ROOT");
  log_fd = file ? syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  snprintf(root, sizeof root, "%s", at ? at : "/nowhere");
  if (fail) {
    char *end;
    fail_at = strtol(fail, &end, 10);
    if (*end == '+') { fail_after = 1; end++; }
    fail_with = atoi(end + 1);
  }
}

static int below(const char *path) {
  size_t n = strlen(root);
  return !strncmp(path, root, n) && (path[n] == '/' || path[n] == 0);
}

/* The absolute path of what a call names. */
static const char *full(int at, const char *path, char *buffer) {
  char folder[PATH_MAX], link[64];
  if (path[0] == '/') { snprintf(buffer, PATH_MAX, "%s", path); return buffer; }
  if (at == AT_FDCWD) { if (!getcwd(folder, sizeof folder)) folder[0] = 0; }
  else {
    snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    ssize_t n = readlink(link, folder, sizeof folder - 1);
    folder[n < 0 ? 0 : n] = 0;
  }
  if (strlen(folder) + strlen(path) + 2 > PATH_MAX) { buffer[0] = 0; return buffer; }
  sprintf(buffer, "%s/%s", folder, path);
  return buffer;
}

static const char *of(int fd, char *buffer) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, buffer, PATH_MAX - 1);
  buffer[n < 0 ? 0 : n] = 0;
  return buffer;
}

/* Which file it is, whatever its name: some callers rename files by a way of their own. */
static const char *inode(int fd) {
  static char text[32];
  struct stat now;
  snprintf(text, sizeof text, "%lu", fstat(fd, &now) ? 0UL : (unsigned long)now.st_ino);
  return text;
}

static void note(const char *what, const char *path, const char *other, long place, const void *data, long size) {
  if (log_fd < 0) return;
  char *line = malloc(2 * PATH_MAX + 100 + size);
  int n = sprintf(line, "%s\t%s\t%s\t%ld\t%ld\n", what, path, other, place, size);
  if (size) memcpy(line + n, data, size);
  for (long done = 0; done < n + size;) {
    long more = syscall(SYS_write, log_fd, line + done, n + size - done);
    if (more <= 0) break;
    done += more;
  }
  free(line);
}

/* Whether a counted operation must fail. */
static int fails(const char *path) {
  if (!fail_at || !below(path)) return 0;
  counted++;
  if (counted == fail_at || (fail_after && counted > fail_at)) { errno = fail_with; return 1; }
  return 0;
}

#define REAL(name) static typeof(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name)
#define ENTER char a[PATH_MAX], b[PATH_MAX]; (void)a; (void)b; pthread_mutex_lock(&lock); if (log_fd == -2) shim_begin()
#define LEAVE(value) do { int kept = errno; pthread_mutex_unlock(&lock); errno = kept; return value; } while (0)

#define OPENS(name, at, given, ...) \
  ENTER; REAL(name); mode_t mode = 0; \
  if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); } \
  full(at, given, a); \
  int writes = (flags & O_ACCMODE) != O_RDONLY; \
  struct stat now; \
  int there = !writes || !below(a) || !stat(a, &now); \
  if (fails(a)) LEAVE(-1); \
  int fd = real(__VA_ARGS__, flags, mode); \
  if (fd >= 0 && writes && below(a)) { \
    if (!there) note("create", a, inode(fd), 0, 0, 0); \
    else if (flags & O_TRUNC) note("truncate", a, inode(fd), 0, 0, 0); \
  } else if (fd >= 0 && !writes && !(flags & O_DIRECTORY)) note("read", a, "", 0, 0, 0); \
  LEAVE(fd)

int open(const char *path, int flags, ...) { OPENS(open, AT_FDCWD, path, path); }
int open64(const char *path, int flags, ...) { OPENS(open64, AT_FDCWD, path, path); }
int openat(int at, const char *path, int flags, ...) { OPENS(openat, at, path, at, path); }
int openat64(int at, const char *path, int flags, ...) { OPENS(openat64, at, path, at, path); }

static FILE *opens(FILE *(*real)(const char *, const char *), const char *path, const char *mode) {
  ENTER;
  FILE *file = real(path, mode);
  if (file && mode[0] == 'r' && !strchr(mode, '+')) note("read", full(AT_FDCWD, path, a), "", 0, 0, 0);
  LEAVE(file);
}
FILE *fopen(const char *path, const char *mode) { REAL(fopen); return opens(real, path, mode); }
FILE *fopen64(const char *path, const char *mode) { REAL(fopen64); return opens(real, path, mode); }

static long position(int fd) {
  struct stat now;
  if (fcntl(fd, F_GETFL) & O_APPEND) return fstat(fd, &now) ? 0 : now.st_size;
  return lseek(fd, 0, SEEK_CUR);
}

ssize_t write(int fd, const void *data, size_t size) {
  ENTER; REAL(write);
  if (!below(of(fd, a))) LEAVE(real(fd, data, size));
  if (fails(a)) LEAVE(-1);
  long place = position(fd);
  ssize_t done = real(fd, data, size);
  if (done > 0) note("write", a, inode(fd), place, data, done);
  LEAVE(done);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  ENTER; REAL(writev);
  if (!below(of(fd, a))) LEAVE(real(fd, parts, count));
  ssize_t all = 0;
  for (int i = 0; i < count; i++) {
    ssize_t done = write(fd, parts[i].iov_base, parts[i].iov_len);
    if (done < 0) LEAVE(all ? all : -1);
    all += done;
    if ((size_t)done < parts[i].iov_len) break;
  }
  LEAVE(all);
}

#define PWRITE(name, type) \
  ssize_t name(int fd, const void *data, size_t size, type place) { \
    ENTER; REAL(name); \
    if (!below(of(fd, a))) LEAVE(real(fd, data, size, place)); \
    if (fails(a)) LEAVE(-1); \
    ssize_t done = real(fd, data, size, place); \
    if (done > 0) note("write", a, inode(fd), place, data, done); \
    LEAVE(done); \
  }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

/* Copies within the kernel would escape the log: callers fall back to reading and writing. */
ssize_t sendfile(int out, int in, off_t *place, size_t count) { errno = EINVAL; return -1; }
ssize_t sendfile64(int out, int in, off64_t *place, size_t count) { errno = EINVAL; return -1; }
ssize_t copy_file_range(int in, off64_t *x, int out, off64_t *y, size_t n, unsigned flags) { errno = EXDEV; return -1; }

/* The whole file, once it is closed: the C library's own buffers and mapped memory are written past this shim. */
static void note_content(int fd, const char *path) {
  int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) return;
  int file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
  struct stat now;
  if (file < 0) return;
  if (!fstat(file, &now) && S_ISREG(now.st_mode)) {
    char *data = malloc(now.st_size + 1);
    long size = syscall(SYS_pread64, file, data, now.st_size, 0);
    if (size == now.st_size) note("content", path, inode(file), 0, data, size);
    free(data);
  }
  syscall(SYS_close, file);
}
int close(int fd) {
  ENTER; REAL(close);
  if (log_fd >= 0 && below(of(fd, a))) note_content(fd, a);
  LEAVE(real(fd));
}

void sync(void) {
  ENTER; REAL(sync);
  real();
  note("sync all", root, "", 0, 0, 0);
  pthread_mutex_unlock(&lock);
}

#define ON_FD(name, what, place, params, ...) \
  int name params { \
    ENTER; REAL(name); \
    if (!below(of(fd, a))) LEAVE(real(__VA_ARGS__)); \
    if (fails(a)) LEAVE(-1); \
    int done = real(__VA_ARGS__); \
    if (!done) note(what, a, inode(fd), place, 0, 0); \
    LEAVE(done); \
  }
ON_FD(fsync, "sync", 0, (int fd), fd)
ON_FD(fdatasync, "sync", 0, (int fd), fd)
ON_FD(ftruncate, "truncate", size, (int fd, off_t size), fd, size)
ON_FD(ftruncate64, "truncate", size, (int fd, off64_t size), fd, size)

#define ON_PATH(name, what, at, params, ...) \
  int name params { \
    ENTER; REAL(name); full(at, path, a); \
    if (!below(a)) LEAVE(real(__VA_ARGS__)); \
    if (fails(a)) LEAVE(-1); \
    int done = real(__VA_ARGS__); \
    if (!done) note(what, a, "", 0, 0, 0); \
    LEAVE(done); \
  }
ON_PATH(unlink, "remove", AT_FDCWD, (const char *path), path)
ON_PATH(unlinkat, "remove", at, (int at, const char *path, int flags), at, path, flags)
ON_PATH(rmdir, "remove", AT_FDCWD, (const char *path), path)
ON_PATH(mkdir, "folder", AT_FDCWD, (const char *path, mode_t mode), path, mode)
ON_PATH(mkdirat, "folder", at, (int at, const char *path, mode_t mode), at, path, mode)

static int renames(int (*real)(const char *, const char *), const char *from, const char *to) {
  ENTER;
  full(AT_FDCWD, from, a), full(AT_FDCWD, to, b);
  if (!below(b)) LEAVE(real(from, to));
  if (fails(b)) LEAVE(-1);
  int done = real(from, to);
  if (!done) note("rename", a, b, 0, 0, 0);
  LEAVE(done);
}
int rename(const char *from, const char *to) { REAL(rename); return renames(real, from, to); }
