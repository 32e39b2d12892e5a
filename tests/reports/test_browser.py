"""The report in a real browser, as a person uses it: Chromium without a window, from the file system."""

import csv
import shutil
import xml.etree.ElementTree as ET

import pytest
from playwright import sync_api

import holdfast
from holdfast.reports.report import write
from reports.screens import CHROMIUM
from reports.stores import ALGORITHMS, put, record

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt install chromium"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory, real_store):
    """The report of a store with really made runs, many made-up ones, a failed and a broken one."""
    store, out = tmp_path_factory.mktemp("store") / "runs", tmp_path_factory.mktemp("report")
    shutil.copytree(real_store, store)
    for number, algorithm in enumerate(ALGORITHMS):
        for seed in range(3):
            put(store, record(algorithm=algorithm, seed=seed, scale="small", run=f"{number:06x}{seed:06x}"))
    tests = {"Acon": 0.2, "Asys": 0.7, "Asys_interval": 0.01, "Apro": 0.6, "Anon": 0.8, "Anoc": 0.4}
    for algorithm in ("finetune", "replay"):
        put(store, record("cfst:cgqa", algorithm, model="resnet18-tiny", stages=10, summary=tests))
    failed = put(store, record(run="bbbbbbbbbbbb"))
    (failed / "record.json").unlink()
    (failed / "failure.txt").write_text("RuntimeError: out of memory")
    (put(store, record(run="cccccccccccc")) / "record.json").write_text("{")
    write(holdfast.load(store), out)
    return out


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def visit(browser, site):
    """Open a page at a width; at the end nothing was complained of, and nothing asked of the network."""
    said, asked, contexts = [], [], []

    def open_page(name="index.html", width=1280):
        context = browser.new_context(viewport={"width": width, "height": 800})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / name).as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_pages_fit_their_screen_in_light_and_dark(visit, width):
    for name in ("index.html", "runs/000001000002.html"):
        page = visit(name, width)
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        for colours in ("light", "dark"):
            page.emulate_media(color_scheme=colours)
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
            light = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]")
            assert (light > 128) == (colours == "light")


def test_a_table_sorts_by_mouse_and_by_keyboard(visit):
    page = visit()
    table = page.locator("#runs table")
    column = """[...document.querySelectorAll("#runs tbody tr")].map(
        ({ cells: { 3: { dataset: { v } } } }) => v === undefined ? null : Number(v))"""
    head = table.locator("thead th").nth(3)
    head.locator("button").click()
    values = [value for value in page.evaluate(column) if value is not None]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) > 5
    assert head.get_attribute("aria-sort") == "descending"
    assert page.evaluate(column)[-1] is None  # a run without a record has no value, and stays last
    head.locator("button").press("Enter")
    values = [value for value in page.evaluate(column) if value is not None]
    assert values == sorted(values)
    assert page.evaluate(column)[-1] is None


def test_runs_are_filtered_by_words(visit):
    page = visit()
    page.locator("#runs input[type=search]").fill("replay small")
    shown = page.locator("#runs tbody tr:visible")
    assert shown.count() == 3
    assert all("replay" in text for text in shown.all_inner_texts())
    assert page.locator("#runs [role=status]").inner_text().startswith("3 of")


def test_a_click_leads_to_a_runs_page_with_its_command(visit):
    page = visit()
    page.locator("#runs tbody a", has_text="000001000002").click()
    page.wait_for_url("**/runs/000001000002.html")
    assert page.locator("pre").first.inner_text() == "holdfast run patterns --algorithm replay --scale tiny --seed 2"
    assert page.locator("dl").first.is_visible()
    page.get_by_role("link", name="All runs").click()
    page.wait_for_url("**/index.html")


def test_a_row_of_several_seeds_leads_to_each_of_them(visit):
    page = visit()
    row = page.locator(".lead tbody tr", has=page.locator("th small")).filter(has_text="replay").first
    row.locator("th small a").nth(1).click()
    page.wait_for_url("**/runs/*.html")
    assert "--seed 1" in page.locator("pre").first.inner_text()


