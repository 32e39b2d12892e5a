"""Changes each file that a run reads: wherever its scores change, so must its id.

`PYTHONPATH=tests python tests/damage/inputs.py` prints the counts of docs/reliability.md.

Each case makes its input files and gives a command. The command is traced once, which shows that it reads nothing but
its inputs. Then each input is changed in place, in ways that suit its format, and the command is given again, with the
same cache and an empty store. It must refuse the file, or have another id, or come to the same scores and weights.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import random
import re
import shutil
import sys
import sysconfig
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    from damage.shim import start_again

    start_again()

import numpy as np
from PIL import Image

from benchmarks.pictures import draw, photos
from cli.inside import inside
from damage.shim import child, read_log

ANEW, REFUSED, SAME, WRONG = "another id", "refused", "the same run", "THE SAME ID, OTHER SCORES"
PACKAGE = Path(__file__).parents[2] / "src"
KNOWN = tuple(map(str, ("/proc", "/sys", "/dev", "/etc", "/usr", PACKAGE, Path(__file__).parents[1], sys.prefix)))
KNOWN += (sysconfig.get_path("stdlib"), str(Path(sys.executable).resolve().parents[1]))
KNOWN += tuple(path for path in sys.path if Path(path).name in ("site-packages", "dist-packages"))
"""Python, installed packages and the machine: an id covers the versions of ours, and records name the others'."""
TINY = ("--scale", "tiny")


def _table(folder: Path) -> Sequence[str]:
    """Questions about pictures, in a CSV file."""
    return (*_questions(folder), *_VILT)


def _questions(folder: Path) -> Sequence[str]:
    rows = io.StringIO()
    writer = csv.writer(rows)
    writer.writerow(("image", "question", "answer", "split"))
    for number in range(24):
        draw(folder / "pictures" / f"{number}.png", (40 + 160 * (number % 2), 90, 90), number)
        split = "test" if number % 8 > 5 else "train"
        writer.writerow((f"pictures/{number}.png", "what is it", ("ant", "bee")[number % 2], split))
    (folder / "qa.csv").write_text(rows.getvalue())
    return ("table", "--data", "qa.csv", *_set(image="image", text="question", target="answer", split="split"))


def _folder(folder: Path) -> Sequence[str]:
    """Pictures that are decoded once."""
    photos(folder / "photos", "ant bee", count=8)
    return ("folder", "--data", "photos", *_set(stages=2, side=8, order="random"), "--set", "model.channels=4")


def _reader(folder: Path) -> Sequence[str]:
    """Texts in an official format."""
    _make("sst2", folder)
    return ("dataset", "--data", "sst2", *_set(reader="sst2", stages=2))


def _clevr(folder: Path) -> Sequence[str]:
    """Pictures, questions and programs in an official format."""
    _make("clevr", folder)
    return ("clvqa", "--data", ".", *TINY, "--set", "train.batch_size=256")


def _cifar(folder: Path) -> Sequence[str]:
    """Pickles."""
    _make("cifar100", folder)
    return ("cfst:cifar100", "--data", ".", *TINY)


def _weights(folder: Path) -> Sequence[str]:
    """A folder of weights, beside a small table."""
    shutil.copytree(PACKAGE / "holdfast/models/shipped/vilt-tiny", folder / "encoder")
    return (*_questions(folder), "--set", "model.weights=encoder")


def _features(folder: Path) -> Sequence[str]:
    """A detector's features, in place of pictures."""
    _make("region_features", folder)
    sizes = ("model.width=16", "model.heads=2", "model.hidden=16")
    sizes = tuple(word for size in sizes for word in ("--set", size))
    return ("climb", "--model", "uniter-tiny", "--order", "vqav2", *TINY, *_set(features="region_features"), *sizes)


def _maps(folder: Path) -> Sequence[str]:
    """Feature maps, in place of pictures."""
    _make("clevr", folder)
    names = sorted("/".join(path.parts[-2:]) for path in folder.rglob("*.png"))
    np.save(folder / "maps.npy", np.random.default_rng(0).standard_normal((len(names), 5, 3, 4)).astype(np.float16))
    np.save(folder / "maps.id.npy", np.array(names))
    sizes = ("model.recurrent=8", "model.attention=8", "model.hidden=8", "train.batch_size=256")
    sizes = tuple(word for size in sizes for word in ("--set", size))
    return ("clvqa", "--data", ".", "--model", "san", *TINY, *_set(features="maps.npy"), *sizes)


