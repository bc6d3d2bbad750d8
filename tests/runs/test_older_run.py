"""A run that a release wrote, committed: every later release resumes it, or refuses it in one line that says why."""

import json
import shutil
from pathlib import Path

import pytest

import dmt
from dmt.errors import DmtError
from dmt.results.report import Report
from dmt.runs.folder import Folder
from dmt.runs.progress import Silent
from tests.fixtures import make_run

pytestmark = pytest.mark.skipif(not make_run.PLACE.is_dir(), reason="made for a release by tests/fixtures/make_run.py")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return Path(shutil.copytree(make_run.PLACE, tmp_path / "run"))


class Resumed(Silent):
    """Remembers from which step each stage went on."""

    def __init__(self) -> None:
        self.begun: list[int] = []

    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        self.begun.append(done)


def test_it_is_small_and_stopped_in_the_middle_of_its_second_stage() -> None:
    assert sum(path.stat().st_size for path in make_run.PLACE.rglob("*") if path.is_file()) < 200_000
    states = sorted(make_run.PLACE.glob("stages/*/state.json"))
    first, second = (json.loads(path.read_text()) for path in states)
    assert first["done"]
    assert not second["done"]
    assert 0 < second["step"] < second["steps"]


def resume(run: Path, watcher: Silent) -> Report | str:
    """What came out, or why it was refused."""
    settings = make_run.SETTINGS
    try:
        return dmt.fit("digits", out=run, method=make_run.METHOD, settings=settings, device="cpu", watcher=watcher)
    except DmtError as error:
        return str(error)


def parameters(run: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in run.rglob("*.safetensors")}


def test_it_is_resumed_or_refused_in_one_line(run: Path) -> None:
    ours, before, watcher = Folder(run).maker() == f"dmt {dmt.__version__}", parameters(run), Resumed()
    outcome = resume(run, watcher)
    if isinstance(outcome, str):
        assert not ours, outcome
        assert "\n" not in outcome
        assert "release" in outcome
        assert parameters(run) == before
        return
    assert all(job.finished for job in outcome.jobs)
    assert len(watcher.begun) == 1  # the finished stage was not trained again
    assert watcher.begun[0] > 0
    assert len(list((run / "stages").iterdir())) == 2  # and nothing was begun beside what was there


def test_what_it_holds_can_be_told(run: Path) -> None:
    report = Report.read([run])
    assert {job.method for job in report.jobs} == {make_run.METHOD, "baseline"}
    assert "A0" in str(report)