def test_the_number_is_under_the_pointer_and_colours_can_be_chosen(visit):
    page = visit()
    mark = page.locator("svg.plot [data-tip]").first
    mark.scroll_into_view_if_needed()
    mark.hover(force=True)
    assert page.locator("#tip").is_visible()
    assert page.locator("#tip").inner_text() in page.locator("svg.plot [data-tip]").evaluate_all(
        "marks => marks.map((mark) => mark.dataset.tip)"
    )
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Use dark colours").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    page.get_by_role("button", name="Use light colours").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == before


def test_everything_has_a_name_for_those_who_cannot_see_it(visit):
    page = visit()
    assert page.locator("h1").count() == 1
    assert page.locator("main").count() == 1
    assert page.evaluate("[...document.querySelectorAll('svg.plot')].every((each) => each.getAttribute('aria-label'))")
    assert page.evaluate("[...document.querySelectorAll('th')].every((each) => each.scope)")
    assert page.evaluate(
        "[...document.querySelectorAll('button,a,input')].every((each) => each.textContent || each.labels)"
    )
    plots, tables = page.locator("svg.plot").count(), page.locator("summary", has_text="The numbers").count()
    assert plots == tables > 3
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the content"


def test_world_data_beside_a_papers_is_marked_and_paper_is_white(visit):
    page = visit()
    tables = page.locator("figure.card:has(td small.paper)")
    assert tables.count() > 0
    for table in tables.all():
        assert "not reproduce" in table.locator(".warn").inner_text()
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator("nav.contents").is_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_paper_is_light_though_the_reader_chose_dark(visit):
    page = visit()
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.emulate_media(media="print")
    colours = page.evaluate("[document.body, document.querySelector('td')].map((each) => getComputedStyle(each).color)")
    assert colours == ["rgb(29, 35, 41)"] * 2
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_failed_and_broken_runs_are_seen(visit):
    page = visit()
    text = page.locator("#not-done").inner_text()
    assert "RuntimeError: out of memory" in text
    assert "broken" in text
    page = visit("runs/cccccccccccc.html")
    assert "is broken" in page.locator(".problem").inner_text()


@pytest.mark.parametrize("figure", ["svg.plot", "table.heat"])
def test_a_figure_is_saved_as_a_drawing_a_picture_and_numbers(visit, tmp_path, figure):
    page = visit()
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    card = page.locator("figure.card", has=page.locator(figure)).first
    saved = {}
    for kind in ("SVG", "PNG", "CSV"):
        with page.expect_download() as download:
            card.locator(".save").get_by_role("button", name=kind).click()
        saved[kind] = tmp_path / download.value.suggested_filename
        download.value.save_as(saved[kind])
    assert {kind: path.suffix for kind, path in saved.items()} == {"SVG": ".svg", "PNG": ".png", "CSV": ".csv"}
    drawing = ET.parse(saved["SVG"]).getroot()
    texts = [text for each in drawing.iter() if (text := (each.text or "").strip())]
    assert texts[0] == card.locator("figcaption").inner_text()
    names = card.locator(".legend li").all_inner_texts() or card.locator("tbody th").all_inner_texts()
    assert set(names) <= set(texts)
    assert not any("var(" in value or "oklab" in value for each in drawing.iter() for value in each.attrib.values())
    assert saved["PNG"].read_bytes().startswith(b"\x89PNG")
    assert len(saved["PNG"].read_bytes()) > 5_000
    with saved["CSV"].open() as lines:
        rows = list(csv.reader(lines))
    assert len({len(row) for row in rows}) == 1
    assert {row[0] for row in rows[1:]} == set(names)


def test_the_answer_is_on_the_first_screen_of_a_phone_and_so_are_the_main_columns(visit):
    page = visit(width=390)
    first = page.locator("#answers dd").first.bounding_box()
    assert first["y"] + first["height"] < 500
    patterns = page.locator("#benchmark-patterns")
    assert patterns.locator(".answer").first.inner_text().startswith("Compared with finetune")
    table = patterns.locator(".lead table.sortable").first
    for place in range(3):  # the algorithm, its score and its forgetting
        box = table.locator("tbody tr").first.locator("th, td").nth(place).bounding_box()
        assert 0 <= box["x"] < box["x"] + box["width"] <= 390
