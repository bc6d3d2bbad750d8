"""Runs of release 0.1, which knew one net a stage, can still be read, scored and used."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import dmt
from dmt import files
from dmt.errors import RunError
from dmt.models.build import NetSpec
from dmt.results import guard, job_results, reading, stage_results
from dmt.results.report import Report
from dmt.runs.folder import Folder
from dmt.runs.progress import Silent
from dmt.training import evidence_files
from dmt.training.checkpoint import finished_net
from dmt.training.journal import Journal
from dmt.types import NetName
from dmt.use import exporting, packing, scoring
from tests.conftest import TINY
from tests.fixtures import before_digests

CPU = torch.device("cpu")


def as_of_release_0_1(run: Path) -> None:
    """Undo what has come since: names of files, digests, scores by line, and what the manifest says of stages."""
    before_digests.forget(run)
    manifest = files.read_json(run / "run.json")
    for job in manifest["jobs"]:
        for outline in job["stages"]:
            outline.pop("lines")
            (outline["labels"] or {}).pop("line", None)
            schedule = outline["schedule"]
            schedule |= {"pseudo": schedule.pop("unlabeled"), "rate": schedule.pop("descent")["rate"]}
    (run / "run.json").write_text(json.dumps(manifest))
    for place in (run / "stages").iterdir():
        line = place.name[0]
        for new, old in (("raw", "net"), ("ema", "ema")):
            (path,) = place.glob(f"step-*/{line}-{new}.safetensors")
            path.rename(path.with_name(f"{old}.safetensors"))
        for path in place.glob(f"evidence-*-{line}-*.npz"):
            path.rename(path.with_name(path.name.replace(f"-{line}-", "-")))
        journal = place / "journal.jsonl"
        lines = list(Journal(journal).read())
        for each in lines:
            if each["kind"] == "round":
                each["scores"] = {split: scores[line] for split, scores in each["scores"].items()}
        journal.write_text("".join(json.dumps(each) + "\n" for each in lines))


def described(run: Path) -> list[Any]:
    """All that is told of a run: scores, evidence, findings, and the whole report."""
    report = Report.read([run])
    jobs = report.jobs
    told: list[Any] = [str(report), [guard.findings(job) for job in jobs]]
    for stage in (stage for job in jobs for stage in job.stages):
        for copy in stage.copies:
            for split in ("validation", "test"):
                evidence = stage.evidence(split, copy)
                assert evidence is not None
                told.append((stage.net(copy), split, stage.score(split, copy), evidence.score()))
    return told


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], Path]:
    """What was told of a run before it became an old one, and the run."""
    out = tmp_path_factory.mktemp("runs") / "run"
    settings = TINY | {"shape": "pair", "fractions": "1", "epochs": 3}
    dmt.fit("digits", out=out, settings=settings, watcher=Silent())
    now = described(out)
    now.append({name: score.accuracy for name, score in scored(out).items()})
    as_of_release_0_1(out)
    return now, out


def scored(run: Path) -> dict[NetName, Any]:
    finished = scoring.Finished(run, None, CPU, print)
    return {name: score for job in finished.jobs("dmt", None) for name, score in finished.score(job, "test").items()}


def test_an_old_run_tells_the_same(runs: tuple[list[Any], Path]) -> None:
    now, out = runs
    assert described(out) == now[:-1]
    assert {(each.name, each.line) for each in reading.read(Folder(out))[0].stages} == {
        ("A0", "A"), ("B0", "B"), ("A1", "A"), ("B1", "B"),
    }  # fmt: skip


def test_its_nets_are_scored_exported_and_packed(runs: tuple[list[Any], Path], tmp_path: Path) -> None:
    now, out = runs
    found = scored(out)
    single = {NetName(f"{line}1", line, copy) for line in "AB" for copy in ("raw", "ema")}
    assert set(found) == {*single, NetName("A1+B1", "both", "mean")}
    assert {name: score.accuracy for name, score in found.items()} == now[-1]
    exporting.export(out, "safetensors", out=tmp_path / "net.safetensors")
    shipped, again = scoring.shipped_net(out, None, None, CPU), exporting.load(tmp_path / "net.safetensors")
    images = torch.rand(3, 1, 8, 8)
    with torch.no_grad():
        torch.testing.assert_close(again.net(images), shipped.net(images))
    packing.pack(out, tmp_path / "packed", 10**9, lean=True)
    lean = packing.unpack(tmp_path / "packed", tmp_path / "lean")
    assert scoring.shipped_net(lean, None, None, CPU).name == shipped.name


def test_old_files_are_asked_for_by_copy_alone(runs: tuple[list[Any], Path]) -> None:
    _, out = runs
    (place,) = out.glob("stages/A1-*")
    spec: NetSpec = scoring.shipped_net(out, None, None, CPU).spec
    raw, ema = (finished_net(place, spec, "A", copy).state_dict() for copy in ("raw", "ema"))
    assert not all(torch.equal(raw[name], ema[name]) for name in raw)
    assert evidence_files.read(place, "test", "A", "raw") is not None
    assert evidence_files.read(place, "nowhere", "A", "raw") is None
    (path,) = place.glob("step-*/ema.safetensors")
    path.rename(path.with_name("elsewhere"))
    try:
        with pytest.raises(RunError, match="has no parameters here"):
            finished_net(place, spec, "A", "ema")
    finally:
        path.with_name("elsewhere").rename(path)


def test_an_outline_without_lines() -> None:
    assert stage_results.lines_of({"name": "B3"}) == ["B"]
    assert stage_results.lines_of({"name": "AB1", "lines": ["A", "B"]}) == ["A", "B"]


@pytest.mark.parametrize(
    ("audit", "read"),
    [
        (None, None),
        ({}, {}),
        ({"error_kept": 5.0}, {"error_kept": 5.0, "error_kept_all": 5.0}),
        ({"error_kept": 5.0, "error_kept_sample": 4.0}, {"error_kept": 4.0, "error_kept_all": 5.0}),
        ({"images": 9, "error_kept": 4.0, "error_kept_all": 5.0}, {"error_kept": 4.0, "error_kept_all": 5.0}),
    ],
)
def test_audits_of_earlier_releases_have_todays_names(
    audit: dict[str, Any] | None, read: dict[str, Any] | None
) -> None:
    """Of pixels, 0.2 called the error of all images what is now that of the judged ones."""
    outcome = stage_results._of_line({"scores": {}, "audit": audit}, "A")
    stage = stage_results.StageResult("A1", "A", 1, "A1-x", labels=None, outcome=outcome)
    for key in ("error_kept", "error_kept_all"):
        assert stage.audited(key) == (read or {}).get(key)
    assert stage.audited("error_kept_sample") is None
    assert stage.judged == ""


def test_the_judged_images_are_named() -> None:
    stages = tuple(
        stage_results.StageResult("A1", "A", 1, "", None, {"scores": {}, "audit": {"images": some, "images_all": 1200}})
        for some in (500, 1200, 500)
    )
    job = job_results.JobResult("digits", "dmt", 1, stages, ("A1",))
    assert job_results.judged([job]) == "500 of 1,200 unlabeled images or all 1,200 unlabeled images"
