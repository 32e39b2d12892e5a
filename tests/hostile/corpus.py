"""Hostile files: datasets, weights and stores as an attacker might send them, made by code.

Each case fills a folder of its own, and says which commands a trusting user would give. Beside the folders lies
`outside`, which holds what no command may look at: a text, a picture, a record, arrays.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import socket
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow
from PIL import Image, PngImagePlugin
from pyarrow import parquet

from reports.stores import put, record

CANARY = "canary-7f3a"
RUN = "0" * 11 + "1"
Words = list[list[str]]
CASES: dict[str, Callable[[Path, Path], Words]] = {}
"""By their names, what makes each case in a folder; it is given `outside`, and returns commands."""


def fill_outside(folder: Path) -> None:
    """What no command may look at."""
    folder.mkdir()
    (folder / "secret.txt").write_text(CANARY)
    Image.new("RGB", (4, 4), "red").save(folder / "secret.png")
    (folder / "secret.json").write_text(json.dumps({"title": CANARY, "columns": ["a"], "rows": [["b"]]}))
    (folder / "secret.bin").write_bytes(CANARY.encode() * 1000)
    with h5py.File(folder / "secret.h5", "w") as file:
        file["bbox_features"] = np.ones((1, 1, 2048), "f4")
    (folder / "pictures" / "n01440764").mkdir(parents=True)
    Image.new("RGB", (4, 4), "red").save(folder / "pictures" / "n01440764" / "n01440764_1.JPEG")
    (folder / "run").mkdir()
    (folder / "run" / "config.json").write_text(json.dumps(record()["config"]))
    (folder / "run" / "record.json").write_text(json.dumps(record(run="run", algorithm=CANARY)))


def case(function: Callable[..., Words]) -> Callable[..., Words]:
    """Add a case under its function's name."""
    CASES[function.__name__] = function
    return function


# Pictures


def eps(comment: str = "") -> bytes:
    """A drawing that Pillow gives to Ghostscript, which runs it as a program."""
    head = f"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n{comment}%%EndComments\n"
    return (head + "(/etc/passwd) (r) file 99 string readstring pop =\nshowpage\n%%EOF\n").encode()


def png(width: int, height: int, depth: int = 1, colour: int = 0, extra: bytes = b"") -> bytes:
    """A small file that is a huge picture: rows of zeros pack a thousand to one."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    packed = zlib.compressobj(9)
    row = b"\0" * (1 + -(-width * depth * {0: 1, 2: 3, 6: 4}[colour] // 8))
    body = b"".join(packed.compress(row * 100) for _ in range(min(height, 3000) // 100)) + packed.flush()
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def jpeg(width: int, height: int) -> bytes:
    """A JPEG whose header lies about its size."""
    sof = b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, height, width, 3) + b"\x01\x22\x00\x02\x11\x01\x03\x11\x01"
    return b"\xff\xd8" + sof + b"\xff\xda\x00\x0c\x03\x01\x00\x02\x11\x03\x11\x00\x3f\x00" + b"\0" * 64 + b"\xff\xd9"


def tiff(width: int, height: int, following: int = 0) -> bytes:
    """A TIFF; `following` is where its next page begins, which may be itself."""
    tags = [(256, 4, 1, width), (257, 4, 1, height), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1)]
    tags += [(273, 4, 1, 8), (277, 3, 1, 1), (278, 4, 1, height), (279, 4, 1, min(width * height, 2**31))]
    body = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", len(tags)) + body + struct.pack("<I", following)


def long_text() -> bytes:
    """A PNG with a comment of a hundred megabytes."""
    body = b"Comment\0\0" + zlib.compress(b"A" * 10**8, 9)
    return struct.pack(">I", len(body)) + b"zTXt" + body + struct.pack(">I", zlib.crc32(b"zTXt" + body))


def exif() -> bytes:
    """A PNG with a comment that is a screen's command."""
    info = PngImagePlugin.PngInfo()
    info.add_text("Title", "\x1b]0;owned\x07")
    file = io.BytesIO()
    Image.new("RGB", (4, 4)).save(file, "PNG", pnginfo=info)
    return file.getvalue()


