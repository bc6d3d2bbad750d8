import itertools
import math
import re

import pytest

from dmt.pages import axes, charts
from dmt.pages.axes import Axes
from dmt.pages.charts import Heat, Level, Series

FRAME = Axes((0, 4), (0, 10), "round", "score, %")


def numbers(pattern: str, drawn: str) -> list[float]:
    return [float(found) for found in re.findall(pattern, drawn)]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (91.3, 94.9, [92, 93, 94]),
        (5, 5, [5]),
        (-1, 1, [-1, -0.5, 0, 0.5, 1]),
    ],
)
def test_ticks_are_round_numbers_within_the_range(low: float, high: float, expected: list[float]) -> None:
    assert axes.ticks(low, high) == expected


def test_a_range_has_air_but_noise_does_not_fill_it() -> None:
    assert axes.span([50, 60]) == pytest.approx((49.2, 60.8))
    assert axes.span([50, 50.01], least=2)[1] - axes.span([50, 50.01], least=2)[0] == pytest.approx(2)
    assert axes.span([99, 100], within=(0, 100))[1] == 100
    assert axes.span([math.nan], within=(0, 7)) == (0, 7)


def test_lines_go_through_their_points_and_leave_out_what_is_not_known() -> None:
    line = Series("DMT", [(0, 0), (2, math.nan), (4, 10)], [0, 0, 2])
    drawn = charts.lines("scores", FRAME, [line], unit=" %")
    assert drawn.count("<circle") == 2
    assert "DMT 10.00 ± 2.00 %" in drawn
    assert 'role="img" aria-label="scores"' in drawn
    xs, ys = numbers(r'cx="([\d.]+)"', drawn), numbers(r'cy="([\d.]+)"', drawn)
    assert xs[0] < xs[1]
    assert ys == [FRAME.bottom, FRAME.top]
    assert "nan" not in drawn


def test_names_at_the_ends_of_lines_do_not_overlap() -> None:
    series = [Series(f"method {number}", [(0, 5), (4, 5 + number / 100)], color=number) for number in range(5)]
    drawn = charts.lines("scores", FRAME, series, [Level("paper", 5.02)])
    heights = sorted(numbers(r'y="([\d.]+)" dy="0.35em" class="ink\d"', drawn))
    assert len(heights) == 6
    assert min(after - before for before, after in itertools.pairwise(heights)) >= 15.9
    assert min(heights) > FRAME.top - 1
    assert max(heights) < FRAME.bottom + 1


def test_stacked_areas_add_up() -> None:
    layers = [Series("low", [(0, 1), (4, 1)]), Series("high", [(0, 9), (4, 9)], faint=True)]
    points = re.findall(r'<polygon points="([^"]+)"', charts.areas("cases", FRAME, layers))
    tops = [min(float(point.split(",")[1]) for point in each.split()) for each in points]
    assert tops == pytest.approx([FRAME.up(1), FRAME.up(10)], abs=0.1)


def test_bars_are_as_high_as_their_values() -> None:
    drawn = charts.bars(
        "error", FRAME, ["20 %", "40 %"], [Series("plain", [(0, 5), (0, 10)]), Series("none", [(0, 0), (0, math.nan)])]
    )
    heights = numbers(r'<rect[^>]* height="([\d.]+)"', drawn)
    assert len(heights) == 3  # what is not known has no bar
    assert heights[1] == pytest.approx(2 * heights[0], abs=0.2)
    assert heights[2] < 1
    assert "plain, 40 %: 10.00" in drawn


def test_a_confusion_tells_counts_and_shares_of_its_rows() -> None:
    drawn = charts.heat("confusion", Heat(["cat", "dog"], [[3, 1], [0, 0]]))
    assert "cat called dog: 1 (25.0%)" in drawn
    assert "dog called dog: 0 (0.0%)" in drawn  # a class without truth is no division by zero
    assert drawn.count("<rect") == 4


def test_a_grid_marks_what_there_is_none_of() -> None:
    drawn = charts.grid("coverage", ["cat", "dog"], ["1", "2"], [[0.25, 1.0], [math.nan, 0.0]])
    assert "cat, 1: 25.0%" in drawn
    assert "dog, 1: none" in drawn
    assert ">–</text>" in drawn


def test_long_names_are_cut_and_told_in_full() -> None:
    long = "a class with a very long name indeed"
    drawn = charts.heat("confusion", Heat([long], [[1]]))
    assert f"<title>{long}</title>" in drawn
    assert ">a class with …" in drawn


def test_calibration_is_drawn_beside_the_line_where_it_is_perfect() -> None:
    drawn = charts.reliability("calibration", [Series("DMT", [(55, 40), (95, 90)], sizes=[2.0, 6.0])])
    assert drawn.count("<polyline") == 2
    assert 'r="6.0"' in drawn
