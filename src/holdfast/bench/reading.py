"""The time and memory needed to read the largest annotation files, at their official size."""

from __future__ import annotations

import json
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from holdfast.datasets.base import Reading
from holdfast.datasets.vqav2 import DATASET
from holdfast.world.writers import vqav2

LIMIT_SECONDS, LIMIT_GIB = 20.0, 2.0


@dataclass(frozen=True)
class ReadingTime:
    """Seconds to write the synthetic files, and to read them; the peak memory of this process."""

    questions: int
    write_seconds: float
    read_seconds: float
    peak_gib: float


def vqav2_annotations(scale: str = "paper") -> ReadingTime:
    """Write VQAv2's training questions without pictures (empty files take their place), and read them all.

    At the scale `paper`, there are as many synthetic questions as official ones; the scenes are synthetic.
    """
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        start = time.perf_counter()
        vqav2.write(folder, scale, 0, images=False, splits=("train2014",))
        _stand_in(folder)
        written = time.perf_counter()
        count = sum(1 for _ in DATASET.examples(folder, "train", Reading()))
        done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return ReadingTime(count, written - start, done - written, peak)


def _stand_in(folder: Path) -> None:
    (folder / "train2014").mkdir(exist_ok=True)
    questions = json.loads((folder / "v2_OpenEnded_mscoco_train2014_questions.json").read_text(encoding="utf-8"))
    for image in {question["image_id"] for question in questions["questions"]}:
        (folder / "train2014" / f"COCO_train2014_{image:012d}.jpg").touch()