def _frozen_hub(folder: Path) -> Sequence[str]:
    """An encoder that is frozen, so that what it gives is kept."""
    return (*_hub(folder), "-a", "frozen-encoder")


def _frozen_code(folder: Path) -> Sequence[str]:
    """A model in a file that is frozen, so that what it gives is kept."""
    words = _code(folder)
    text = (folder / "net.py").read_text().replace("torch.relu(", "torch.relu(SCALE * ")
    (folder / "net.py").write_text("from parts.scale import SCALE\n" + text)
    return (*(word for word in words if word not in ("-a", "mine.py:Mine")), "-a", "frozen-encoder")


def _code(folder: Path) -> Sequence[str]:
    """An algorithm and a model in files, and what these import."""
    (folder / "parts").mkdir()
    (folder / "parts" / "__init__.py").write_text("")
    (folder / "parts" / "scale.py").write_text("SCALE = 0.5\n")
    (folder / "mine.py").write_text(
        "from dataclasses import dataclass\nimport holdfast as hf\nfrom parts.scale import SCALE\n\n\n@dataclass\n"
        "class Mine(hf.Algorithm):\n    def grads(self, learner, batch):\n"
        "        for weight in learner.model.parameters():\n            if weight.grad is not None:\n"
        "                weight.grad *= SCALE\n"
    )
    (folder / "net.py").write_text(
        "import torch\nfrom torch import nn\n\nWIDTH = 12\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.first = nn.Linear(144, WIDTH)\n\n    def forward(self, image):\n"
        "        return torch.relu(self.first(image.flatten(1)))\n"
    )
    return ("patterns", *TINY, "-a", "mine.py:Mine", "--model", "net.py:Net")


def _hub(folder: Path) -> Sequence[str]:
    """An encoder in Hugging Face's format, with its tokenizer's words."""
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20}
    BertModel(BertConfig(vocab_size=30, **sizes)).save_pretrained(folder / "bert")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxy"]
    (folder / "bert" / "vocab.txt").write_text("\n".join(words))
    rows = [(f"{'abcd'[n % 4]} {'wxy'[n % 3]}", "yn"[n % 2], "test" if n % 8 > 5 else "train") for n in range(40)]
    (folder / "rows.tsv").write_text("\n".join("\t".join(row) for row in [("text", "answer", "split"), *rows]) + "\n")
    columns = _set(text="text", target="answer", split="split", setting="domain", stages=1)
    return ("table", "--data", "rows.tsv", *columns, "--model", "hf:bert")


CASES: dict[str, Callable[[Path], Sequence[str]]] = {
    "a table of pictures": _table,
    "a folder of pictures": _folder,
    "SST-2": _reader,
    "CLEVR": _clevr,
    "CIFAR-100": _cifar,
    "features": _features,
    "weights": _weights,
    "a Hugging Face encoder": _hub,
    "code": _code,
    "feature maps": _maps,
    "a frozen encoder": _frozen_hub,
    "a frozen model in code": _frozen_code,
}
COMMON = ("--set", "train.epochs=1", "-j", "1", "--no-needs")


def _set(**settings: Any) -> list[str]:
    return [word for name, value in settings.items() for word in ("--set", f"benchmark.{name}={value}")]


_SIZES = {"patch": 8, "width": 16, "depth": 1, "heads": 2, "hidden": 16}
_VILT = [f"model.{name}={value}" for name, value in _SIZES.items()]
_VILT = [word for each in ("model.weights=", *_VILT) for word in ("--set", each)] + _set(side=16)


def _make(name: str, folder: Path) -> None:
    from holdfast import registry

    registry.WRITERS[name].load()(folder / name, "tiny", 0)


# Changes


