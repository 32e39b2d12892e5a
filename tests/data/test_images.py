import io

import numpy as np
import pytest
from PIL import Image, ImageDraw

from holdfast.data.images import GREY, PERSON_COLOURS, Drawing, decode, draw_boxes, mean_image
from holdfast.errors import UserError


def picture(width: int = 60, height: int = 40) -> np.ndarray:
    """A smooth picture, which JPEG keeps nearly as it is."""
    x, y = np.meshgrid(np.linspace(20, 220, width), np.linspace(20, 220, height))
    return np.stack([x, y, (x + y) / 2], axis=2).astype(np.uint8)


def save(path, image: Image.Image, kind: str, **options):
    with path.open("wb") as file:  # by hand, so that Pillow does not look at the name
        image.save(file, kind, **options)
    return path


def close(found: np.ndarray, wanted: np.ndarray, by: float = 4) -> bool:
    return found.shape == wanted.shape and float(np.abs(found.astype(int) - wanted.astype(int)).mean()) < by


def test_a_png_named_jpeg_is_a_png(tmp_path):
    path = save(tmp_path / "n02105855_2933.JPEG", Image.fromarray(picture()), "PNG")
    np.testing.assert_array_equal(decode(path, None), picture())


@pytest.mark.parametrize(
    ("mode", "kind", "by"),
    [("RGB", "JPEG", 4), ("L", "JPEG", 4), ("CMYK", "JPEG", 8), ("RGBA", "PNG", 1), ("LA", "PNG", 1), ("P", "GIF", 25)],
)
def test_every_mode_becomes_rgb(tmp_path, mode, kind, by):
    image = Image.fromarray(picture()).convert(mode)
    path = save(tmp_path / "image.jpg", image, kind)
    wanted = picture() if mode in ("RGB", "CMYK", "RGBA", "P") else np.array(image.convert("L"))[..., None].repeat(3, 2)
    found = decode(path, None)
    assert found.dtype == np.uint8
    assert close(found, wanted, by)


