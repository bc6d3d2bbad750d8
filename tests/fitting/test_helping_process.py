"""A process of torchrun that is not the first one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import dmt
from dmt.core.processes import Processes
from dmt.errors import ConfigError
from dmt.fitting import helping
from dmt.results.report import Report
from dmt.runs import joining


def test_one_gpu_is_not_shared_by_the_processes_of_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="cuda:1 cannot be for all; give cuda"):
        joining.require_gpu_each("cuda:1")
    joining.require_gpu_each("cuda")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    joining.require_gpu_each("cuda:1")


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