PICTURES: dict[str, Callable[[], bytes]] = {
    "eps": eps,
    "eps_with_preview": lambda: b"\xc5\xd0\xd3\xc6" + struct.pack("<7I", 32, 99, 0, 0, 0, 0, 0) + eps(),
    "eps_that_names_a_file": lambda: eps("%%Title: (%pipe%touch owned)\n"),
    "pdf": lambda: b"%PDF-1.4\n1 0 obj<</Type/Catalog/OpenAction<</S/Launch/F(/bin/sh)>>>>endobj\n%%EOF",
    "postscript": lambda: b"%!PS\n(%pipe%touch owned) (w) file\nshowpage\n",
    "wmf": lambda: b"\xd7\xcd\xc6\x9a" + b"\0" * 60,
    "svg": lambda: b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>',
    "xml_entity": lambda: b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><svg>&b;</svg>',
    "imagemagick": lambda: b"push graphic-context\nfill 'url(https://127.0.0.1/a|touch owned)'\npop graphic-context",
    "fits": lambda: b"SIMPLE  =                    T" + b" " * 2850,
    "icns": lambda: b"icns" + struct.pack(">I", 2**31 - 1) + b"ic10" + struct.pack(">I", 2**31 - 9),
    "psd": lambda: b"8BPS\0\1" + b"\0" * 6 + struct.pack(">HIIHH", 3, 30000, 30000, 8, 3) + b"\0" * 99,
    "bits_of_a_gigapixel": lambda: png(40_000, 40_000),
    "colours_of_a_gigapixel": lambda: png(30_000, 30_000, 8, 2),
    "sixteen_bits_deep": lambda: png(20_000, 20_000, 16, 0),
    "thin_and_long": lambda: png(2**31 - 1, 1),
    "no_pixels": lambda: png(0, 0),
    "jpeg_that_lies": lambda: jpeg(65_535, 65_535),
    "gif_that_lies": lambda: b"GIF89a" + struct.pack("<HHBBB", 65_535, 65_535, 0, 0, 0) + b",\0\0\0\0" + b"\xff" * 4,
    "bmp_that_lies": lambda: b"BM" + struct.pack("<IHHIIiiHHIIiiII", 60, 0, 0, 54, 40, 10**6, 10**6, 1, 24, *[0] * 6),
    "ppm_that_lies": lambda: b"P6 100000 100000 255\n" + b"\0" * 99,
    "ppm_with_a_long_number": lambda: b"P6 " + b"9" * 100_000 + b" 1 255\n",
    "tiff_that_lies": lambda: tiff(2**31 - 1, 2**31 - 1),
    "tiff_in_a_circle": lambda: tiff(4, 4, following=8),
    "webp_cut_short": lambda: b"RIFF\xff\xff\xff\xffWEBPVP8X" + b"\x0a\0\0\0\x10\0\0\0" + b"\xff" * 6,
    "long_comment": lambda: png(4, 4, extra=long_text()),
    "comment_for_the_screen": exif,
    "nothing": lambda: b"",
}


def _picture(make: Callable[[], bytes]) -> Callable[[Path, Path], Words]:
    def fill(folder: Path, outside: Path) -> Words:
        place = folder / "train" / "n01440764"
        place.mkdir(parents=True)
        for number in range(2):
            Image.new("RGB", (8, 8), "blue").save(place / f"n01440764_{number}.JPEG")
        (place / "n01440764_9.JPEG").write_bytes(make())
        return [["data", "check", "."], ["data", "prepare", "imagenet", ".", "--size", "8", "--out", "out"]]

    return fill


CASES |= {f"picture_{name}": _picture(make) for name, make in PICTURES.items()}


# What is no regular file, and what leads outside


def _special(kind: str) -> Callable[[Path, Path], None]:
    def make(path: Path, outside: Path) -> None:
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "socket":
            here = Path.cwd()
            os.chdir(path.parent)  # a socket's path may have about a hundred bytes
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(path.name)
            os.chdir(here)
        elif kind == "zero":
            path.symlink_to("/dev/zero")
        elif kind == "loop":
            path.symlink_to(path.name)
        else:
            path.symlink_to(os.path.relpath(outside / kind, path.parent))

    return make


SPECIAL = ("pipe", "socket", "zero", "loop")


def _place(kind: str, name: str) -> Callable[[Path, Path], Words]:
    def fill(folder: Path, outside: Path) -> Words:
        make = _special(kind)
        if name == "picture":
            words = CASES["picture_nothing"](folder, outside)
            path = folder / "train" / "n01440764" / "n01440764_9.JPEG"
            path.unlink()
        elif name == "records":
            words, path = [["data", "check", "."]], folder / "hellaswag_train.jsonl"
            (folder / "hellaswag_val.jsonl").write_text("{}\n")
        else:
            words, path = [["data", "check", "."]], folder / "faster_rcnn_coco_val.h5"
            with h5py.File(folder / "faster_rcnn_coco_train.h5", "w") as file:
                file["a"] = 1
        make(path, outside)
        return words

    return fill


