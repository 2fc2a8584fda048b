"""What a person does with report.html, in a real browser (Chromium, by playwright); skipped where there is
none."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from evaluation.report.model import write_model_report
from evaluation.report.texts import cut, visible
from tests.report_pages import HOSTILE, make_report, make_results


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    return make_results(tmp_path_factory.mktemp("absolute_metrics"))


@pytest.fixture(scope="module")
def report(results) -> Path:
    return make_report(results / "base", results / "adapted", results / "out")


@pytest.fixture(scope="module")
def chromium():
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(chromium, request):
    """A page that fails its test on any script error, blocked resource or request that leaves the file."""
    options = getattr(request, "param", {})
    context = chromium.new_context(**options)
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    page.on("console", lambda m: faults.append(m.text) if m.type in ("error", "warning") else None)
    page.on("request", lambda r: None if r.url.startswith("file:") else faults.append(f"request: {r.url}"))
    page.set_default_timeout(10_000)
    yield page
    context.close()
    assert faults == []


def shows(page, cards: int) -> None:
    """Waits until the list has so many cards (the page's policy forbids the evaluated kind of waiting)."""
    from playwright.sync_api import expect

    expect(page.locator(".card")).to_have_count(cards)


def titles(page) -> list[str]:
    return page.locator(".card h2 bdi").all_inner_texts()


def test_from_a_cell_to_a_forgotten_sample(page, report):
    page.goto(report.as_uri())
    page.locator("#heat tr", has_text="C1 Knowledge").locator("td a").click()
    page.wait_for_selector("#row-0-0.open")
    assert page.locator(".view.open h1").inner_text().startswith("C1 Knowledge")
    row = page.locator(".view.open tr", has_text="C1 Accuracy (GSM8K)")
    assert "[" in row.inner_text() and "40 pairs count" in row.inner_text()
    row.get_by_text("12 forgotten").click()
    shows(page, 12)
    card = page.locator(".card").first
    text = card.inner_text()
    assert "Forgotten" in text and "Judge's reply" in text and "<u>0</u>" in text and "wrong number" in text
    assert "1 → 0" in text and "row 1" in text
    assert card.locator(".gone").inner_text() == "kept"
    assert card.locator(".new").inner_text() == "changed"
    page.go_back()
    page.wait_for_selector("#row-0-0.open")
    assert page.locator(".view.open h1").inner_text().startswith("C1 Knowledge")


def test_from_the_table_of_tasks_to_a_forgotten_sample_in_one_click(page, report):
    page.goto(report.as_uri())
    page.locator(".tasks tr", has_text="gsm8k.subset").get_by_role("link", name="12", exact=True).click()
    shows(page, 12)


def test_a_task_is_found_by_part_of_its_name(page, report):
    page.goto(report.as_uri())
    page.locator("#find-task").fill("GSM")
    assert page.locator(".tasks tbody tr:visible th").all_inner_texts() == ["gsm8k.subset"]


def test_search_filter_and_sort(page, report):
    page.goto(f"{report.as_uri()}#samples/0/gsm8k.subset")
    assert len(titles(page)) == 20
    page.get_by_text("Show 20 more").click()
    assert len(titles(page)) == 40
    assert titles(page)[0] == "q0000"
    page.locator("#search").fill("ONERROR=")
    shows(page, 1)
    assert "1 sample with" in page.locator("#count").inner_text()
    page.locator("#search").fill("found nowhere at all")
    shows(page, 0)
    page.locator("#search").fill("")
    page.locator("#outcomes button", has_text="Both wrong").click()
    shows(page, 5)
    page.locator("#pick-task").select_option("mtbench.turn1")
    page.locator("#outcomes button", has_text="Fell").click()
    page.wait_for_selector(".badge.f")
    changes = page.locator(".card .values").all_inner_texts()
    lost = [float(a) - float(b) for a, b in (re.search(r": (\d+) → (\d+)", c).groups() for c in changes)]
    assert lost == sorted(lost, reverse=True) and lost[0] > lost[-1] > 0
    page.locator("#pick-task").select_option("*")
    page.wait_for_selector("#samples-title:text('all tasks')")
    page.locator("#outcomes button", has_text="Forgotten").click()
    assert "gsm8k.subset" in page.locator("#cards").inner_text()


def test_everything_by_keyboard(page, report):
    page.goto(report.as_uri())
    page.locator("#heat td a").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#row-0-2"
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.wait_for_selector("#row-0-0.open")
    page.keyboard.press("Escape")
    page.wait_for_selector("#overview.open")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#row-0-0"
    page.keyboard.press("Enter")
    page.locator("#row-0-0").get_by_text("12 forgotten").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#samples.open")
    page.keyboard.press("j")
    page.keyboard.press("j")
    label = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert label == "Sample q0001, Forgotten"
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Sample q0000, Forgotten"
    page.keyboard.press("/")
    page.keyboard.type("image")
    assert page.evaluate("document.activeElement.id") == "search"
    shows(page, 0)
    page.keyboard.press("Escape")
    shows(page, 12)
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.wait_for_selector("#row-0-0.open")


@pytest.mark.parametrize("place", range(len(HOSTILE)), ids=HOSTILE)
def test_hostile_text_is_shown_as_text(page, report, place):
    page.goto(f"{report.as_uri()}#samples/0/gsm8k.subset/correct/f")
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    card = page.locator(".card").nth(place)
    assert card.locator("bdi").first.inner_text() == f"q{place:04d}"
    text = list(HOSTILE.values())[place]
    answer = card.locator(".side .text").first.evaluate("e => e.textContent")
    assert answer == visible(cut(text + " kept tail", 4000))
    assert card.locator("script, img, b:not(.read b), i, u").count() == 0
    assert not re.search("[\x00-\x08\x1b\u202a-\u202e\u2066-\u2069]", card.evaluate("e => e.textContent"))
    assert page.evaluate("window.hit === undefined")
    box = card.bounding_box()
    assert box["x"] + box["width"] <= page.viewport_size["width"]


@pytest.mark.parametrize(
    "page",
    [
        {"viewport": {"width": 390, "height": 844}},
        {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
        {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    ],
    indirect=True,
    ids=["phone", "dark phone", "dark desktop"],
)
@pytest.mark.parametrize("view", ["", "#row-0-0", "#samples/0/gsm8k.subset/correct/f"])
def test_nothing_is_wider_than_the_screen(page, report, view):
    page.goto(report.as_uri() + view)
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= page.viewport_size["width"]
    back, ink = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    light = [sum(map(int, re.findall(r"\d+", c)[:3])) for c in (back, ink)]
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert (light[0] < light[1]) == dark


def test_print_shows_whole_texts_without_tools(page, report):
    page.goto(f"{report.as_uri()}#samples/0/gsm8k.subset/correct/f")
    page.emulate_media(media="print")
    assert page.locator("#tools").is_hidden()
    clamped = page.locator(".text.clamped").first
    assert clamped.evaluate("e => e.scrollHeight <= e.clientHeight + 1")


@pytest.mark.parametrize("page", [{"java_script_enabled": False}], indirect=True)
def test_without_scripts_the_numbers_are_there(page, report):
    page.goto(report.as_uri())
    assert page.locator("#row-0-0 table").first.is_visible()


def test_the_page_of_one_model(page, results):
    path = write_model_report(results / "base")
    assert path == results / "base" / "report.html"
    page.goto(path.as_uri())
    assert "base <b>one</b>" in page.locator("h1").first.inner_text()
    page.locator(".tasks tr", has_text="gsm8k.subset").get_by_role("link", name="5", exact=True).click()
    shows(page, 5)
    assert page.locator(".card .side").count() == 5
    page.locator("#outcomes button", has_text="Right").click()
    shows(page, 20)


@pytest.mark.parametrize(
    ("what", "base", "adapted", "gone", "new"),
    [
        ("one word", "a b c", "a x c", "b", "x"),
        ("words put in", "a c", "a b c", "", "b "),
        ("words left out", "a b c", "a c", "b ", ""),
        ("everything", "a", "b", "a", "b"),
        ("nothing", "a b", "a b", "", ""),
        ("from nothing", "", "a b", "", "a b"),
        ("moved", "x a b c", "a b c x", "x ", " x"),
    ],
)
def test_words_that_differ(page, report, what, base, adapted, gone, new):
    page.goto(report.as_uri())
    found = page.evaluate(
        """([a, b]) => { const [x, y] = [words(a), words(b)], [g, n] = different(x, y, 500);
        return [x.filter((_, i) => g[i]).join(''), y.filter((_, i) => n[i]).join('')]; }""",
        [base, adapted],
    )
    assert found == [gone, new]


def test_the_difference_leaves_what_both_texts_share(page, report):
    """On random texts: what is not marked is the same on both sides, and no shorter edit is missed."""
    page.goto(report.as_uri())
    assert page.evaluate(
        """() => { let seed = 1; const next = () => (seed = seed * 48271 % 2147483647) % 4;
        for (let round = 0; round < 300; round++) {
          const [a, b] = [0, 0].map(() => Array.from({ length: next() * 4 }, () => 'abcd'[next()]));
          const [g, n] = different(a, b, 500);
          const kept = a.filter((_, i) => !g[i]).join(''), also = b.filter((_, i) => !n[i]).join('');
          const t = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
          for (let i = 1; i <= a.length; i++) for (let j = 1; j <= b.length; j++)
            t[i][j] = a[i - 1] === b[j - 1] ? t[i - 1][j - 1] + 1 : Math.max(t[i - 1][j], t[i][j - 1]);
          if (kept !== also || kept.length !== t[a.length][b.length]) return [a.join(''), b.join('')];
        } return true; }"""
    )


def test_why_an_answer_is_wrong_is_seen_without_a_click(page, report):
    """The judge's reply is open where a sample changed and folded elsewhere; the pass mark is named."""
    page.goto(f"{report.as_uri()}#samples/0/gsm8k.subset/correct/f")
    assert page.locator(".card details").first.evaluate("e => e.open")
    page.goto(f"{report.as_uri()}#samples/0/gsm8k.subset/correct/h")
    page.wait_for_selector(".badge.h")
    assert not page.locator(".card details").first.evaluate("e => e.open")
    assert page.locator("#right").is_hidden()
    page.goto(f"{report.as_uri()}#samples/0/mtbench.turn2/passed")
    page.wait_for_selector("#samples-title:text('mtbench.turn2')")
    assert "rating is 7 or above" in page.locator("#right").inner_text()
    page.goto(f"{report.as_uri()}#samples/0/mtbench.turn2/rating")
    page.wait_for_selector("#right", state="hidden")


def test_a_program_keeps_its_lines(page, report):
    page.goto(report.as_uri())
    found = page.evaluate(
        """() => ['def f():\\n    return 1', 'Sure:\\n1', '1'].map((x) =>
        [readBox({ a: 'Sure:\\n1', x }, true, '').textContent, readBox({ a: '', x }, true, '').className])"""
    )
    assert found == [
        ["Program that was run:def f():\n    return 1", "program"],
        ["Program that was run: the whole answer, as above", "program"],
        ["Program that was run: 1", "read"],
    ]


@pytest.mark.parametrize("page", [{"viewport": {"width": 390, "height": 844}}], indirect=True, ids=["phone"])
def test_a_phone_shows_every_number_of_a_task_with_its_name(page, report):
    page.goto(report.as_uri())
    row = page.locator(".tasks tr", has_text="gsm8k.subset")
    assert row.locator("td").evaluate_all("cells => cells.map(c => c.dataset.label)") == [
        "Forgotten", "Gained", "Both right", "Both wrong", "No verdict", "Pairs", "Counts in"
    ]  # fmt: skip
    for cell in row.locator("td").all():
        box = cell.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390
        assert cell.evaluate("c => getComputedStyle(c, '::before').content").strip('"') != "none"
    assert page.locator(".scroll.more").count() == 0


@pytest.mark.parametrize("page", [{"viewport": {"width": 390, "height": 844}}], indirect=True, ids=["phone"])
def test_a_table_that_goes_on_sideways_says_so(page, report):
    page.goto(report.as_uri())
    page.evaluate("document.querySelectorAll('#heat tr td').forEach((c) => c.after(c.cloneNode(true)))")
    page.evaluate("document.querySelectorAll('#heat tr td').forEach((c) => c.after(c.cloneNode(true)))")
    page.set_viewport_size({"width": 391, "height": 844})
    hint = page.locator(".scroll.more:has(#heat)")
    hint.wait_for()
    assert "sideways" in hint.evaluate("e => getComputedStyle(e, '::before').content")


def test_that_differences_are_not_marked_is_said_once(page, report):
    page.goto(f"{report.as_uri()}#samples/0/gsm8k.subset/correct/f")
    shows(page, 12)
    assert "little in common" not in page.locator("#samples").inner_text()
    page.evaluate(
        """() => { for (const { entry } of list.found.slice(0, 3)) {
        entry.s[0].a = 'a '.repeat(200); entry.s[1].a = 'b '.repeat(200); } refresh(); }"""
    )
    assert "In 3 of those below" in page.locator("#count").inner_text()
    assert "little in common" not in page.locator("#cards").inner_text()
