"""The report as a page: what it says of runs that are whole, old, unfinished, many, and of pixels."""

import json
import math
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import dmt
from dmt import files
from dmt.cli import app
from dmt.data.pixels.segment_sets import SegmentSet
from dmt.errors import DmtError, RunError
from dmt.reporting import (
    class_section,
    picture_section,
    report_file,
    scalars,
    score_section,
    studies,
    verdict_section,
)
from dmt.reporting.studies import Study
from dmt.results import guard
from dmt.results.report import Report
from dmt.runs.progress import Silent
from dmt.training.journal import Journal
from tests.conftest import TINY, TINY_PIXELS
from tests.reporting.made_up import made_up

CHARTS = (
    "score per round",
    "error of pseudo labels by confidence",
    "Mean weight of right and wrong labels",
    "the three cases of Eq. 6 over time",
    "kept labels by class and round",
    "confusion matrix of DMT",
    "accuracy against confidence",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Baseline and DMT with two seeds, CL with one."""
    out = tmp_path_factory.mktemp("runs") / "digits"
    dmt.fit("digits", out=out, method=["baseline", "dmt"], seed=[1, 2], settings=TINY, watcher=Silent())
    dmt.fit("digits", out=out, method="cl", settings=TINY, watcher=Silent())
    return out


@pytest.fixture(scope="module")
def pixels(few_scenes: SegmentSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "scenes"
    dmt.fit("scenes", out=out, method=["baseline", "dmt"], settings=TINY_PIXELS, watcher=Silent())
    return out


def shown(page: str) -> str:
    """The text of a page's body, without its drawings."""
    body = re.sub(r"<(script|style|svg).*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def altered(run: Path, to: Path, change: Callable[[dict[str, Any]], dict[str, Any] | None], places: str = "*") -> Path:
    """A copy of a run whose journals' lines are changed, or left out where that gives None."""
    shutil.copytree(run, to)
    for path in to.glob(f"stages/{places}/journal.jsonl"):
        lines = [change(line) for line in Journal(path).read()]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines if line is not None))
    return to


def unfinished(run: Path, to: Path) -> Path:
    """As if the last round had not ended."""
    return altered(run, to, lambda line: None if line["kind"] in ("round", "guard") else line, "A2-*")


def test_a_report_says_what_came_out(run: Path) -> None:
    page = report_file.page([run])
    text = shown(page)
    jobs = Report.read([run]).jobs
    of = {method: [job for job in jobs if job.method == method] for method in ("baseline", "dmt")}
    assert f"{guard.verdict(of['dmt'], of['baseline'])}." in text
    assert not re.search("DMT (cannot be told|is clearly worse)", text)  # a single seed may well be unlucky
    for method in of.values():
        scores = [job.test_score("shipped") for job in method]
        assert f"{np.mean(scores):.2f} ± {np.std(scores, ddof=1):.2f}" in text
    for heading in ("Scores", "Pseudo labels of DMT", "Class by class", "Cost", "How to repeat it"):
        assert f">{heading}</h2>" in page
    for chart in CHARTS:
        assert f'aria-label="{chart}"' in page
    assert "Pseudo labels of CL" in text
    assert f"epochs_round={TINY['epochs_round']}" in text
    assert "nan" not in page.partition("<script>")[0].lower()
    assert len(page) < 1_000_000


def test_classes_are_compared_as_the_scores_are(run: Path) -> None:
    (study,) = studies.studies([run])
    found = class_section.changes(study, "dmt")
    assert [change.label for change in found] == list(range(10))
    # ten classes of 40 test images each: their mean recall is the accuracy
    gain = np.mean([guard.difference(job, study.base(job)) for job in study.of("dmt") if study.base(job)])  # type: ignore[arg-type]
    assert np.mean([change.gain for change in found]) == pytest.approx(gain)
    assert all(change.clear is not None for change in found)


def test_costs_count_every_stage_and_know_the_plan(run: Path) -> None:
    text = shown(report_file.page([run]))
    (study,) = studies.studies([run])
    job = study.of("dmt")[0]
    steps = sum(stage.outcome["cost"]["steps"] for stage in job.stages if stage.outcome)
    assert re.search(rf"DMT {steps:,} {steps:,} ", text)  # as planned


