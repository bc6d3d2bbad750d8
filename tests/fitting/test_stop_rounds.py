"""stop_rounds: validation ends the rounds, the run is finished, and its result is the best of them."""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import dmt
from dmt import config, files, presets
from dmt.cli.app import app
from dmt.data.pixels.segment_sets import SegmentSet
from dmt.errors import ConfigError
from dmt.reporting import report_file
from dmt.results.report import Report
from dmt.runs.folder import Folder
from dmt.runs.progress import Silent, Watcher
from dmt.use import exporting, packing, scoring
from tests.conftest import TINY, TINY_PIXELS

FALL = TINY | {"fractions": "0.5,1,1,1", "epochs_round": 1, "rate_round": "0.1,5,0.1,0.1", "batch_pseudo": 256}
"""The second round unlearns what the first knew."""

CPU = torch.device("cpu")


class Heard(Silent):
    """Remembers notes, and counts work as a bar does."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.total = self.done = 0.0
        self._steps, self._work = 0, 0.0

    def begin(self, total: float, done: float) -> None:
        self.total, self.done = total, done

    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        self._steps, self._work = done, work

    def step(self, done: int) -> None:
        self.done += (done - self._steps) * self._work
        self._steps = done

    def worked(self, work: float) -> None:
        self.done += work

    def spared(self, work: float) -> None:
        self.total -= work

    def note(self, text: str) -> None:
        self.notes.append(text)


def fit(out: Path, watcher: Watcher | None = None, **settings: object) -> Report:
    told = {"stop_rounds": 1} | settings
    return dmt.fit("digits", out=out, method="cbst", baseline=False, settings=FALL | told, watcher=watcher or Silent())


def nets(run: Path) -> dict[str, bytes]:
    paths = sorted(run.glob("stages/*/step-*/*.safetensors"))
    return {f"{path.parents[1].name}/{path.name}": path.read_bytes() for path in paths}


def stages(run: Path) -> list[str]:
    return sorted(path.name[:2] for path in run.glob("stages/*"))


@pytest.fixture(scope="module")
def heard() -> Heard:
    return Heard()


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory, heard: Heard) -> Path:
    out = tmp_path_factory.mktemp("ended") / "run"
    fit(out, heard)
    return out


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "run"
    fit(out, stop_rounds=None)
    return out


def test_a_worse_round_is_the_last_and_the_best_one_the_result(ended: Path, heard: Heard) -> None:
    assert stages(ended) == ["A0", "A1", "A2"]
    (job,) = Report.read([ended]).jobs
    assert job.finished
    assert job.results == ("A1",)
    assert [stage.name for stage in job.stages] == ["A0", "A1", "A2"]
    assert [stage.name for stage in job.skipped] == ["A3", "A4"]
    assert job.preferred()[0].name == "A1"
    said = "CBST, seed 1: rounds ended after 2 of 4, since none after round 1 did better on validation"
    assert [note for note in heard.notes if "ended" in note] == [said]
    assert heard.done == pytest.approx(heard.total)
    assert said in str(Report.read([ended]))
    assert "best round's nets" in str(Report.read([ended]))


def test_repeating_the_command_trains_nothing(ended: Path) -> None:
    before = nets(ended)
    again = Heard()
    fit(ended, again)
    assert nets(ended) == before
    assert again.done == pytest.approx(again.total)
    assert stages(ended) == ["A0", "A1", "A2"]


def test_without_it_all_rounds_are_trained_and_the_last_is_the_result(ended: Path, whole: Path) -> None:
    (job,) = Report.read([whole]).jobs
    assert stages(whole) == ["A0", "A1", "A2", "A3", "A4"]
    assert (job.results, job.skipped, job.ended) == (("A4",), (), None)
    assert nets(ended).items() < nets(whole).items()  # the option changes no net, only how many there are


def test_everyone_agrees_on_the_net(ended: Path, tmp_path: Path) -> None:
    assert "A1" in scoring.shipped_net(ended, None, None, CPU).name
    finished = scoring.Finished(ended, None, CPU, print)
    (job,) = finished.jobs(None, None)
    assert {name.stage for name in finished.score(job, "test")} == {"A1"}
    exporting.export(ended, "safetensors", out=tmp_path / "net.safetensors")
    assert "A1" in exporting.load(tmp_path / "net.safetensors").name
    page = report_file.page([ended])
    assert "rounds ended after 2 of 4" in page
    assert "are not finished" not in page


def test_a_lean_pack_holds_the_best_net_and_is_finished(ended: Path, tmp_path: Path) -> None:
    packing.pack(ended, tmp_path / "packed", 10**9, lean=True)
    again = packing.unpack(tmp_path / "packed", tmp_path / "again")
    assert {path.parents[1].name[:2] for path in again.glob("stages/*/step-*/*-raw.safetensors")} == {"A1"}
    assert "A1" in scoring.shipped_net(again, None, None, CPU).name
    fit(again)
    assert stages(again) == ["A0", "A1", "A2"]


def forget_round_2(run: Path) -> None:
    (place,) = run.glob("stages/A2-*")
    shutil.rmtree(place)


def forget_what_came_out(run: Path) -> None:
    """Killed after the last step, before the scores were written."""
    (path,) = run.glob("stages/A2-*/journal.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if json.loads(line)["kind"] not in ("round", "guard")))


@pytest.mark.parametrize("killed", [forget_round_2, forget_what_came_out])
def test_a_killed_run_comes_to_the_same_end(ended: Path, killed: object, tmp_path: Path) -> None:
    cut = Path(shutil.copytree(ended, tmp_path / "run"))
    killed(cut)  # type: ignore[operator]
    (job,) = Report.read([cut]).jobs
    assert not job.finished
    assert job.skipped == ()
    (both,) = Report.read([cut, ended]).jobs  # two copies of one run
    assert both.finished
    fit(cut)
    assert nets(cut) == nets(ended)
    assert Report.read([cut]).jobs[0].results == ("A1",)


def test_a_run_that_is_packed_before_its_end_keeps_every_round_that_may_be_best(ended: Path, tmp_path: Path) -> None:
    cut = Path(shutil.copytree(ended, tmp_path / "run"))
    forget_round_2(cut)
    packing.pack(cut, tmp_path / "packed", 10**9, lean=True)
    again = packing.unpack(tmp_path / "packed", tmp_path / "again")
    fit(again)
    assert Report.read([again]).jobs[0].preferred()[0].name == "A1"
    assert scoring.shipped_net(again, None, None, CPU)


def test_stages_of_another_run_are_taken_but_decide_nothing_after_the_end(whole: Path, tmp_path: Path) -> None:
    told = FALL | {"stop_rounds": 1}
    watcher = Silent()
    report = dmt.fit(
        "digits", out=tmp_path, method="cbst", baseline=False, settings=told, watcher=watcher, donors=[whole]
    )
    assert report.jobs[0].results == ("A1",)
    assert [stage.name for stage in report.jobs[0].stages] == ["A0", "A1", "A2"]
    assert nets(tmp_path) == nets(whole)


def test_each_method_and_seed_ends_on_its_own(ended: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(ended, tmp_path / "run"))
    settings = FALL | {"stop_rounds": 1}
    report = dmt.fit("digits", out=run, method=["baseline", "cbst", "dst"], settings=settings, watcher=Silent())
    jobs = {job.method: job for job in report.jobs}
    assert all(job.finished for job in jobs.values())
    assert jobs["baseline"].results == ("A0",)
    assert jobs["cbst"].results == ("A1",)
    assert set(jobs["dst"].results) <= {"A1", "A2", "A3", "A4"}
    assert {stage.place for stage in jobs["cbst"].stages} & {stage.place for stage in jobs["dst"].stages} == {
        jobs["baseline"].stages[0].place
    }


def test_a_pair_ends_when_both_nets_were_trained(few_scenes: SegmentSet, tmp_path: Path) -> None:
    settings = TINY_PIXELS | {"stop_rounds": 1, "fractions": "1,1,1", "rate_round": "0.05,2,0.05"}
    heard = Heard()
    report = dmt.fit("scenes", out=tmp_path, method="dmt", baseline=False, settings=settings, watcher=heard)
    assert any(note.startswith("note: with 6 validation images it may be chance") for note in heard.notes)
    (job,) = report.jobs
    assert job.finished
    assert (job.stages[-1].title, job.results) == ("B2", ("A1", "B1"))
    first, second = (
        [stage.score("validation", "raw") or 0.0 for stage in job.stages if stage.round == number] for number in (1, 2)
    )
    assert sum(second) <= sum(first)  # by the mean of both nets
    assert [stage.title for stage in job.kept()] == ["A1", "B1"]
    assert stages(tmp_path) == ["A0", "A1", "A2", "B0", "B1", "B2"]


@pytest.mark.parametrize("patience", [1, 2, 3, 4])
def test_patience_waits_for_more_rounds_and_the_result_is_the_best_of_them(
    whole: Path, patience: int, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(whole, tmp_path / "run"))
    manifest = Folder(run).manifest()
    manifest["config"]["stop_rounds"] = patience
    files.write_json(run / "run.json", manifest)
    (job,) = Report.read([run]).jobs
    assert job.finished
    assert job.stages[-1].round == min(4, 1 + patience)  # no later round is as good as the first
    assert job.results == ("A1",)


def test_it_needs_validation_images(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="stop_rounds needs validation images"):
        fit(tmp_path / "run", validation=0)
    assert not (tmp_path / "run").exists()
    with pytest.raises(ConfigError, match="stop_rounds must be at least 1, or none, not 0"):
        config.override(presets.get("digits").config, {"stop_rounds": 0})


def test_a_plan_says_that_it_may_end_sooner() -> None:
    plan = partial(CliRunner().invoke, app, env={"COLUMNS": "200"})
    assert (
        "stop_rounds=1 may end the rounds early"
        in plan(["plan", "digits", "--no-time", "--set", "stop_rounds=1"]).output
    )
    assert "early" not in plan(["plan", "digits", "--no-time"]).output
