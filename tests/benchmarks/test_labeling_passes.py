"""Errors by way of labeling, on both tasks."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import cifar_screening, labeling_passes
from benchmarks.labeling_passes import PLAIN, SCALES, Case

IMAGES = Case(
    "tiny digits", "digits", {"labels": 20, "epochs": 3}, {"one pass": PLAIN, "ema": replace(PLAIN, copy="ema")}
)
PIXELS = Case("tiny scenes", "scenes", {"net": "fcn-4", "epochs": 1}, {"one pass": PLAIN, "scales": SCALES})


def test_every_way_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labeling_passes, "CASES", (IMAGES, PIXELS))
    monkeypatch.setattr(labeling_passes, "SEEDS", (1, 2))
    monkeypatch.setattr(cifar_screening, "digits_for_images", lambda: None)
    monkeypatch.setattr(sys, "argv", ["labeling_passes", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path)])
    labeling_passes.main()
    found = json.loads((tmp_path / "labeling_passes.json").read_text())["cases"]
    for case in (IMAGES, PIXELS):
        assert [row["seed"] for row in found[case.title]] == [1, 2]
        for row in found[case.title]:
            assert list(row["errors"]) == list(case.ways)
            plain, other = row["errors"].values()
            assert all(0 <= error <= 100 for error in plain.values())
            assert plain != other
    # all labels of a net that is right on so many images are wrong on about the others
    wrong = found["tiny digits"][0]["errors"]["one pass"]["100%"]
    assert wrong == pytest.approx(100 - found["tiny digits"][0]["score"], abs=10)
    written = (tmp_path / "labeling_passes.md").read_text()
    assert written.count("| one pass | ") == 2
    assert str(tmp_path) not in written
