"""Several processes and images that are not held: each reads only what is its turn."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import Tensor

from dmt.core.execution import Execution
from dmt.core.processes import Processes
from dmt.data.images import augment
from dmt.data.sets import LabeledSet, PseudoLabels, UnlabeledSet
from dmt.data.squares import Squares
from dmt.models import build
from dmt.tasks import classification
from dmt.tasks.classification import Classification
from dmt.training import inference
from dmt.types import IMAGENET, TRAIN, BatchPlan

CPU = torch.device("cpu")
COUNT = 50


@dataclass(frozen=True)
class Apart(Processes):
    """One of several, without the others."""

    def sum_(self, tensor: Tensor) -> Tensor:
        return tensor

    def all_rows(self, mine: Tensor, count: int) -> Tensor:
        return mine


class Pool:
    """Images that know who was read."""

    def __init__(self) -> None:
        self.held = torch.randint(
            0, 256, (COUNT, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(1)
        )
        self.read: list[int] = []

    def __call__(self, place: int) -> np.ndarray:
        self.read.append(place)
        return self.held[place].numpy()

    def task(self) -> Classification:
        ids = tuple(map(str, range(COUNT)))
        labeled = LabeledSet(ids[:6], self.held[:6], torch.arange(6) % 3)
        return Classification(
            classes=("a", "b", "c"),
            shape=(3, 8, 8),
            normalization=IMAGENET,
            policies=augment.views("none", None, None),
            labeled=labeled,
            unlabeled=UnlabeledSet(ids, Squares(self, np.arange(COUNT), (3, 8, 8)), ids),
            validation=labeled,
            test=labeled,
        )


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classification, "VIEWED", 7)


def test_labeling_reads_what_is_its_turn() -> None:
    pool = Pool()
    task = pool.task()
    net = build.build(task.net_spec("resnet8-4"), seed=1)
    held = replace(task, unlabeled=UnlabeledSet(task.unlabeled.ids, pool.held))
    expected = inference.label([net], held, held.unlabeled, CPU)
    assert pool.read == []
    found = []
    for rank in (0, 1):
        found.append(inference.label([net], task, task.unlabeled, CPU, processes=Apart(rank, 2)))
        turns = {place for place in range(COUNT) if place // 7 % 2 == rank}
        assert set(pool.read) == turns
        assert len(pool.read) == len(turns)
        pool.read.clear()
    assert torch.equal(found[0].labels + found[1].labels, expected.labels)
    assert torch.equal(found[0].confidence + found[1].confidence, expected.confidence)


def test_a_batch_is_read_in_parts_and_is_the_same_in_every_step() -> None:
    pool = Pool()
    task = pool.task()
    held = replace(task, unlabeled=UnlabeledSet(task.unlabeled.ids, pool.held))
    labels = PseudoLabels(torch.arange(COUNT) % 3, torch.rand(COUNT), torch.arange(COUNT) % 4 > 0)
    plan = BatchPlan(labeled=4, unlabeled=9, views=(TRAIN,), seed=3)
    whole = held.batches(held.labeled, labels, plan, Execution(CPU))
    alone = task.batches(task.labeled, labels, plan, Execution(CPU))
    parts = [task.batches(task.labeled, labels, plan, Execution(CPU, processes=Apart(rank, 2))) for rank in (0, 1)]
    for step in (0, 1, 2, 17, 18, 5):  # as after resuming, too
        expected, found = whole.make(whole.draw(step)), alone.make(alone.draw(step))
        assert torch.equal(found.views[TRAIN], expected.views[TRAIN])
        assert torch.equal(found.images, expected.images)
        assert found.pseudo is not None
        assert expected.pseudo is not None
        assert torch.equal(found.pseudo.labels, expected.pseudo.labels)
        assert found.positions is not None
        read = [each.draw(step).others for each in parts]
        assert [len(each) for each in read] == [4, 5]
        assert torch.equal(torch.cat(read), pool.held[found.positions])
