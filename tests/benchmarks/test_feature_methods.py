"""Methods for last layers: their lengths, and the table of what came out."""

from pathlib import Path

import pytest
import torch

from benchmarks import feature_methods
from dmt import config as configuration
from dmt.methods import catalogue
from dmt.own import choosing
from tests.data.folders import photo_layout


def test_online_methods_are_as_long_as_a_line_of_dmt(tmp_path: Path) -> None:
    folder = photo_layout.write_classes(tmp_path / "photos", labeled=10, unlabeled=60)
    base = choosing.choose(folder, torch.device("cpu")).preset.config
    config = configuration.override(base, feature_methods.as_dmt(folder))
    sizes = config.data.sizes
    line = sum(each.steps(sizes) for each in catalogue.plan("dmt", config.recipe).stages if each.lines == ("A",))
    for method in feature_methods.ONLINE:
        (stage,) = catalogue.plan(method, config.recipe).stages
        assert stage.steps(sizes) == pytest.approx(line, rel=0.1), method


def test_the_table_has_means_over_draws_best_first() -> None:
    rows = [
        {"folder": "trashnet", "draw": draw, "method": method, "length": length, "single": score, "shipped": score + 1}
        for method, length, scores in (("baseline", "", (60.0, 62.0)), ("fixmatch", "as DMT", (70.0, 72.0)))
        for draw, score in enumerate(scores)
    ]
    first, _, best, other = feature_methods.table(rows).splitlines()
    assert first == "| method | trashnet: single net, final model |"
    assert best == "| FixMatch, as DMT | 71.0 ± 1.4, 72.0 ± 1.4 |"
    assert other == "| Baseline | 61.0 ± 1.4, 62.0 ± 1.4 |"
