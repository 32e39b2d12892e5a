"""Region features in place of a detector's: the content of each box, randomly projected, with noise.

The projection is always the same, so that the features of two synthetic datasets can be compared. The features carry
the noun, attributes and action of a thing, or the place if a box shows mainly that. The files written are VisCOLL's
HDF5 files with their maps from rows to images, the bottom-up TSV of six columns, with 36 boxes per image and with 10 to
100, and LXMERT's TSV of ten columns, for COCO and for NLVR2.

At the small scales, the LXMERT and Flickr30k files cover every image of VQAv2, NLVR2 and SNLI-VE. A row of LXMERT's
36 boxes takes 400 kB: except at the paper's scale, it has one box for each thing, and two for the place.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from holdfast.world.scene import Box, Scene, Thing
from holdfast.world.vocabulary import COLOURS, MATERIALS, MORE_NOUNS, PATTERNS, PLACES, SIZES, THINGS, VERBS
from holdfast.world.writers import coco, flickr30k_entities, nlvr2
from holdfast.world.writers.json_files import write_json
from holdfast.world.writers.scales import Amount, at_scale

VERSION = 1
Floats = npt.NDArray[np.float32]

# The maximum number of images in the two bottom-up files, in each of LXMERT's and in each of COCO's HDF5 files;
# Flickr30k's HDF5 files have all images.
COUNTS: dict[str, dict[str, int]] = {
    "tiny": {"trainval": 16, "adaptive": 6, "lxmert": 8_000, "hdf5": 60},
    "small": {"trainval": 400, "adaptive": 100, "lxmert": 8_000, "hdf5": 2_600},
    "large": {"trainval": 5_000, "adaptive": 1_000, "lxmert": 8_000, "hdf5": 40_000},
    "paper": {"trainval": 123_287, "adaptive": 123_287, "lxmert": 1_000_000, "hdf5": 117_266},
}
BOXES, WIDTH = 36, 2048
HDF5_BOXES = 100
HDF5_WIDTHS = {"coco": 1024, "flickr": WIDTH}
"""VisCOLL's are 1024 wide; Flickr30k's are used with LXMERT's in one model, and so have the same width."""
NOISE = 0.35
_NOUNS = [noun for noun in THINGS if noun not in MORE_NOUNS]  # what COCO, Flickr30k and NLVR2 show
_WORDS = (*_NOUNS, *COLOURS, *SIZES, *MATERIALS, *PATTERNS, *PLACES, *VERBS)
_OF_THE_PLACE = 2
_NLVR2_FILES = {"train": "train", "dev": "valid", "test1": "test"}


def amount(scale: str) -> Amount:
    """The amount of data written at a scale.

    >>> amount("tiny")
    Amount(records=1084, pictures=0, pixels=0, values=9228288)
    """
    counts, coco_counts = at_scale(COUNTS, scale), at_scale(coco.COUNTS, scale)
    val = len(coco.image_ids("val2017", scale))
    hdf5 = [min(split, counts["hdf5"]) for split in (coco_counts["train2014"] + coco_counts["val2014"] - val, val)]
    hdf5 += at_scale(flickr30k_entities.COUNTS, scale).values()
    # Some pairs of NLVR2 are used twice; on average a scene of COCO has three things, and one of NLVR2 two.
    lxmert = [(min(coco_counts[split], counts["lxmert"]), 3) for split in ("train2014", "val2014")]
    pairs = [round(1.5 * at_scale(nlvr2.COUNTS, scale)[split]) for split in _NLVR2_FILES]
    lxmert += [(min(images, counts["lxmert"]), 2) for images in pairs]
    boxes = sum(images * (BOXES if scale == "paper" else things + _OF_THE_PLACE) for images, things in lxmert)
    boxes += BOXES * counts["trainval"] + 55 * counts["adaptive"]  # 10 to 100 of them
    rows = sum(hdf5) + sum(images for images, _ in lxmert) + counts["trainval"] + counts["adaptive"]
    return Amount(rows, values=WIDTH * boxes)


