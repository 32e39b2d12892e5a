import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from holdfast.data import augment as ours
from holdfast.data.augment import augment, augmented
from holdfast.errors import UserError
from holdfast.types import Batch, Part

STRONG = 1 + 0.9 * ours.STRENGTH
WEAK = 1 - 0.9 * ours.STRENGTH


@pytest.fixture
def images():
    """Smooth pictures, noise, one that uses few values, and one of a single colour."""
    rng = np.random.default_rng(3)
    y, x = np.mgrid[0:24, 0:32]
    smooth = [np.stack([40 + 3 * x + n, 200 - 4 * y, 90 + x + 2 * y], -1) for n in range(3)]
    noise = [rng.integers(low, high, (24, 32, 3)) for low, high in [(0, 256), (60, 140), (100, 102)]]
    one = [np.full((24, 32, 3), 77)]
    return torch.from_numpy(np.stack(smooth + noise + one).astype(np.uint8).transpose(0, 3, 1, 2).copy())


def pillow(images, change):
    arrays = [np.asarray(change(Image.fromarray(image.permute(1, 2, 0).numpy()))) for image in images]
    return torch.from_numpy(np.stack(arrays).transpose(0, 3, 1, 2).copy())


def distance(left, right):
    assert left.dtype == right.dtype == torch.uint8
    return (left.int() - right.int()).abs()


@pytest.mark.parametrize(
    ("operation", "sign", "change"),
    [
        (ours.autocontrast, 1, ImageOps.autocontrast),
        (ours.equalize, 1, ImageOps.equalize),
        (ours.solarize, 1, lambda image: ImageOps.solarize(image, 26)),
        (ours.posterize, -1, lambda image: ImageOps.posterize(image, 4)),
        (ours.color, 1, lambda image: ImageEnhance.Color(image).enhance(STRONG)),
        (ours.color, -1, lambda image: ImageEnhance.Color(image).enhance(WEAK)),
        (ours.contrast, 1, lambda image: ImageEnhance.Contrast(image).enhance(STRONG)),
        (ours.contrast, -1, lambda image: ImageEnhance.Contrast(image).enhance(WEAK)),
        (ours.brightness, 1, lambda image: ImageEnhance.Brightness(image).enhance(STRONG)),
        (ours.brightness, -1, lambda image: ImageEnhance.Brightness(image).enhance(WEAK)),
        (ours.sharpness, 1, lambda image: ImageEnhance.Sharpness(image).enhance(STRONG)),
        (ours.sharpness, -1, lambda image: ImageEnhance.Sharpness(image).enhance(WEAK)),
    ],
)
def test_colours_are_pillows(images, operation, sign, change):
    found = operation(images, torch.full((len(images),), sign * ours.STRENGTH))
    expected = pillow(images, change)
    assert distance(found, expected).max() <= 1
    assert (found == expected).float().mean() > 0.99
    assert (expected != images).any()


def test_colours_take_a_strength_for_each_image(images):
    strength = torch.linspace(-0.9, 0.9, len(images))
    together = ours.color(images, strength)
    alone = [ours.color(images[row : row + 1], strength[row : row + 1]) for row in range(len(images))]
    assert torch.equal(together, torch.cat(alone))


def affine(move, strength, height, width):
    """Pillow's six numbers for one of our maps: from the pixels of the output to those of the input."""
    to_unit = np.array([[2 / width, 0, -1], [0, 2 / height, -1], [0, 0, 1]])
    return (
        (np.linalg.inv(to_unit) @ move(torch.tensor([strength]), height / width)[0].numpy() @ to_unit)[:2]
        .flatten()
        .tolist()
    )


@pytest.mark.parametrize("move", [ours.rotate, ours.shear_x, ours.shear_y, ours.translate_x, ours.translate_y])
@pytest.mark.parametrize("sign", [1, -1])
def test_places_are_pillows_within_interpolation(images, move, sign):
    smooth = images[:3]
    height, width = smooth.shape[-2:]
    found = ours.transformed(smooth, move(torch.full((3,), 0.9 * sign), height / width)[:, :2])
    numbers = affine(move, 0.9 * sign, height, width)

    def change(image):
        return image.transform(
            image.size, Image.Transform.AFFINE, numbers, Image.Resampling.BILINEAR, fillcolor=ours.FILL
        )

    close = distance(found, pillow(smooth, change)) <= 2
    assert close.float().mean() > 0.9  # what differs is the edge: Pillow fills where we still blend
    assert (found != smooth).float().mean() > 0.3


def test_a_rotation_is_pillows_rotation(images):
    found = ours.transformed(images[:3], ours.rotate(torch.full((3,), 0.9), 24 / 32)[:, :2])
    expected = pillow(images[:3], lambda i: i.rotate(27, Image.Resampling.BILINEAR, fillcolor=ours.FILL))
    other = pillow(images[:3], lambda i: i.rotate(-27, Image.Resampling.BILINEAR, fillcolor=ours.FILL))
    closest = max((distance(found, each) <= 2).float().mean() for each in (expected, other))
    assert closest > 0.9