def change(path: Path, draw: random.Random) -> None:
    """Change a file so that it is still one of its format, if that can be."""
    suffix = path.suffix.lower()
    if suffix in (".png", ".jpg", ".jpeg"):
        with Image.open(path) as image:
            pixels = np.array(image)
        pixels[: 1 + len(pixels) // 2] ^= draw.choice((0x40, 0x80, 0xFF))
        Image.fromarray(pixels).save(path)
    elif suffix in (".json", ".jsonl", ".csv", ".tsv", ".txt", ".py", ".tsv", ""):
        _change_text(path, draw)
    else:
        content = bytearray(path.read_bytes())
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        path.write_bytes(content)


def _change_text(path: Path, draw: random.Random) -> None:
    """Another digit in place of a digit, or another letter in place of a letter."""
    content = path.read_bytes()
    places = [found.start() for found in re.finditer(rb"[0-9]" if path.suffix == ".py" else rb"[A-Za-z0-9]", content)]
    if not places:
        path.write_bytes(content + b"\nX = 1\n")
        return
    place = draw.choice(places)
    before = chr(content[place])
    among = "0123456789" if before.isdigit() else "abcdefghijklmnopqrstuvwxyz"
    after = draw.choice([each for each in among if each != before.lower()])
    path.write_bytes(content[:place] + after.encode() + content[place + 1 :])


# Runs


def give(words: Sequence[str], folder: Path) -> Any:
    """What a command came to: its id, scores and weights, or its message."""
    store = folder.with_name("store")
    shutil.rmtree(store, ignore_errors=True)
    done = inside("run", *words, *COMMON, "--out", store, cwd=folder)
    told = done.stderr.strip()
    if done.returncode:
        return f"TRACEBACK {told[-2000:]}" if "Traceback" in told or not told else told
    (path,) = store.glob("*/record.json")
    record = json.loads(path.read_text(encoding="utf-8"))
    return [record["id"], record["scores"], record["summary"], path.with_name("model.safetensors").read_bytes().hex()]


class Traced:
    """A case whose command was traced: what it reads of its inputs, and what it comes to."""

    def __init__(self, name: str, scratch: Path) -> None:
        self.folder = scratch / "inputs"
        self.folder.mkdir()
        os.environ["HOLDFAST_CACHE"] = str(scratch / "cache")
        self.words = CASES[name](self.folder)
        self.expected = child(lambda: give(self.words, self.folder), self.folder, scratch / "log")
        assert isinstance(self.expected, list), self.expected
        read = {os.path.realpath(each.path) for each in read_log(scratch / "log") if each.what == "read"}
        ours = {path for path in read if path.startswith(f"{self.folder}/") and Path(path).is_file()}
        self.read = sorted(path for path in map(Path, ours) if "__pycache__" not in path.parts)
        inside = (f"{scratch}/", *(f"{known}/" for known in KNOWN), os.environ["SHIM_FOLDER"])
        self.others = sorted(path for path in read if not path.startswith(inside) and Path(path).is_file())

    def try_all(self, files: int, times: int, seed: int = 0) -> dict[str, Counter[str]]:
        """Change files, at most so many of a format, each so many times; what came of it by format."""
        draw, found = random.Random(seed), defaultdict[str, Counter[str]](Counter)
        kinds = defaultdict[str, list[Path]](list)
        for path in self.read:
            kinds[path.suffix or path.name].append(path)
        for kind, paths in kinds.items():
            for path in draw.sample(paths, min(files, len(paths))):
                content = path.read_bytes()
                for _ in range(times):
                    change(path, draw)
                    found[kind][self._judged(child(lambda: give(self.words, self.folder), self.folder))] += 1
                    path.write_bytes(content)
        return found

    def _judged(self, found: Any) -> str:
        if isinstance(found, str):
            return found if found.startswith("TRACEBACK") else REFUSED
        if found[0] != self.expected[0]:
            return ANEW
        return SAME if found == self.expected else f"{WRONG} {found[1][:1]}"


def main() -> None:
    """Print what came of all changes, as JSON lines."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=20, help="files of each format")
    parser.add_argument("--times", type=int, default=5, help="changes of each file")
    parser.add_argument("--case", choices=list(CASES), action="append")
    given = parser.parse_args()
    import holdfast.cli.run
    import holdfast.experiments.carry  # noqa: F401  children need not import it

    for name in given.case or CASES:
        with tempfile.TemporaryDirectory() as folder:
            traced = Traced(name, Path(folder).resolve())
            row = {"case": name, "files": len(traced.read), "read elsewhere": traced.others}
            print(json.dumps(row | {"ended": traced.try_all(given.files, given.times)}), flush=True)


if __name__ == "__main__":
    main()
