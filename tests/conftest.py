import os
from collections import Counter
from pathlib import Path

import pytest
import torch

import holdfast

# Processes that tests start import the package that is tested here, whatever is installed.
PACKAGES = str(Path(holdfast.__file__).parents[1])
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (PACKAGES, os.environ.get("PYTHONPATH"))))
os.fsync = lambda file: None  # no test pulls the plug, and a thousand small runs would wait for the disk
torch.set_num_threads(1)  # two processes of two threads each on two cores are many times slower than one each


@pytest.fixture(autouse=True)
def _one_seed():
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def tiny_cache(tmp_path_factory):
    """One cache for all tests that only read the world's datasets at `tiny`, in whichever process they run."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "tiny-cache"


# What tests cost: `pytest --cpu` lists the files by seconds of CPU, which do not depend on what else the machine does


def pytest_addoption(parser):
    parser.addoption("--cpu", action="store_true", help="list the seconds of CPU of each test file")


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
