import time
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.bench.experiments import PARTS, _Clock, experiments


def test_every_moment_counts_once():
    began = time.perf_counter()
    found = experiments("patterns", ["finetune"], "tiny")
    assert tuple(found.seconds) == PARTS
    assert found.total <= time.perf_counter() - began
    assert min(found.seconds[part] for part in ("training", "evaluation", "set-up", "saving")) > 0
    assert found.seconds["writing data"] == 0, "patterns are drawn, not written"
    assert 0 < found.gflops < found.peak


def test_what_is_entered_last_counts(monkeypatch):
    now = iter([0.0, 1.0, 3.0, 7.0, 15.0, 31.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(now))
    clock = _Clock()
    with clock.within("set-up"), clock.within("writing data"):
        pass
    clock.stop()
    assert clock.seconds == {"rest": 1 + 16, "set-up": 2 + 8, "writing data": 4}


@dataclass
class Given:
    finish: Callable[[], None] | None


def test_what_is_measured_at_the_end_is_evaluation():
    clock = _Clock()
    assert clock.finished(lambda: Given(None))().finish is None
    clock.finished(lambda: Given(lambda: time.sleep(0.01)))().finish()
    clock.stop()
    assert clock.seconds["evaluation"] >= 0.01
