"""Folds of the labels: who learned from what, what they prefer, and that chance chooses nothing."""

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
from dmt.data.folders.photo_options import PhotoOptions
from dmt.data.sets import LabeledSet, UnlabeledSet
from dmt.methods.recipe import Recipe
from dmt.own import folds, search_cost, trial_rounds, trials
from dmt.own.findings import Found
from dmt.own.folds import Folds
from dmt.own.search import Search
from dmt.runs.progress import Silent
from dmt.runs.starting import Starts
from dmt.runs.stopping import Stop, Stopped
from dmt.tasks.features import FeatureTask
from dmt.training.trainer import Trainer
from dmt.types import Normalization
from tests.data.folders import photo_layout

CPU = torch.device("cpu")
NET = "frozen:tf_efficientnet_lite0"
WIDTH = 1280
STARTS = Starts({line: {"name": "random", "digest": "random"} for line in "AB"}, {})


def task_of(noise: float, labeled: int = 30, unlabeled: int = 60) -> FeatureTask:
    """Three classes whose features differ in direction, with so much noise."""
    chance = torch.Generator().manual_seed(0)
    centers = torch.randn(3, WIDTH, generator=chance)

    def draw(count: int) -> tuple[torch.Tensor, torch.Tensor]:
        labels = torch.arange(count) % 3
        features = centers[labels] + noise * torch.randn(count, WIDTH, generator=chance)
        return features[:, None].half(), labels

    def known(count: int, name: str) -> LabeledSet[torch.Tensor]:
        return LabeledSet(tuple(f"{name}{at}" for at in range(count)), *draw(count))

    pool = UnlabeledSet(tuple(f"u{at}" for at in range(unlabeled)), draw(unlabeled)[0])
    sets = {"labeled": known(labeled, "l"), "unlabeled": pool, "validation": known(0, "v"), "test": known(0, "t")}
    normalization = Normalization((0.5,) * 3, (0.5,) * 3)
    return FeatureTask(("a", "b", "c"), (3, 32, 32), normalization, None, **sets, offsets={NET: 0})  # type: ignore[arg-type]


def config_of(rate: float = 0.003, **changes: Any) -> Config:
    """Last layers on one encoder."""
    data = PhotoOptions(classes=("a", "b", "c"), labels=30, unlabeled=60, stored_views=1)
    recipe = Recipe(
        batch=16, batch_pseudo=12, batch_labeled=4, epochs=8, epochs_round=2, rate=rate, rate_round=rate, mixup=None,
        ema=None, gamma=2.0, fractions=(0.5, 1.0), per_class=True, shape="pair",
    )  # fmt: skip
    return Config(data, replace(recipe, **changes), net=NET)


def search_of(config: Config, task: FeatureTask, **how: Any) -> Search:
    return Search(config, task, STARTS, Execution(CPU), how.pop("methods", ("baseline", "dmt")), **how)


# --- folds ---


def test_folds_are_disjoint_and_hold_every_class() -> None:
    labeled = task_of(0.0).labeled
    parts = folds.split(labeled, 3, seed=0)
    assert sorted(torch.cat(parts).tolist()) == list(range(30))
    for part in parts:
        assert sorted(np.bincount(labeled.labels[part]).tolist()) in ([3, 3, 4], [3, 3, 3], [4, 4, 4], [3, 4, 4])
    assert [part.tolist() for part in parts] == [part.tolist() for part in folds.split(labeled, 3, seed=0)]


def test_a_class_with_one_label_has_no_folds() -> None:
    labeled = task_of(0.0).labeled
    assert folds.most(labeled, 3) == 3
    assert folds.most(labeled.take(torch.tensor([0, 1, 2, 3, 4])), 3) == 1


