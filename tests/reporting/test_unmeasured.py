"""Runs on folders with neither test nor validation labels: every result says that there are no scores."""

from pathlib import Path
from typing import Any

import pytest

from dmt.fitting import run
from dmt.reporting import report_file
from dmt.runs.progress import Silent
from tests.data.folders import photo_layout

SETTINGS: dict[str, dict[str, Any]] = {
    "images": {"net": "resnet8-4", "size": 32},
    "pixels": {"net": "fcn-4", "crop": "32,32"},
}


@pytest.mark.parametrize("task", SETTINGS)
def test_a_run_without_anything_to_measure_on_is_reported(task: str, tmp_path: Path) -> None:
    write = photo_layout.write_classes if task == "images" else photo_layout.write_masks
    settings = {"epochs": 1, "epochs_round": 1, "fractions": "1", "batch_pseudo": 12, "batch_labeled": 4}
    report = run.fit(
        write(tmp_path / "photos", 3, 12, 0),
        out=tmp_path / "run",
        settings={**settings, **SETTINGS[task]},
        watcher=Silent(),
        device="cpu",
        folds=False,
    )
    said = "There are no scores: there are no test or validation labels; put 50 labeled images or more into test/."
    assert said in " ".join(str(report).split())
    assert "final:" not in str(report)
    assert report.per_class("dmt") == {}
    page = report_file.page([tmp_path / "run"])
    assert said in page
    assert "Class by class" not in page
    assert "No round is finished yet" not in page
    assert (">Pictures<" in page) == (task == "pixels")
