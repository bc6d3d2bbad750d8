"""What rare classes of pixels count: proposed from the masks, decided by folds, applied to every site."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import dmt
from dmt import config as configuration
from dmt import presets
from dmt.core import losses
from dmt.data import ragged, sets
from dmt.errors import ConfigError
from dmt.methods import catalogue
from dmt.objectives.base import Cast
from dmt.objectives.stored import Stored, StoredDraw
from dmt.objectives.truth import Supervised
from dmt.own import class_weights, trials
from dmt.own.search import Search
from dmt.own.trials import Tried
from dmt.runs.progress import Silent
from dmt.types import IGNORE, Batch, Target
from tests.conftest import TINY_PIXELS

WEIGHTS = (0.5, 2.0, 4.0)


def masks(*planes: list[list[int]]) -> Any:
    """A task as far as weights see it."""
    read = [np.array(plane, np.uint8) for plane in planes]
    labels = ragged.fill([plane.shape for plane in read], lambda at: read[at], channels=None)
    return SimpleNamespace(pixels=True, labeled=SimpleNamespace(labels=labels), classes=("ground", "crack", "hole"))


def test_weights_fall_with_the_root_of_pixels_and_their_mean_is_one() -> None:
    task = masks([[0] * 64 + [1] * 4 + [255]] * 4, [[0] * 64 + [2]] * 4)
    found = class_weights.of(task)
    assert found is not None
    counts = sets.counts(task.labeled.labels, 3).double()
    assert counts.tolist() == [512, 16, 4]
    assert float((torch.tensor(found) * counts).sum() / counts.sum()) == pytest.approx(1, rel=0.01)
    assert found[1] / found[0] == pytest.approx((512 / 16) ** 0.5, rel=0.01)
    assert found[2] / found[0] == pytest.approx(class_weights.MOST, rel=0.01)  # not 11.3


def test_an_absent_class_counts_as_the_most_frequent() -> None:
    found = class_weights.of(masks([[0] * 100 + [1]]))
    assert found is not None
    assert found[2] == found[0]


@pytest.mark.parametrize("plane", [[0] * 9 + [1] * 3, [0] * 4, [255] * 4])
def test_nothing_is_tried_where_no_class_is_rare(plane: list[int]) -> None:
    assert class_weights.of(masks([plane])) is None
    assert class_weights.of(SimpleNamespace(pixels=False)) is None  # type: ignore[arg-type]


def test_a_site_counts_by_its_label() -> None:
    labels = torch.tensor([[0, 1], [2, IGNORE]])
    assert losses.of_classes(labels, WEIGHTS).tolist() == [[0.5, 2.0], [4.0, 0.0]]


class Says:
    """A net that says what it is told to."""

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits

    def __call__(self, images: Tensor, *, update_statistics: bool = True) -> Tensor:
        return self.logits[: len(images)]

    def peek(self, images: Tensor, *, update_statistics: bool = False) -> Tensor:
        raise AssertionError("nobody looks twice")


def test_losses_by_hand(generator: torch.Generator) -> None:
    """Divided by the number of labeled sites, as without weights."""
    logits = torch.randn(2, 3, 2, 2, generator=generator)
    truth, pseudo = torch.tensor([[[0, 1], [2, IGNORE]]]), torch.tensor([[[1, 1], [IGNORE, 0]]])
    image = torch.zeros(1, 3, 2, 2)
    entropy = F.cross_entropy(logits, torch.cat([pseudo, truth]), ignore_index=IGNORE, reduction="none")
    by_hand = [2.0 * entropy[0, 0, 0], 2.0 * entropy[0, 0, 1], 0.5 * entropy[0, 1, 1]]
    of_truth = [0.5 * entropy[1, 0, 0], 2.0 * entropy[1, 0, 1], 4.0 * entropy[1, 1, 0]]

    batch = Batch(images=image, truth=truth, views={"train": image}, pseudo=Target(pseudo, torch.ones(1, 2, 2)))
    stored = Stored("uniform", gamma=1.0, ramp=False, class_weights=WEIGHTS)
    found = stored.loss(Cast((cast(Any, Says(logits)),)), batch, StoredDraw(torch.tensor(1.0), None))
    assert found.total == pytest.approx(float(sum(by_hand + of_truth)) / 6)

    alone = Supervised(class_weights=WEIGHTS).loss(Cast((cast(Any, Says(logits[1:])),)), batch, None)
    assert alone.total == pytest.approx(float(sum(of_truth)) / 3)


def test_weights_reach_baseline_and_rounds_and_change_their_identity() -> None:
    config = configuration.override(presets.get("scenes").config, {"class_weights": "1,2", "mixup": "none"})
    for stage in catalogue.plan("dmt", config.recipe).stages:
        assert stage.objective.class_weights == (1.0, 2.0)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("given", "mixup", "said"), [("1,0", "none", "greater than 0"), ("1,2", "0.75", "empty where mixup is on")]
)
def test_weights_that_mean_nothing_are_refused(given: str, mixup: str, said: str) -> None:
    with pytest.raises(ConfigError, match=f"class_weights must be .*{said}"):
        configuration.override(presets.get("digits").config, {"class_weights": given, "mixup": mixup})


@pytest.mark.usefixtures("few_scenes")
def test_as_many_weights_as_classes(tmp_path: Path) -> None:
    settings = TINY_PIXELS | {"class_weights": "1,2"}
    with pytest.raises(ConfigError, match="class_weights must be a number for each of the 11 classes"):
        dmt.fit("scenes", method="baseline", out=tmp_path / "run", settings=settings, watcher=Silent())


@pytest.mark.parametrize("better", [True, False])
def test_folds_decide(better: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "clearly_better", lambda after, before: better)
    monkeypatch.setattr(class_weights, "of", lambda task: WEIGHTS)
    plain = Tried({"rate": 0.1}, SimpleNamespace(score=lambda: 30.0))  # type: ignore[arg-type]
    weighted = Tried({"rate": 0.1, "class_weights": WEIGHTS}, SimpleNamespace(score=lambda: 34.0))  # type: ignore[arg-type]
    at: Any = SimpleNamespace(baseline=lambda config, settings: weighted)
    searching = Search(None, None, None, None, ("baseline",))  # type: ignore[arg-type]
    chosen, told = searching._class_weights(at, plain, [])
    assert chosen is (weighted if better else plain)
    assert told[0].endswith("equal 30.0, by rarity 34.0")
    fixed = Search(None, None, None, None, ("baseline",), fixed=("class_weights",))  # type: ignore[arg-type]
    assert fixed._class_weights(at, plain, []) == (plain, [])
