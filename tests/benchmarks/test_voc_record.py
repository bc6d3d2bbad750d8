import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import dmt
from benchmarks import voc_record
from dmt import files
from dmt.results import guard, reading
from dmt.runs.folder import Folder
from dmt.runs.progress import Silent
from tests.conftest import TINY

STOPPED = Path(__file__).parent.parent / "fixtures" / "digits-run"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A run with an Oracle, and a Baseline of the same labels that was trained twice as long."""
    place = tmp_path_factory.mktemp("runs")
    settings = TINY | {"fractions": "1", "epochs": 3, "epochs_oracle": 1}
    dmt.fit("digits", method=["baseline", "dmt", "oracle"], out=place / "run", settings=settings, watcher=Silent())
    longer = settings | {"epochs": 6}
    dmt.fit("digits", method="baseline", out=place / "longer", settings=longer, watcher=Silent())
    return [place / "run", place / "longer"]


def by_method(found: dict[str, Any], run: str = "run") -> dict[str, dict[str, Any]]:
    return {job["method"]: job for job in found["jobs"] if job["run"] == run}


def test_gains_are_over_the_better_baseline(runs: list[Path]) -> None:
    found = voc_record.record(runs)
    jobs = {(path.name, job.method): job for path in runs for job in reading.read(Folder(path))}
    bases = [jobs[run, "baseline"] for run in ("run", "longer")]
    best = max(bases, key=lambda job: job.test_score("raw"))
    dmt_row = by_method(found)["dmt"]
    assert dmt_row["baseline"]["score"] == best.test_score("raw")
    assert dmt_row["gain"] == guard.difference(jobs["run", "dmt"], best)
    gap, single = (guard.single_difference(jobs["run", method], best) for method in ("oracle", "dmt"))
    assert dmt_row.get("gap_closed") == (pytest.approx(single / gap) if gap > 0 else None)
    assert "gain" not in by_method(found)["baseline"]


def test_other_labels_have_another_baseline(runs: list[Path], tmp_path: Path) -> None:
    other = shutil.copytree(runs[1], tmp_path / "other")
    (split,) = other.glob("splits/*.json")
    parts = files.read_json(split)
    parts["labeled"] = parts["labeled"][1:]
    split.write_text(json.dumps(parts))
    assert by_method(voc_record.record([runs[0], other]))["dmt"]["baseline"]["run"] == "run"


def test_methods_of_several_runs_are_compared_with_each_other(runs: list[Path], tmp_path: Path) -> None:
    settings = TINY | {"fractions": "1", "epochs": 3}
    dmt.fit("digits", method="cl", baseline=False, out=tmp_path / "other", settings=settings, watcher=Silent())
    jobs = {job.method: job for path in (runs[0], tmp_path / "other") for job in reading.read(Folder(path))}
    whole = voc_record.record([*runs, tmp_path / "other"])
    (found,) = whole["between"]
    first, second = found["method"]["method"], found["over"]["method"]
    assert {first, second} == {"dmt", "cl"}
    assert found["points"] == guard.difference(jobs[first], jobs[second]) >= 0
    interval = guard.gain(jobs[first], jobs[second])
    assert interval is not None
    assert found["range"] == [interval.low, interval.high]
    row = f"({found['over']['run']}) | 1 | {found['points']:+.2f} ({interval.low:+.2f} to {interval.high:+.2f})"
    assert row in voc_record.markdown(whole)
    assert "Between methods" not in voc_record.markdown(voc_record.record(runs))


def test_stages_have_errors_by_class_and_costs(runs: list[Path]) -> None:
    found = voc_record.record(runs[:1])
    last = by_method(found)["dmt"]["stages"][-1]
    assert last["images"] > 0
    assert last["seconds"] > 0
    by_class = last["audit"]["by_class"]
    for key in ("kept", *voc_record.BY_CLASS):
        assert len(by_class[key]) == len(found["classes"]) == 10
    wrong = sum(kept * (error or 0.0) for kept, error in zip(by_class["kept"], by_class["error_kept"], strict=True))
    assert wrong / sum(by_class["kept"]) == pytest.approx(last["audit"]["error_kept"])
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    text = voc_record.markdown(found)
    assert f"| DMT | 1 | {last['stage']} |" in text
    assert f"all {last['audit']['images_all']:,} unlabeled images" in text


def test_a_run_that_was_stopped_is_recorded_as_far_as_it_went() -> None:
    found = voc_record.record([STOPPED])
    job = by_method(found, STOPPED.name)["dmt"]
    assert not job["finished"]
    assert job["reached"] == ["A0"]
    assert [stage["finished"] for stage in job["stages"]] == [True, False]
    assert "A0, not finished" in voc_record.markdown(found)
    assert "commit 367ec907d762" in voc_record.markdown(found)
