import os
import tempfile
from collections import Counter
from pathlib import Path

import pytest
import torch

import holdfast

# Processes that tests start import the package that is tested here, whatever is installed.
PACKAGES = str(Path(holdfast.__file__).parents[1])
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (PACKAGES, os.environ.get("PYTHONPATH"))))
os.fsync = lambda file: None
os.sync = lambda: None  # no test pulls the plug, and a thousand small runs would wait for the disk
os.environ["HOLDFAST_LINKS"] = tempfile.gettempdir()  # tests link folders, as users link other disks
torch.set_num_threads(1)  # two processes of two threads each on two cores are many times slower than one each


@pytest.fixture(autouse=True)
def _one_seed():
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def tiny_cache(tmp_path_factory):
    """One cache for all tests that only read the world's datasets at `tiny`, in whichever process they run."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "tiny-cache"


# The quick tier, `make quick`: what fails first when something is broken, in less than a minute

QUICK = {"algorithms", "conformance", "data", "engine", "experiments", "metrics", "models", "papers", "reports"}
"""Folders of the quick tier, beside the files directly in `tests`. What starts processes or browsers there, reads
datasets or takes seconds is marked `thorough`, as is all but the first look at each algorithm in `conformance`."""


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="only the quick tier: see QUICK in tests/conftest.py")
    parser.addoption("--cpu", action="store_true", help="list the seconds of CPU of each test file")


def pytest_ignore_collect(collection_path, config):
    """Modules that are not asked for are not even imported."""
    tests = Path(__file__).parent
    if config.getoption("--quick") and collection_path.is_dir() and collection_path.parent == tests:
        return collection_path.name not in QUICK
    return None


def pytest_collection_modifyitems(config, items):
    if config.getoption("--quick"):
        left = [item for item in items if item.get_closest_marker("thorough")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]


# What tests cost: `pytest --cpu` lists the files by seconds of CPU, which do not depend on what else the machine does


def pytest_configure(config):
    if config.getoption("--cpu"):
        config.pluginmanager.register(Cpu())


class Cpu:
    """Seconds of CPU by file: those of the process, and of its children that have ended."""

    def __init__(self) -> None:
        self.last = sum(os.times()[:4])
        self.spent: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
        report = yield
        now = sum(os.times()[:4])
        report.cpu, self.last = now - self.last, now  # xdist sends it along
        return report

    def pytest_runtest_logreport(self, report):
        self.spent[report.nodeid.partition("::")[0]] += report.cpu

    def pytest_terminal_summary(self, terminalreporter):
        terminalreporter.section(f"seconds of CPU: {sum(self.spent.values()):.0f}")
        for path, seconds in self.spent.most_common():
            if seconds >= 0.1:
                terminalreporter.write_line(f"{seconds:8.1f}  {path}")
