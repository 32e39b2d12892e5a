"""From files of pictures to pooled vectors, against the processor and the model of `transformers`."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import BertTokenizerFast, ViltConfig, ViltModel, ViltProcessor
from transformers.models.vilt.image_processing_pil_vilt import ViltImageProcessorPil

from holdfast.benchmarks.climb import paper
from holdfast.data.prepared import prepare
from holdfast.data.table import Data
from holdfast.data.text import train
from holdfast.models.vilt import Vilt
from holdfast.types import Example, Inputs

ODD = [(500, 333), (333, 500), (640, 480), (31, 29), (1201, 97), (98, 1199), (641, 384), (383, 639), (1333, 800)]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """A hundred pictures of odd sizes in files, and a text about each."""
    folder, random = tmp_path_factory.mktemp("pictures"), np.random.default_rng(5)
    sizes = [*ODD, *((int(random.integers(60, 700)), int(random.integers(60, 700))) for _ in range(100 - len(ODD)))]
    words = ["a", "red", "cup", "stands", "on", "the", "left", "of", "two", "grey", "dogs"]
    examples = []
    for number, (width, height) in enumerate(sizes):
        coarse = random.integers(0, 256, (height // 9 + 2, width // 9 + 2, 3), np.uint8)
        image = Image.fromarray(coarse).resize((width, height), Image.Resampling.BILINEAR)
        path = folder / f"{number}.{'jpg' if number % 2 else 'png'}"
        (image.convert("L") if number % 7 == 3 else image).save(path)
        text = " ".join(random.choice(words, random.integers(1, 20)))
        examples.append(Example(str(number), 0, (path,), text))
    return examples


@pytest.fixture
def published(shown, tmp_path):
    """Random weights, word pieces and a processor in the published format."""
    torch.manual_seed(0)
    pieces = train([each.text for each in shown], 60)
    size = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}
    model = ViltModel(ViltConfig(**size, vocab_size=len(pieces.vocabulary))).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.2)
    model.save_pretrained(tmp_path)
    pieces.save(tmp_path / "vocab.txt")
    tokenizer = BertTokenizerFast.from_pretrained(tmp_path)
    return SimpleNamespace(
        folder=tmp_path, pieces=pieces, model=model, processor=ViltProcessor(ViltImageProcessorPil(), tokenizer)
    )


def test_a_hundred_pictures_of_odd_sizes_give_the_vectors_of_transformers(shown, published, tmp_path):
    fit = paper.fit(384, "paper")
    table = prepare("odd", shown, tmp_path / "table", tokenizer=published.pieces, length=40, workers=0, **fit).table
    data = Data([table])
    inputs = Inputs(paper.shape(fit), padded=True, text=40, vocabulary=len(published.pieces.vocabulary))
    ours = Vilt(weights=str(published.folder)).encoder(inputs).eval()
    for start in range(0, 100, 10):
        some = shown[start : start + 10]
        given = published.processor(
            images=[Image.open(each.images[0]).convert("RGB") for each in some],
            text=[each.text for each in some],
            padding=True,
            truncation=True,
            max_length=40,
            return_tensors="pt",
        )
        (part,) = data.fetch(np.arange(start, start + 10), torch.device("cpu")).parts
        with torch.no_grad():
            expected = published.model(**given).pooler_output
            found = ours(part.inputs)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
