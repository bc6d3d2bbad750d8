"""Imports point one way (shared by all rooms), and every file keeps to the house's habits."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "dmt"

# room -> rooms it may import; "spine" below stands for the files beside the rooms that everyone may read
ALLOWED: dict[str, set[str]] = {
    "core": set(),
    "objectives": {"core"},
    "methods": {"core", "objectives"},
    "data": {"core"},
    "models": {"core"},
    "tasks": {"core", "data", "models"},
    "training": {"core", "data", "models", "tasks"},
    "pages": set(),
}
UPPER = {"reporting", "auditing", "tuning"}
"""Rooms above the spine: they read runs or make them, and only the command and the package's front door know them."""

LEAVES = {"types", "errors", "options", "version", "files"}
"""Files that import no room, so that every room may import them."""

EXTRA = {("training", "objectives.base")}
"""The one door: a trainer knows what an objective is, not which there are."""


def imports(path: Path) -> set[str]:
    """Modules of dmt that a file imports, without the leading package name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.removeprefix("dmt.") for name in found if name.startswith("dmt.")}


FILES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if path.parent != ROOT and path.parent.name not in UPPER],
    ids=lambda path: path.stem,
)
def test_rooms_import_one_way(path: Path) -> None:
    room = path.parent.name
    for name in imports(path):
        target = name.split(".")[0]
        door = any(room == who and name.startswith(what) for who, what in EXTRA)
        assert target == room or target in ALLOWED[room] or target in LEAVES or door, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_upper_rooms_are_known_to_the_command_alone(path: Path) -> None:
    room = path.parent.name if path.parent != ROOT else ""
    doors = path.name == "__init__.py" or path.stem.startswith("cli")
    known = {name.split(".")[0] for name in imports(path)} & (UPPER - {room})
    assert doors or not known, f"{path.name} imports {known}"


def test_leaves_import_no_room() -> None:
    for leaf in LEAVES:
        assert {name.split(".")[0] for name in imports(ROOT / f"{leaf}.py")} <= LEAVES


def test_the_command_is_imported_by_nobody() -> None:
    importers = [path.name for path in FILES if any(name.split(".")[0] == "cli" for name in imports(path))]
    assert importers == []


def test_reports_are_made_of_files_alone() -> None:
    assert not {"torch", "run"} & {name.split(".")[0] for name in imports(ROOT / "report.py")}
    assert "torch" not in (ROOT / "report.py").read_text()


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_file_says_what_it_is(path: Path) -> None:
    if path.stat().st_size and path.name != "version.py":
        assert ast.get_docstring(ast.parse(path.read_text())), path
    assert len(path.read_text().splitlines()) <= 320


def test_no_room_of_odds_and_ends() -> None:
    banned = {"utils", "common", "helpers", "manager", "misc"}
    assert not banned & {part for path in FILES for part in (path.stem, path.parent.name)}