CASES |= {f"{kind}_for_{name}": _place(kind, name) for name in ("picture", "records") for kind in SPECIAL}
CASES["link_for_picture"] = _place("secret.png", "picture")
CASES["link_for_records"] = _place("secret.txt", "records")
CASES["link_for_arrays"] = _place("secret.h5", "arrays")


@case
def class_folder_that_is_a_link(folder: Path, outside: Path) -> Words:
    (folder / "train").mkdir()
    (folder / "train" / "n01440764").symlink_to(outside / "pictures" / "n01440764")
    return [["data", "check", "."], ["data", "prepare", "imagenet", ".", "--size", "8", "--out", "out"]]


@case
def split_that_is_a_link(folder: Path, outside: Path) -> Words:
    (folder / "train").symlink_to(outside / "pictures")
    return [["data", "check", "."], ["data", "show", "imagenet", ".", "--out", "sheet.png"]]


@case
def dataset_that_is_a_link(folder: Path, outside: Path) -> Words:
    (folder / "imagenet").mkdir()
    (folder / "imagenet" / "train").symlink_to(outside / "pictures")
    return [["data", "check", "."]]


# Records


def _clevr(name: str) -> Callable[[Path, Path], Words]:
    def fill(folder: Path, outside: Path) -> Words:
        (folder / "questions").mkdir()
        (folder / "images" / "train").mkdir(parents=True)
        Image.new("RGB", (4, 4)).save(folder / "images" / "train" / "a.png")
        program = [{"function": "count", "inputs": [], "value_inputs": []}]
        question = {
            "question_index": 0,
            "image_filename": name,
            "image_index": 0,
            "question": "how many",
            "answer": "1",
        }
        rows = {"questions": [{**question, "program": program}]}
        (folder / "questions" / "CLEVR_train_questions.json").write_text(json.dumps(rows))
        return [["data", "check", "."]]

    return fill


NAMES = {
    "dots": "../../../outside/secret.png",
    "root": "/etc/passwd",
    "nul": "a\0b.png",
    "long": "a" * 5000,
    "screen": "\x1b[2J\x1b]0;owned\x07.png",
    "turned": "\u202egnp.exe",
    "surrogate": "\ud800.png",
    "empty": "",
}
CASES |= {f"picture_called_{name}": _clevr(value) for name, value in NAMES.items()}


def _lines(content: bytes) -> Callable[[Path, Path], Words]:
    def fill(folder: Path, outside: Path) -> Words:
        (folder / "hellaswag_train.jsonl").write_bytes(content)
        return [["data", "check", "."]]

    return fill


CASES |= {
    "deep_json": _lines(b"[" * 200_000 + b"\n"),
    "long_number": _lines(b'{"ind": ' + b"9" * 100_000 + b"}\n"),
    "long_line": _lines(b'{"ind": "' + b"a" * (1 << 26) + b'"}\n'),
    "no_text": _lines(bytes(range(256)) * 100),
    "screen_commands": _lines(b'{"ind": "\\u001b[2J", "\\u001b]0;owned\\u0007": 1}\n'),
}


# Arrays, pickles, tables


def _h5(add: Callable[[Any, Path], None]) -> Callable[[Path, Path], Words]:
    def fill(folder: Path, outside: Path) -> Words:
        with h5py.File(folder / "faster_rcnn_coco_train.h5", "w") as file:
            file["bboxes"], file["num_boxes"] = np.array([[[0, 0, 1, 1]]], "f4"), [1]
            add(file, outside)
        return [["data", "check", "."]]

    return fill


def _virtual(file: Any, outside: Path) -> None:
    layout = h5py.VirtualLayout((1, 1, 2048), "f4")
    layout[:] = h5py.VirtualSource(str(outside / "secret.h5"), "bbox_features", (1, 1, 2048))
    file.create_virtual_dataset("bbox_features", layout)


def _external(file: Any, outside: Path) -> None:
    file.create_dataset("bbox_features", (1, 1, 2048), "f4", external=[(str(outside / "secret.bin"), 0, 8192)])


CASES |= {
    "h5_external_storage": _h5(_external),
    "h5_virtual": _h5(_virtual),
    "h5_external_link": _h5(
        lambda file, outside: file.__setitem__(
            "bbox_features", h5py.ExternalLink(str(outside / "secret.h5"), "bbox_features")
        )
    ),
    "h5_soft_link": _h5(lambda file, outside: file.__setitem__("bbox_features", h5py.SoftLink("/bboxes"))),
    "h5_of_terabytes": _h5(
        lambda file, outside: file.create_dataset("bbox_features", (10**8, 1, 2048), "f4", chunks=(1, 1, 2048))
    ),
}


