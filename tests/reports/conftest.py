import pytest

import holdfast

SMALL = {"benchmark.stages": 2, "train.epochs": 1}


@pytest.fixture(scope="session")
def real_store(tmp_path_factory):
    """Four finished runs of patterns, really made."""
    store = tmp_path_factory.mktemp("real")
    for algorithm in ("finetune", "replay"):
        for seed in (0, 1):
            holdfast.run("patterns", algorithm, scale="tiny", seed=seed, out=store, settings=SMALL)
    return store
