"""Thresholds that follow a memory: what is remembered, and the traps. Whole losses are in test_by_hand.py."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from dmt.core.schedule import Descent, Schedule
from dmt.data.images.augment import views as policies
from dmt.data.images.batches import ImageBatches, Unlabeled
from dmt.data.sets import LabeledSet
from dmt.objectives import adaptive
from dmt.objectives.adaptive import FlexMatch, FreeMatch, SoftMatch
from dmt.objectives.base import Cast, Loss, Objective
from dmt.training import loop
from dmt.training.checkpoint import MEMORY, Checkpoint
from dmt.training.journal import Journal
from dmt.training.trainer import Trainer, Training
from dmt.types import IGNORE, Batch, BatchPlan, Sizes
from tests.objectives import by_hand
from tests.objectives.test_stored import PLAIN, Small
from tests.training.test_trainer import flat

NAMES = ("FlexMatch", "FreeMatch", "SoftMatch")


class Says:
    """A net that says these logits for [weak; strong; labeled], whatever it is shown."""

    def __init__(self, *logits: Tensor) -> None:
        self.logits = torch.cat(logits)

    def __call__(self, images: Tensor, *, update_statistics: bool = True) -> Tensor:
        return self.logits

    def peek(self, images: Tensor, *, update_statistics: bool = False) -> Tensor:
        raise AssertionError("one joint forward is enough")

    def embed(self, images: Tensor, *, update_statistics: bool = True) -> Tensor:
        raise AssertionError("logits are enough")

    def input_gradient(self, images: Tensor, labels: Tensor) -> Tensor:
        raise AssertionError("logits are enough")


def loss(
    objective: Objective,
    weak: Tensor,
    memory: dict[str, Tensor],
    positions: Tensor | None = None,
    strong: Tensor | None = None,
) -> Loss:
    """Of a step in which a net says this of the weak views, and the same of strong ones unless told."""
    count = len(weak)
    images = torch.zeros(count, 1, 2, 2)
    places = torch.arange(count) if positions is None else positions
    batch = Batch(images[:1], torch.tensor([0]), {"weak": images, "strong": images}, positions=places)
    net = Says(weak, weak if strong is None else strong, torch.zeros(1, weak.shape[1]))
    return objective.loss(Cast((net,), memory=memory), batch, None)


def logits(*rows: tuple[float, ...]) -> Tensor:
    """Of these probabilities."""
    return torch.tensor(rows).log()


def test_flexmatch_remembers_the_last_class_that_an_image_was_surely_given() -> None:
    given = torch.tensor([IGNORE, 2, IGNORE, 0, 1])
    weak = logits((0.97, 0.02, 0.01), (0.5, 0.4, 0.1), (0.01, 0.01, 0.98))
    found = loss(FlexMatch(), weak, {"given": given}, torch.tensor([3, 1, 0]))
    # image 3 stays of class 0, image 1, unsure, of class 2; image 0 gets one, image 2 waits
    assert found.memory["given"].tolist() == [2, 2, IGNORE, 0, 1]
    assert given.tolist() == [IGNORE, 2, IGNORE, 0, 1]  # the trainer copies it after the step


def test_flexmatch_decides_by_what_was_remembered_before_the_step() -> None:
    """All of a first batch is sure of class 0: by its own labels nothing else would teach but that already."""
    weak = logits((0.97, 0.02, 0.01), (0.96, 0.02, 0.02), (0.4, 0.35, 0.25))
    found = loss(FlexMatch(), weak, {"given": torch.full((3,), IGNORE)})
    assert float(found.logged["kept"]) == 1.0
    again = loss(FlexMatch(), weak, dict(found.memory))
    assert float(again.logged["kept"]) == pytest.approx(2 / 3)  # class 0 is learned: its threshold is .95


def test_of_an_image_that_is_there_twice_flexmatch_remembers_the_last_sure_label() -> None:
    """A batch that is filled from the next permutation may hold an image twice; a GPU would write either label."""
    rows = {"sure 0": (0.97, 0.02, 0.01), "sure 2": (0.01, 0.01, 0.98), "unsure": (0.5, 0.4, 0.1)}
    for order, expected in (
        (("sure 0", "sure 2", "unsure"), 2),
        (("sure 2", "unsure", "sure 0"), 0),
        (("unsure", "unsure", "unsure"), 1),
    ):
        weak = logits(*(rows[name] for name in order))
        found = loss(FlexMatch(), weak, {"given": torch.tensor([1, IGNORE])}, torch.zeros(3, dtype=torch.int64))
        assert found.memory["given"].tolist() == [expected, IGNORE]


def test_freematch_moves_its_memory_before_it_uses_it() -> None:
    weak = logits((0.9, 0.05, 0.05), (0.2, 0.7, 0.1))
    memory = dict(FreeMatch().memory(Sizes(1, 2, 3), 3))
    assert float(memory["threshold"]) == pytest.approx(1 / 3)
    found = loss(FreeMatch(memory_ema=0.0), weak, memory)  # all that counts is this step
    assert float(found.memory["threshold"]) == pytest.approx(0.8)
    torch.testing.assert_close(found.memory["probabilities"], torch.tensor([0.55, 0.375, 0.075]))
    torch.testing.assert_close(found.memory["labels"], torch.tensor([0.5, 0.5, 0.0]))
    # thresholds .8 and .8·.375/.55 = .545: both are kept; by the memory before, all of 1/3, too, but not at .8
    assert float(found.logged["kept"]) == 1.0
    surer = loss(FreeMatch(memory_ema=0.0), logits((0.9, 0.05, 0.05), (0.6, 0.3, 0.1)), memory)
    assert float(surer.logged["kept"]) == 0.5  # .6 is below .75, the mean confidence


def test_freematch_has_no_fairness_where_nothing_is_kept() -> None:
    weak, strong = logits((0.4, 0.3, 0.3), (0.3, 0.4, 0.3)), torch.zeros(2, 3, requires_grad=True)
    even = torch.full((3,), 1 / 3)
    memory = {"threshold": torch.tensor(0.99), "probabilities": even, "labels": even}
    found = loss(FreeMatch(), weak, memory, strong=strong)
    assert float(found.logged["kept"]) == 0.0
    assert float(found.logged["fairness"]) == 0.0
    found.total.backward()  # type: ignore[no-untyped-call]
    assert strong.grad is not None
    assert not strong.grad.any()


def test_freematch_pushes_kept_predictions_as_published() -> None:
    """v·Σ a·log b is descended as printed, so the gradient is that of +a·log b through the mean of probabilities."""
    weak = logits((0.9, 0.05, 0.05), (0.05, 0.9, 0.05))
    strong = logits((0.6, 0.3, 0.1), (0.2, 0.7, 0.1)).requires_grad_()
    memory = dict(FreeMatch().memory(Sizes(1, 2, 3), 3))
    found = loss(FreeMatch(weight=0.0, weight_fairness=1.0, memory_ema=0.999), weak, memory, strong=strong)
    found.total.backward()  # type: ignore[no-untyped-call]
    again = strong.detach().requires_grad_()
    mean = again.softmax(1).mean(0)[:2]
    usual, labels = found.memory["probabilities"], found.memory["labels"]
    wanted = (usual / labels) / (usual / labels).sum()
    (wanted[:2] * (mean / mean.sum()).log()).sum().backward()  # type: ignore[no-untyped-call]
    assert strong.grad is not None
    torch.testing.assert_close(strong.grad, again.grad)


def test_softmatch_aligns_for_its_weight_and_never_for_its_label() -> None:
    """Class 0 is given far too often: aligned, the first sample would be of class 1."""
    weak, strong = logits((0.5, 0.4, 0.1), (0.9, 0.05, 0.05)), torch.zeros(2, 3, requires_grad=True)
    memory = {
        "mean": torch.tensor(0.9), "variance": torch.tensor(0.02), "probabilities": torch.tensor([0.8, 0.1, 0.1]),
    }  # fmt: skip
    found = loss(SoftMatch(memory_ema=0.999), weak, memory, strong=strong)
    found.total.backward()  # type: ignore[no-untyped-call]
    assert strong.grad is not None
    assert (strong.grad.argmin(1) == 0).all()  # class 0 is what grows
    usual = 0.999 * np.array([0.8, 0.1, 0.1]) + 0.001 * np.array([0.7, 0.225, 0.075])
    aligned = np.array([0.5, 0.4, 0.1]) / usual
    middle, spread = 0.999 * 0.9 + 0.001 * 0.7, 0.999 * 0.02 + 0.001 * 0.08
    below = min(aligned.max() / aligned.sum() - middle, 0.0)
    first = np.exp(-(below**2) / (spread / 2))
    # the second has .9 of class 0, aligned .52: below the middle as well
    other = np.array([0.9, 0.05, 0.05]) / usual
    second = np.exp(-((other.max() / other.sum() - middle) ** 2) / (spread / 2))
    assert float(found.logged["kept"]) == pytest.approx((first + second) / 2, rel=1e-3)


def test_softmatch_begins_with_weights_near_1_and_the_classes_of_its_first_step() -> None:
    objective = SoftMatch()
    memory = dict(objective.memory(Sizes(1, 3, 4), 3))
    weak = logits((0.9, 0.05, 0.05), (0.2, 0.7, 0.1), (0.4, 0.35, 0.25))
    found = loss(objective, weak, memory)
    assert float(found.logged["kept"]) > 0.99
    torch.testing.assert_close(found.memory["probabilities"], weak.softmax(1).mean(0))
    confidence = torch.tensor([0.9, 0.7, 0.4])
    assert float(found.memory["mean"]) == pytest.approx(0.999 / 3 + 0.001 * float(confidence.mean()))
    assert float(found.memory["variance"]) == pytest.approx(0.999 + 0.001 * float(confidence.var()))
    again = loss(objective, weak.flip(1), dict(found.memory))
    moved = 0.999 * weak.softmax(1).mean(0) + 0.001 * weak.flip(1).softmax(1).mean(0)
    torch.testing.assert_close(again.memory["probabilities"], moved)


def test_a_single_unlabeled_image_has_no_variance() -> None:
    found = loss(SoftMatch(), logits((0.9, 0.05, 0.05)), dict(SoftMatch().memory(Sizes(1, 1, 2), 3)))
    assert float(found.memory["variance"]) == pytest.approx(0.999)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_dropped_still_counts_in_the_mean(name: str) -> None:
    """Dividing by what was kept is another method, and a mask of (N, 1) would teach all samples alike."""
    case = by_hand.CASES[name][0]
    found = by_hand.step(case)
    found.loss.total.backward()  # type: ignore[no-untyped-call]
    teach = by_hand.p(case.given()[0][0]["weak"])
    losses = by_hand.ce(case.given()[0][0]["strong"], teach.argmax(1))
    kept = float(found.loss.logged["kept"])
    weights = {"FlexMatch": [1.0, 0.0], "FreeMatch": [1.0, 1.0], "SoftMatch": [1.0, 2 * kept - 1]}[name]
    assert float(found.loss.logged["unlabeled"]) == pytest.approx((np.array(weights) * losses).sum() / 2, rel=1e-5)
    assert kept == pytest.approx(np.mean(weights))


# ---- in the trainer --------------------------------------------------------------------------------------------------

IMAGES, STEPS = 11, 9
OBJECTIVES = [FlexMatch(threshold=0.4), FreeMatch(memory_ema=0.9), SoftMatch(memory_ema=0.9)]


def trainer(objective: Objective) -> Trainer:
    drawn = torch.Generator().manual_seed(1)
    images = torch.randint(0, 256, (IMAGES + 4, 3, 4, 4), dtype=torch.uint8, generator=drawn)
    labeled = LabeledSet(tuple(map(str, range(4))), images[:4], torch.arange(4))
    plan = BatchPlan(3, 5, objective.views, objective.labeled_view, seed=1)
    batches = ImageBatches(labeled, plan, policies("shift"), PLAIN, Unlabeled(images[4:]))
    schedule = Schedule(epochs=1, descent=Descent(0.05), rate_ramp="cosine", labeled=3, unlabeled=5)
    training = Training(objective, schedule, STEPS, 1, memory=objective.memory(Sizes(4, IMAGES, 15), 5))
    return Trainer({"A": Small()}, training, batches, PLAIN)


def fit(objective: Objective, folder: Path, stop: Callable[[int], bool]) -> Trainer:
    training = trainer(objective)
    pace = loop.Pace(1e9, lambda: stop(training.step), lambda _: None)
    loop.fit(training, Checkpoint(folder), Journal(folder / "journal.jsonl"), pace)
    return training


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda each: type(each).__name__)
def test_a_resumed_memory_equals_an_unbroken_one(objective: Objective, tmp_path: Path) -> None:
    whole = fit(objective, tmp_path / "whole", lambda step: False)
    fit(objective, tmp_path / "parts", lambda step: step == 4)
    state = Checkpoint(tmp_path / "parts").state()
    assert state is not None
    assert MEMORY in state["digests"]
    parts = fit(objective, tmp_path / "parts", lambda step: False)
    assert torch.equal(flat(parts.nets["A"]), flat(whole.nets["A"]))
    fresh = objective.memory(Sizes(4, IMAGES, 15), 5)
    for name, tensor in whole.memory.items():
        assert torch.equal(parts.memory[name], tensor)
        assert not torch.equal(tensor, fresh[name]), f"{name} was never moved"


def test_every_image_is_remembered_at_its_own_position() -> None:
    training = trainer(dataclasses.replace(OBJECTIVES[0], threshold=0.0))  # type: ignore[type-var]
    seen: set[int] = set()
    for _ in range(STEPS):
        inputs = training.draw()
        positions = training._batches.make(inputs.batch).positions
        assert positions is not None
        seen |= set(positions.tolist())
        training.advance(inputs)
        assert set((training.memory["given"] != IGNORE).nonzero().flatten().tolist()) == seen
    assert seen == set(range(IMAGES))


def test_a_class_that_is_never_named_leaves_fairness_a_number() -> None:
    found, kept = torch.tensor([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1]]), torch.ones(2)
    for share in (0.0, 1e-42):
        memory = {"probabilities": torch.tensor([0.6, 0.3, 0.1]), "labels": torch.tensor([0.5, 0.5, share])}
        assert bool(adaptive._fairness(found, kept, memory).isfinite())
