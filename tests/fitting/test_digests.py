"""Files of a run that are not what it wrote: refused in one line, and mended by what the line says."""

import json
import os
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import dmt
from dmt import files
from dmt.errors import RunError
from dmt.results import reading
from dmt.runs import stopping
from dmt.runs.folder import Folder
from dmt.runs.progress import Silent
from dmt.training import evidence_files
from dmt.training.journal import Journal
from dmt.use import exporting, scoring
from tests.conftest import TINY
from tests.fixtures import before_digests

SETTINGS = TINY | {"epochs": 2, "epochs_round": 1, "fractions": "1"}
CPU = torch.device("cpu")


class Notes(Silent):
    """Keeps what is said, and stops the run at a step of its second stage."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.notes: list[str] = []
        self.stages, self.stop_at = 0, stop_at

    def note(self, text: str) -> None:
        self.notes.append(text)

    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        self.stages += 1

    def step(self, done: int) -> None:
        if self.stages == 2 and done == self.stop_at:
            os.kill(os.getpid(), signal.SIGINT)


def fit(out: Path, watcher: Silent | None = None) -> None:
    dmt.fit("digits", out=out, method="cl", settings=SETTINGS, watcher=watcher or Silent())


def nets(run: Path) -> dict[str, bytes]:
    return {f"{path.parts[-3]}/{path.name}": path.read_bytes() for path in run.glob("stages/*/step-*/*.safetensors")}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A finished run, and one that was stopped in its second stage."""
    folder = tmp_path_factory.mktemp("runs")
    fit(folder / "whole")
    with pytest.raises(stopping.Stopped):
        fit(folder / "stopped", Notes(stop_at=6))
    return folder / "whole", folder / "stopped"


