"""Tables at 80 columns: no line is longer, no number breaks, and nothing is lost without a word."""

import pytest
from rich.cells import cell_len
from rich.table import Table

from dmt.results import narrow_tables, tables

HEADS = ("data", "method", "seeds", "A", "B", "EMA", "both", "final", "gain", "single", "paper")
ROWS = (
    ("photo-masks [1]", "Baseline", "3", "89.58 ± 3.47", "63.41", "–", "–", "89.08 ± 2.98", "–", "–", "86.08"),
    ("digits", "DMT", "1", "95.67", "77.48", "95.33", "96.00", "78.71", "+17.53 (+15.56 to +19.40)", "+6.08", "95.1*"),
)
OPTIONAL = (("EMA", "ema"), ("A", "B"), ("paper",))


def made() -> Table:
    return tables.filled("a title of several words that is longer than a narrow terminal", HEADS, ROWS)


def widest(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def test_a_file_gets_a_table_as_wide_as_it_is() -> None:
    assert narrow_tables.fit(made(), None, OPTIONAL).title == made().title
    wide = tables.text(narrow_tables.fit(made(), None, OPTIONAL))
    assert "+17.53 (+15.56 to +19.40)" in wide
    assert wide == tables.text(narrow_tables.fit(made(), 200, OPTIONAL), 200)
    assert widest(wide) > 120


@pytest.mark.parametrize("width", [66, 70, 80, 100, 120])
def test_no_line_is_longer_than_the_terminal_and_no_number_breaks(width: int) -> None:
    table = narrow_tables.fit(made(), width, OPTIONAL)
    text = tables.text(table, width)
    assert widest(text) <= width
    words = text.split()
    for head, *column in zip(HEADS, *ROWS, strict=True):
        if head in tables.heads(table):
            assert all(word in words for cell in column for word in cell.split())
        else:
            assert head in text.split("not shown for lack of width: ")[1]


def test_columns_are_left_out_only_where_wrapping_is_not_enough() -> None:
    assert "not shown" not in tables.text(narrow_tables.fit(made(), 120, OPTIONAL), 120)
    assert "not shown for lack of width: EMA\n" in tables.text(narrow_tables.fit(made(), 90, OPTIONAL), 90)
    assert "not shown for lack of width: EMA, A, B\n" in tables.text(narrow_tables.fit(made(), 75, OPTIONAL), 75)


def test_spreads_and_ranges_break_where_they_can_be_read() -> None:
    lines = [line.strip() for line in tables.text(narrow_tables.fit(made(), 80, OPTIONAL), 80).splitlines()]
    assert not any(line.endswith(("±", "to")) for line in lines[1:])


def test_names_break_at_last_and_wide_letters_count_twice() -> None:
    text = tables.grid("t", ["A1 raw", "A1 ema"], {f"class {'細胞' * 20}": [1.0, 2.0]}, 40)
    assert widest(text) <= 40
    assert text.count("細") == 20


def test_sentences_wrap_between_words() -> None:
    said = "DMT +6.2 ± 3.1 points over Baseline, 90 % of them in /a/path/that/is/longer/than/the/line\nand more"
    for width in range(20, 60):
        wrapped = narrow_tables.sentences(said, width)
        assert wrapped.replace("\n", " ") == said.replace("\n", " ")
        assert all(len(line) <= width or " " not in line for line in wrapped.split("\n"))
        assert "±\n" not in wrapped
        assert "\n%" not in wrapped
    assert narrow_tables.sentences(said, None) == said
