import numpy as np

import holdfast as hf


def read(folder, split, reading):
    """A line is a picture and where its dot is: 36 shades in hexadecimal, a row, and a column."""
    for number, line in enumerate((folder / f"{split}.txt").read_text().splitlines(), 1):
        try:
            shades, row, column = line.split()
            picture = np.array([17 * int(shade, 16) for shade in shades], np.uint8).reshape(6, 6, 1)
            place = int(row), int(column)
        except ValueError:
            reading.bad(folder / f"{split}.txt", f"line {number}", "it is not 36 shades, a row and a column")
            continue
        yield hf.streams.Example(f"{split}-{number}", place, (picture,))


DOTS = hf.streams.Dataset("dots", ("train", "test"), read, present=lambda folder: (folder / "dots.version").is_file())
