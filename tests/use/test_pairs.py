"""Both nets of a pair as one: measured, shipped unless validation objects, and asked for by line."""

import json
import math
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image

import dmt
from dmt import files, run_files
from dmt.cli import app
from dmt.data.pixels.segment_sets import SegmentSet
from dmt.errors import ConfigError
from dmt.models import build
from dmt.models.build import NetSpec
from dmt.models.mean_of_nets import MeanOfNets
from dmt.reporting import report_file
from dmt.results import guard
from dmt.results.job_results import JobResult
from dmt.results.report import Report
from dmt.runs.progress import Silent
from dmt.training.checkpoint import finished_net
from dmt.types import Normalization
from dmt.use import exporting, packing, scoring
from dmt.use.exporting import ExportOptions
from tests.conftest import TINY, TINY_PIXELS

CPU = torch.device("cpu")
PAIR = TINY | {"shape": "pair", "fractions": "1", "epochs": 3, "epochs_round": 1}
Command = Callable[..., tuple[str, str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process; returns what it printed and said."""

    def run(*words: object, code: int = 0) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["dmt", *map(str, words)])
        with pytest.raises(SystemExit) as caught:
            app.main()
        printed, error = capsys.readouterr()
        assert (caught.value.code or 0) == code, error
        return printed, error

    return run


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "digits"
    dmt.fit("digits", out=out, settings=PAIR, watcher=Silent())
    return out


@pytest.fixture(scope="module")
def scenes(few_scenes: SegmentSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "scenes"
    dmt.fit("scenes", out=out, method="baseline", settings=TINY_PIXELS, watcher=Silent())
    return out


def of(run: Path, method: str = "dmt") -> JobResult:
    return next(job for job in Report.read([run]).jobs if job.method == method)


def file_of(run: Path, name: str) -> Path:
    """Of the pair whose first net is of this stage."""
    (path,) = run.glob(f"{run_files.PAIRS}/{name}-*/{run_files.PAIR_SCORES}")
    return path


def altered(run: Path, to: Path, name: str, **values: float) -> Path:
    """A copy of a run whose pair scored something else on validation."""
    shutil.copytree(run, to)
    path = file_of(to, name)
    content = files.read_json(path)
    content["error"] = values.pop("error", content["error"])
    content["scores"]["validation"] |= values
    path.write_text(json.dumps(content))
    return to


@torch.no_grad()
def test_the_mean_is_that_of_probabilities(generator: torch.Generator) -> None:
    spec = NetSpec("resnet8-4", 5, (3, 8, 8), Normalization((0.5,) * 3, (0.2,) * 3))
    nets = {line: build.build(spec, seed).eval() for line, seed in (("A", 1), ("B", 2))}
    images = torch.rand(6, 3, 8, 8, generator=generator)
    expected = sum(net(images).softmax(1) for net in nets.values()) / 2
    said = MeanOfNets(nets).eval()(images)
    torch.testing.assert_close(said.softmax(1), expected)
    torch.testing.assert_close(said.exp(), expected)
    assert said.dtype == torch.float32


def test_a_class_that_one_net_rules_out_keeps_a_finite_logit() -> None:
    class Says(torch.nn.Module):
        def __init__(self, logits: list[float]) -> None:
            super().__init__()
            self.logits = torch.tensor([logits])

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return self.logits

    mean = MeanOfNets({"A": Says([0.0, -500.0]), "B": Says([0.0, -400.0])})(torch.zeros(1))
    assert mean.tolist() == [pytest.approx([0.0, -400.0 - math.log(2)])]


@torch.no_grad()
def test_a_finished_pair_knows_what_both_score(digits: Path) -> None:
    finished = scoring.Finished(digits, None, CPU, print)
    for job in finished.jobs(None, None):
        assert job.both is not None
        task = finished.task(job.seed)
        nets = [finished_net(stage.path, task.net_spec("resnet8-4"), stage.line, copy) for stage, copy in job.both.nets]
        for split, images in (("validation", task.validation), ("test", task.test)):
            inputs = torch.cat([view.images for view in task.views(images, CPU)])
            said = (nets[0](inputs).softmax(1) + nets[1](inputs).softmax(1)).argmax(1)
            score = 100 * float((said == images.labels).double().mean())
            assert job.both.score(split) == pytest.approx(score)
            evidence = job.both.evidence(split)
            assert evidence is not None
            assert evidence.score() == pytest.approx(score)
        single, copy = job.preferred()
        share = (single.score("validation", copy) or 0.0) / 100
        error = 100 * math.sqrt(share * (1 - share) / len(task.validation))
        assert job.both.error == pytest.approx(error, rel=0.2)


def test_both_nets_of_pixels_score_as_one(scenes: Path) -> None:
    job = of(scenes, "baseline")
    finished = scoring.Finished(scenes, None, CPU, print)
    assert job.both is not None
    for split in ("validation", "test"):
        found = finished.score(job, split)
        assert list(found)[-1] == job.both.name
        assert found[job.both.name].mean_iou == pytest.approx(job.both.score(split))
    assert [name.line for name in finished.score(job, "test", "B")] == ["B"]
    assert [name.line for name in finished.score(job, "test", "both")] == ["both"]


def test_it_ships_unless_validation_objects(digits: Path, tmp_path: Path, command: Command) -> None:
    job = of(digits)
    single = job.preferred()[0].score("validation", job.preferred()[1])
    assert single is not None
    error = 2.0
    equal = altered(digits, tmp_path / "equal", "A1", accuracy=single - error, error=error)
    assert of(equal).shipped().together
    assert of(equal).objection is None
    assert scoring.shipped_net(equal, "dmt", 1, CPU).note is None

    worse = altered(digits, tmp_path / "worse", "A1", accuracy=single - error - 0.5, error=error)
    assert not of(worse).shipped().together
    assert of(worse).shipped().nets == (of(worse).preferred(),)
    reason = of(worse).objection
    assert reason is not None
    assert f"both nets together {single - 2.5:.2f}" in reason
    assert f"DMT, seed 1: {reason}" in str(Report.read([worse]))
    assert reason in report_file.page([worse])
    shipped = scoring.shipped_net(worse, "dmt", 1, CPU)
    assert (shipped.note, shipped.second) == (reason, None)
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / "a.png")
    words = ["predict", worse, tmp_path / "a.png", "-m", "dmt", "--out", tmp_path / "pred.csv"]
    assert reason in command(*words)[1]
    printed, said = command(*words, "--line", "both")
    assert "the mean of A1" in printed
    assert "is used alone" not in said


def test_a_handful_of_validation_images_objects_to_nothing(tiny: dict[str, object], tmp_path: Path) -> None:
    """All draws of one image score the same: with a standard error of 0, every difference would count."""
    settings = tiny | {"shape": "pair", "epochs": 1, "validation": 10}
    (job,) = dmt.fit("digits", out=tmp_path, method="baseline", settings=settings, watcher=Silent()).jobs
    assert job.both is not None
    assert set(job.both.scores) == {"validation", "test"}
    assert (job.both.error, job.objection) == (None, None)


def test_without_validation_nothing_objects(tiny: dict[str, object], tmp_path: Path) -> None:
    settings = tiny | {"shape": "pair", "epochs": 1, "validation": 0}
    (job,) = dmt.fit("digits", out=tmp_path, method="baseline", settings=settings, watcher=Silent()).jobs
    assert job.both is not None
    assert job.both.error is None
    assert set(job.both.scores) == {"test"}
    assert job.shipped() == job.both


def test_the_gain_is_of_what_ships_and_single_nets_are_told_too(digits: Path) -> None:
    report = Report.read([digits])
    job, base = of(digits), of(digits, "baseline")
    shipped = job.test_score("shipped") - base.test_score("shipped")
    assert guard.difference(job, base) == pytest.approx(shipped)
    interval = guard.gain(job, base)
    assert interval is not None
    assert interval.value == pytest.approx(shipped)
    single = np.mean([job.test_score("raw", line) - base.test_score("raw", line) for line in "AB"])
    assert guard.single_difference(job, base) == pytest.approx(single)
    (verdict,) = report.verdicts()
    assert f"single nets {single:+.1f}".replace("-", "−") in verdict
    row = next(line for line in report.summary().splitlines() if "DMT" in line)
    for value in (job.test_score("both"), job.test_score("shipped"), shipped, single):
        assert f"{value:.2f}" in row
    page = report_file.page([digits])
    assert "single, %" in page
    assert "both, %" in page


def test_round_0_stands_in_for_a_baseline_as_a_pair(digits: Path, tmp_path: Path) -> None:
    dmt.fit("digits", out=tmp_path, settings=PAIR, baseline=False, watcher=Silent())
    (job,) = Report.read([tmp_path]).jobs
    base = guard.base(job, [job])
    assert base is not None
    assert base.both is not None
    assert base.both.scores == of(digits, "baseline").both.scores  # type: ignore[union-attr]


def test_two_lines_are_not_compared_with_one(digits: Path) -> None:
    """CPS trains a pair beside a Baseline of one net: then single nets are compared."""
    job, base = of(digits), of(digits, "baseline")
    alone = replace(base, stages=base.stages[:1], results=("A0",))
    first = job.test_score("raw", "A") - base.test_score("raw", "A")
    assert guard.difference(job, alone) == pytest.approx(first)
    assert "single nets" not in guard.verdict([job], [alone])


def test_one_net_is_compared_with_what_a_baseline_of_two_ships(digits: Path) -> None:
    """As FixMatch on a folder, whose Baseline is the mean of two nets: a user has that or the other."""
    job, base = of(digits), of(digits, "baseline")
    alone = replace(job, stages=[each for each in job.stages if each.line == "A"], results=("A1",))  # type: ignore[arg-type]
    alone = replace(alone, stages=tuple(alone.stages))
    shipped = alone.test_score("shipped") - base.test_score("shipped")
    assert guard.difference(alone, base) == pytest.approx(shipped)
    assert guard.sides(alone, base)[1] == [base.shipped()]
    first = job.test_score("raw", "A") - base.test_score("raw", "A")
    assert guard.single_difference(alone, base) == pytest.approx(first)


def test_two_nets_of_one_stage_ship_as_one(tiny: dict[str, object], tmp_path: Path, command: Command) -> None:
    settings = tiny | {"epochs": 1, "cps.epochs": 1}
    report = dmt.fit("digits", out=tmp_path, method="cps", settings=settings, watcher=Silent())
    job = next(job for job in report.jobs if job.method == "cps")
    assert job.both is not None
    assert [stage.line for stage, _ in job.both.nets] == ["A", "B"]
    baseline = next(job for job in report.jobs if job.method == "baseline")
    assert baseline.both is None
    assert not baseline.pair()
    with pytest.raises(ConfigError, match="baseline with seed 1 has no --line both, only A"):
        scoring.shipped_net(tmp_path, "baseline", 1, CPU, "both")
    assert scoring.shipped_net(tmp_path, None, None, CPU, "both").name.startswith("cps seed 1, the mean of")
    printed, said = command("score", tmp_path, "--line", "both")
    assert "cps, seed 1" in printed
    assert "baseline with seed 1 has no --line both; skipped" in said


class Told(Silent):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_what_is_missing_is_measured_again(digits: Path, tmp_path: Path, command: Command) -> None:
    """As of a run that an earlier release made: it ships one net until both are measured."""
    before, old = of(digits), tmp_path / "old"
    shutil.copytree(digits, old)
    shutil.rmtree(old / run_files.PAIRS)
    assert of(old).both is None
    assert of(old).shipped().nets == (of(old).preferred(),)
    assert math.isnan(of(old).test_score("both"))
    single = guard.single_difference(of(old), of(old, "baseline"))
    assert guard.difference(of(old), of(old, "baseline")) == pytest.approx(single)
    assert "DMT" in str(Report.read([old]))
    assert "were not measured; dmt score measures them" in str(scoring.shipped_net(old, None, None, CPU).note)

    again = tmp_path / "again"
    shutil.copytree(old, again)
    printed, _ = command("score", old, "--method", "dmt")
    assert of(old).both.scores == before.both.scores  # type: ignore[union-attr]
    assert f"{before.test_score('both'):.2f}" in printed
    assert of(old, "baseline").both is None  # was not asked for

    told = Told()
    dmt.fit("digits", out=again, settings=PAIR, watcher=told)
    for method in ("dmt", "baseline"):
        assert of(again, method).both.scores == of(digits, method).both.scores  # type: ignore[union-attr]
    assert sum("the mean of" in note for note in told.notes) == 2
    told = Told()
    dmt.fit("digits", out=again, settings=PAIR, watcher=told)
    assert not any("the mean of" in note for note in told.notes)  # once is enough


def test_a_damaged_file_is_as_good_as_none(digits: Path, tmp_path: Path) -> None:
    shutil.copytree(digits, tmp_path / "run")
    file_of(tmp_path / "run", "A1").write_text("[]")
    assert of(tmp_path / "run").both is None


def test_damaged_scores_of_a_pair_are_said(digits: Path, tmp_path: Path, command: Command) -> None:
    run = Path(shutil.copytree(digits, tmp_path / "run"))
    path = file_of(run, "A1")
    path.write_text(path.read_text().replace("accuracy", "Accuracy", 1))
    _, said = command("report", run)
    assert f"note: {path} is damaged, so one net of the pair stands for both" in said


def test_a_lean_pack_carries_what_both_came_to(digits: Path, tmp_path: Path) -> None:
    packing.pack(digits, tmp_path / "packed", 10**9, lean=True)
    lean = packing.unpack(tmp_path / "packed", tmp_path / "lean")
    assert str(Report.read([lean])) == str(Report.read([digits]))
    for place in lean.glob("pairs/*"):
        shutil.rmtree(place)
    for path in lean.glob("stages/A0-*/step-*/*.safetensors"):
        path.unlink()
    dmt.fit("digits", out=lean, settings=PAIR, watcher=Silent())
    assert of(lean).both is not None
    assert of(lean, "baseline").both is None  # its parameters are not here


def test_one_onnx_file_averages_both(digits: Path, tmp_path: Path, generator: torch.Generator) -> None:
    """Of pixels, see the tests of exporting."""
    options = ExportOptions(method="baseline", line="both")
    (path,) = exporting.export(digits, "onnx", out=tmp_path / "both.onnx", options=options).paths
    images = torch.rand(5, 1, 8, 8, generator=generator)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    found = torch.from_numpy(session.run(None, {"images": images.numpy()})[0]).softmax(1)
    with torch.no_grad():
        alone = [scoring.shipped_net(digits, "baseline", 1, CPU, line).net(images).softmax(1) for line in "AB"]
    torch.testing.assert_close(found, (alone[0] + alone[1]) / 2, atol=1e-4, rtol=0)


def test_a_card_of_two_nets_says_so(digits: Path, tmp_path: Path, generator: torch.Generator) -> None:
    both = exporting.export(digits, "safetensors", out=tmp_path / "b.safetensors", options=ExportOptions(line="both"))
    one = exporting.export(digits, "safetensors", out=tmp_path / "a.safetensors", options=ExportOptions(line="A"))
    cards: list[dict[str, Any]] = [json.loads(each.paths[1].read_text()) for each in (both, one)]
    assert cards[0]["holds"] == "two nets: tensors begin with nets.A and nets.B"
    assert cards[0]["net"] == "mean of two nets: resnet8-4 and resnet8-4"
    assert cards[1]["holds"] == "one net"
    assert "second" not in cards[1]
    images = torch.rand(3, 1, 8, 8, generator=generator)
    with torch.no_grad():
        for path, line in ((both.paths[0], "both"), (one.paths[0], "A")):
            expected = scoring.shipped_net(digits, None, None, CPU, line).net(images)
            torch.testing.assert_close(exporting.load(path).net(images), expected)


def test_a_line_that_is_none_is_told_in_one_line(digits: Path, command: Command) -> None:
    for verb in (["score", digits], ["export", digits, "--to", "onnx"], ["predict", digits, "x.png"]):
        _, said = command(*verb, "--line", "C", code=2)
        assert "--line takes A, B or both, not 'C'" in said
