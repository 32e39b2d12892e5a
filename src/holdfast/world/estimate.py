"""The cost of writing a dataset: records, pictures, bytes and seconds, from rates that were measured at `small`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.world.writers.scales import Amount


@dataclass(frozen=True)
class Estimate:
    """The size of a dataset to be written; bytes, and seconds of one core, are accurate to about a factor of two."""

    dataset: str
    records: int
    pictures: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class _Rate:
    """Milliseconds and bytes per record and per picture, as measured at `small`."""

    record_time: float
    record_bytes: float
    picture_time: float = 0.0
    picture_bytes: float = 0.0


# Measured on one core of a server of 2023. Whatever is drawn for each record is counted with the picture.
_RATES = {
    "vqav2": _Rate(0.23, 815, 2.5, 3_870),
    "nlvr2": _Rate(0.97, 462, 3.7, 10_980),
    "snli_ve": _Rate(0.39, 708, 2.8, 3_872),
    "vcr": _Rate(0.94, 1_658, 3.5, 4_158),
    "imdb": _Rate(0.59, 338),
    "sst2": _Rate(0.053, 63),
    "hellaswag": _Rate(0.051, 633),
    "commonsenseqa": _Rate(0.038, 360),
    "piqa": _Rate(0.033, 343),
    "imagenet": _Rate(0, 1.1, 1.9, 2_181),
    "inaturalist2019": _Rate(0, 220, 2, 2_334),
    "places365": _Rate(0, 31, 3.1, 4_209),
    "coco": _Rate(0.44, 1_837, 1.8, 3_871),
    "flickr8k": _Rate(1.2, 330, 3.1, 3_872),
    "flickr30k_entities": _Rate(0.4, 324, 3.1, 3_872),
    "phrase_streams": _Rate(0.12, 120),
    "nikolaus": _Rate(1.1, 1_779, 3.1, 3_870),
    "clevr": _Rate(0, 770, 38, 6_600),
    "gqa": _Rate(0, 797, 5.4, 5_835),
    "objects365": _Rate(0, 679, 4.8, 5_710),
    "partimagenet": _Rate(0, 1_121, 2.6, 3_826),
    "cifar100": _Rate(0, 0, 0.57, 3_098),
    "region_features": _Rate(1.9, 12_000),
    "aircraft": _Rate(0, 18, 2.0, 2_200),
    "caltech101": _Rate(0, 0, 2.0, 2_200),
    "dtd": _Rate(0, 40, 2.0, 2_200),
    "eurosat": _Rate(0, 0, 2.0, 2_200),
    "flowers102": _Rate(0, 3, 2.0, 2_200),
    "food101": _Rate(0, 30, 2.0, 2_200),
    "mnist": _Rate(0, 0, 0.1, 180),
    "oxford_pets": _Rate(0, 60, 2.0, 2_200),
    "stanford_cars": _Rate(0, 12, 2.0, 2_200),
    "sun397": _Rate(0, 50, 2.0, 2_200),
    "cgqa": _Rate(0, 334, 2.1, 2_461),
    "cobj": _Rate(0, 161, 3.4, 4_409),
    "cpin": _Rate(0, 480, 3.0, 2_600),
    "cl_benchmark": _Rate(0.2, 150),
    "coin": _Rate(0.4, 300, 2.5, 3_870),
    "ucit": _Rate(0.4, 300, 2.5, 3_870),
}
# A larger picture costs less than its number of pixels suggests: measured from 64 to 256 pixels a side.
_TIME_POWER, _BYTES_POWER = 0.62, 0.75
_VALUE_BYTES = 5.36  # four bytes in base64


def estimate(dataset: str, scale: str) -> Estimate:
    """The cost of writing a dataset at a scale.

    >>> plan = estimate("cifar100", "paper")
    >>> plan.pictures, plan.bytes > 60_000 * 3_072
    (60000, True)
    """
    writer = importlib.import_module(f"holdfast.world.writers.{dataset}")
    here, measured = writer.amount(scale), writer.amount("small")
    assert isinstance(here, Amount)
    rate, larger = _RATES[dataset], here.pixels / measured.pixels if measured.pixels else 1.0
    size = here.records * rate.record_bytes + here.values * _VALUE_BYTES
    size += here.pictures * rate.picture_bytes * larger**_BYTES_POWER
    time = here.records * rate.record_time + here.pictures * rate.picture_time * larger**_TIME_POWER
    return Estimate(dataset, here.records, here.pictures, round(size), round(time / 1000, 3))


def together(plans: Sequence[Estimate], processes: int) -> Estimate:
    """Several estimates combined for this number of processes; one dataset is never split between processes.

    >>> one, two = Estimate("a", 5, 0, 100, 60.0), Estimate("b", 5, 1, 100, 20.0)
    >>> together([one, two], processes=2)
    Estimate(dataset='all', records=10, pictures=1, bytes=200, seconds=60.0)
    """
    seconds = [plan.seconds for plan in plans]
    return Estimate(
        dataset="all",
        records=sum(plan.records for plan in plans),
        pictures=sum(plan.pictures for plan in plans),
        bytes=sum(plan.bytes for plan in plans),
        seconds=max(sum(seconds) / processes, *seconds, 0.0) if plans else 0.0,
    )
