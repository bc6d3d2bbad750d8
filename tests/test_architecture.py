"""Imports point one way, for every file, and every file keeps to the house's habits."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "dmt"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("types", "errors", "version"),
    ("run_files", "json_checks"),
    ("schemas",),
    ("csv_tables", "files", "option_values", "options", "outputs", "pictures"),
    ("core",),
    ("data", "models", "objectives", "pages"),
    ("methods",),
    ("config",),
    ("presets",),
    ("tasks",),
    ("training",),
    ("pseudo",),
    ("runs",),
    ("workers",),
    ("results",),
    ("own",),
    ("fitting",),
    ("use",),
    ("reporting", "auditing", "tuning", "sklearn"),
    ("cli",),
    ("__init__", "__main__"),
)
"""Packages and top-level files from the lowest to the highest. One imports itself and what is below, nothing beside."""

INSIDE: dict[str, tuple[str, ...]] = {
    "data": ("", "images", "pixels", "folders"),
}
"""The same within a package: its own files first, then its subpackages."""

BESIDE = {("auditing", "reporting"), ("tuning", "reporting"), ("tuning", "auditing")}
"""Who may look at a neighbor. Nobody looks back."""

LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
FILES = sorted(ROOT.rglob("*.py"))


def room(module: str) -> str:
    """The package or top-level file that a dotted name below dmt belongs to."""
    return module.split(".")[0]


def dotted(path: Path, root: Path = ROOT) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts)


def imports(source: str) -> set[str]:
    """Whole names of all modules that a file imports, and of what it takes from them."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports name the whole module"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def ours(source: str) -> set[str]:
    """Of these the ones of dmt, without its name."""
    return {name.removeprefix("dmt.") for name in imports(source) if name.startswith("dmt.")}


def violations(module: str, source: str) -> list[str]:
    """What a file imports that it must not."""
    mine = room(module)
    found = []
    for name in ours(source):
        other = room(name)
        if other not in LEVEL:
            found.append(f"{name} is nowhere in LAYERS")
        elif other == mine:
            found += [] if inside(module, name) else [name]
        elif LEVEL[other] >= LEVEL[mine] and (mine, other) not in BESIDE:
            found.append(name)
    return found


def inside(module: str, name: str) -> bool:
    """Whether a file of a package with an order of its own may import another of it."""
    order = INSIDE.get(room(module))
    if order is None:
        return True
    here, there = (part if (part := each.split(".")[1]) in order else "" for each in (module, name))
    return order.index(there) <= order.index(here)


def test_every_package_has_a_level() -> None:
    assert {room(dotted(path)) for path in FILES} == set(LEVEL)


@pytest.mark.parametrize("path", FILES, ids=dotted)
def test_imports_point_one_way(path: Path) -> None:
    assert violations(dotted(path), path.read_text()) == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("core.losses", "from dmt.data.sets import LabeledSet"),
        ("core.losses", "import dmt.training.trainer"),
        ("data.sets", "from dmt.data.folders import photos"),
        ("data.images.batches", "from dmt.data import pixels"),
        ("objectives.base", "def f():\n    from dmt.models import build"),
        ("training.trainer", "from dmt.pseudo.labeler import label"),
        ("types", "from dmt import files"),
        ("results.report", "from dmt.fitting import run"),
        ("fitting.run", "from dmt.cli import app"),
        ("reporting.studies", "from dmt.auditing import auditor"),
        ("runs.folder", "from dmt.elsewhere import thing"),
    ],
)
def test_a_violation_would_be_found(module: str, line: str) -> None:
    assert violations(module, line)


WITHOUT_TORCH = ("results.report", "results.tables", "results.guard_summary", "pages.html", "pages.charts")


@pytest.mark.parametrize("module", WITHOUT_TORCH)
def test_text_and_pages_are_made_without_tensors(module: str) -> None:
    source = ROOT.joinpath(*module.split(".")).with_suffix(".py").read_text()
    assert "torch" not in {name.split(".")[0] for name in imports(source)}


def test_a_forbidden_import_of_torch_would_be_found() -> None:
    for line in ("import torch", "from torch import nn", "import torch.nn.functional as F"):
        assert "torch" in {name.split(".")[0] for name in imports(line)}


@pytest.mark.parametrize("path", FILES, ids=dotted)
def test_every_file_says_what_it_is(path: Path) -> None:
    if path.stat().st_size and path.name != "version.py":
        assert ast.get_docstring(ast.parse(path.read_text())), path
    assert len(path.read_text().splitlines()) <= 320


def test_no_package_of_odds_and_ends() -> None:
    banned = {"utils", "common", "helpers", "manager", "misc"}
    assert not banned & {part for path in FILES for part in (path.stem, path.parent.name)}
