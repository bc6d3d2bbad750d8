"""A process of torchrun that is not the first one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import dmt
from dmt.core.processes import Processes
from dmt.fitting import helping
from dmt.results.report import Report
from dmt.runs import joining


def test_a_machine_without_the_run_ends_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def second_of_two() -> Iterator[Processes]:
        yield Processes(1, 2)

    helped = []
    monkeypatch.setattr(joining, "joined", second_of_two)
    monkeypatch.setattr(helping, "help_out", lambda *given: helped.append(given))
    assert dmt.fit("digits", out=tmp_path / "absent") == Report(())
    assert len(helped) == 1
    assert not list(tmp_path.iterdir())
