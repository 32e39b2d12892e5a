"""Folders of small pictures, for tests: each class has a colour, and noise."""

import numpy as np
from PIL import Image

COLOURS = {
    "ant": (200, 40, 40),
    "bee": (40, 200, 40),
    "cow": (40, 40, 200),
    "dog": (200, 200, 40),
    "eel": (40, 200, 200),
}
QUICK = {"benchmark.side": 8, "model.channels": 4, "train.epochs": 3, "train.batch_size": 16}


def draw(path, colour, seed, size=(12, 10), noise=40):
    random = np.random.default_rng([seed, *path.name.encode()])
    pixels = np.clip(np.array(colour) + random.normal(0, noise, (size[1], size[0], 3)), 0, 255).astype(np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


def photos(folder, classes="ant bee cow dog", count=20, ending="png"):
    """One folder for each class."""
    for name in classes.split():
        for number in range(count):
            draw(folder / name / f"{number:03d}.{ending}", COLOURS[name], 1)
    return folder


def domains(folder, count=10):
    """Two classes in three domains: as they are, dark, and blue."""
    for domain, change in {"art": (0, 0, 0), "dusk": (-60, -60, -60), "sea": (0, 0, 90)}.items():
        for name in ("ant", "bee"):
            colour = np.clip(np.add(COLOURS[name], change), 0, 255)
            for number in range(count):
                draw(folder / domain / name / f"{number:03d}.png", colour, 2)
    return folder
