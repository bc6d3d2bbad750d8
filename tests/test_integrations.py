"""The loss in other training loops, as the pages show it; each is run where its package is installed."""

import contextlib
import io
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from dmt.models import torchvision_pair

DOCS = Path(__file__).parent.parent / "docs"


def blocks(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / f"{name}.md").read_text(), re.DOTALL)


def run(page: str, *some: str) -> str:
    """What these blocks print, one after the other."""
    printed, names = io.StringIO(), dict[str, Any](__name__="page")
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of other packages
        for block in some:
            exec(compile(block, f"{page}.md", "exec"), names)
    return printed.getvalue()


def better_than_its_teacher(printed: str) -> bool:
    teacher, student = map(float, re.findall(r"(\d+\.\d) %", printed))
    return student > teacher


@pytest.mark.parametrize("package", ["lightning", "accelerate"])
def test_a_loop(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torchvision_pair.ensure()  # Lightning imports it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    setup, *loops = blocks("integrations")
    (loop,) = (block for block in loops if f"import {package}" in block or f"from {package} import" in block)
    assert better_than_its_teacher(run("integrations", setup, loop))
    assert list(tmp_path.iterdir()) == []


def test_scikit_learn() -> None:
    printed = run("sklearn", *blocks("sklearn"))
    alone, together = map(float, re.findall(r"(\d+\.\d) %", printed)[:2])
    assert together > alone
    assert "all_labeled after 5 rounds" in printed