class _Calls:
    def __init__(self, function: Callable[..., Any], *given: Any) -> None:
        self.call = function, given

    def __reduce__(self) -> Any:
        return self.call


def _pickled(value: Any) -> Callable[[Path, Path], Words]:
    def fill(folder: Path, outside: Path) -> Words:
        for name in ("train", "test", "meta"):
            (folder / name).write_bytes(pickle.dumps(value))
        return [["data", "check", "."]]

    return fill


CASES |= {
    "pickle_system": _pickled(_Calls(os.system, "touch owned")),
    "pickle_eval": _pickled(_Calls(eval, "open('/etc/passwd')")),
    "pickle_open": _pickled(_Calls(open, "/etc/passwd")),
    "pickle_bomb": _pickled(_Calls(bytes, 10**11)),
}


@case
def pickled_weights(folder: Path, outside: Path) -> Words:
    (folder / "w").mkdir()
    (folder / "w" / "config.json").write_text(json.dumps({"model_type": "vilt", "hidden_size": 8}))
    (folder / "w" / "pytorch_model.bin").write_bytes(pickle.dumps(_Calls(os.system, "touch owned")))
    return [["HOSTILE-WEIGHTS"]]


@case
def weights_that_are_links(folder: Path, outside: Path) -> Words:
    (folder / "w").mkdir()
    (folder / "w" / "config.json").symlink_to(outside / "secret.json")
    (folder / "w" / "model.safetensors").symlink_to(outside / "secret.bin")
    (folder / "w" / "vocab.txt").symlink_to(outside / "secret.txt")
    return [["HOSTILE-WEIGHTS"]]


@case
def weights_that_are_pipes(folder: Path, outside: Path) -> Words:
    (folder / "w").mkdir()
    os.mkfifo(folder / "w" / "config.json")
    os.mkfifo(folder / "w" / "model.safetensors")
    return [["HOSTILE-WEIGHTS"]]


@case
def weights_that_lead_outside(folder: Path, outside: Path) -> Words:
    (folder / "w").mkdir()
    (folder / "w" / "config.json").write_text(json.dumps({"model_type": "vilt"}))
    index = {"weight_map": {"a": "../../outside/secret.bin", "b": "/etc/passwd"}}
    (folder / "w" / "model.safetensors.index.json").write_text(json.dumps(index))
    return [["HOSTILE-WEIGHTS"]]


@case
def synsets_that_unpack_to_gigabytes(folder: Path, outside: Path) -> Words:
    CASES["picture_nothing"](folder, outside)
    zeros = zlib.compressobj(9)
    packed = b"".join(zeros.compress(bytes(1 << 20)) for _ in range(1000)) + zeros.flush()
    head = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<HH", 0x0100, 0x4D49)
    (folder / "meta.mat").write_bytes(head + struct.pack("<II", 15, len(packed)) + packed)
    return [["data", "check", "."]]


def _table(image: Any) -> Callable[[Path, Path], Words]:
    def fill(folder: Path, outside: Path) -> Words:
        (folder / "imagenet").mkdir()
        rows = pyarrow.Table.from_pylist([{"image": image, "label": 1}])
        parquet.write_table(rows, folder / "imagenet" / "train.parquet")
        return [["data", "check", "imagenet"]]

    return fill


CASES |= {
    "table_with_eps": _table({"bytes": eps(), "path": "a.png"}),
    "table_with_bomb": _table({"bytes": png(40_000, 40_000), "path": "a.png"}),
    "table_that_leads_outside": _table({"bytes": None, "path": "../../outside/secret.png"}),
}


# Stores


def _store(change: Callable[[Path, Path], None], *more: list[str]) -> Callable[[Path, Path], Words]:
    """A store of two runs, one of them changed, and what one looks at a store with."""

    def fill(folder: Path, outside: Path) -> Words:
        put(folder / "runs", record(seed=3))
        change(put(folder / "runs", record(run=RUN)), outside)
        looks = [["report", "runs"], ["compare", "runs"], ["list", "runs"], ["show", RUN], ["verify", "runs"]]
        return [*looks, ["cache", "--store", "runs"], ["watch", "runs", "--once"], *more]

    return fill


def _instead(name: str, kind: str, failed: bool = False) -> Callable[[Path, Path], Words]:
    def change(run: Path, outside: Path) -> None:
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).unlink(missing_ok=True)
        if failed:
            (run / "record.json").unlink(missing_ok=True)
        _special(kind)(run / name, outside)

    return _store(change)