def test_nets_are_asked_about_what_they_were_not_taught(monkeypatch: pytest.MonkeyPatch) -> None:
    task, taught = task_of(0.5), []
    batches = FeatureTask.batches

    def watched(self: FeatureTask, labeled: LabeledSet[torch.Tensor], *rest: Any) -> Any:
        taught.append(set(labeled.ids))
        return batches(self, labeled, *rest)

    monkeypatch.setattr(FeatureTask, "batches", watched)
    parts = folds.split(task.labeled, 3, seed=0)
    (said,) = Folds(task, STARTS, Execution(CPU), parts).rounds(config_of(), "baseline")
    everything = set(task.labeled.ids)
    hidden = [{task.labeled.ids[at] for at in part.tolist()} for part in parts]
    assert taught == [everything - part for part in hidden for _ in range(len(taught) // 3)]
    assert sorted(said.image.tolist()) == list(range(30))  # each image once
    assert said.score() > 90


def test_a_plan_is_tried_round_by_round() -> None:
    task = task_of(6.0)
    found = Folds(task, STARTS, Execution(CPU), folds.split(task.labeled, 2, seed=0)).rounds(config_of(), "dmt")
    assert len(found) == 3  # first nets, then two rounds
    assert all(each.images == 30 for each in found)


# --- what is chosen ---


def evidence_of(right: list[bool]) -> Evidence:
    count = len(right)
    places, ones = np.arange(count, dtype=np.int32), np.ones(count, np.int32)
    truth = places % 2  # two classes of equal size: a constant prediction is right half of the time
    return Evidence(places, truth, np.where(right, truth, 1 - truth), ones, np.ones(count, np.float32), 2, pixels=False)


def test_only_what_is_clearly_better_is_chosen() -> None:
    proposed = trials.Tried({}, evidence_of([True] * 20 + [False] * 20))
    little = trials.Tried({"rate": 1.0}, evidence_of([True] * 21 + [False] * 19))
    much = trials.Tried({"rate": 2.0}, evidence_of([True] * 35 + [False] * 5))
    assert trials.choose(proposed, [proposed, little]) is proposed
    assert trials.choose(proposed, [proposed, little, much]) is much


def test_rounds_end_where_later_ones_lose() -> None:
    good, bad = evidence_of([True] * 30 + [False] * 10), evidence_of([True] * 15 + [False] * 25)
    worse = evidence_of([True] * 29 + [False] * 11)
    assert trial_rounds.fewer([bad, good, bad]) == 1
    assert trial_rounds.fewer([bad, good, worse]) == 2  # that may be chance
    assert trial_rounds.fewer([bad, bad, good]) == 2


def test_an_online_stage_is_no_round_that_could_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    task, config = task_of(6.0), config_of(online_stage="fixmatch")
    good, bad = evidence_of([True] * 30 + [False] * 10), evidence_of([True] * 15 + [False] * 25)
    at = trials.Trials(Folds(task, STARTS, Execution(CPU), []), "AB", None)
    for rounds, fractions in (([bad, bad, good, bad], (0.5,)), ([bad, good, bad, bad], None), ([bad] * 4, None)):
        monkeypatch.setattr(trials.Trials, "rounds", lambda *_, rounds=rounds: rounds)
        chosen = trials.Tried({}, bad)
        found = trial_rounds.of_layers(at, config, "dmt", chosen, fixed=("gamma",))
        assert found.chosen.settings.get("fractions") == fractions
        assert len(found.said) == (4 if fractions is None else 3)


def test_a_rate_far_too_small_is_found_out() -> None:
    found = search_of(config_of(rate=1e-4), task_of(3.0), methods=("baseline",)).run()
    assert found.settings["rate"] == 1e-3
    assert found.settings["rate_round"] == found.settings["rate"]
    assert found.record["chosen"] == found.settings
    assert any(line.startswith("cross-validation (3 folds, 30 labels): rate=") for line in found.lines)


def test_a_good_rate_stays() -> None:
    found = search_of(config_of(), task_of(0.5)).run()
    assert not {"rate", "gamma", "epochs"} & set(found.settings)  # everything is right whatever they are
    assert found.record["rounds"] == [100.0] * 3
    assert "cross-validation predicts 100.0 for the Baseline and 100.0 for DMT: +0.0" in found.lines[-1]


def test_what_the_user_set_stays() -> None:
    fixed = ("rate", "gamma", "epochs", "fractions")
    found = search_of(config_of(rate=1e-4), task_of(3.0), fixed=fixed).run()
    assert not found.settings
    assert len(found.record["tried"]) == 2  # the Baseline, and DMT for what to expect


@pytest.mark.parametrize(
    ("right", "epochs", "rate", "words"),
    [
        ({0.003: 7, 0.009: 13}, 100, None, "rate=0.003 stays, since after 40 steps hardly anything is learned yet"),
        ({0.003: 7, 0.009: 40}, 100, 0.009, "rate=0.009 instead of 0.003, clearly better"),
        ({0.003: 7, 0.009: 13}, 8, 0.009, "rate=0.009 instead of 0.003, clearly better"),  # trials of full length
    ],
)
def test_trials_cut_short_choose_nothing_before_they_learn(
    right: dict[float, int], epochs: int, rate: float | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 100 images in twenty classes, so many are right after a few steps with each rate; by chance, five are."""

    def judged(self: trials.Trials, config: Config, settings: dict[str, Any], method: str) -> list[Evidence]:
        hits = np.arange(100) < right.get(settings.get("rate", 0.003), 5)
        places, ones = np.arange(100, dtype=np.int32), np.ones(100, np.int32)
        truth = (places % 20).astype(np.int32)
        said = np.where(hits, truth, (truth + 1) % 20).astype(np.int32)
        found = Evidence(places, truth, said, ones, np.ones(100, np.float32), 20, pixels=False)
        self.tried.append(trials.Tried(settings, found, method))
        return [found]

    monkeypatch.setattr(trials.Trials, "_try", judged)
    config = replace(config_of(epochs=epochs), net="mlp-8")
    found = search_of(config, task_of(1.0), methods=("baseline",)).run()
    assert found.settings.get("rate") == rate
    assert words in found.lines[0]


def test_rates_of_rounds_keep_their_proportions() -> None:
    config = config_of(rate=1e-4, rate_round=(1e-4, 5e-5))
    found = search_of(config, task_of(3.0), methods=("baseline",)).run()
    assert found.settings["rate"] == 1e-3
    assert found.settings["rate_round"] == (1e-3, 5e-4)


def test_divergence_is_no_candidate() -> None:
    config = config_of(rate=1e37)
    assert search_of(config, task_of(1.0)).run() == Found()


def test_few_labels_choose_nothing() -> None:
    assert search_of(config_of(), task_of(1.0, labeled=15)).run() == Found()
    assert search_cost.plans(config_of(), ["baseline", "dmt"], 15, large=False) == []


def test_a_search_without_time_changes_nothing() -> None:
    found = search_of(config_of(rate=1e-4), task_of(3.0), patience=0.0).run()
    assert not found.settings
    assert not found.record
    assert "no time" in found.lines[0]


def test_what_a_search_costs_is_known_before() -> None:
    told: list[tuple[int, int]] = []
    search_of(config_of(), task_of(6.0), tell=lambda done, of: told.append((done, of))).run()
    (of,) = {of for _, of in told}
    assert 0.6 * of < len(told) <= 1.1 * of  # not every rate is tried


# --- in a run ---


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return photo_layout.write_classes(tmp_path_factory.mktemp("photos"), labeled=8, unlabeled=12, test=1)


SHORT = {"net": "resnet8-4", "size": 32, "epochs": 2, "epochs_round": 1, "fractions": "1"}


class Heard(Silent):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_a_run_remembers_what_folds_chose(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[Config] = []

    def found(self: Search) -> Found:
        searched.append(self.config)
        return Found({"rate": 0.0123}, ("folds say so",), {"chosen": {"rate": 0.0123}})

    monkeypatch.setattr(Search, "run", found)
    heard = Heard()
    dmt.fit(photos, out=tmp_path / "run", method="baseline", settings=SHORT, watcher=heard)
    manifest = files.read_json(tmp_path / "run" / run_files.MANIFEST)
    assert manifest["config"]["rate"] == 0.0123
    assert manifest["search"]["chosen"] == {"rate": 0.0123}
    assert manifest["search"]["seconds"] >= 0
    assert "folds say so" in heard.notes
    assert "folds say so" in str(dmt.Report.read([tmp_path / "run"]))
    dmt.fit(photos, out=tmp_path / "run", method="baseline", settings=SHORT, watcher=Silent())  # resumes
    assert len(searched) == 1
    dmt.fit(photos, out=tmp_path / "plain", method="baseline", settings=SHORT, watcher=Silent(), folds=False)
    assert len(searched) == 1
    assert "search" not in files.read_json(tmp_path / "plain" / run_files.MANIFEST)


def test_a_search_on_images(photos: Path, tmp_path: Path) -> None:
    heard = Heard()
    dmt.fit(photos, out=tmp_path / "run", method="baseline", settings=SHORT, watcher=heard)
    manifest = files.read_json(tmp_path / "run" / run_files.MANIFEST)
    assert manifest["search"]["folds"] == 2
    assert 3 <= len(manifest["search"]["tried"]) <= 4
    assert configuration.flat(search_config(tmp_path / "run"))["rate"] == manifest["config"]["rate"]
    assert any(note.startswith("cross-validation (2 folds, 24 labels): rate=") for note in heard.notes)


def search_config(run: Path) -> Config:
    from dmt.results import reading
    from dmt.runs.folder import Folder

    return reading.configuration_of(Folder(run))


def test_a_search_on_masks(tmp_path: Path) -> None:
    photos = photo_layout.write_masks(tmp_path / "masks", labeled=20, unlabeled=4, test=1)
    short = {"net": "fcn-4", "epochs": 1, "epochs_round": 1, "fractions": "1", "size": 32, "crop": "32,32"}
    dmt.fit(photos, out=tmp_path / "run", method="baseline", settings=short, watcher=Silent())
    manifest = files.read_json(tmp_path / "run" / run_files.MANIFEST)
    assert manifest["search"]["images"] == 20
    assert all(0 <= each["score"] <= 100 for each in manifest["search"]["tried"])


def test_a_stop_ends_a_search(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop, advance = Stop(None), Trainer.advance

    def after(self: Trainer, inputs: Any) -> Any:
        stop._signal = 15
        return advance(self, inputs)

    monkeypatch.setattr(Trainer, "advance", after)
    with pytest.raises(Stopped):
        dmt.fit(photos, out=tmp_path / "run", method="baseline", settings=SHORT, watcher=Silent(), stop=stop)
    assert not (tmp_path / "run" / run_files.MANIFEST).exists()
