"""Tables of scores in a real browser: nothing is cut off, and a phone shows score and gain without scrolling."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dmt.pages.document import document
from dmt.reporting import report_file, score_section
from dmt.reporting.studies import Study
from tests.browser.conftest import Seen
from tests.reporting.made_up import made_up_pair

Opener = Callable[..., Seen]

CUT_OFF = """() => [...document.querySelectorAll('.table')].flatMap(box => {
  const scroller = box.querySelector('.wide'), room = scroller.getBoundingClientRect();
  const outside = [...box.querySelectorAll('.caption')].filter(each => each.scrollWidth > each.clientWidth);
  const wide = room.right > document.documentElement.clientWidth || room.left < 0;
  const stuck = scroller.scrollWidth > scroller.clientWidth && getComputedStyle(scroller).overflowX != 'auto';
  return [...outside.map(() => 'caption'), ...(wide ? ['table'] : []), ...(stuck ? ['cannot be scrolled'] : [])];
})"""

HIDDEN = """([table, name]) => {
  const scroller = document.querySelectorAll('.wide')[table], room = scroller.getBoundingClientRect();
  const head = [...scroller.querySelectorAll('th')].findIndex(each => each.textContent.trim() == name);
  return [...scroller.querySelectorAll('tr')].filter(row => row.cells[head].getBoundingClientRect().right > room.right)
    .length;
}"""

BROKEN_WORDS = """() => [...document.querySelectorAll('.wide td')].filter(cell => {
  if (cell.children.length) return false;
  const range = document.createRange();
  range.selectNodeContents(cell);
  return range.getClientRects().length > cell.textContent.trim().split(/[\\s-]+/).length;
}).length"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs side by side, one of them with many options; and the scores of one."""
    runs = []
    options = tuple(f"an_option_of_{number}={number}" for number in range(16))
    for name, data, changes in (("digits (first)", "digits", ()), ("cells", "photos", options)):
        jobs = [
            replace(made_up_pair(data, scores, mean, method, seed), changes=changes)
            for seed in (1, 2, 3)
            for method, scores, mean in (
                ("baseline", [80.0 + seed], 82.0),
                ("dmt", [80.0, 90.0 + seed], 92.0 - seed),
                ("cl", [80.0, 91.0 + seed], 93.0),
            )
        ]
        runs.append(Study(name, jobs))
    path = tmp_path_factory.mktemp("tables") / "tables.html"
    path.write_text(document("t", score_section.comparison(runs), report_file.scores(runs[0])), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [320, 400, 800, 1200])
def test_no_table_or_caption_is_cut_off(open_page: Opener, file: Path, width: int) -> None:
    seen = open_page(file)
    seen.require_width(width)
    assert seen.page.evaluate(CUT_OFF) == []
    assert seen.page.evaluate(BROKEN_WORDS) == 0
    seen.require_peace(file)


@pytest.mark.parametrize("width", [400, 800, 1200])
def test_score_and_gain_are_on_the_screen(open_page: Opener, file: Path, width: int) -> None:
    seen = open_page(file)
    seen.require_width(width)
    for table, score in enumerate(("score, %", "accuracy, %")):
        assert seen.page.evaluate(HIDDEN, [table, score]) == 0
        assert seen.page.evaluate(HIDDEN, [table, "gain"]) == 0


def test_a_wide_window_shows_the_scores_as_a_whole(open_page: Opener, file: Path) -> None:
    seen = open_page(file)
    seen.require_width(1200)
    assert seen.page.evaluate(HIDDEN, [1, "gain, single"]) == 0


def test_many_options_unfold(open_page: Opener, file: Path) -> None:
    seen = open_page(file)
    folded = seen.page.locator("td details").first
    assert not folded.get_by_text("an_option_of_15=15").is_visible()
    folded.locator("summary").click()
    assert folded.get_by_text("an_option_of_15=15").is_visible()
