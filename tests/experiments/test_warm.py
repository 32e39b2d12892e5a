"""The server of worker processes starts before torch is imported, and its children are ready at once."""

import subprocess
import sys

SCRIPT = """
import sys
from holdfast.experiments import warm

from child import report

context = warm.server()
assert "torch" not in sys.modules
ours, theirs = context.Pipe()
with warm.main_unseen():
    process = context.Process(target=report, args=(theirs,))
    process.start()
print(*ours.recv())
process.join()
assert warm.server() is not None
"""
CHILD = """
def report(connection):
    import gc, sys
    connection.send(("torch" in sys.modules, gc.get_threshold()[0]))
"""


def test_a_server_that_imports_for_others_while_its_parent_has_not(tmp_path):
    (tmp_path / "child.py").write_text(CHILD)
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "50000"]
