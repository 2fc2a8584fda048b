"""report.html: what stands in it, and what a person does with it in a real browser (Chromium, by playwright).

The browser's tests are skipped where no chromium is installed.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import compare_models
from evaluation.report.model import write_model_report
from evaluation.report.samples import Measure, _order
from evaluation.report.texts import cut, json_for_page, visible
from tests import synthetic

HOSTILE = {
    "script": "<script>window.hit = 1</script>",
    "end of script": "</script><script>window.hit = 1</script>",
    "comment": "<!-- <script> --!> ]]>",
    "image": '"><img src=x onerror="window.hit = 1">',
    "template": "{{ 7 * 7 }} {% raw %} ${hit}",
    "control": "red\x1b[31m nul\x00 bell\x07 next\x85 line\u2028 end",
    "direction": "abc\u202edcba\u2066x\u2069\u200f",
    "hidden": "tag\U000e0041 zero\u200bwidth soft\u00adhyphen",
    "long": "x" * 100_000,
    "long brackets": "[" * 50_000 + "<b>" * 10_000,
}
TASKS = ("gsm8k.subset", "boolq.subset", "mtbench.turn1", "mtbench.turn2", "harmbench.subset", "bfcl.subset")


def changed(table, **columns):
    table.columns.update(columns)
    return table


def hostile_tables(run_seed: int) -> dict:
    """Synthetic tables whose gsm8k answers are hostile; the adapted model forgot the first samples."""
    tables = {task: synthetic.task_table(task, 40, 0.0, run_seed) for task in TASKS}
    texts = [*HOSTILE.values(), *("The answer is <b>7</b> & more." for _ in range(30))]
    adapted = run_seed > 1
    words = [f"{text}{' changed' if adapted else ' kept'} tail" for text in texts]
    replies = [{"mode": "x<i>y", "value": ["</script>"], "status": "ok", "reply": text[:99]} for text in texts]
    changed(
        tables["gsm8k.subset"],
        prompt=texts,
        gold=[f"gold {i} </textarea>" for i in range(40)],
        answer=words,
        extracted=[f"<u>{i}</u>" for i in range(40)],
        reason=["wrong_number" if adapted and i < 12 else None for i in range(40)],
        correct=[not (adapted and i < 12) and i < 35 for i in range(40)],
        judgements=[json.dumps([reply]) for reply in replies],
    )
    tables["boolq.subset"].columns["evidence_hit"] = [True] * 40
    tables["mtbench.turn2"].columns["judgements"] = ["no json"] * 40
    return tables


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("absolute_metrics")
    run = {"created": "2026-01-02T03:04:05+00:00", "packages": {"sympy": "1.2"}, "absent": ["popqa.subset"]}
    synthetic.write_result(folder / "base", "base <b>one</b>", hostile_tables(1), run)
    synthetic.write_result(folder / "adapted", "adapted\u202e <i>two</i>", hostile_tables(2), run)
    for name in ("base", "adapted"):
        (folder / name / "metrics.json").write_text("{}", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def report(results) -> Path:
    config = results / "config.yaml"
    config.write_text(
        f"model_pairs: [[{results}/base, {results}/adapted, 'SFT </script>']]\noutput_dir: {results}/out\n"
        "save_options: {save_figure: false}\n",
        encoding="utf-8",
    )
    assert compare_models.main(["--config", str(config)]) == 0
    return results / "out" / "report.html"


def blocks_of(path: Path) -> list[dict]:
    text = path.read_text(encoding="utf-8")
    return [
        json.loads(found)
        for found in re.findall(r'<script type="application/json" class="block"[^>]*>(.*?)</script>', text)
    ]


# --- texts ---


@pytest.mark.parametrize(
    ("what", "text", "expected"),
    [
        ("line feed and tab stay", "a\n\tb", "a\n\tb"),
        ("carriage return before line feed goes", "a\r\nb", "a\nb"),
        ("a lone carriage return is seen", "a\rb", "a⟨U+000D⟩b"),
        ("escape", "\x1b[0m", "⟨U+001B⟩[0m"),
        ("right-to-left override", "\u202eabc", "⟨U+202E⟩abc"),
        ("isolates", "\u2066a\u2069", "⟨U+2066⟩a⟨U+2069⟩"),
        ("tag characters", "\U000e0041", "⟨U+E0041⟩"),
        ("a lone surrogate", "\ud800", "⟨U+D800⟩"),
        ("joined emoji stay", "👩\u200d🚀", "👩\u200d🚀"),
        ("Arabic stays", "سلام", "سلام"),
    ],
)
def test_what_hides_is_made_visible(what, text, expected):
    assert visible(text) == expected


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_json_in_a_page_cannot_leave_its_element(text):
    inside = json_for_page({"t": text})
    assert not set("<>&") & set(inside)
    assert json.loads(inside) == {"t": text}


def test_a_long_text_is_cut_in_the_middle_and_says_so():
    text = cut("a" * 500 + "b" * 500, 100)
    assert text == "a" * 50 + "\n[… 900 characters left out here …]\n" + "b" * 50
    assert cut("a" * 100, 100) == "a" * 100


# --- which samples ---


def test_changed_samples_come_first_and_the_draw_is_the_same_every_time():
    import numpy as np

    base = np.ones(1000)
    adapted = np.where(np.arange(1000) % 100 == 7, 0.0, 1.0)
    measure = Measure("correct", "Accuracy", 1, np.array([base, adapted]), True)
    order = list(_order("gsm8k.subset", 1000, [measure], [measure.codes()]))
    assert sorted(order) == list(range(1000))
    assert {i for i in order[:13] if i % 100 == 7} == set(range(7, 1000, 100))
    assert order == list(_order("gsm8k.subset", 1000, [measure], [measure.codes()]))
    assert order != list(_order("boolq.subset", 1000, [measure], [measure.codes()]))


def test_a_number_measure_shows_its_largest_changes_first():
    import numpy as np

    base, adapted = np.zeros(50), -np.arange(50.0)
    measure = Measure("words", "Length", 0, np.array([base, adapted]), False)
    order = list(_order("oasst1.full", 50, [measure], [measure.codes()]))
    assert order[:4] == [49, 48, 47, 46]


def test_what_does_not_fit_is_left_out_and_counted(monkeypatch, results, tmp_path):
    import evaluation.report.model as room

    monkeypatch.setattr(room, "PAGE_TEXT", 60_000)
    page = room.write_model_report(shutil.copytree(results / "base", tmp_path / "base"))
    blocks = blocks_of(page)
    assert 0 < sum(len(b["records"]) for b in blocks) < sum(b["total"] for b in blocks) == 240
    for b in blocks:
        for number, measure in enumerate(b["measures"]):
            for code, _, in_all, on_page in measure["outcomes"]:
                assert on_page == sum(r["o"][number] == code for r in b["records"]) <= in_all
    assert "seeded random draw" in page.read_text(encoding="utf-8")


# --- the file ---


def test_the_page_asks_the_network_for_nothing(report):
    text = report.read_text(encoding="utf-8")
    outside = re.sub(r"<script type=.application/json.*?</script>", "", text, flags=re.DOTALL)
    assert not re.findall(r"(?:src|href)\s*=\s*[\"'](?!#)[^\"']", outside)
    assert not re.findall(r"@import|url\(|fetch\(|XMLHttpRequest|innerHTML|insertAdjacentHTML|eval\(", outside)
    assert "default-src 'none'" in outside and "unsafe-inline" not in outside


def test_the_page_explains_itself(report):
    text = report.read_text(encoding="utf-8")
    for words in ("2026-01-02T03:04:05", "sympy 1.2", "stub@test", "popqa.subset", "What the numbers mean",
                  "C3 Evidence Hit (BoolQ) is 1 for every sample of both models"):  # fmt: skip
        assert words in text
    assert "<b>one</b>" not in text and "\u202e" not in text


def test_the_counts_are_those_of_the_comparison(report):
    (block,) = [b for b in blocks_of(report) if b["task"] == "gsm8k.subset"]
    assert block["measures"][0]["key"] == "correct"
    assert {o[1]: o[2] for o in block["measures"][0]["outcomes"]} == {
        "Forgotten": 12, "Gained": 0, "Both right": 23, "Both wrong": 5
    }  # fmt: skip


def test_a_comparison_of_bare_tables_has_numbers_and_says_what_it_lacks(results, tmp_path):
    for name in ("base", "adapted"):
        shutil.copy(results / name / "metrics.csv", tmp_path / f"{name}.csv")
    config = tmp_path / "config.yaml"
    config.write_text(
        f"model_pairs: [[{tmp_path}/base.csv, {tmp_path}/adapted.csv, N]]\noutput_dir: {tmp_path}/out\n"
        "save_options: {save_figure: false}\n",
        encoding="utf-8",
    )
    assert compare_models.main(["--config", str(config)]) == 0
    text = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "no sample tables" in text and "C1 Accuracy (GSM8K)" in text


# --- in a browser ---


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
    assert page.locator(".view.open h1").inner_text().startswith("C1 Knowledge")
    row = page.locator(".view.open tr", has_text="C1 Accuracy (GSM8K)")
    assert "[" in row.inner_text() and "40 paired" in row.inner_text()
    row.get_by_text("12 forgotten").click()
    assert page.locator(".card").count() == 12
    card = page.locator(".card").first
    text = card.inner_text()
    assert "Forgotten" in text and "Judge's reply" in text and "<u>0</u>" in text and "wrong number" in text
    assert "1 → 0" in text and "row 1" in text
    assert card.locator(".gone").inner_text() == "kept"
    assert card.locator(".new").inner_text() == "changed"
    page.go_back()
    assert page.locator(".view.open h1").inner_text().startswith("C1 Knowledge")


def test_from_the_table_of_tasks_to_a_forgotten_sample_in_one_click(page, report):
    page.goto(report.as_uri())
    page.locator(".tasks tr", has_text="gsm8k.subset").get_by_role("link", name="12", exact=True).click()
    assert len(titles(page)) == 12


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
    assert len(titles(page)) == 5
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
