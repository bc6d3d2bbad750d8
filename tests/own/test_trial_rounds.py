"""Rounds of masks: all that were proposed are trained, and runs in which a trial advised against them are read."""

from pathlib import Path

import pytest

import dmt
from dmt import files, run_files
from dmt.own.findings import Found
from dmt.own.search import Search
from dmt.results import reading
from dmt.runs.folder import Folder
from dmt.runs.progress import Silent
from dmt.use import scoring
from tests.data.folders import photo_layout

SHORT = {"net": "fcn-4", "epochs": 1, "epochs_round": 1, "fractions": "0.5,1", "size": 32, "crop": "32,32"}


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return photo_layout.write_masks(tmp_path_factory.mktemp("masks"), labeled=20, unlabeled=6, test=1)


def test_all_rounds_of_masks_are_trained_and_none_on_folds(photos: Path, tmp_path: Path) -> None:
    dmt.fit(photos, out=tmp_path / "run", settings=SHORT, watcher=Silent())
    record = files.read_json(tmp_path / "run" / run_files.MANIFEST)["search"]
    assert {each["method"] for each in record["tried"]} == {"baseline"}
    assert "fractions" not in record["chosen"]
    (trained,) = [job for job in reading.read(Folder(tmp_path / "run")) if job.method == "dmt"]
    assert {stage.round for stage in trained.stages} == {0, 1, 2}
    assert not trained.doubted


def test_a_run_that_expected_nothing_of_rounds_uses_its_baseline(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = {"chosen": {}, "helps": False, "tried": []}
    monkeypatch.setattr(Search, "run", lambda self: Found({}, ("cross-validation predicts no gain from DMT",), record))
    report = dmt.fit(photos, out=tmp_path / "run", settings=SHORT, watcher=Silent())
    assert scoring.preferred(tmp_path / "run", None, None).method == "baseline"
    assert scoring.preferred(tmp_path / "run", "dmt", None).method == "dmt"
    assert "cross-validation on the labels predicts no gain from rounds, so the Baseline is used" in str(report)
    monkeypatch.setattr(Search, "run", lambda self: Found({}, ("fine",), record | {"helps": True}))
    dmt.fit(photos, out=tmp_path / "other", settings=SHORT, watcher=Silent())
    assert scoring.preferred(tmp_path / "other", None, None).method == "dmt"