def write(folder: Path, scale: str, seed: int) -> None:
    """Write `faster_rcnn_{coco,flickr}_*.h5` and maps, `trainval_36`, `trainval`, `{mscoco,nlvr2}_imgfeat`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder), "tiny", seed=0)
    ...     sorted(path.name for path in (Path(folder) / "nlvr2_imgfeat").iterdir())
    ['test_obj36.tsv', 'train_obj36.tsv', 'valid_obj36.tsv']
    """
    most = at_scale(COUNTS, scale)
    for split in ("train", "val"):
        numbers = coco.image_ids(f"{split}2017", scale)[: most["hdf5"]]
        _write_hdf5(folder, f"coco_{split}", numbers, numbers, lambda number: coco.coco_scene(number, seed), seed)
    for split in ("train", "val", "test"):
        numbers = flickr30k_entities.image_numbers(split, scale)
        ids = [flickr30k_entities.image_id(number) for number in numbers]
        scene_of: Callable[[int], Scene] = lambda number: flickr30k_entities.flickr_scene(number, seed)  # noqa: E731
        _write_hdf5(folder, f"flickr_{split}", numbers, ids, scene_of, seed)
    random = np.random.default_rng([seed, 21, 0])
    both = coco.image_ids("train2014", scale) + coco.image_ids("val2014", scale)
    name = "trainval_resnet101_faster_rcnn_genome"
    chosen = [both[index] for index in random.permutation(len(both))]  # the rows of the original are shuffled too
    _write_rows(
        folder / "trainval_36" / f"{name}_36.tsv", (_bottom_up(n, seed, BOXES) for n in chosen[: most["trainval"]])
    )
    adaptive = (_bottom_up(n, seed, 10 + n % 91) for n in chosen[: most["adaptive"]])
    _write_rows(folder / "trainval" / f"{name}.tsv", adaptive)
    for split in ("train2014", "val2014"):
        _write_lxmert(folder / "mscoco_imgfeat" / f"{split}_obj36.tsv", _coco_shown(split, scale, seed), scale, seed)
    for split, part in _NLVR2_FILES.items():
        _write_lxmert(folder / "nlvr2_imgfeat" / f"{part}_obj36.tsv", _nlvr2_shown(split, scale, seed), scale, seed)


def regions(scene: Scene, random: np.random.Generator, count: int, times: int = 2) -> list[tuple[Box, Thing | None]]:
    """Boxes as a detector finds them: each thing `times` times at about its position, and places without a thing.

    >>> from holdfast.world.scene import make_scene
    >>> scene = make_scene(0, 1)
    >>> len(regions(scene, np.random.default_rng(0), 36))
    36
    """
    found: list[tuple[Box, Thing | None]] = []
    for index in range(count):
        if index < times * len(scene.things):
            thing = scene.things[index % len(scene.things)]
            found.append((_near(random, thing.box), thing))
        else:
            left, top, width, height = (float(number) for number in random.uniform(0.05, 0.45, 4))
            found.append((Box(left, top, width + 0.05, height + 0.05), None))
    return found


def features(scene: Scene, seen: list[tuple[Box, Thing | None]], random: np.random.Generator, width: int) -> Floats:
    """One row for each box: never negative, like the features of a network.

    >>> from holdfast.world.scene import make_scene
    >>> scene, random = make_scene(0, 1), np.random.default_rng(0)
    >>> features(scene, regions(scene, random, 10), random, 1024).shape
    (10, 1024)
    """
    rows = np.zeros((len(seen), width), dtype=np.float32)
    for row, (_, thing) in zip(rows, seen, strict=True):
        words = (scene.place,) if thing is None else _words(thing)
        for number in sorted({_WORDS.index(word) for word in words}):  # one by one: every machine then rounds alike
            row += _projection(width)[number]
    noise = random.standard_normal((len(seen), width), dtype=np.float32) * np.float32(NOISE)
    return np.maximum(rows + noise, np.float32(0)).astype(np.float32)


def _words(thing: Thing) -> tuple[str, ...]:
    does = (thing.verb,) if thing.verb else ()
    return thing.noun, thing.colour, thing.size, thing.material, thing.pattern, *does


@cache
def _projection(width: int) -> Floats:
    return np.random.default_rng([21, width]).standard_normal((len(_WORDS), width), dtype=np.float32)


def _near(random: np.random.Generator, box: Box) -> Box:
    """The box, slightly shifted, but still within the picture."""
    shift = random.uniform(-0.02, 0.02, 4)
    left, top = max(0.0, box.left + shift[0]), max(0.0, box.top + shift[1])
    width, height = max(0.02, box.width + shift[2]), max(0.02, box.height + shift[3])
    return Box(float(min(left, 0.97)), float(min(top, 0.97)), float(min(width, 1 - left)), float(min(height, 1 - top)))


def _corners(seen: list[tuple[Box, Thing | None]], width: int, height: int) -> Floats:
    rows = [(box.left, box.top, min(1.0, box.left + box.width), min(1.0, box.top + box.height)) for box, _ in seen]
    return np.array(rows, dtype=np.float32) * np.array([width, height, width, height], dtype=np.float32)


