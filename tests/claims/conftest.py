import pytest

from holdfast.experiments.store import Store
from holdfast.reports.runs import load


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """A real record of `er` on the smallest patterns."""
    import holdfast

    store = tmp_path_factory.mktemp("template")
    holdfast.run("patterns", "er", scale="tiny", out=store, settings={"train.epochs": 1})
    (run,) = load(Store(store).path)
    return run.record
