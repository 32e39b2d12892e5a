"""The image databases of UNITER: a file `NAME.npz` for each image, in a folder or as the values of an LMDB.

Arrays of an image: `features` (boxes, 2048) and `norm_bb` (boxes, 6), whose first four columns are corners as shares of
the sides, both float16; `conf` (boxes, 1), by which boxes are sorted. Detected boxes are used if their confidence is
above 0.2, at least 10 and at most 100 of them; of the objects' own boxes (`vcr_gt_*`), all are used.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.datasets.base import DataError, Problem, Reading
from holdfast.errors import UserError
from holdfast.files import open_regular

SURE, FEWEST, MOST = 0.2, 10, 100
_NAME = re.compile(r"(?P<of>coco|nlvr2|flickr30k|vcr)_(?P<rest>[\w-]{1,100})\.npz")
_KINDS = ("<f2", "<f4", "<f8")

Boxes = tuple[NDArray[np.float32], NDArray[np.float32]]
"""The features of an image's boxes, and their corners."""


def image_id(file: str) -> str:
    """The id of an image from the name of its file; a ValueError for any other name.

    >>> [image_id(f"{name}.npz") for name in ("coco_val2014_000000000042", "nlvr2_dev-0-0-img1", "vcr_gt_train_7")]
    ['42', 'dev-0-0-img1', 'train-7']
    """
    found = _NAME.fullmatch(file)
    if found is None:
        raise ValueError("its name is not that of an image, such as nlvr2_dev-0-0-img0.npz")
    of, rest = found["of"], found["rest"]
    if of == "nlvr2":
        return rest
    *split, number = rest.removeprefix("gt_").split("_")
    if not number.isdigit():
        raise ValueError("its name does not end with the number of an image")
    return f"{split[-1]}-{int(number)}" if of == "vcr" and split else str(int(number))


def database(folder: Path) -> Path | None:
    """The folder of the files of a database, or of its LMDB; None if there is neither."""
    for place in (folder, *sorted(path for path in folder.glob("*") if path.is_dir())):
        if (place / "data.mdb").is_file() or next(place.glob("*.npz"), None) is not None:
            return place
    return None


def read(folder: Path, given: Path | None, reading: Reading) -> Iterator[tuple[str, Boxes]]:
    """The id of each image of a database, with its boxes; boxes `given` for its objects come first."""
    names, load = _opened(folder)
    known, more = ({}, load) if given is None else _by_id(given)
    for name in names:
        try:
            own = image_id(name)
            parts = [_boxes(load(name), detected=True)]
            if own in known:
                parts.insert(0, _boxes(more(known[own]), detected=False))
        except ValueError as error:
            reading.bad(folder, name[:100], str(error), "download the database again")
            continue
        yield own, (np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts]))


def _by_id(folder: Path) -> tuple[dict[str, str], Callable[[str], Mapping[str, Any]]]:
    names, load = _opened(folder)
    return {image_id(name): name for name in names if _NAME.fullmatch(name)}, load


def _opened(folder: Path) -> tuple[list[str], Callable[[str], Mapping[str, Any]]]:
    """The names of a database, and a function from a name to its arrays."""
    if (folder / "data.mdb").is_file():
        return _lmdb(folder)
    return sorted(path.name for path in folder.glob("*.npz")), lambda name: _npz((folder / name).open("rb"))


def _lmdb(folder: Path) -> tuple[list[str], Callable[[str], Mapping[str, Any]]]:
    try:
        import lmdb
        import msgpack
    except ImportError:
        raise UserError(f'{folder} is an LMDB: pip install "holdfast[uniter]" to read it') from None
    open_regular(folder / "data.mdb").close()
    try:
        transaction = lmdb.open(str(folder), readonly=True, lock=False, readahead=False).begin()
        content = transaction.get(b"__keys__")
        names = json.loads(content) if content else [key.decode() for key, _ in transaction.cursor()]
    except (lmdb.Error, ValueError) as error:
        what = f"it is not a complete LMDB ({error!s:.80})"
        raise DataError(Problem(str(folder), "", what, "download and unpack it again")) from None

    def load(name: str) -> Mapping[str, Any]:
        value = transaction.get(name.encode())
        if value is None:
            raise ValueError("the database lists it, but does not contain it")
        if value[:2] == b"PK":
            return _npz(io.BytesIO(value))
        try:
            found = msgpack.unpackb(value, raw=False, strict_map_key=False, object_hook=_array)
        except Exception as error:  # damaged bytes fail in many ways
            raise ValueError(f"it is damaged ({error!s:.80})") from None
        return found if isinstance(found, dict) else {}

    return [name for name in names if isinstance(name, str) and name != "__keys__"], load


def _npz(file: Any) -> Mapping[str, Any]:
    try:
        with file, np.load(file, allow_pickle=False) as found:
            return {name: found[name] for name in ("features", "norm_bb", "conf") if name in found}
    except Exception as error:  # a damaged archive fails in many ways
        raise ValueError(f"it is damaged ({error!s:.80})") from None


def _array(record: dict[Any, Any]) -> Any:
    """An array as msgpack-numpy stores it."""
    if not record.get(b"nd"):
        return record
    if record.get(b"type") not in _KINDS:
        raise ValueError(f"an array is of the type {record.get(b'type')!r:.20}")
    return np.frombuffer(record[b"data"], record[b"type"]).reshape(record[b"shape"])


def _boxes(arrays: Mapping[str, Any], detected: bool) -> Boxes:
    features, corners = arrays.get("features"), arrays.get("norm_bb")
    if not all(
        isinstance(each, np.ndarray) and each.ndim == 2 and each.dtype.kind == "f" for each in (features, corners)
    ):
        raise ValueError("it has no features and norm_bb")
    assert isinstance(features, np.ndarray)
    assert isinstance(corners, np.ndarray)
    if len(features) != len(corners) or len(features) == 0 or corners.shape[1] < 4:
        raise ValueError(f"its features {features.shape} and norm_bb {corners.shape} do not match")
    count = len(features)
    if detected and isinstance(sure := arrays.get("conf"), np.ndarray):
        count = min(max(int((sure > SURE).sum()), FEWEST), MOST)
    found = features[:count].astype(np.float32), corners[:count, :4].astype(np.float32)
    if not all(np.isfinite(each).all() for each in found):
        raise ValueError("its features or boxes have a number that is not finite")
    return found
