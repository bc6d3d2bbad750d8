"""The README stays short, links lead somewhere, and the pages name everything there is."""

import re
from pathlib import Path

import pytest

import dmt
from dmt.methods.catalogue import METHODS

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")]


def anchors(page: Path) -> set[str]:
    """Of all headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_readme_is_short() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 110
    assert max(map(len, lines)) <= 200


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_public_name_is_on_its_page() -> None:
    text = (ROOT / "docs" / "api.md").read_text()
    assert [name for name in dmt.__all__ if f"`dmt.{name}" not in text] == []


def test_every_method_is_on_a_page() -> None:
    text = "".join(page.read_text() for page in (ROOT / "docs" / "methods").glob("*.md"))
    assert [name for name in METHODS if f"`{name}`" not in text] == []
