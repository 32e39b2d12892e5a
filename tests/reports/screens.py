"""The first screens of reports as pictures, to be looked at: `python tests/reports/screens.py FOLDER`."""

import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from playwright import sync_api

import holdfast
from holdfast import registry
from holdfast.reports.report import write
from reports.stores import many, put, record

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDTHS = {390: 844, 768: 1024, 1280: 800}
"""The width and height of a phone, a tablet and a laptop."""
LOST = {"finetune": 0.17, "ewc": 0.165, "replay": 0.05, "derpp": 0.04, "adapters": 0.0}


def learned(store: Path, algorithms: Iterable[str], seeds: int, **rest: object) -> None:
    """Runs of algorithms that forget as much as one expects of them."""
    for algorithm in algorithms:
        for seed in range(seeds):
            put(store, record(algorithm=algorithm, seed=seed, lost=LOST[algorithm], **rest))


def two_seeds(store: Path) -> None:
    learned(store, ("finetune", "replay", "ewc"), 2)


def five_seeds(store: Path) -> None:
    learned(store, LOST, 5)


def all_benchmarks(store: Path) -> None:
    """Runs of every benchmark, with made-up measures: two algorithms that differ, and one that does not."""
    random = np.random.default_rng(0)
    for name, entry in registry.BENCHMARKS.items():
        shown = getattr(registry.part(name, "protocol"), "MEASURES", {})
        if entry.within or not shown:
            continue
        for algorithm, gained in (("finetune", 0.0), ("replay", 0.2), ("ewc", 0.01)):
            for seed in range(3):
                values = {
                    measure: (100 if each.pooled else 1)
                    * float(0.4 + (gained if each.higher else -gained) + 0.02 * random.standard_normal())
                    for measure, each in shown.items()
                }
                put(store, record(name, algorithm, seed, summary=values, lost=LOST[algorithm]))


def one_run(store: Path) -> None:
    learned(store, ("replay",), 1)


def a_failed_run(store: Path) -> None:
    failed = put(store, record(run="bbbbbbbbbbbb"))
    (failed / "record.json").unlink()
    (failed / "failure.txt").write_text("Traceback (most recent call last):\nRuntimeError: CUDA out of memory\n")


def five_hundred_runs(store: Path) -> None:
    many(store, 500)


STORES: dict[str, Callable[[Path], None]] = {
    each.__name__: each for each in (two_seeds, five_seeds, all_benchmarks, one_run, a_failed_run, five_hundred_runs)
}


def shoot(folder: Path, stores: dict[str, Path]) -> list[Path]:
    """The first screen of each store's report at each width, in light and, at the largest, in dark."""
    pictures = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, store in stores.items():
            index = write(holdfast.load(store), folder / name).index
            for width, height in WIDTHS.items():
                for scheme in ("light", "dark")[: 1 + (width == 1280)]:
                    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                    page.goto(index.as_uri())
                    pictures.append(folder / f"{name}-{width}-{scheme}.png")
                    page.screenshot(path=pictures[-1])
                    if width != 768 and scheme == "light":
                        page.screenshot(path=folder / f"{name}-{width}-whole.png", full_page=True)
                    page.close()
        browser.close()
    return pictures


if __name__ == "__main__":
    out = Path(sys.argv[1])
    made = {name: out / "stores" / name for name in STORES}
    for name, make in STORES.items():
        if not made[name].exists():
            make(made[name])
    made |= {Path(each).name: Path(each) for each in sys.argv[2:]}
    print(*shoot(out, made), sep="\n")
