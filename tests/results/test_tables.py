"""Tables as text: nothing is shown that nobody knows."""

import math

from dmt.results import tables


def test_columns_without_a_value_are_left_out() -> None:
    rows = [["A0", "70.50", tables.UNKNOWN, tables.UNKNOWN], ["A1", "71.00", tables.UNKNOWN, "20%"]]
    text = tables.text(tables.filled("by stage", ["stage", "raw", "EMA", "kept"], rows))
    assert text.startswith("by stage\n")
    assert "EMA" not in text
    assert "kept" in text
    assert "20%" in text
    assert text.count(tables.UNKNOWN) == 1  # of A0, which had no labels


def test_a_spread_of_nothing_is_a_dash() -> None:
    assert tables.spread([]) == tables.spread([math.nan]) == tables.UNKNOWN
    assert tables.spread([70.0, math.nan]) == "70.00"
    assert tables.spread([70.0, 72.0]) == "71.00 ± 1.41"