def test_a_palette_with_transparency_and_sixteen_bits(tmp_path):
    image = Image.fromarray(picture()).quantize(16)
    path = save(tmp_path / "palette.png", image, "PNG", transparency=bytes(range(16)))
    np.testing.assert_array_equal(decode(path, None), np.array(image.convert("RGB")))
    deep = np.arange(0, 65536, 256, dtype=np.uint16).reshape(16, 16)
    path = save(tmp_path / "deep.png", Image.fromarray(deep), "PNG")
    np.testing.assert_array_equal(decode(path, None)[..., 0], np.arange(256).reshape(16, 16) * 256 // 257)


def test_what_cannot_be_decoded_is_named(tmp_path):
    whole = io.BytesIO()
    Image.fromarray(picture(200, 200)).save(whole, "JPEG")
    for name, content in [("cut.jpg", whole.getvalue()[:900]), ("text.jpg", b"<html>404</html>"), ("empty.jpg", b"")]:
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(UserError, match=name):
            decode(path, 32)
    with pytest.raises(UserError, match=r"missing\.jpg: no such image"):
        decode(tmp_path / "missing.jpg", 32)


def test_any_broken_file_is_a_sentence(tmp_path):
    """Bytes changed all over a file: an image comes back, or a UserError, never anything else."""
    rng, path = np.random.default_rng(0), tmp_path / "image"
    for kind in ("PNG", "JPEG", "GIF"):
        whole = io.BytesIO()
        Image.fromarray(picture()).save(whole, kind)
        told = 0
        for _ in range(60):
            content = np.frombuffer(whole.getvalue(), np.uint8).copy()
            content[rng.integers(0, len(content), 8)] = rng.integers(0, 256, 8)
            path.write_bytes(content.tobytes())
            try:
                assert decode(path, 16).shape == (16, 16, 3)
            except UserError:
                told += 1
        assert told > 0


@pytest.mark.parametrize(
    ("width", "height", "wanted"),
    [(640, 480, (384, 512)), (480, 640, (512, 384)), (1920, 800, (267, 640)), (100, 100, (384, 384))],
)
def test_the_shorter_side_is_set_unless_the_longer_one_gets_too_long(width, height, wanted):
    image = np.zeros((height, width, 3), np.uint8)
    assert decode(image, None, shorter=384, longest=640).shape[:2] == wanted


@pytest.mark.parametrize(
    ("width", "height", "wanted"),
    [
        (500, 333, (384, 576)),
        (333, 500, (576, 384)),
        (640, 480, (384, 512)),
        (1920, 800, (256, 608)),
        (999, 9, (32, 608)),
    ],
)
def test_sides_are_rounded_down_to_multiples_of_a_step(width, height, wanted):
    image = np.zeros((height, width, 3), np.uint8)
    assert decode(image, None, shorter=384, longest=639, step=32).shape[:2] == wanted


def test_an_image_that_keeps_its_proportions_is_resized_from_all_of_its_pixels(tmp_path):
    path = save(tmp_path / "large.jpg", Image.fromarray(picture(1200, 800)), "JPEG", quality=95)
    with Image.open(path) as image:
        wanted = np.array(image.resize((144, 96), Image.Resampling.BICUBIC))
    np.testing.assert_array_equal(decode(path, None, shorter=100, longest=200, step=48), wanted)


def test_a_jpeg_decoded_small_looks_like_one_decoded_whole(tmp_path):
    large = picture(1200, 800)
    path = save(tmp_path / "large.jpg", Image.fromarray(large), "JPEG", quality=95)
    whole = np.array(Image.fromarray(large).resize((64, 64), Image.Resampling.BICUBIC))
    assert close(decode(path, 64), whole, 2)


def test_the_same_file_gives_the_same_bytes(tmp_path):
    path = save(tmp_path / "a.jpg", Image.fromarray(picture(300, 200)), "JPEG")
    np.testing.assert_array_equal(decode(path, 48), decode(path, 48))


@pytest.mark.parametrize("array", [np.zeros((2, 2, 2), np.uint8), np.zeros((2, 2, 3)), np.zeros((0, 2), np.uint8)])
def test_an_array_that_is_no_image_is_refused(array):
    with pytest.raises(UserError, match="an image needs"):
        decode(array, 4)


def test_sizes_that_contradict_are_refused():
    with pytest.raises(UserError, match="resized to a size"):
        decode(picture(), 10, shorter=4)


def test_the_mean_image_is_the_mean(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (7, 8, 8, 3), dtype=np.uint8)
    paths = [save(tmp_path / f"{i}.png", Image.fromarray(image), "PNG") for i, image in enumerate(images)]
    np.testing.assert_array_equal(mean_image(paths, 8), np.rint(images.mean(axis=0)))
    with pytest.raises(UserError, match="at least one training image"):
        mean_image([], 8)


def test_a_person_has_the_colour_of_its_number_and_a_thing_is_grey():
    assert len(set(PERSON_COLOURS)) == 55
    names = ["person"] * 60 + ["diningtable"]
    boxes = [[10, 10, 60, 60, 0.9]] * 61
    for number, colour in [(0, (0, 255, 0)), (1, (255, 0, 0)), (57, PERSON_COLOURS[2]), (60, GREY)]:
        drawn = draw_boxes(np.zeros((80, 80, 3), np.uint8), Drawing.of(boxes, names, [number]))
        assert tuple(drawn[7, 30]) == tuple(drawn[13, 13]) == colour, "seven pixels wide, with the edge in the middle"
        assert tuple(drawn[14, 14]) == tuple(round(38 / 255 * c) for c in colour), "the fill"
        assert not drawn[:7].any(), "nothing outside"
        assert not drawn[:, 64:].any(), "nothing outside"


@pytest.mark.parametrize("line", [1, 3, 7])
def test_boxes_are_drawn_as_pillow_draws_them(line):
    image = picture(90, 70)
    boxes = [(10.7, 8.2, 60.9, 50.1), (-20, 30, 40, 200), (70, 5, 89, 20), (33, 33, 38, 60)]
    drawn = draw_boxes(image, Drawing(tuple(boxes), ("person",) * 4, (0, 3, 8, 60), line))
    expected = Image.fromarray(image).convert("RGBA")
    for box, number in zip(boxes, (0, 3, 8, 60), strict=True):
        left, top, right, bottom = (int(side) for side in box)
        corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
        colour = PERSON_COLOURS[number % 55]
        overlay = Image.new("RGBA", expected.size, (*colour, 0))
        ImageDraw.Draw(overlay).polygon(corners, fill=(*colour, 38))
        ImageDraw.Draw(expected).line(corners, fill=colour, width=line)
        expected = Image.alpha_composite(expected, overlay)
    assert np.abs(drawn.astype(int) - np.array(expected.convert("RGB"))).max() <= 1


def test_boxes_outside_the_image_empty_or_unknown_do_no_harm():
    image = picture()
    odd = Drawing.of([[-9, -9, -1, -1], [5, 5, 5, 9], [30, 20, 900, 900]], ["person"] * 3, [0, 1, 2, 3, -1])
    assert odd.numbers == (0, 1, 2)
    drawn = draw_boxes(image, odd)
    np.testing.assert_array_equal(drawn[:17, 10:], image[:17, 10:])
    assert tuple(drawn[-1, 30]) == tuple(drawn[20, -1]) == PERSON_COLOURS[2], "the sides that are in the image"
    assert np.abs(drawn[-1, -1] - (217.0 * image[-1, -1] + 38 * np.array(PERSON_COLOURS[2])) / 255).max() <= 1
    with pytest.raises(UserError, match="finite"):
        draw_boxes(image, Drawing(((0, 0, float("nan"), 3),), ("cup",), (0,)))


def test_boxes_are_drawn_before_the_image_shrinks(tmp_path):
    path = save(tmp_path / "a.jpg", Image.fromarray(np.zeros((800, 800, 3), np.uint8)), "JPEG")
    found = decode(path, 80, drawing=Drawing(((400, 400, 800, 800),), ("person",), (0,)))
    fill = [round(38 / 255 * c) for c in PERSON_COLOURS[0]]
    assert np.abs(found[60, 60] - np.array(fill)).max() <= 1
    assert found[20, 20].max() <= 1
