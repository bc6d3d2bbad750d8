"""Given labels spread over what a net makes of images."""

import dataclasses
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import dmt
from dmt.core.graph import Graph
from dmt.data.images.datasets import DATASETS
from dmt.data.images.options import DataOptions
from dmt.data.sets import UnlabeledSet
from dmt.pseudo import labeler
from dmt.pseudo.image_store import ImageStore
from dmt.pseudo.labeler import Teacher, Wish
from dmt.tasks import classification
from dmt.tasks.classification import Classification
from tests.conftest import TINY

CPU = torch.device("cpu")


class Pixels(nn.Module):
    """Features are the image itself, and every image is called a 3."""

    def forward(self, images: Tensor) -> Tensor:
        return torch.eye(10)[3].expand(len(images), -1)

    def embed(self, images: Tensor) -> Tensor:
        return images.flatten(1)


@pytest.fixture(scope="module")
def opened() -> tuple[Classification, Tensor]:
    options = DataOptions("digits", labels=100, validation=200, augment="shift")
    task, audit = classification.split_up(options, DATASETS["digits"].read(Path("nowhere"), print), seed=1)
    truth = {id_: int(label) for id_, label in zip(audit.everything.ids, audit.everything.labels, strict=True)}
    return task, torch.tensor([truth[id_] for id_ in task.unlabeled.ids])


def test_labels_come_from_the_neighbors_and_not_from_the_net(opened: tuple[Classification, Tensor]) -> None:
    """Digits are alike in pixels: their neighbors know them, and the surest of them best."""
    task, truth = opened
    store = labeler.label(Teacher((Pixels(),), task, CPU), Wish(0.5, graph=Graph(neighbors=10)))
    right = (store.target.labels == truth).float()
    assert float(right.mean()) > 0.85
    assert float(right[store.selected].mean()) > float(right.mean())
    assert float(store.target.confidence.max()) <= 1.0


def test_whom_no_label_reaches_keeps_the_net_s_without_confidence(opened: tuple[Classification, Tensor]) -> None:
    task, _ = opened
    lonely = task.unlabeled.images[:].clone()
    lonely[:2] = 0
    lonely[:2, 0, 0, 0] = 255  # where other digits are dark: alike to each other alone
    images = UnlabeledSet(task.unlabeled.ids, lonely)
    found = labeler.label(
        Teacher((Pixels(),), dataclasses.replace(task, unlabeled=images), CPU), Wish(1.0, graph=Graph(1))
    )
    assert found.target.labels[:2].tolist() == [3, 3]
    assert found.target.confidence[:2].tolist() == [0.0, 0.0]


def test_copies_of_a_net_see_the_mean_of_their_features(opened: tuple[Classification, Tensor]) -> None:
    task, _ = opened

    class Blind(Pixels):
        """Sees the upper half only."""

        def embed(self, images: Tensor) -> Tensor:
            return super().embed(images) * torch.cat([torch.ones(32), torch.zeros(32)])

    alone, blind, both = (
        labeler.label(Teacher(nets, task, CPU), Wish(0.5, graph=Graph(neighbors=10))).target.confidence
        for nets in ((Pixels(),), (Blind(),), (Pixels(), Blind()))
    )
    assert not torch.equal(both, alone)
    assert not torch.equal(both, blind)


def test_it_trains(tmp_path: Path) -> None:
    settings = TINY | {"epochs": 2, "fractions": "1", "graph_labels.neighbors": 5}
    dmt.fit("digits", method="graph-labels", baseline=False, settings=settings, out=tmp_path / "run")
    (stage,) = (tmp_path / "run" / "stages").glob("A1-*")
    assert ImageStore.load(stage).provenance["graph"]["neighbors"] == 5