def test_a_run_of_before_says_what_it_lacks(run: Path, tmp_path: Path) -> None:
    def forget(line: dict[str, Any]) -> dict[str, Any] | None:
        for lines in line.get("scores", {}).values():
            for score in (score for copies in lines.values() for score in copies.values()):
                score.pop("calibration", None)
                score.pop("calibration_error", None)
        return None if line["kind"] == "guard" else line

    old = altered(run, tmp_path / "old", forget)
    for path in old.glob("stages/*/evidence-*.npz"):
        path.unlink()
    (old / "sessions.jsonl").unlink()
    text = shown(report_file.page([old]))
    assert "before calibration was measured" in text
    assert "it is unknown which of these changes are due to chance" in text
    assert "holds no record of its sessions" in text
    assert "DMT" in text


def test_a_run_that_trains_is_reported_as_far_as_it_got(run: Path, tmp_path: Path) -> None:
    page = report_file.page([unfinished(run, tmp_path / "run")])
    text = shown(page)
    assert "3 of 5 trainings are not finished" in text
    assert "Still training" in text
    assert re.search(r"DMT 1 2 of 3 A2, step \d+ of \d+", text)
    assert 'aria-label="score per round"' in page


def test_a_run_that_has_just_begun_is_reported_too(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "stages")
    assert "Nothing is finished yet." in shown(report_file.page([tmp_path / "run"]))
    manifest = files.read_json(tmp_path / "run" / "run.json")
    (tmp_path / "run" / "run.json").write_text(json.dumps(manifest | {"jobs": []}))
    assert "No method has started yet." in shown(report_file.page([tmp_path / "run"]))


