"""Hostile folders, tables, Hugging Face models, features and archives: more cases, in addition to `corpus.py`."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow
import torch
from PIL import Image
from pyarrow import ipc, parquet
from safetensors.torch import save_file

from hostile.corpus import NAMES, Words, _Calls, _special, eps, png

CASES: dict[str, Callable[[Path, Path], Words]] = {}
QUICK = ["--set", "train.epochs=1", "-j", "1", "--no-needs", "--out", "runs"]
SCREEN = "\x1b]0;owned\x07\x9b2J\u202e"


# The user's own folders and tables


def _classes(folder: Path, count: int = 6) -> Path:
    for name in ("ant", "bee"):
        (folder / name).mkdir(parents=True)
        for number in range(count):
            Image.new("RGB", (8, 8), (40 * number, 90, 90)).save(folder / name / f"{number}.png")
    return folder


def _folder(make: Callable[[Path, Path], Any]) -> Callable[[Path, Path], Words]:
    def fill(folder: Path, outside: Path) -> Words:
        make(_classes(folder / "photos"), outside)
        words = ["run", "folder", "--data", "photos", "--set", "benchmark.side=8", "--set", "model.channels=4", *QUICK]
        return [words, [*words, "--skip-bad", "9"]]

    return fill


def _link(name: str, target: str) -> Callable[[Path, Path], Any]:
    return lambda root, outside: (root / name).symlink_to(os.path.relpath(outside / target, (root / name).parent))


CASES |= {
    "folder_with_an_eps": _folder(lambda root, outside: (root / "ant" / "9.jpg").write_bytes(eps())),
    "folder_with_a_bomb": _folder(lambda root, outside: (root / "ant" / "9.png").write_bytes(png(40_000, 40_000))),
    "folder_with_a_link": _folder(_link("ant/9.png", "secret.png")),
    "folder_with_a_linked_class": _folder(_link("cow", "pictures/n01440764")),
    "folder_with_a_linked_split": _folder(
        lambda root, outside: [(root / "train").mkdir(), (root / "ant").rename(root / "train" / "ant"),
                               (root / "bee").rename(root / "train" / "bee"),
                               (root / "test").symlink_to(outside / "pictures")]
    ),
    "folder_with_a_pipe": _folder(lambda root, outside: os.mkfifo(root / "ant" / "9.png")),
    "folder_in_a_circle": _folder(lambda root, outside: (root / "cow").symlink_to("..")),
    "folder_for_the_screen": _folder(lambda root, outside: (root / "ant").rename(root / f"ant{SCREEN}")),
    "folder_that_is_a_pipe": lambda folder, outside: [
        os.mkfifo(folder / "photos"), ["run", "folder", "--data", "photos", *QUICK]
    ][1:],
}  # fmt: skip

TABLE = ["--set", "benchmark.target=answer", "--set", "benchmark.side=8"]


def _rows(name: str, make: Callable[[Path, Path], Any], *more: str) -> Callable[[Path, Path], Words]:
    """A table, of a file or folder `name`, that a function makes."""

    def fill(folder: Path, outside: Path) -> Words:
        (folder / "data").mkdir()
        Image.new("RGB", (8, 8)).save(folder / "data" / "0.png")
        make(folder / "data", outside)
        words = ["run", "table", "--data", f"data/{name}".rstrip("/"), *TABLE, *(more or _PICTURE), *QUICK]
        return [[*words, "--skip-bad", "9"], *([] if name == "qa.parquet" else [words])]

    return fill


_SPLIT = ("--set", "benchmark.split=split", "--set", "benchmark.stages=1", "--set", "benchmark.setting=domain")
_PICTURE = ("--set", "benchmark.image=image", "--set", "model.channels=4", *_SPLIT)
_TEXT = ("--set", "benchmark.text=text")


def _pictures() -> str:
    """The lines of a table of a sound picture."""
    lines = [f"0.png,{'ab'[number % 2]},{('train', 'test')[number > 15]}\n" for number in range(20)]
    return "image,answer,split\n" + "".join(lines)


def _csv(cell: str) -> Callable[[Path, Path], Words]:
    def make(data: Path, outside: Path) -> None:
        (data / "qa.csv").write_text(f'{_pictures()}"{cell}",a,train\n', errors="surrogatepass")

    return _rows("qa.csv", make)


CASES |= {f"csv_with_picture_called_{name}": _csv(value) for name, value in NAMES.items()}


def _text(name: str, content: bytes) -> Callable[[Path, Path], Words]:
    return _rows(name, lambda data, outside: (data / name).write_bytes(content), *_TEXT)


CASES |= {
    "csv_of_a_long_field": _text("qa.csv", b'text,answer\n"' + b"a" * (1 << 25) + b'",b\n'),
    "csv_of_many_columns": _text("qa.csv", b",".join(b"c%d" % number for number in range(300_000)) + b"\n"),
    "csv_of_nothing_but_quotes": _text("qa.csv", b'"' * 1_000_001),
    "csv_for_the_screen": _text("qa.csv", f"text,answer\nx,a{SCREEN}\ny,=cmd|'/c owned'!A0\n{SCREEN},b\n".encode() * 9),
    "json_lines_that_are_deep": _text("qa.jsonl", b'{"text": ' + b"[" * 200_000 + b"\n"),
    "json_that_is_deep": _text("qa.json", b"[" * 200_000),
    "json_with_a_long_number": _text("qa.json", b'[{"text": "a", "answer": ' + b"9" * 100_000 + b"}]"),
    "json_of_no_end": _text("qa.json", b'[{"text": "' + b"a" * (1 << 26)),
    "csv_that_is_a_link": _rows("qa.csv", lambda data, outside: (data / "qa.csv").symlink_to(
        "../../outside/secret.txt"), *_TEXT),
    "csv_that_is_a_pipe": _rows("qa.csv", lambda data, outside: os.mkfifo(data / "qa.csv"), *_TEXT),
    "table_folder_with_a_link": _rows("", lambda data, outside: (data / "train.csv").symlink_to(
        "../../outside/secret.txt"), *_TEXT),
    "table_folder_with_a_linked_folder": _rows("", lambda data, outside: (data / "train").symlink_to("../../outside"),
                                               *_TEXT),
    "table_folder_with_a_pipe": _rows("", lambda data, outside: os.mkfifo(data / "train.csv"), *_TEXT),
    "table_folder_in_a_circle": _rows("", lambda data, outside: (data / "train").symlink_to("."), *_TEXT),
    "table_with_linked_picture": _rows("qa.csv", lambda data, outside: [
        (data / "9.png").symlink_to("../../outside/secret.png"),
        (data / "qa.csv").write_text(f"{_pictures()}9.png,a,train\n")]),
    "table_with_linked_pictures": _rows("qa.csv", lambda data, outside: [
        (data / "more").symlink_to("../../outside"),
        (data / "qa.csv").write_text(f"{_pictures()}more/secret.png,a,train\n")]),
}  # fmt: skip


def _parquet(image: Any) -> Callable[[Path, Path], Words]:
    def make(data: Path, outside: Path) -> None:
        file = io.BytesIO()
        Image.new("RGB", (8, 8)).save(file, "PNG")
        good = {"image": {"bytes": file.getvalue(), "path": "a.png"}}
        some = [{**good, "answer": "ab"[n % 2], "split": ("train", "test")[n > 15]} for n in range(20)]
        rows = pyarrow.Table.from_pylist([*some, {"image": image, "answer": "a", "split": "train"}])
        parquet.write_table(rows, data / "qa.parquet")

    return _rows("qa.parquet", make)


def _bomb(data: Path, outside: Path) -> None:
    """A parquet file of kilobytes whose text column unpacks to gigabytes."""
    long = pyarrow.array(["a" * (1 << 20)] * 3000)
    rows = pyarrow.table({"text": long.dictionary_encode(), "answer": ["ab"[n % 2] for n in range(3000)]})
    parquet.write_table(rows, data / "qa.parquet", compression="zstd")


def _shards(data: Path, outside: Path) -> None:
    """A folder of the `datasets` library whose list of files leads outside."""
    state = {"_data_files": [{"filename": "../../outside/secret.bin"}, {"filename": "/etc/passwd"}], "_split": "train"}
    (data / "state.json").write_text(json.dumps(state))
    (data / "data-00000-of-00001.arrow").symlink_to("../../outside/secret.bin")


def _arrow_that_lies(data: Path, outside: Path) -> None:
    """An Arrow stream whose offsets point anywhere."""
    file = io.BytesIO()
    rows = pyarrow.table({"text": ["abcdefgh"] * 64, "answer": ["ab"[n % 2] for n in range(64)]})
    with ipc.new_stream(file, rows.schema) as writer:
        writer.write_table(rows)
    content = file.getvalue().replace(struct.pack("<ii", 8, 16), struct.pack("<ii", 2**31 - 9, -(2**31) + 1), 1)
    (data / "qa.arrow").write_bytes(content)


CASES |= {
    "parquet_with_an_eps": _parquet({"bytes": eps(), "path": "a.png"}),
    "parquet_with_a_bomb": _parquet({"bytes": png(40_000, 40_000), "path": "a.png"}),
    "parquet_that_leads_outside": _parquet({"bytes": None, "path": "../../outside/secret.png"}),
    "parquet_that_unpacks_to_gigabytes": _rows("qa.parquet", _bomb, *_TEXT),
    "arrow_shards_that_lead_outside": _rows("", _shards, *_TEXT),
    "arrow_that_lies": _rows("qa.arrow", _arrow_that_lies, *_TEXT),
}


# Models in Hugging Face's format

SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 20, "vocab_size": 30}


def _hub(make: Callable[[Path, Path], Any], **config: Any) -> Callable[[Path, Path], Words]:
    def fill(folder: Path, outside: Path) -> Words:
        lines = [f"{'abcd'[n % 4]} x\t{'yn'[n % 2]}\t{('train', 'test')[n > 30]}\n" for n in range(40)]
        (folder / "rows.tsv").write_text("text\tanswer\tsplit\n" + "".join(lines))
        (folder / "w").mkdir()
        about = {"model_type": "bert", "architectures": ["BertModel"], **SIZES, **config}
        (folder / "w" / "config.json").write_text(json.dumps(about))
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxy"]
        (folder / "w" / "vocab.txt").write_text("\n".join(words))
        make(folder / "w", outside)
        run = [
            "run",
            "table",
            "--data",
            "rows.tsv",
            "--model",
            "hf:w",
            "--set",
            "benchmark.target=answer",
            *_TEXT,
            *_SPLIT,
        ]
        return [[*run, "--dry-run", "--out", "runs"], [*run, *QUICK]]

    return fill


def _weights(place: Path) -> None:
    from transformers import BertConfig, BertModel

    save_file(BertModel(BertConfig(**SIZES)).state_dict(), place / "model.safetensors", {"format": "pt"})


def _pickled(place: Path, outside: Path) -> None:
    torch.save({"embeddings.word_embeddings.weight": _Calls(os.system, "touch owned")}, place / "pytorch_model.bin")


def _plain_pickle(place: Path, outside: Path) -> None:
    (place / "pytorch_model.bin").write_bytes(pickle.dumps(_Calls(os.system, "touch owned")))


def _code(place: Path, outside: Path) -> None:
    _weights(place)
    for name in ("modeling_mine", "configuration_mine", "tokenization_mine"):
        (place / f"{name}.py").write_text("open('owned', 'w')\nclass Mine:\n    pass\n")


_AUTO = {
    "AutoConfig": "configuration_mine.Mine",
    "AutoModel": "modeling_mine.Mine",
    "AutoTokenizer": ["tokenization_mine.Mine", None],
}


def _tokenizer(place: Path, outside: Path) -> None:
    _code(place, outside)
    about = {"tokenizer_class": "Mine", "auto_map": {"AutoTokenizer": ["tokenization_mine.Mine", None]}}
    (place / "tokenizer_config.json").write_text(json.dumps(about))


def _shards_outside(place: Path, outside: Path) -> None:
    index = {"metadata": {}, "weight_map": {"embeddings.word_embeddings.weight": "../../outside/secret.bin"}}
    (place / "model.safetensors.index.json").write_text(json.dumps(index))


def _linked(name: str, target: str) -> Callable[[Path, Path], None]:
    def make(place: Path, outside: Path) -> None:
        if not name.startswith("model"):
            _weights(place)
        (place / name).unlink(missing_ok=True)
        (place / name).symlink_to(f"../../outside/{target}")

    return make


def _piped(name: str) -> Callable[[Path, Path], None]:
    def make(place: Path, outside: Path) -> None:
        if name != "model.safetensors":
            _weights(place)
        (place / name).unlink(missing_ok=True)
        os.mkfifo(place / name)

    return make


def _beside(name: str, content: Any) -> Callable[[Path, Path], None]:
    def make(place: Path, outside: Path) -> None:
        _weights(place)
        (place / name).write_text(json.dumps(content))

    return make


_ADAPTER = {"peft_type": "LORA", "base_model_name_or_path": "../../outside", "r": 1, "target_modules": ["query"]}
_whole = lambda place, outside: _weights(place)  # noqa: E731

CASES |= {
    "hub_pickled_weights": _hub(_pickled),
    "hub_plain_pickle": _hub(_plain_pickle),
    "hub_code_beside_a_known_model": _hub(_code, auto_map=_AUTO),
    "hub_code_of_an_unknown_model": _hub(_code, auto_map=_AUTO, model_type="mine"),
    "hub_code_of_a_tokenizer": _hub(_tokenizer),
    "hub_code_elsewhere": _hub(
        _whole, auto_map={"AutoModel": "nobody/nothing--modeling.Mine", "AutoConfig": "nobody/nothing--c.M"},
        model_type="mine",
    ),
    "hub_kernels_from_elsewhere": _hub(_whole, _attn_implementation="nobody/kernels:run"),
    "hub_quantised_by_an_unknown_library": _hub(_whole, quantization_config={"quant_method": "gptq", "bits": 4}),
    "hub_adapter_of_a_model_outside": _hub(_beside("adapter_config.json", _ADAPTER)),
    "hub_backbone_to_download": _hub(
        _whole, model_type="timm_backbone", backbone="resnet18", use_pretrained_backbone=True
    ),
    "hub_detector_with_a_backbone": _hub(
        _whole, model_type="detr", backbone="resnet50", use_timm_backbone=True, use_pretrained_backbone=True
    ),
    "hub_processor_for_the_screen": _hub(_beside("preprocessor_config.json", {"image_mean": SCREEN, "size": SCREEN})),
    "hub_shards_outside": _hub(_shards_outside),
    "hub_linked_weights": _hub(_linked("model.safetensors", "secret.bin")),
    "hub_linked_config": _hub(_linked("config.json", "secret.json")),
    "hub_linked_words": _hub(_linked("vocab.txt", "secret.txt")),
    "hub_linked_tokenizer": _hub(_linked("tokenizer.json", "secret.json")),
    "hub_linked_tokenizer_config": _hub(_linked("tokenizer_config.json", "secret.json")),
    "hub_linked_processor": _hub(_linked("preprocessor_config.json", "secret.json")),
    "hub_piped_weights": _hub(_piped("model.safetensors")),
    "hub_piped_config": _hub(_piped("config.json")),
    "hub_piped_words": _hub(_piped("vocab.txt")),
    "hub_piped_tokenizer": _hub(_piped("tokenizer.json")),
    "hub_piped_generation_config": _hub(_piped("generation_config.json")),
    "hub_ten_million_layers": _hub(_whole, num_hidden_layers=10**7),
    "hub_a_billion_wide": _hub(_whole, hidden_size=10**9),
    "hub_a_trillion_words": _hub(_whole, vocab_size=10**12),
    "hub_no_heads": _hub(_whole, num_attention_heads=0),
    "hub_words_for_sizes": _hub(_whole, hidden_size=SCREEN, num_hidden_layers="many"),
    "hub_type_for_the_screen": _hub(_whole, model_type=SCREEN),
}  # fmt: skip


# Features


def _npy(header: str, body: bytes = b"") -> bytes:
    text = header.ljust(117) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode() + body


def _object(place: Path, outside: Path) -> None:
    array = np.empty(1, object)
    array[0] = _Calls(os.system, "touch owned")
    np.save(place / "regions.npy", array, allow_pickle=True)


def _regions(place: Path, outside: Path) -> None:
    np.save(place / "regions.npy", np.ones((1, 1, 4), np.float16))
    np.save(place / "regions.bboxes.npy", np.array([[[0, 0, 1, 1]]], np.float32))
    np.save(place / "regions.num_boxes.npy", np.ones(1, np.int64))
    np.save(place / "regions.sizes.npy", np.ones((1, 2), np.int64))
    np.save(place / "regions.id.npy", np.array(["a.png"]))


def _features(make: Callable[[Path, Path], Any]) -> Callable[[Path, Path], Words]:
    def fill(folder: Path, outside: Path) -> Words:
        _regions(folder, outside)
        make(folder, outside)
        return [["data", "check", ".", "--as", "region_features"]]

    return fill


def _replaced(name: str, content: bytes) -> Callable[[Path, Path], Words]:
    return _features(lambda place, outside: (place / name).write_bytes(content))


def _other(name: str, kind: str) -> Callable[[Path, Path], Words]:
    def make(place: Path, outside: Path) -> None:
        (place / name).unlink(missing_ok=True)
        _special(kind)(place / name, outside)

    return _features(make)


def _note(files: dict[str, str]) -> Callable[[Path, Path], Words]:
    return _features(lambda place, outside: (place / "regions.json").write_text(json.dumps({"files": files})))


_PARTS = ("regions.npy", "regions.bboxes.npy", "regions.num_boxes.npy", "regions.sizes.npy", "regions.id.npy")
HUGE = "{'descr': '<f2', 'fortran_order': False, 'shape': (100000000000, 36, 2048), }"
CASES |= {f"features_pipe_for_{name}": _other(name, "pipe") for name in (*_PARTS, "regions.json")}
CASES |= {f"features_link_for_{name}": _other(name, "secret.bin") for name in (*_PARTS, "regions.json")}
CASES |= {
    "features_of_objects": _features(_object),
    "features_of_objects_in_ids": _replaced("regions.id.npy", pickle.dumps(_Calls(os.system, "touch owned"))),
    "features_zip_for_ids": _replaced("regions.id.npy", b"PK\3\4" + b"\0" * 99),
    "features_of_terabytes": _replaced("regions.npy", _npy(HUGE)),
    "features_ids_of_terabytes": _replaced("regions.id.npy", _npy(HUGE.replace("<f2", "<U999"))),
    "features_header_that_is_code": _replaced("regions.id.npy", _npy("__import__('os').system('touch owned')")),
    "features_header_that_is_deep": _replaced("regions.id.npy", _npy("(" * 60_000)),
    "features_note_that_leads_outside": _note({"../outside/secret.bin": "0" * 16, "/etc/passwd": "0" * 16}),
    "features_note_of_a_pipe": _note({"../features_pipe_for_regions.npy/regions.npy": "0" * 16}),
}


# CPIN's archive


def _cpin(make: Callable[[Path, Path], Any], name: str = "PIN/train/a.jpg") -> Callable[[Path, Path], Words]:
    def fill(folder: Path, outside: Path) -> Words:
        (folder / "PIN" / "PIN" / "train").mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(folder / "PIN" / "PIN" / "train" / "a.jpg")
        rows = [{"newFileName": name, "label": ["a", "b"], "objects": ["a"], "position": [0], "comb": ["a", "b"]}]
        (folder / "PIN" / "PIN" / "continual.json").write_text(json.dumps(rows))
        make(folder / "PIN" / "PIN", outside)
        return [["data", "check", ".", "--as", "cpin"]]

    return fill


def _instead(name: str, kind: str) -> Callable[[Path, Path], Words]:
    def make(root: Path, outside: Path) -> None:
        (root / name).unlink(missing_ok=True)
        _special(kind)(root / name, outside)

    return _cpin(make)


CASES |= {f"cpin_picture_called_{key}": _cpin(lambda root, outside: None, value) for key, value in NAMES.items()}
CASES |= {
    "cpin_pipe": _instead("continual.json", "pipe"),
    "cpin_link": _instead("continual.json", "secret.json"),
    "cpin_linked_picture": _instead("train/a.jpg", "secret.png"),
    "cpin_deep": _cpin(lambda root, outside: (root / "continual.json").write_text("[" * 200_000)),
}


def cpin_root_that_is_a_link(folder: Path, outside: Path) -> Words:
    (folder / "PIN").symlink_to(outside / "pictures")
    return [["data", "check", ".", "--as", "cpin"]]


# Stored exports, shown again


def store_of_an_export(folder: Path, outside: Path) -> Words:
    """What `compare` exports is read by nothing of ours but a spreadsheet: an export in place of a store."""
    (folder / "runs.csv").write_text("algorithm\n=cmd|'/c owned'!A0\n")
    return [["compare", "runs.csv"], ["verify", "runs.csv"], ["report", "runs.csv"]]


def _h5_maps(folder: Path, outside: Path) -> Words:
    with h5py.File(folder / "regions.h5", "w") as file:
        file.create_dataset("bbox_features", (1, 1, 4), "f2", external=[(str(outside / "secret.bin"), 0, 8)])
        file["bboxes"], file["num_boxes"], file["sizes"] = np.ones((1, 1, 4), "f4"), [1], [[1, 1]]
        file["ids"] = np.array([b"a.png"])
    return [["data", "check", ".", "--as", "region_features"]]


CASES |= {
    "features_external_storage": _h5_maps,
    "cpin_root_that_is_a_link": cpin_root_that_is_a_link,
    "store_of_an_export": store_of_an_export,
}
