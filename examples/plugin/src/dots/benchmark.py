from dataclasses import dataclass
from typing import Annotated

import numpy as np

import holdfast as hf
from dots.task import Locate

SHADES = {"white-on-black": (0, 255), "black-on-white": (255, 0), "white-on-grey": (128, 255)}
"""Of each stage, the background and the dot."""
SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class Dots(hf.Benchmark):
    """Where the dot is, in pictures of six by six pixels: on another background in each stage."""

    default_model = "dots-net"
    measures = {
        "found": hf.Measure("found", higher=True, mean_of=("*",)),
        "lost": hf.Measure("lost since learned", higher=False, relies_on="found"),
    }

    count: Annotated[int, hf.Between(1)] = 200
    """How many pictures each stage has of each split."""

    def setup(self, wants):
        stages = {
            name: {split: self.draw(*shades, seed) for seed, split in enumerate(SPLITS)}
            for name, shades in SHADES.items()
        }
        training = hf.Training(epochs=20, batch_size=20, optimiser="adam", learning_rate=0.003)
        return hf.streams.in_stages(stages, Locate("dots", head="dots"), training)

    def draw(self, background, dot, seed):
        places = np.random.default_rng([background, seed]).integers(0, 6, (self.count, 2))
        pictures = np.full((self.count, 6, 6), background, np.uint8)
        pictures[np.arange(self.count), *places.T] = dot
        return pictures, places.astype(np.float32)

    @staticmethod
    def summary(scores):
        usual = hf.Benchmark.summary(scores)
        return {"found": usual["final_accuracy"], "lost": usual["forgetting"]}