def test_no_move_is_exact(images):
    assert torch.equal(ours.transformed(images, torch.eye(3)[:2].repeat(len(images), 1, 1)), images)


def test_flips_are_exact_and_about_half():
    images = torch.randint(256, (400, 3, 5, 7), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(1)
    found = augment(images, "flip")
    same = (found == images).flatten(1).all(1)
    mirrored = (found == images.flip(-1)).flatten(1).all(1)
    assert (same ^ mirrored).all()
    assert 150 < mirrored.sum() < 250


def test_a_crop_is_a_shift_by_at_most_an_eighth_and_a_flip():
    image = torch.arange(1, 193, dtype=torch.uint8).view(1, 8, 24).expand(3, 8, 24)
    padded = torch.zeros(3, 10, 30, dtype=torch.uint8)
    padded[:, 1:9, 3:27] = image
    windows = [padded[:, y : y + 8, x : x + 24] for y in range(3) for x in range(7)]
    allowed = {tuple(w.flatten().tolist()) for window in windows for w in (window, window.flip(-1))}
    torch.manual_seed(0)
    found = {tuple(f.flatten().tolist()) for f in augment(image.expand(1000, 3, 8, 24), "crop")}
    assert found == allowed
    found = {tuple(f.flatten().tolist()) for f in augment(image.expand(1000, 3, 8, 24), "shift")}
    assert found == {tuple(window.flatten().tolist()) for window in windows}


def test_erasing_takes_every_fourth_and_a_rectangle_of_the_right_size():
    images = torch.full((2000, 3, 32, 32), 255, dtype=torch.uint8)
    torch.manual_seed(0)
    changed = ours.erased(images) != images
    assert torch.equal(changed.any(1), changed.all(1))
    area = changed[:, 0].flatten(1).sum(1)
    hit = area > 0
    assert abs(float(hit.float().mean()) - 0.25) < 0.03
    tall, wide = changed[:, 0].any(2).sum(1), changed[:, 0].any(1).sum(1)
    assert torch.equal(area, tall * wide)
    share = area[hit] / 1024
    assert 0.01 < share.min() < 0.04
    assert 0.28 < share.max() < 0.37


@pytest.mark.parametrize("kind", ["flip", "crop", "randaugment"])
def test_a_seed_repeats_and_images_differ(kind):
    image = torch.randint(256, (3, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    images = image.expand(32, 2, 3, 16, 16)
    torch.manual_seed(5)
    first = augment(images, kind)
    other = augment(images, kind)
    torch.manual_seed(5)
    assert torch.equal(augment(images, kind), first)
    assert not torch.equal(other, first)
    assert first.shape == images.shape
    assert first.dtype == torch.uint8
    assert torch.equal(images, image.expand(32, 2, 3, 16, 16)), "the table's images stay as they are"
    ways = {tuple(row.flatten().tolist()) for row in first.flatten(0, 1)}
    assert len(ways) == 2 if kind == "flip" else len(ways) > 10


def test_randaugment_draws_two_operations_of_fourteen(monkeypatch):
    seen = []
    marks = [lambda images, strength, n=n: seen.append((n, len(images))) or images for n in range(8)]
    monkeypatch.setattr(ours, "_COLOURS", tuple(marks))
    monkeypatch.setattr(ours, "erased", lambda images: images)
    torch.manual_seed(0)
    images = torch.randint(256, (2800, 3, 4, 4), dtype=torch.uint8)
    found = augment(images, "randaugment")
    counts = np.zeros(8)
    for number, rows in seen:
        counts[number] += rows
    assert np.abs(counts - 2 * 2800 / 14).max() < 80  # four deviations of a count of 400
    moved = float((found != images).flatten(1).any(1).float().mean())
    assert abs(moved - (1 - (9 / 14) ** 2)) < 0.04


def test_a_batch_keeps_what_has_no_images_and_refuses_padded_ones():
    images = torch.randint(256, (8, 3, 6, 6), dtype=torch.uint8)
    text = Part("words", {"text": torch.ones(2, 3)}, torch.zeros(2))
    part = Part("pictures", {"image": images, "text": torch.ones(8, 3)}, torch.zeros(8))
    torch.manual_seed(0)
    found = augmented(Batch(np.arange(10), (text, part)), "flip")
    assert found.parts[0] is text
    assert found.parts[1].inputs["text"] is part.inputs["text"]
    assert not torch.equal(found.parts[1].inputs["image"], images)
    padded = Part("pairs", {"image": images, "image_size": torch.ones(8, 2)}, torch.zeros(8))
    with pytest.raises(UserError, match="'pairs' has padded images"):
        augmented(Batch(np.arange(8), (padded,)), "crop")


def test_what_cannot_be_is_told():
    with pytest.raises(UserError, match="unknown augmentation 'flop': did you mean flip"):
        augment(torch.zeros(1, 3, 4, 4, dtype=torch.uint8), "flop")
    with pytest.raises(UserError, match="1 channels, not 3"):
        augment(torch.zeros(1, 1, 4, 4, dtype=torch.uint8), "randaugment")
