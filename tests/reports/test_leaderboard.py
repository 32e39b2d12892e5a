"""The leaderboard: which rows are comparable, why the others are not, and a page that shows it safely."""

import pytest

import holdfast as hf
from holdfast.errors import UserError
from holdfast.reports import exchange
from holdfast.reports.leaderboard import boards, write
from reports.commands import holdfast
from reports.stores import put, record
from reports.test_browser import CHROMIUM, browser  # noqa: F401

SEEDS = range(3)


def threads(value):
    value["environment"]["threads"] = 4


def tuning(value):
    value["tuning"] = {"by": "final_accuracy", "trials": 8}


def data(value):
    value["config"]["data"] = "ffffffffffff"


def version(value):
    value["config"]["parts"] = {"engine": 3}


def epochs(value):
    value["config"]["training"] = [{**each, "epochs": 20} for each in value["config"]["training"]]


def precision(value):
    value["config"]["precision"] = "bfloat16"


def width(value):
    value["config"]["model"]["width"] = 256


def scale(value):
    value["config"]["benchmark"]["scale"] = "small"


def stages(value):
    value["config"]["stages"] = 2


def budget(value):
    value["config"]["budget"] = {"passes": 5000}


def start(value):
    value["config"]["start"] = "0123456789ab@2"


def fill(store, change=None, algorithms=("finetune", "replay", "ewc"), seeds=SEEDS):
    for algorithm in algorithms:
        for seed in seeds:
            value = record(algorithm=algorithm, seed=seed)
            if change is not None:
                change(value)
            put(store, value)
    return store


def board(*stores):
    (found,) = boards(exchange.load_all(stores))
    return {row.name: row for row in found.rows}, found


def test_rows_that_agree_are_one_group_the_best_first(tmp_path):
    rows, found = board(fill(tmp_path / "a"), fill(tmp_path / "b", algorithms=["lwf"], seeds=range(5)))
    assert {row.letter for row in rows.values()} == {"A"}
    assert rows["lwf"].comparable == "with the 3 other rows"
    values = [row.cells[0].number for row in found.rows]
    assert values == sorted(values, reverse=True)
    assert (rows["lwf"].sources, rows["ewc"].sources, rows["lwf"].seeds) == ("b", "a", "5")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (threads, "threads: 4 instead of 1"),
        (tuning, "tuning: best of 8 instead of none"),
        (data, "data: ffffffff instead of 318f6439"),
        (version, "engine: 3 instead of unknown (by holdfast 0.1)"),
        (epochs, "epochs: 20 instead of 10"),
        (precision, "precision: bfloat16 instead of float32"),
        (width, "model.width: 256 instead of 128"),
        (scale, "scale: small instead of tiny"),
        (stages, "stages: 2 instead of all"),
        (budget, "budget: passes=5000 instead of none"),
        (start, "start: 0123456789ab@2 instead of none"),
    ],
)  # fmt: skip
def test_one_difference_sets_rows_apart_and_is_named(change, why, tmp_path):
    rows, found = board(fill(tmp_path / "a"), fill(tmp_path / "b", change, ["lwf", "si"]))
    assert (rows["ewc"].letter, rows["ewc"].comparable) == ("A", "with the 2 other rows of A")
    assert (rows["lwf"].letter, rows["si"].letter) == ("B", "B")
    assert rows["lwf"].comparable == f"with the 1 other row of B; not with A: {why}"
    assert found.sentence.startswith("Group A: ")


def test_marks_stay_within_a_group(tmp_path):
    for store, algorithm, value, count in (("a", "gem", 0.9, 1), ("a", "si", 0.2, 1), ("b", "mas", 0.5, 4)):
        for seed in range(5):
            made = record(algorithm=algorithm, seed=seed, summary={"final_accuracy": value + 0.001 * seed * seed})
            made["environment"]["threads"] = count
            put(tmp_path / store, made)
    rows, _ = board(tmp_path / "a", tmp_path / "b")
    assert {name for name, row in rows.items() if row.cells[0].best} == {"gem"}


def test_data_that_depends_on_the_seed_is_compared_seed_by_seed(tmp_path):
    for algorithm in ("ewc", "si"):
        for seed in SEEDS:
            value = record(algorithm=algorithm, seed=seed)
            value["config"]["data"] = f"{seed}" * 12
            put(tmp_path / "a", value)
    rows, _ = board(tmp_path / "a")
    assert {row.letter for row in rows.values()} == {"A"}


def test_the_command_reads_stores_and_exported_files_and_escapes_what_they_say(tmp_path):
    evil = "<img src=x onerror=alert(1)>"
    value = record(algorithm=evil, seed=0)
    value["environment"]["command"] = "</pre><script>alert(1)</script>"
    put(tmp_path / "b", value)
    exchange.export(hf.load(tmp_path / "b"), tmp_path / "results.json")
    said = holdfast("leaderboard", fill(tmp_path / "a"), tmp_path / "results.json", "--out", tmp_path / "out").output
    page = tmp_path / "out" / "index.html"
    assert str(page) in said
    text = page.read_text()
    assert evil not in text
    assert "&lt;img" in text
    assert "<script>alert" not in text
    assert "default-src &#39;none&#39;" in text
    assert "results.json" in text
    assert str(tmp_path) not in text


def test_mistakes(tmp_path):
    failed = put(tmp_path / "a", record())
    (failed / "record.json").unlink()
    with pytest.raises(UserError, match="no finished run"):
        write(hf.load(tmp_path / "a"), tmp_path / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is a file"):
        write(hf.load(fill(tmp_path / "b")), tmp_path / "file")


@pytest.mark.thorough
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt install chromium")
def test_the_page_fits_its_screen_in_light_and_dark_and_asks_for_nothing(browser, tmp_path):  # noqa: F811
    stores = [fill(tmp_path / "a"), fill(tmp_path / "b", threads, ["a-name-" * 12, "si"])]
    url = write(exchange.load_all(stores), tmp_path / "out").as_uri()
    for page_width in (390, 768, 1280):
        for colours in ("light", "dark"):
            context = browser.new_context(viewport={"width": page_width, "height": 800}, color_scheme=colours)
            page, said = context.new_page(), []
            page.on("console", lambda message: said.append(message.text))  # noqa: B023
            page.on("request", lambda request: said.append(request.url))  # noqa: B023
            page.goto(url)
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
            light = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]")
            assert (light > 128) == (colours == "light")
            assert page.get_by_role("cell", name="threads: 4 instead of 1").count() == 2
            assert [each for each in said if each != url and not each.startswith("data:")] == []
            context.close()
