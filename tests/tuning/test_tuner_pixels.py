"""Tuning on pixels: in a file of its own, since for all tests of a file that uses few scenes there are no others."""

from pathlib import Path

from dmt.data.pixels.segment_sets import SegmentSet
from tests.conftest import TINY_PIXELS
from tests.tuning.test_tuner import tune


def test_pixels_are_judged_by_mean_iou(few_scenes: SegmentSet, tmp_path: Path) -> None:
    settings = TINY_PIXELS | {"fractions": "1"}
    tuning, _ = tune(tmp_path / "t", data="scenes", settings=settings, grid={"gamma": [1.0]})
    assert tuning.judged_by == "mean IoU"
    assert tuning.verdict.accuracies == tuning.verdict.scores
    assert "accuracy" not in tuning.table()
    assert [trial.shared for trial in tuning.trials] == [0, 2]