def test_without_a_baseline_round_zero_is_one(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    manifest = files.read_json(run / "run.json")
    manifest["jobs"] = [job for job in manifest["jobs"] if job["method"] == "dmt"]
    (tmp_path / "run" / "run.json").write_text(json.dumps(manifest))
    (study,) = studies.studies([tmp_path / "run"])
    (whole,) = studies.studies([run])
    text = shown(report_file.page([tmp_path / "run"]))
    assert "Baseline is round 0 of the same run" in text
    assert class_section.changes(study, "dmt") == class_section.changes(whole, "dmt")


def test_several_runs_stand_side_by_side(run: Path, tmp_path: Path) -> None:
    fewer = tmp_path / "fewer"
    dmt.fit("digits", out=fewer, method="baseline", settings=TINY | {"labels": 50}, watcher=Silent())
    page = report_file.page([run, fewer])
    text = shown(page)
    assert "Runs side by side" in text
    assert 'aria-label="score against number of labels"' in page
    assert re.search(r"digits \(fewer\) Baseline [\d.]+ – 50 1 accuracy ", text)
    assert "labels=50" in text
    assert 'aria-label="score against number of labels"' not in report_file.page([run, run])


def test_pixels_are_shown_as_pictures(pixels: Path) -> None:
    for stage in pixels.glob("stages/*"):
        assert len(list(stage.glob("samples/*-said.png"))) == 8
    page = report_file.page([pixels])
    for title, count in (("image", 8), ("truth", 8), ("Baseline", 8), ("DMT", 8), ("labels of round 1", 3),
                         ("their weights, round 2", 3)):  # fmt: skip
        assert len(re.findall(f'alt="{title} of ', page)) >= count
    assert "not kept by this run" not in page
    assert re.search(r"The nets are Baseline [AB]0 and DMT [AB]2, raw", page)
    assert "mean IoU" in page
    assert len(page) < 1_000_000


def test_what_a_net_says_is_drawn_in_the_size_and_colors_of_the_image(pixels: Path) -> None:
    said = next(pixels.glob("stages/A0-*/samples/*-said.png"))
    (image,) = pixels.glob(f"samples/seed-1/{said.name.replace('-said', '-image')}")
    with Image.open(said) as mask, Image.open(image) as photo:
        assert mask.size == photo.size
        assert mask.mode == "P"
        assert int(np.array(mask).max()) <= 10


def test_pictures_without_predictions_are_told(pixels: Path, tmp_path: Path) -> None:
    shutil.copytree(pixels, tmp_path / "run")
    for path in tmp_path.glob("run/stages/*/samples/*-said.png"):
        path.unlink()
    assert "not kept by this run" in report_file.page([tmp_path / "run"])


def test_where_there_is_no_truth_no_picture_of_it_is_missed(pixels: Path, tmp_path: Path) -> None:
    """A user's unlabeled images have none."""
    shutil.copytree(pixels, tmp_path / "run")
    for path in tmp_path.glob("run/samples/*/*-truth.png"):
        path.unlink()
    page = report_file.page([tmp_path / "run"])
    assert "truth of" not in page
    assert "not kept by this run" not in page
    assert ">Image, and what the nets say<" in page
    assert ">Image, truth, and what the nets say<" in report_file.page([pixels])


def test_pictures_are_made_small_and_masks_are_never_mixed(tmp_path: Path) -> None:
    labels = np.zeros((600, 800), dtype=np.uint8)
    labels[:, 400:] = 5
    labels[:300] = 255
    weight = np.full((600, 800), 128, dtype=np.uint8)
    mask = Image.fromarray(labels)
    mask.putpalette([200] * 768)
    mask.save(tmp_path / "a-label.png")
    Image.fromarray(weight).save(tmp_path / "a-weight.png")
    (tmp_path / "mask").write_bytes(picture_section.plane(tmp_path / "a-label.png"))
    (tmp_path / "map").write_bytes(picture_section.weights(tmp_path / "a-weight.png", tmp_path / "a-label.png"))
    (tmp_path / "photo").write_bytes(picture_section.photo(tmp_path / "a-weight.png"))
    with Image.open(tmp_path / "mask") as small:
        assert small.size == (256, 192)
        assert set(np.unique(np.array(small))) == {0, 5, 255}
    with Image.open(tmp_path / "map") as small:
        colors = np.array(small.convert("RGB"))
        assert colors[0, 0].tolist() == [224, 224, 224]  # no label, as in the mask
        assert set(map(tuple, colors[-1].tolist())) != {(224, 224, 224)}
    with Image.open(tmp_path / "photo") as small:
        assert small.size == (256, 192)


def test_of_very_many_classes_the_worst_confusions_are_a_table() -> None:
    drawn = class_section.confusion(Study("c", [made_up("cifar10-4k", 40, [80.0, 90.0])]), "dmt")
    assert "<svg" not in drawn
    assert re.search("kind 0.*kind 1.*7.*70.0%", drawn)
    assert "<svg" in class_section.confusion(Study("c", [made_up("cifar10-4k", 30, [80.0, 90.0])]), "dmt")


def test_text_and_page_agree_on_what_a_job_is_compared_with(run: Path) -> None:
    (study,) = studies.studies([run])
    alone = Study("alone", study.of("dmt"))
    assert verdict_section.sentence(study) == f"{Report(study.jobs).verdicts()[-2]}."
    told = Report(alone.jobs).verdicts()[0]
    assert f"{told}." == verdict_section.sentence(alone)[:-1] + "; Baseline is round 0 of the same run."
    lines = [f"guard: {where}: {finding}" for where, finding in verdict_section.findings(study)]
    assert Report(study.jobs).warnings()[:5] == lines[:5]


def test_runs_of_different_folders_of_own_images_share_no_chart(tmp_path: Path) -> None:
    def of(folder: str, images: str, labels: int) -> Study:
        job = made_up("photos", 3, [80.0, 90.0])
        stages = tuple(replace(stage, path=tmp_path / folder / "stages" / stage.name) for stage in job.stages)
        split = tmp_path / folder / "splits" / "seed-1.json"
        split.parent.mkdir(parents=True)
        split.write_text(json.dumps({"labeled": [str(number) for number in range(labels)]}))
        return Study(folder, [replace(job, stages=stages, origin=images)])

    birds = of("birds", "birds", 100)
    assert score_section.by_labels([birds, of("screws", "screws", 200)]) is None
    assert score_section.by_labels([birds, of("birds-again", "birds", 200)]) is not None


def test_classes_that_nobody_named_are_counted() -> None:
    job = replace(made_up("not known here", 300, [80.0]), classes=())
    assert Study("x", [job]).classes[-1] == "299"


def test_a_picture_is_of_the_net_that_is_used(pixels: Path) -> None:
    (job,) = [job for job in Report.read([pixels]).jobs if job.method == "dmt"]
    unfinished = replace(job, stages=(*job.stages[:-1], replace(job.stages[-1], outcome=None)))
    last, best = picture_section._stage(unfinished), replace(job, keep="best")
    assert last == job.stages[-2]
    assert picture_section._stage(best) == best.preferred()[0]
    assert picture_section._stage(None) is None


def test_a_journal_is_read_once(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    stage = Report.read([tmp_path / "run"]).jobs[0].stages[0]
    lines = stage.journal("interval")
    (stage.path / "journal.jsonl").unlink()
    assert lines == stage.journal("interval") != []


def test_a_spread_of_one_has_no_deviation() -> None:
    assert str(studies.spread([3.0])) == "3.00"
    assert studies.spread([1.0, 3.0]).signed == "+2.00 ± 1.41"
    assert studies.spread([-1.0]).signed == "−1.00"
    assert str(studies.spread([None, math.nan])) == "–"


def test_watching_writes_until_all_is_finished(run: Path, tmp_path: Path) -> None:
    out, page = unfinished(run, tmp_path / "run"), tmp_path / "report.html"
    told = []

    def finish(line: str) -> None:
        told.append(line)
        assert 'http-equiv="refresh"' in page.read_text()
        shutil.rmtree(out)
        shutil.copytree(run, out)

    report_file.watch([out], page, finish, every=0.01)
    assert len(told) == 1
    assert report_file.finished([out])


def test_scalars_can_be_read_by_tensorboard(run: Path, tmp_path: Path) -> None:
    count = scalars.write([run], tmp_path / "board")
    lines = sorted(path.parent.name for path in tmp_path.glob("board/*/A"))
    assert len(lines) == 5
    assert any(line.startswith("digits-dmt-seed-2") for line in lines)
    found = list(scalars.scalars(next(job for job in Report.read([run]).jobs if job.method == "dmt").stages))
    steps = [step for tag, _, step in found if tag == "steps/loss"]
    assert steps == sorted(steps)
    assert {tag for tag, _, step in found if step == 2} >= {"rounds/test/raw/accuracy", "rounds/labels/error_kept"}
    assert count > 2 * len(found)

    assert scalars.write([run], tmp_path / "board") == count  # again: instead of the first ones, not besides them
    assert all(len(list(place.iterdir())) == 1 for place in tmp_path.glob("board/*/A"))
    own = next(tmp_path.glob("board/*/A")) / "notes.txt"
    own.touch()
    with pytest.raises(RunError, match="is not TensorBoard's"):
        scalars.write([run], tmp_path / "board")


def test_without_tensorboard_the_error_names_the_remedy(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(DmtError, match="pip install tensorboard"):
        scalars.write([run], tmp_path)


def test_the_command_writes_a_page_and_without_out_prints_text(run: Path, tmp_path: Path) -> None:
    page = tmp_path / "deep" / "report.html"
    done = CliRunner().invoke(app.app, ["report", str(run), str(tmp_path), "--out", str(page), "--watch"])
    assert done.exit_code == 0, done.output
    assert "open it in a browser" in done.output
    assert "is not a run folder" in done.output
    assert page.read_text().startswith("<!doctype html>")
    assert "test accuracy" in CliRunner().invoke(app.app, ["report", str(run)]).output
    for words, said in ((["--watch"], "needs a page"), (["--out", str(tmp_path)], "is a folder")):
        failed = CliRunner().invoke(app.app, ["report", str(run), *words])
        assert said in str(failed.exception)
