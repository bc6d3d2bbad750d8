"""`weight_every`: the student is asked about a part of each batch, and remembered for the rest."""

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from dmt import config, options, presets
from dmt.core import ramps
from dmt.core.mixing import Mix
from dmt.core.schedule import Descent, Schedule
from dmt.data.images.augment import views as policies
from dmt.data.images.batches import ImageBatches, Unlabeled
from dmt.data.sets import LabeledSet
from dmt.errors import ConfigError
from dmt.methods import catalogue
from dmt.objectives.base import Progress
from dmt.objectives.stored import Stored, StoredStrongAskedWeak
from dmt.training import loop
from dmt.training.checkpoint import MEMORY, Checkpoint
from dmt.training.journal import Journal
from dmt.training.trainer import Trainer, Training
from dmt.types import Batch, BatchPlan, BatchShape, Sizes, Target
from tests.objectives.test_stored import CPU, PLAIN, Counting, Small
from tests.training.test_trainer import flat

LABELED, UNLABELED, EVERY, STEPS = 3, 10, 4, 14
IMAGES = 23  # unlabeled ones; 21 of them teach
SIZES = Sizes(9, IMAGES, 0)
SCHEDULE = Schedule(epochs=1, descent=Descent(0.05), rate_ramp="cosine", labeled=LABELED, unlabeled=UNLABELED)
TARGET = Target(torch.arange(21) % 5, torch.linspace(0.2, 0.95, 21))
POSITIONS = torch.tensor([n for n in range(IMAGES) if n not in (4, 11)])
SHAPE = BatchShape(LABELED, UNLABELED, 4, 4)
NOTHING_MIXED = Mix(torch.tensor(1.0), torch.arange(LABELED + UNLABELED))


def trainer(objective: Stored) -> Trainer:
    drawn = torch.Generator().manual_seed(1)
    images = torch.randint(0, 256, (IMAGES + 9, 3, 4, 4), dtype=torch.uint8, generator=drawn)
    labeled = LabeledSet(tuple(map(str, range(9))), images[:9], torch.arange(9) % 5)
    plan = BatchPlan(LABELED, UNLABELED, objective.views, seed=1)
    batches = ImageBatches(labeled, plan, policies("shift"), PLAIN, Unlabeled(images[9:], (POSITIONS, TARGET)))
    training = Training(objective, SCHEDULE, STEPS, 1, memory=objective.memory(SIZES, 5))
    return Trainer({"A": Small()}, training, batches, PLAIN)


