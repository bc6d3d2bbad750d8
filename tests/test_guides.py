"""Every guide is run as written: its commands by the command, its Python by Python."""

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from dmt.cli import app
from dmt.models import registered
from tests.data.folders import photo_layout

BUDGET_SPENT = 3
"""The exit code of docs/commands.md."""

GUIDES = Path(__file__).parent.parent / "docs" / "guides"


def blocks(name: str, language: str) -> list[str]:
    text = (GUIDES / f"{name}.md").read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def run_commands(name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """All lines that begin with ``$ dmt``, in order; returns what they printed."""
    printed = io.StringIO()
    for block in blocks(name, "console"):
        for line in block.splitlines():
            program, *words = shlex.split(line.removeprefix("$ "))
            assert program == "dmt"
            monkeypatch.setattr(sys, "argv", [program, *words])
            for _ in range(20):  # on a busy machine a budget may be spent early
                with contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as end:
                    app.main()
                if end.value.code != BUDGET_SPENT:
                    break
            assert end.value.code in (0, None), f"{line}: {end.value.code}"
    return printed.getvalue()


def test_every_guide_is_run_here() -> None:
    assert {path.stem for path in GUIDES.glob("*.md")} == {"README", "classify", "segment", "own-net", "loss"}


@pytest.mark.slow
def test_classify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photo_layout.write_classes(tmp_path / "photos", labeled=6, unlabeled=30, test=4)
    photo_layout.write_images(tmp_path / "new", ["disk", "square"], seed=7000)
    monkeypatch.chdir(tmp_path)
    run_commands("classify", monkeypatch)
    rows = (tmp_path / "pred.csv").read_text().splitlines()
    assert rows[0] == "file,class,probability,margin"
    assert len(rows) == 3
    assert list((tmp_path / "runs" / "photos" / "export").glob("*.safetensors"))


@pytest.mark.slow
def test_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photo_layout.write_masks(tmp_path / "fields", kind="indexed")
    photo_layout.write_images(tmp_path / "new", ["disk", "square"], seed=7000)
    monkeypatch.chdir(tmp_path)
    run_commands("segment", monkeypatch)
    assert len(list((tmp_path / "masks-for-new" / "masks").glob("*.png"))) == 2


@pytest.mark.parametrize("name", ["own-net", "loss"])
def test_python(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    names: dict[str, Any] = {"__name__": "guide"}  # one for all: a page continues from block to block
    try:
        with contextlib.redirect_stdout(printed):
            for block in blocks(name, "python"):
                exec(compile(block, f"{name}.md", "exec"), names)
    finally:
        registered.OWN.clear()
    assert printed.getvalue()
