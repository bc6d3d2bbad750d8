"""Rounds of masks, tried on folds of the labels before a run trains any."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dmt
from dmt import config as configuration
from dmt import files, run_files
from dmt.config import Config
from dmt.core.evidence import Evidence
from dmt.core.execution import Execution
from dmt.own import trial_rounds
from dmt.own.findings import Found
from dmt.own.folds import Folds
from dmt.own.search import Search
from dmt.own.trials import Trials, Tried
from dmt.results import reading
from dmt.runs import starting
from dmt.runs.folder import Folder
from dmt.runs.progress import Silent
from dmt.runs.starting import Starts
from dmt.tasks import opening
from dmt.tasks.base import Task
from dmt.use import scoring
from tests.data.folders import photo_layout

SHORT = {"net": "fcn-4", "epochs": 1, "epochs_round": 1, "fractions": "0.5,1", "size": 32, "crop": "32,32"}


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return photo_layout.write_masks(tmp_path_factory.mktemp("masks"), labeled=20, unlabeled=6, test=1)


@pytest.fixture(scope="module")
def opened(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Config, Task]:
    run = tmp_path_factory.mktemp("runs") / "run"
    dmt.fit(photos, out=run, method="baseline", settings=SHORT, watcher=Silent(), folds=False)
    config = reading.configuration_of(Folder(run))
    task, _ = opening.read(config.data, photos, lambda _: None, lambda *_: None).split(1)
    return config, task


def said(score: int) -> Evidence:
    """Of ten pixels of one image so many are right."""
    image, truth, called, count = np.array([[0, 0], [0, 0], [0, 1], [score, 10 - score]], np.int32)
    return Evidence(image, truth, called, count, np.ones(1, np.float32), classes=2, pixels=True)


def trials_of(task: Task) -> Trials:
    return Trials(Folds(task, Starts(starting.RANDOM, {}), Execution(torch.device("cpu")), []), "A", 40)


def tried(
    monkeypatch: pytest.MonkeyPatch, opened: tuple[Config, Task], scores: list[int], fixed: tuple[str, ...] = ()
) -> trial_rounds.TrialRounds:
    monkeypatch.setattr(Trials, "rounds", lambda *_: [said(score) for score in scores])
    config, task = opened
    return trial_rounds.of_masks(trials_of(task), config, "dmt", Tried({"rate": 0.1}, said(1)), fixed, large=False)


@pytest.mark.parametrize(
    ("scores", "settings", "helps"),
    [
        ([3, 4, 5], {"rate": 0.1}, True),
        ([3, 5, 5], {"rate": 0.1}, True),  # of equals the later
        ([3, 5, 4], {"rate": 0.1, "fractions": (0.5,)}, True),
        ([5, 4, 3], {"rate": 0.1, "fractions": (0.5,)}, False),  # one round, to compare
    ],
)
def test_as_many_rounds_as_do_best(
    scores: list[int],
    settings: dict[str, Any],
    helps: bool,
    opened: tuple[Config, Task],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = tried(monkeypatch, opened, scores)
    assert (found.chosen.settings, found.helps) == (settings, helps)
    best = len(found.said) - 1
    assert found.told[0].startswith(f"{best} of 2 rounds: {said(scores[0]).score():.1f} without, then ")
    assert best == max(range(3), key=lambda number: (scores[number], number))


@pytest.mark.parametrize(
    ("scores", "settings", "helps", "told"),
    [
        ([3, 4, 5, 6], {"rate": 0.1}, True, "2 of 2 rounds"),
        ([3, 4, 6, 5], {"rate": 0.1, "fractions": (0.5,)}, True, "1 of 2 rounds"),
        ([3, 6, 5, 4], {"rate": 0.1, "fractions": (0.5,)}, True, "0 of 2 rounds"),  # but above first nets
        ([6, 7, 5, 4], {"rate": 0.1, "fractions": (0.5,)}, False, "0 of 2 rounds"),
    ],
)
def test_an_online_stage_is_no_round(
    scores: list[int],
    settings: dict[str, Any],
    helps: bool,
    told: str,
    opened: tuple[Config, Task],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config, task = opened
    config = configuration.override(config, {"online_stage": "fixmatch-seg"})
    found = tried(monkeypatch, (config, task), scores)
    assert (found.chosen.settings, found.helps) == (settings, helps)
    assert found.told[0].startswith(f"{told}: ")
    assert f", {said(scores[1]).score():.1f} after the online stage, then " in found.told[0]


@pytest.mark.parametrize("name", ["fixmatch-seg", "cutmix-seg", "classmix"])
def test_an_online_stage_is_tried_with_its_slow_copy(name: str, opened: tuple[Config, Task]) -> None:
    config, task = opened
    config = configuration.override(config, {"online_stage": name, "epochs_online_stage": 1, "ema": 0.9})
    found = trial_rounds.of_masks(trials_of(task), config, "dmt", Tried({}, said(1)), (), large=False)
    assert "after the online stage" in found.told[0]


def test_rounds_that_a_user_listed_stay(opened: tuple[Config, Task], monkeypatch: pytest.MonkeyPatch) -> None:
    found = tried(monkeypatch, opened, [5, 4, 3], fixed=("fractions",))
    assert found.chosen.settings == {"rate": 0.1}
    assert not found.helps


def test_a_trial_takes_some_unlabeled_images_but_as_many_steps(
    opened: tuple[Config, Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, task = opened
    monkeypatch.setattr(trial_rounds, "POOL", 3)
    asked: list[tuple[int, dict[str, Any]]] = []

    def rounds(self: Trials, method: str, config: Config, settings: dict[str, Any]) -> list[Evidence]:
        (part,) = self.folds.parts
        assert (self.lines, self.longest, len(part)) == ("AB", 120, 7)
        asked.append((len(self.folds.task.unlabeled), dict(settings)))
        return [said(1), said(2), said(3)]

    monkeypatch.setattr(Trials, "rounds", rounds)
    config = replace(config, recipe=replace(config.recipe, epochs_round=2))
    found = trial_rounds.of_masks(trials_of(task), config, "dmt", Tried({}, said(1)), (), large=False)
    assert asked == [(3, {"epochs_round": 4})]
    assert found.chosen.settings == {}


def test_no_file_of_a_trial_is_left(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of masks are really trained, by labels that stay in memory; the run remembers what they came to."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "temporary").mkdir()
    dmt.fit(photos, out=tmp_path / "run", settings=SHORT, watcher=Silent())
    record = files.read_json(tmp_path / "run" / run_files.MANIFEST)["search"]
    (rounds,) = [each for each in record["tried"] if each["method"] == "dmt"]
    assert 0 <= rounds["score"] <= 100
    assert len(record["rounds"]) in (1, 2, 3)
    assert record["helps"] is (len(record["rounds"]) > 1)
    assert any("rounds: " in line and "without, then" in line for line in record["lines"])
    assert list((tmp_path / "temporary").iterdir()) == []
    expected = [line for line in record["lines"] if line.startswith("cross-validation predicts")]
    assert len(expected) == 1
    assert ("of these 7 images" in expected[0]) is record["helps"]  # a third of 20 labels judged


def test_a_run_that_expects_nothing_of_rounds_uses_its_baseline(
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