class ByHand:
    """The same memory as rows of a table, and the loss of a step that uses it, image by image."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[int, int, float, float]] = {}  # position -> step, label, confidence, probability

    @torch.no_grad()
    def step(self, training: Trainer, batch: Batch, view: str) -> float:
        net, step = copy.deepcopy(training.nets["A"]).train(), training.step
        assert batch.positions is not None
        assert batch.pseudo is not None
        positions, given = batch.positions.tolist(), batch.pseudo
        order = sorted(range(UNLABELED), key=lambda at: self.rows.get(positions[at], (-1,))[0])[:3]  # ⌈10/4⌉
        said = net(torch.cat([batch.views[view][order], batch.images[:1]]))[:3].softmax(1)  # and ⌈3/4⌉ labeled
        for at, row in zip(order, said, strict=True):
            sure, label = row.max(0)
            self.rows[positions[at]] = step, int(label), float(sure), float(row[given.labels[at]])
        gamma, weights = 4.0 * ramps.gamma(step / STEPS), []
        for at, position in enumerate(positions):
            label, teacher = int(given.labels[at]), float(given.confidence[at])
            _, mine, sure, agreed = self.rows.get(position, (step, label, teacher, teacher))
            weights.append(0.0 if mine != label and sure > teacher else agreed**gamma)
        return self._loss(copy.deepcopy(training.nets["A"]).train(), training, batch, torch.tensor(weights))

    def _loss(self, net: torch.nn.Module, training: Trainer, batch: Batch, weights: Tensor) -> float:
        objective = training.objective
        assert isinstance(objective, Stored)
        assert batch.pseudo is not None
        images = torch.cat([batch.views[objective.views[0]], batch.images])
        labels = torch.cat([batch.pseudo.labels, batch.truth])
        weights = torch.cat([weights, torch.ones(LABELED)])
        mix = objective.draw(Progress(training.step, STEPS, 1), SHAPE, CPU).mix or NOTHING_MIXED
        logits = net(mix.blend(images))
        share = float(mix.coefficient)
        each = torch.nn.functional.cross_entropy
        sites = share * each(logits, labels, reduction="none")
        sites = sites + (1 - share) * each(logits, labels[mix.partners], reduction="none")
        return float((mix.blend(weights) * sites).sum() / len(labels))


@pytest.mark.parametrize(
    ("objective", "view"),
    [
        (Stored("dynamic", gamma=4.0, mixup=0.75, weight_every=EVERY), "train"),
        (StoredStrongAskedWeak("dynamic", gamma=4.0, weight_every=EVERY), "weak"),
    ],
)
def test_memory_and_loss_are_those_of_a_table_kept_by_hand(objective: Stored, view: str) -> None:
    training, table = trainer(objective), ByHand()
    for _ in range(STEPS):
        inputs = training.draw()
        batch = training._batches.make(inputs.batch)
        expected = table.step(training, batch, view)
        numbers = training.advance(inputs).tolist()
        assert numbers[training.logged.index("loss")] == pytest.approx(expected, rel=1e-4)
        assert set((training.memory["asked"] >= 0).nonzero().flatten().tolist()) == set(table.rows)
        for position, (step, label, sure, agreed) in table.rows.items():
            assert int(training.memory["asked"][position]) == step
            assert int(training.memory["labels"][position]) == label
            assert float(training.memory["confidence"][position]) == pytest.approx(sure, abs=1e-6)
            assert float(training.memory["probability"][position]) == pytest.approx(agreed, abs=1e-6)
    assert set(table.rows) == set(POSITIONS.tolist())  # 14 steps of 3 images were enough for all 21


def test_one_in_four_is_a_quarter_of_the_look() -> None:
    every, some = (Stored("dynamic", gamma=4.0, mixup=0.75, weight_every=k) for k in (1, EVERY))
    assert every.memory(SIZES, 5) == {}
    assert every.cost(BatchShape(64, 448, 32, 32)) == (512, 512)
    assert some.cost(BatchShape(64, 448, 32, 32)) == (512, 128)
    seen: list[int] = []

    class Watched(Counting):
        def peek(self, images: Tensor, *, update_statistics: bool = False) -> Tensor:
            seen.append(len(images))
            return super().peek(images, update_statistics=update_statistics)

    training = trainer(some)
    training._cast = type(training._cast)((Watched(training.nets["A"]),), memory=training.memory)
    training.advance(training.draw())
    assert seen == [3 + 1]


def test_all_of_them_is_what_it_always_was() -> None:
    """With 1 there is no memory, no other draw, and the option is no part of an identity."""
    plain = Stored("dynamic", gamma=4.0, mixup=0.75)
    assert "weight_every" not in options.content(plain)
    assert options.content(Stored("dynamic", gamma=4.0, mixup=0.75, weight_every=2))["weight_every"] == 2
    assert trainer(plain).draw().objective.step is None


def _fit(folder: Path, stop: Callable[[int], bool]) -> Trainer:
    training = trainer(Stored("dynamic", gamma=4.0, mixup=0.75, weight_every=EVERY))
    pace = loop.Pace(1e9, lambda: stop(training.step), lambda _: None)
    loop.fit(training, Checkpoint(folder), Journal(folder / "journal.jsonl"), pace)
    return training


def test_resumed_equals_unbroken(tmp_path: Path) -> None:
    whole = _fit(tmp_path / "whole", lambda step: False)
    _fit(tmp_path / "parts", lambda step: step == 5)
    state = Checkpoint(tmp_path / "parts").state()
    assert state is not None
    assert MEMORY in state["digests"]
    parts = _fit(tmp_path / "parts", lambda step: False)
    assert torch.equal(flat(parts.nets["A"]), flat(whole.nets["A"]))
    assert all(torch.equal(parts.memory[name], whole.memory[name]) for name in whole.memory)


def test_rounds_without_a_look_of_their_own_do_not_remember() -> None:
    def every(method: str, **settings: object) -> list[int]:
        given = {"weight_every": 4, "fractions": (0.5, 1.0)} | settings
        plan = catalogue.plan(method, config.override(presets.get("digits").config, given).recipe)
        return [stage.objective.weight_every for stage in plan.stages if isinstance(stage.objective, Stored)]

    assert every("dmt") == [4, 4]
    assert every("dmt", mixup_round=(0.75, None)) == [4, 1]
    assert every("dmt", mixup_round=None, weight_view="weak") == [4, 4]
    assert every("cl") == [1, 1]


def test_pixels_and_nonsense_are_refused() -> None:
    with pytest.raises(ConfigError, match="weight_every must be 1 where pixels get labels") as caught:
        config.override(presets.get("scenes").config, {"weight_every": 4})
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match="weight_every must be at least 1, not 0"):
        config.override(presets.get("digits").config, {"weight_every": 0})
