from pathlib import Path

import pytest

from holdfast import registry

PICTURED = ("vqav2", "nlvr2", "snli_ve", "vcr", "gqa", "objects365", "partimagenet")
TEXTS = ("imdb", "sst2", "hellaswag", "commonsenseqa", "piqa")


@pytest.fixture(scope="session")
def tiny_world(tmp_path_factory) -> Path:
    """The multimodal datasets and the texts at the `tiny` scale, each in a folder of its own name."""
    root = tmp_path_factory.mktemp("tiny-world")
    for name in (*PICTURED, *TEXTS):
        registry.WRITERS[name].load()(root / name, "tiny", 0)
    return root