def _write_hdf5(
    folder: Path,
    name: str,
    numbers: list[int],
    ids: list[int] | list[str],
    scene_of: Callable[[int], Scene],
    seed: int,
) -> None:
    import h5py  # type: ignore[import-untyped]

    folder.mkdir(parents=True, exist_ok=True)
    size_of = coco.image_size if name.startswith("coco") else flickr30k_entities.image_size
    width = HDF5_WIDTHS[name.partition("_")[0]]
    write_json(folder / f"{name}_map.json", {str(row): image_id for row, image_id in enumerate(ids)})
    with h5py.File(folder / f"faster_rcnn_{name}.h5", "w") as file:
        packed = {"dtype": "float32", "compression": "gzip", "compression_opts": 1}
        shape = (len(numbers), HDF5_BOXES, width)
        rows = file.create_dataset("bbox_features", shape, chunks=(1, 10, width), **packed)
        boxes = file.create_dataset("bboxes", (len(numbers), HDF5_BOXES, 4), **packed)
        counts = file.create_dataset("num_boxes", (len(numbers),), dtype="int64")
        for row, number in enumerate(numbers):
            scene, random = scene_of(number), np.random.default_rng([seed, 21, 1, number])
            seen = regions(scene, random, min(HDF5_BOXES, 10 + 2 * len(scene.things)))
            # Unused boxes stay zero; `num_boxes` says where they begin.
            rows[row, : len(seen)] = features(scene, seen, random, width)
            boxes[row, : len(seen)] = _corners(seen, *size_of(number))
            counts[row] = len(seen)


def _write_rows(path: Path, rows: Iterable[list[object]]) -> None:
    """Write tab-separated columns; rows end like those of Python's csv module, with a carriage return and line feed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for row in rows:
            file.write(("\t".join(str(cell) for cell in row) + "\r\n").encode("ascii"))


def _base64(array: npt.NDArray[np.generic]) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")


def _detected(
    scene: Scene, size: tuple[int, int], seed: int, count: int, times: int = 2
) -> tuple[list[tuple[Box, Thing | None]], Floats, Floats]:
    random = np.random.default_rng([seed, 21, 2, scene.number])
    seen = regions(scene, random, count, times)
    return seen, _corners(seen, *size), features(scene, seen, random, WIDTH)


def _bottom_up(number: int, seed: int, count: int) -> list[object]:
    _, boxes, rows = _detected(coco.coco_scene(number, seed), coco.image_size(number), seed, count)
    return [number, *coco.image_size(number), count, _base64(boxes), _base64(rows)]


def _coco_shown(split: str, scale: str, seed: int) -> Iterator[tuple[str, Scene, tuple[int, int]]]:
    for number in coco.image_ids(split, scale):
        yield f"COCO_{split}_{number:012d}", coco.coco_scene(number, seed), coco.image_size(number)


def _nlvr2_shown(split: str, scale: str, seed: int) -> Iterator[tuple[str, Scene, tuple[int, int]]]:
    """The images of all annotated pairs, by the names of their files; all of them are in landscape format."""
    for number, claims, scenes in nlvr2.sets(split, at_scale(nlvr2.COUNTS, scale)[split], seed):
        for pair in sorted({claim.pair for claim in claims}):
            for side in (0, 1):
                yield f"{split}-{number}-{pair}-img{side}", scenes[2 * pair + side], (96, 72)


def _write_lxmert(path: Path, shown: Iterator[tuple[str, Scene, tuple[int, int]]], scale: str, seed: int) -> None:
    few = islice(shown, at_scale(COUNTS, scale)["lxmert"])
    _write_rows(path, (_lxmert(*each, seed, scale == "paper") for each in few))


def _lxmert(name: str, scene: Scene, size: tuple[int, int], seed: int, whole: bool) -> list[object]:
    """A row of ten columns; the height comes before the width in this format."""
    count, times = (BOXES, 2) if whole else (len(scene.things) + _OF_THE_PLACE, 1)
    seen, boxes, rows = _detected(scene, size, seed, count, times)
    width, height = size
    nouns = np.array([0 if thing is None else _NOUNS.index(thing.noun) for _, thing in seen], dtype=np.int64)
    colours = [0 if thing is None else list(COLOURS).index(thing.colour) for _, thing in seen]
    sure = np.array([0.2 if thing is None else 0.9 for _, thing in seen], dtype=np.float32)
    labels = [_base64(nouns), _base64(sure), _base64(np.array(colours, dtype=np.int64)), _base64(sure)]
    return [name, height, width, *labels, len(seen), _base64(boxes), _base64(rows)]
