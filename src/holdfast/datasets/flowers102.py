"""Oxford Flowers-102: photographs numbered from 1, with classes and splits in MATLAB files.

The official files have no names of classes: these are the names on the dataset's page, in the order of their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.datasets.base import DataError, Dataset, Problem, Reading, first_file
from holdfast.datasets.formats.classes import AGAIN, listed, read_mat
from holdfast.datasets.formats.files import first_folder
from holdfast.datasets.formats.image_files import ImageFiles
from holdfast.types import Example

VERSION = 1
_SPLITS = {"train": "trnid", "val": "valid", "test": "tstid"}
_NAMES = """
pink primrose, hard-leaved pocket orchid, canterbury bells, sweet pea, english marigold, tiger lily, moon
orchid, bird of paradise, monkshood, globe thistle, snapdragon, colt's foot, king protea, spear thistle, yellow
iris, globe-flower, purple coneflower, peruvian lily, balloon flower, giant white arum lily, fire lily,
pincushion flower, fritillary, red ginger, grape hyacinth, corn poppy, prince of wales feathers, stemless
gentian, artichoke, sweet william, carnation, garden phlox, love in the mist, mexican aster, alpine sea holly,
ruby-lipped cattleya, cape flower, great masterwort, siam tulip, lenten rose, barbeton daisy, daffodil, sword
lily, poinsettia, bolero deep blue, wallflower, marigold, buttercup, oxeye daisy, common dandelion, petunia,
wild pansy, primula, sunflower, pelargonium, bishop of llandaff, gaura, geranium, orange dahlia, pink-yellow
dahlia, cautleya spicata, japanese anemone, black-eyed susan, silverbush, californian poppy, osteospermum,
spring crocus, bearded iris, windflower, tree poppy, gazania, azalea, water lily, rose, thorn apple, morning
glory, passion flower, lotus, toad lily, anthurium, frangipani, clematis, hibiscus, columbine, desert-rose, tree
mallow, magnolia, cyclamen, watercress, canna lily, hippeastrum, bee balm, ball moss, foxglove, bougainvillea,
camellia, mallow, mexican petunia, bromelia, blanket flower, trumpet creeper, blackberry lily
"""
NAMES = tuple(" ".join(name.split()) for name in _NAMES.split(","))


def _root(folder: Path) -> Path:
    return first_folder(folder, ["flowers-102", "flowers102"], ["setid.mat", "imagelabels.mat"])


def _numbers(folder: Path, file: str, name: str) -> list[int]:
    path = first_file(_root(folder), [file], f"download {file} there")
    found = read_mat(path, name)
    try:
        return [int(number) for number in found.ravel()]
    except (TypeError, ValueError):
        raise DataError(Problem(str(path), "", f"its {name!r} are not whole numbers", AGAIN)) from None


def _read(folder: Path, split: str, reading: Reading) -> Iterator[Example]:
    root = _root(folder)
    labels = _numbers(folder, "imagelabels.mat", "labels")
    path, numbers = root / "setid.mat", {str(number + 1): number for number in range(len(NAMES))}
    rows = (
        (row, f"image_{number:05d}.jpg", str(labels[number - 1]) if 0 < number <= len(labels) else "")
        for row, number in enumerate(_numbers(folder, "setid.mat", _SPLITS[split]), 1)
    )
    yield from listed(path, rows, numbers, NAMES, ImageFiles(root), ["jpg/"], reading)


DATASET = Dataset(
    name="flowers102",
    splits=("train", "val", "test"),
    read=_read,
    present=lambda folder: (_root(folder) / "setid.mat").is_file(),
    counts={"train": 1_020, "val": 1_020, "test": 6_149},
    classes=lambda folder: NAMES,
)
