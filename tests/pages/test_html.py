from html import parser

import pytest

from dmt.pages import html
from dmt.pages.document import document, section
from dmt.pages.html import Safe, tag

NASTY = '<b onclick="x()">\'&amp;</b>'
PIXEL = bytes.fromhex("89504e470d0a1a0a")


class Reader(parser.HTMLParser):
    """Elements with their attributes, and the text, as a browser would find them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_what_is_not_known_to_be_html_is_escaped() -> None:
    read = Reader(tag("p", NASTY, [NASTY, None, 3], tag("i", 2.5), title=NASTY, data_note=NASTY, class_="c"))
    assert [name for name, _ in read.elements] == ["p", "i"]
    assert read.elements[0][1] == {"title": NASTY, "data-note": NASTY, "class": "c"}
    assert read.text == f"{NASTY}{NASTY}32.5"


def test_characters_that_turn_or_break_a_page_are_replaced() -> None:
    assert html.text("a\x00b\u202ec\ud800d") == "a�b�c�d"
    assert "\u202e" not in tag("p", title="x\u202ey")


def test_attributes_can_be_left_out_and_bare() -> None:
    assert tag("details", open=True, id=None, hidden=False) == "<details open></details>"
    assert tag("meta", name="x", content="y") == '<meta name="x" content="y">'


@pytest.mark.parametrize("name", ["onclick", "ONLOAD", "style", "a b", 'x"y'])
def test_an_attribute_that_the_policy_forbids_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="no attribute"):
        tag("p", **{name: "x"})


def test_a_picture_travels_within_the_page() -> None:
    shown = html.picture(PIXEL, NASTY, width=3)
    ((name, attributes),) = Reader(shown).elements
    assert name == "img"
    assert attributes == {"src": "data:image/png;base64,iVBORw0KGgo=", "alt": NASTY, "width": "3"}
    with pytest.raises(ValueError, match="PNG, JPEG or WebP"):
        html.picture(b"<svg onload=x()>", "no")


def test_cells_carry_what_they_are_sorted_by() -> None:
    rows = [("a", 1234, 2.345, ("2 ± 1", 2.0), ("–", float("nan"))), (Safe("<i>b</i>"), -1, 0.0, "3 of 4", NASTY)]
    read = Reader(html.table(("w", "x", "y", "z", NASTY), rows, caption=NASTY))
    cells = [attributes for name, attributes in read.elements if name == "td"]
    assert [cell.get("data-sort") for cell in cells] == [
        None, "1234", "2.345", "2.0", "", None, "-1", "0.0", None, None,
    ]  # fmt: skip
    assert [cell.get("class") for cell in cells] == [None, "n", "n", "n", "n", None, "n", "n", "n", None]
    assert "1,234" in read.text
    assert "2.35" in read.text or "2.34" in read.text
    assert read.text.count(NASTY) == 3
    assert "button" not in html.table(("a",), [], sortable=False)


def test_a_document_holds_all_it_needs_and_allows_nothing_else() -> None:
    page = document(NASTY, section(NASTY, "body", note=NASTY, id="here"), subtitle=NASTY, refresh=None)
    read = Reader(page)
    policy = next(
        each["content"] for name, each in read.elements if each.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert policy.count("sha256-") == 2
    assert [name for name, _ in read.elements].count("script") == 1
    assert not {"link", "iframe", "base", "form"} & {name for name, _ in read.elements}
    assert not any("src" in each or "style" in each for _, each in read.elements)
    assert 'http-equiv="refresh"' not in page
    assert 'http-equiv="refresh" content="5"' in document("t", refresh=5)