FILES = ("config.json", "environment.json", "record.json", "lock", "progress.json", "scores.jsonl", "model.safetensors")
CASES |= {f"store_pipe_for_{name}": _instead(name, "pipe") for name in FILES}
CASES |= {
    "store_link_for_record": _instead("record.json", "run/record.json"),
    "store_link_for_config": _instead("config.json", "run/config.json"),
    "store_link_for_failure": _instead("failure.txt", "secret.txt", failed=True),
    "store_pipe_for_failure": _instead("failure.txt", "pipe", failed=True),
    "store_link_for_picture": _instead("pictures/a.png", "secret.png"),
    "store_pipe_for_picture": _instead("pictures/a.png", "pipe"),
    "store_link_for_pictures": _instead("pictures", "pictures/n01440764"),
    "store_link_for_table": _instead("tables/a.json", "secret.json"),
    "store_pipe_for_table": _instead("tables/a.json", "pipe"),
    "store_zero_for_table": _instead("tables/a.json", "zero"),
    "store_pipe_for_lock_of_a_failed_run": _instead("lock", "pipe", failed=True),
}


@case
def store_run_that_is_a_link(folder: Path, outside: Path) -> Words:
    words = _store(lambda run, outside: None)(folder, outside)
    (folder / "runs" / "run").symlink_to(outside / "run")
    return words


def _texts(text: str) -> Callable[[Path, Path], Words]:
    """A text wherever a record has one."""

    def change(run: Path, outside: Path) -> None:
        value = record(run=RUN, algorithm=f"replay{text}")
        value["config"]["benchmark"]["scale"] = text
        value["environment"]["command"] = f"holdfast run patterns {text}"
        value["environment"]["device"] = text
        value["reasons"] = {"forgetting": text}
        value["problems"] = [text]
        value["dropped"] = 1
        for score in value["scores"]:
            score["name"] += text
        for name in ("config", "environment"):
            (run / f"{name}.json").write_text(json.dumps(value[name]))
        (run / "record.json").write_text(json.dumps(value))
        (run / "tables").mkdir()
        table = {"title": text, "columns": [text], "rows": [[text]], "notes": [text]}
        (run / "tables" / "a.json").write_text(json.dumps(table))
        (run / "pictures").mkdir()
        (run / "pictures" / "a.svg").write_text(f"<svg xmlns='http://www.w3.org/2000/svg'>{text}</svg>")

    return _store(change, ["compare", "runs", "--format", "csv"], ["compare", "runs", "--format", "markdown"])


CASES |= {
    "store_texts_for_the_screen": _texts("\x1b]0;owned\x07\x1b[2J\x9b2J\r"),
    "store_texts_that_turn": _texts("\u202eevil\u2066"),
    "store_texts_as_html": _texts("\"'><script>owned()</script><img src=x onerror=owned()>"),
    "store_texts_as_markup": _texts("[bold red]owned[/] [link=file:///etc/passwd]x[/link]"),
    "store_texts_as_formula": _texts("=cmd|'/c owned'!A0"),
    "store_texts_as_command": _texts("; touch owned; $(touch owned) `touch owned`"),
}


@case
def store_folder_named_for_the_screen(folder: Path, outside: Path) -> Words:
    words = _store(lambda run, outside: None)(folder, outside)
    put(folder / "runs", record(run="\x1b[2Jowned"))
    return words


@case
def store_of_a_deep_record(folder: Path, outside: Path) -> Words:
    return _store(lambda run, outside: (run / "record.json").write_text("[" * 200_000) and None)(folder, outside)


# Stores that runs go on in: where a run would write, a link leads outside


def _resumed(name: str, target: str) -> Callable[[Path, Path], Words]:
    def fill(folder: Path, outside: Path) -> Words:
        """The id of the run is known only to the command: the links are made by a first call, see `inside.py`."""
        words = ["run", "patterns", "--scale", "tiny", "--set", "train.epochs=1", "--out", "runs"]
        return [["HOSTILE-LINK", name, str(outside / target)], words]

    return fill


CASES |= {
    f"resume_with_a_link_for_{name}": _resumed(name, target)
    for name, target in {
        "scores.jsonl": "secret.txt",
        "checkpoints": "run",
        "stages": "run",
        "predictions": "run",
        "lock": "secret.txt",
        "config.json": "secret.txt",
        ".record.json.writing": "owned",
        ".model.safetensors.writing": "owned",
        ".progress.json.writing": "owned",
        "failure.txt": "secret.txt",
    }.items()
}
