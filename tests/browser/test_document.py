"""What every page can do, in a real browser."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dmt.pages import charts, html
from dmt.pages.axes import Axes
from dmt.pages.charts import Heat, Level, Series
from dmt.pages.document import document, section
from tests.browser.conftest import HOSTILE, Seen

Opener = Callable[..., Seen]
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


def require_background(seen: Seen, color: str) -> None:
    """Waits, since a busy browser restyles a page only some time after a click or a reload.

    The page's own policy forbids `wait_for_function`, which evaluates a string in it.
    """
    end = time.monotonic() + 20
    while (found := seen.page.evaluate(BACKGROUND)) != color and time.monotonic() < end:
        seen.page.wait_for_timeout(50)
    assert found == color


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with one of everything, full of hostile names."""
    names = [*HOSTILE, "</script><script>window.hacked=1</script>"]
    rows = [
        (name, number, (f"{value:g} ± 1", value))
        for number, (name, value) in enumerate(zip(names, (9.0, 80.0, 7.0, 100.0), strict=True))
    ]
    rows.append(("nothing", 4, ("–", float("nan"))))
    frame = Axes((0, 4), (0, 10), names[0], names[1])
    lines = [Series(name, [(0, 1), (4, number)], [0.5, 1], number) for number, name in enumerate(names)]
    square = np.eye(len(names), dtype=int).tolist()
    sections = [
        section(names[0], html.table(("name", "number", names[1]), rows, caption=names[2]), id=names[1]),
        section(
            "charts",
            charts.lines(names[0], frame, lines, [Level(names[1], 5)]),
            charts.bars(names[0], frame, names, lines[:1]),
            charts.heat(names[1], Heat(names, square)),
            charts.grid(names[0], names, names, square),
            html.figure(names[3], html.legend((name, 1) for name in names), note=names[3]),
            html.table([f"column {number}" for number in range(40)], [range(40)]),
            tag_with(names[3]),
        ),
    ]
    path = tmp_path_factory.mktemp("pages") / f"{HOSTILE[0]}.html"
    path.write_text(document(names[3], *sections, subtitle=names[1]), encoding="utf-8")
    return path


def tag_with(name: str) -> html.Safe:
    return html.tag("p", name, title=name, data_name=name, aria_label=name)


def test_names_are_shown_and_never_executed(open_page: Opener, file: Path) -> None:
    seen = open_page(file)
    seen.require_peace(file)
    assert seen.page.title() == "</script><script>window.hacked=1</script>"
    for name in HOSTILE:
        assert name in seen.page.locator("body").inner_text()
    assert seen.page.locator("svg [onload], [onerror], body img").count() == 0


def test_names_are_escaped_and_not_only_forbidden_to_run(open_page: Opener, file: Path, tmp_path: Path) -> None:
    content = file.read_text(encoding="utf-8")
    assert content.count("Content-Security-Policy") == 1
    bare = tmp_path / "bare.html"
    bare.write_text(content.replace("Content-Security-Policy", "x"), encoding="utf-8")
    open_page(bare).require_peace(bare)


def test_what_slipped_through_could_neither_run_nor_ask(open_page: Opener, file: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    slip = "<img src='https://example.invalid/a.png'><script>window.hacked = 1</script><p style='color: red'>x</p>"
    broken.write_text(file.read_text(encoding="utf-8").replace("<main>", f"<main>{slip}"), encoding="utf-8")
    seen = open_page(broken)
    assert seen.refused == ["csp"]  # by the policy, before anything left
    assert seen.page.evaluate("window.hacked") is None
    assert len([line for line in seen.complaints if "Content Security Policy" in line]) == 3


def test_a_click_sorts_and_another_one_turns_it_round(open_page: Opener, file: Path) -> None:
    seen = open_page(file)
    head = seen.page.locator("table").first.locator("th").nth(2)
    head.locator("button").click()
    assert seen.column(0, 2) == ["7 ± 1", "9 ± 1", "80 ± 1", "100 ± 1", "–"]  # by number, not by letter
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").click()
    assert seen.column(0, 2) == ["100 ± 1", "80 ± 1", "9 ± 1", "7 ± 1", "–"]  # nothing stays at the end
    seen.page.locator("table").first.locator("th button").nth(1).click()
    assert seen.column(0, 1) == ["0", "1", "2", "3", "4"]
    assert head.get_attribute("aria-sort") is None
    seen.require_peace(file)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_is_the_systems_until_it_is_switched(open_page: Opener, file: Path, scheme: str) -> None:
    seen = open_page(file, color_scheme=scheme)
    colors = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 28)"}
    other = "dark" if scheme == "light" else "light"
    require_background(seen, colors[scheme])
    seen.page.locator("#theme").click()
    require_background(seen, colors[other])
    seen.page.reload()
    require_background(seen, colors[other])
    seen.page.locator("#theme").click()
    require_background(seen, colors[scheme])
    seen.page.emulate_media(media="print")
    require_background(seen, colors["light"])
    assert not seen.page.locator("#theme").is_visible()
    seen.require_peace(file)


def test_where_nothing_can_be_remembered_the_switch_still_works(open_page: Opener, file: Path) -> None:
    seen = open_page(file, color_scheme="light")
    seen.page.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('no') } })")
    seen.page.reload()
    seen.page.locator("#theme").click()
    require_background(seen, "rgb(20, 23, 28)")
    seen.require_peace(file)


@pytest.mark.parametrize("width", [320, 390, 768, 1200])
def test_no_width_makes_the_page_scroll_sideways(open_page: Opener, file: Path, width: int) -> None:
    open_page(file).require_width(width)