@pytest.fixture
def whole(runs: tuple[Path, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(runs[0], tmp_path / "whole"))


@pytest.fixture
def stopped(runs: tuple[Path, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(runs[1], tmp_path / "stopped"))


def zeros(path: Path) -> None:
    """A hole in the middle of a file."""
    content = bytearray(path.read_bytes())
    hole = slice(len(content) // 2, len(content) // 2 + 4096)
    content[hole] = bytes(len(content[hole]))
    path.write_bytes(bytes(content))


def changed(path: Path, change: Callable[[torch.Tensor], torch.Tensor], only: str = "") -> None:
    """Other numbers in a file that is otherwise well."""
    tensors = files.read_tensors(path)
    files.write_tensors(path, {name: change(each) if only in name else each for name, each in tensors.items()})


def not_numbers(tensor: torch.Tensor) -> torch.Tensor:
    return torch.full_like(tensor, float("nan")) if tensor.is_floating_point() else tensor


def refusal(run: Path) -> str:
    with pytest.raises(RunError) as caught:
        fit(run)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def follow(remedy: str) -> None:
    """Do what the line says."""
    found = re.search(r"delete (\S+) and repeat the command", remedy)
    assert found, remedy
    shutil.rmtree(found[1])


@pytest.mark.parametrize(
    "name", ["A1-*/step-*/A-raw", "A1-*/step-*/A-ema", "A1-*/step-*/optimizer", "A1-*/pseudo"],
)  # fmt: skip
def test_a_hole_in_a_file_is_refused_and_the_remedy_works(name: str, runs: tuple[Path, Path], stopped: Path) -> None:
    (path,) = stopped.glob(f"stages/{name}.safetensors")
    zeros(path)
    said = refusal(stopped)
    assert f"{path} is damaged" in said
    follow(said)
    fit(stopped)
    assert nets(stopped) == nets(runs[0])


def test_numbers_that_somebody_changed_are_refused(stopped: Path) -> None:
    """The same format, the same size: only the digest tells."""
    (labels,) = stopped.glob("stages/A1-*/pseudo.safetensors")
    before = labels.read_bytes()
    changed(labels, lambda each: (each + 1) % 10, only="labels")
    assert f"{labels} is damaged" in refusal(stopped)
    labels.write_bytes(before)
    (optimizer,) = stopped.glob("stages/A1-*/step-*/optimizer.safetensors")
    changed(optimizer, torch.zeros_like)
    assert f"{optimizer} is damaged" in refusal(stopped)


def test_a_run_without_digests_resumes_with_a_note(runs: tuple[Path, Path], stopped: Path) -> None:
    before_digests.forget(stopped)
    watcher = Notes()
    fit(stopped, watcher)
    assert [note for note in watcher.notes if "A0, A1 began before runs kept digests" in note]
    assert nets(stopped) == nets(runs[0])


@pytest.mark.parametrize(
    ("name", "change", "only", "says"),
    [
        ("A1-*/pseudo", not_numbers, "confidence", "confidence is no probability"),
        ("A1-*/pseudo", lambda each: each + 9, "labels", "none of the 10 classes"),
        ("A1-*/pseudo", lambda each: each[:-1], "", "one label for each of"),
        ("A1-*/step-*/optimizer", not_numbers, "", "is not finite"),
        ("A1-*/step-*/A-raw", not_numbers, "", "is not finite"),
    ],
)
def test_without_digests_numbers_must_be_possible(
    name: str, change: Callable[[torch.Tensor], torch.Tensor], only: str, says: str, stopped: Path
) -> None:
    before_digests.forget(stopped)
    (path,) = stopped.glob(f"stages/{name}.safetensors")
    changed(path, change, only)
    said = refusal(stopped)
    assert f"{path} is damaged" in said
    assert says in said


@pytest.mark.parametrize("state", [{"step": 10**9}, {"step": 7}, {"done": True}])
def test_a_step_outside_of_the_plan_is_refused(state: dict[str, object], stopped: Path) -> None:
    (path,) = stopped.glob("stages/A1-*/state.json")
    path.write_text(json.dumps(files.read_json(path) | state))
    said = refusal(stopped)
    assert f"{path} is damaged" in said
    assert "of 18 steps" in said
    follow(said)


@pytest.mark.parametrize("harm", ["a hole", "NaN", "NaN without digests"])
def test_a_damaged_net_is_neither_scored_nor_used(harm: str, whole: Path) -> None:
    for path in whole.glob("stages/A1-*/step-*/*.safetensors"):
        if harm == "a hole":
            zeros(path)
        else:
            changed(path, not_numbers)
    if harm == "NaN without digests":
        before_digests.forget(whole)
    finished = scoring.Finished(whole, None, CPU, print)
    uses: tuple[Callable[[], object], ...] = (
        lambda: finished.score(finished.jobs("cl", None)[0], "test"),
        lambda: scoring.shipped_net(whole, "cl", None, CPU),
        lambda: exporting.export(whole, "safetensors", options=exporting.ExportOptions(method="cl")),
    )
    for use in uses:
        with pytest.raises(RunError, match=r"A1-.*safetensors is damaged") as caught:
            use()
        assert "\n" not in str(caught.value)
    assert not list(whole.glob("export/*"))


def test_evidence_of_another_net_is_none(whole: Path) -> None:
    stage = reading.read(Folder(whole))[0].stages[0]
    found = stage.evidence("test", "raw")
    assert found is not None
    (other,) = whole.glob("stages/A1-*/evidence-test-A-raw.npz")
    shutil.copy(other, stage.path)
    assert stage.evidence("test", "raw") is None
    assert evidence_files.read(stage.path, "test", "A", "raw") is not None  # a whole file, but not this net's


def test_a_split_that_is_not_the_runs_is_refused(whole: Path) -> None:
    path = whole / "splits" / "seed-1.json"
    before = path.read_text()
    parts = files.read_json(path)
    path.write_text(json.dumps(parts | {"labeled": parts["labeled"][1:]}))
    assert f"{path} is damaged" in refusal(whole)
    path.unlink()
    fit(whole)
    assert path.read_text() == before


def test_killed_between_files_and_state_a_run_resumes(
    runs: tuple[Path, Path], stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of a newer checkpoint lie beside a state that does not know them yet."""
    real = files.write_json

    def killed(path: Path, value: object) -> None:
        if path.name == "state.json":
            raise KeyboardInterrupt
        real(path, value)

    with monkeypatch.context() as patch:
        patch.setattr(files, "write_json", killed)
        with pytest.raises(KeyboardInterrupt):
            fit(stopped)
    assert len(list(stopped.glob("stages/A1-*/step-*"))) == 2
    fit(stopped)
    assert len(list(stopped.glob("stages/A1-*/step-*"))) == 1
    assert nets(stopped) == nets(runs[0])


def test_killed_before_its_manifest_a_run_begins_anew(tmp_path: Path) -> None:
    left = tmp_path / "run" / f"{files.TEMPORARY}0"
    left.parent.mkdir()
    left.write_text("{")
    dmt.fit("digits", out=tmp_path / "run", method="baseline", settings=SETTINGS, watcher=Silent())
    assert not left.exists()


def fit_and_die_before(entry: str, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go on with a run, and end where its journal would get such an entry."""
    real = Journal.write

    def killed(self: Journal, kind: str, **values: object) -> None:
        if kind == entry:
            raise KeyboardInterrupt
        real(self, kind, **values)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            fit(run)


def test_killed_before_its_scores_a_stage_writes_no_net_again(
    runs: tuple[Path, Path], stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit_and_die_before("round", stopped, monkeypatch)
    times = {path: path.stat().st_mtime_ns for path in stopped.glob("stages/A1-*/step-*/*")}
    fit(stopped)
    assert times == {path: path.stat().st_mtime_ns for path in stopped.glob("stages/A1-*/step-*/*")}
    assert nets(stopped) == nets(runs[0])


def test_killed_before_it_was_judged_a_stage_is_judged_when_it_resumes(
    runs: tuple[Path, Path], stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit_and_die_before("guard", stopped, monkeypatch)
    fit(stopped)
    for run in (stopped, runs[0]):
        (path,) = run.glob("stages/A1-*/journal.jsonl")
        assert [line["kind"] for line in Journal(path).read()][-2:] == ["round", "guard"]


def test_a_trained_stage_whose_journal_lost_its_end_is_said(whole: Path, caplog: pytest.LogCaptureFixture) -> None:
    (path,) = whole.glob("stages/A1-*/journal.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if b'"kind": "round"' not in line and b'"guard"' not in line))
    reading.read(Folder(whole))
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith(f"{path.parent} is trained, but its journal does not tell what came out; repeat the fit")
