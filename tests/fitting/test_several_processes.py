"""Two and three processes of torchrun on a CPU against one, in one test: each launch costs seconds."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from dmt import run_files
from dmt.errors import LostProcessError
from dmt.results.report import Report
from dmt.runs.folder import Folder
from dmt.runs.stopping import Stopped
from dmt.training.checkpoint import Checkpoint
from tests import command
from tests.conftest import TINY
from tests.fitting import by_torchrun

ROOT = Path(__file__).parents[2]
COUNTS = (2, 3)
SETTINGS = TINY | {"epochs": 30, "epochs_round": 3, "ema": 0.9}  # 60, 27 and 54 steps


class Launch(NamedTuple):
    code: int
    said: list[str]  # by our processes, on standard error


@pytest.mark.slow
def test_several_processes_train_as_one(tmp_path: Path) -> None:
    prepare(tmp_path)
    launches = {count: launch(tmp_path, count) for count in COUNTS}  # in order: a run moves from one to the next
    parameters_equal_those_of_one_process(tmp_path)
    labels_are_those_of_one_process_to_the_bit(tmp_path)
    whole_runs_score_the_same(tmp_path)
    a_run_moves_between_numbers_of_processes(tmp_path)
    assert launches[2] == (0, [])
    assert launches[3].code != 0
    assert launches[3].said == [f"dmt: error: {LostProcessError()}"]
    what_was_killed_resumes(tmp_path / "killed 3")


def prepare(found: Path) -> None:
    """Settings, the run of one process, and the begin of the one that moves."""
    (found / "settings.json").write_text(json.dumps(SETTINGS))
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in SETTINGS.items()]
    (found / "settings.toml").write_text("".join(lines))
    with pytest.raises(Stopped):
        by_torchrun.fit(found / "moved", steps=20)
    by_torchrun.fit(found / "whole 1")


def launch(folder: Path, count: int) -> Launch:
    words = ["-m", "torch.distributed.run", f"--nproc-per-node={count}", "-m", "tests.fitting.by_torchrun", str(folder)]
    told = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    done = subprocess.run([sys.executable, *words], cwd=ROOT, env=told, capture_output=True, text=True, timeout=280)
    (folder / f"said {count}.txt").write_text(done.stdout + done.stderr)
    return Launch(done.returncode, [line for line in done.stderr.splitlines() if line.startswith("dmt: ")])


def require_alike(run: Path, other: Path) -> None:
    """Where only labels teach, scores are the same to an image or two. Rounding may then swap images at the edge of a
    selection, by which nets of a few steps differ more."""
    found, expected = accuracies(run), accuracies(other)
    assert found.keys() == expected.keys()
    for name, accuracy in expected.items():
        assert found[name] == pytest.approx(accuracy, abs=0.5 if name.endswith("A0") else 5.0)


def accuracies(run: Path) -> dict[str, float]:
    """Of every stage on the test images, by name and method."""
    return {
        f"{job.method} {stage.name}": stage.outcome["scores"]["test"]["raw"]["accuracy"]
        for job in Report.read([run]).jobs
        for stage in job.stages
        if stage.outcome is not None
    }


def parameters_equal_those_of_one_process(folder: Path) -> None:
    for name in by_torchrun.OBJECTIVES:
        alone = by_torchrun.trained(name)
        for count in (each for each in COUNTS if name in by_torchrun.objectives(each)):
            together = torch.load(folder / f"{name} {count}.pt")
            assert alone.keys() == together.keys()
            for place, value in alone.items():
                torch.testing.assert_close(together[place], value, rtol=0, atol=1e-6, msg=f"{place} of {name}, {count}")


def labels_are_those_of_one_process_to_the_bit(folder: Path) -> None:
    for data in by_torchrun.LABELED_DATA:
        with by_torchrun.small_scenes():
            by_torchrun.label(data, folder / f"labels of {data} 1")
        alone = command.held(folder / f"labels of {data} 1")
        for count in COUNTS:
            assert command.held(folder / f"labels of {data} {count}") == alone


def whole_runs_score_the_same(folder: Path) -> None:
    require_alike(folder / "whole 2", folder / "whole 1")
    assert Folder(folder / "whole 1").jobs() == Folder(folder / "whole 2").jobs()  # identities among them
    by_torchrun.fit_scenes(folder / "scenes 1")
    assert accuracies(folder / "scenes 2") == pytest.approx(accuracies(folder / "scenes 1"), abs=1.0)


def a_run_moves_between_numbers_of_processes(folder: Path) -> None:
    sessions = (folder / "moved" / run_files.SESSIONS).read_text().splitlines()
    assert [json.loads(line).get("processes") for line in sessions] == [None, 2, 3]
    assert len(accuracies(folder / "moved")) < len(accuracies(folder / "whole 1"))
    by_torchrun.fit(folder / "moved")
    require_alike(folder / "moved", folder / "whole 1")


def what_was_killed_resumes(run: Path) -> None:
    assert step(run) == by_torchrun.DEADLY
    with pytest.raises(Stopped):
        by_torchrun.fit(run, steps=2)
    assert step(run) == by_torchrun.DEADLY + 3


def step(run: Path) -> int:
    """Where the only stage of a run stands."""
    (stage,) = (run / run_files.STAGES).iterdir()
    state = Checkpoint(stage).state()
    assert state is not None
    return int(state["step"])
