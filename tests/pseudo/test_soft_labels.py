"""Probabilities of all classes: kept for a student that learns them, and how CBST's authors choose labels by them."""

import dataclasses
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import dmt
from dmt import config as configuration
from dmt import presets
from dmt.core import mixing, selection
from dmt.core.execution import Execution
from dmt.data.images.datasets import DATASETS
from dmt.data.images.options import DataOptions
from dmt.errors import ConfigError, RunError
from dmt.methods import catalogue
from dmt.objectives.base import Cast
from dmt.objectives.stored import Stored, StoredDraw
from dmt.pseudo import labeler
from dmt.pseudo.image_store import ImageStore
from dmt.pseudo.labeler import Teacher, Wish
from dmt.tasks import classification
from dmt.tasks.classification import Classification
from dmt.training.trainer import Student
from dmt.types import IGNORE, Batch, Target
from tests.conftest import TINY

CPU = torch.device("cpu")


class Answers(nn.Module):
    """Gives the images of a task these probabilities, one after the other."""

    def __init__(self, probabilities: Tensor) -> None:
        super().__init__()
        self._rows, self._next = probabilities, 0

    def forward(self, images: Tensor) -> Tensor:
        found = self._rows[self._next : self._next + len(images)]
        self._next += len(images)
        return found.log()


@pytest.fixture(scope="module")
def task() -> Classification:
    options = DataOptions("digits", labels=100, validation=200, augment="shift")
    whole = classification.split_up(options, DATASETS["digits"].read(Path("nowhere"), print), seed=1)[0]
    few = dataclasses.replace(whole, unlabeled=whole.unlabeled.take(torch.arange(6)), classes=("a", "b", "c"))
    assert len(few.unlabeled) == 6
    return few


SAID = torch.tensor(
    [
        [0.90, 0.05, 0.05],
        [0.80, 0.15, 0.05],
        [0.60, 0.38, 0.02],
        [0.70, 0.20, 0.10],
        [0.30, 0.40, 0.30],
        [0.6, 0.3, 0.1],
    ]
)
"""Five images are labeled a, one b, none c."""


def made(task: Classification, **wish: object) -> ImageStore:
    return labeler.label(Teacher((Answers(SAID),), task, CPU, whole=True), Wish(**wish))  # type: ignore[arg-type]


def test_all_probabilities_are_stored_and_come_back(task: Classification, tmp_path: Path) -> None:
    store = made(task, fraction=0.5, soft=True)
    assert store.target.soft is not None
    torch.testing.assert_close(store.target.soft, SAID)
    store.save(tmp_path)
    again = ImageStore.load(tmp_path)
    assert again.target.soft is not None
    assert torch.equal(again.target.soft, store.target.soft)
    again.require_possible(tmp_path, 6, 3)
    with pytest.raises(RunError, match="classes"):
        again.require_possible(tmp_path, 6, 4)
    assert made(task, fraction=0.5).target.soft is None


def test_a_corrupted_label_takes_its_probability_along(task: Classification) -> None:
    clean, noisy = made(task, fraction=1.0, soft=True), made(task, fraction=1.0, soft=True, noise=0.5)
    assert noisy.target.soft is not None
    assert int((clean.target.labels != noisy.target.labels).sum()) == 3
    assert torch.equal(noisy.target.soft.argmax(1)[:4], noisy.target.labels[:4])
    torch.testing.assert_close(noisy.target.soft.sum(1), SAID.sum(1))


def test_thresholds_are_what_the_kept_of_each_class_reach() -> None:
    confidence, labels = SAID.max(1)
    assert selection.thresholds(confidence, labels, 0.4, 3).tolist() == pytest.approx([0.8, 1.0, 1.0])
    assert selection.thresholds(confidence, labels, 0.6, 3).tolist() == pytest.approx([0.7, 0.4, 1.0])


def test_renormalized_labels_are_the_largest_share_of_a_class_threshold(task: Classification) -> None:
    """At 60 % the thresholds are .7, .4 and 1: the third image becomes a b, and is not kept, for .38 is below .4."""
    store = made(task, fraction=0.6, renormalized=True, per_class=True)
    assert store.target.labels.tolist() == [0, 0, 1, 0, 1, 0]
    assert store.selected.tolist() == [True, True, False, True, True, False]
    assert store.target.confidence.tolist() == pytest.approx([0.9, 0.8, 0.38, 0.7, 0.4, 0.6])


def test_a_student_learns_the_probabilities_and_mixes_them(generator: torch.Generator) -> None:
    torch.manual_seed(1)
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 3))
    student, images = Student(net, Execution(CPU)), torch.rand(5, 3, 2, 2, generator=generator)
    target = Target(torch.tensor([0, 1, 1]), torch.tensor([0.9, 0.6, 0.5]), SAID[:3])
    batch = Batch(images[3:], torch.tensor([2, IGNORE]), {"train": images[:3]}, target)
    hard = F.one_hot(torch.tensor([2, 0]), 3).float() * torch.tensor([[1.0], [0.0]])
    wanted = torch.cat([SAID[:3], hard])
    plain = Stored("uniform", 1.0, ramp=False, soft=True)
    found = plain.loss(Cast((student,)), batch, StoredDraw(torch.tensor(1.0), None)).total
    expected = -(wanted * net(images).log_softmax(1)).sum() / 4
    torch.testing.assert_close(found, expected)
    mix = mixing.Mix(torch.tensor(0.7), torch.tensor([3, 0, 1, 2, 4]))
    mixed = plain.loss(Cast((student,)), batch, StoredDraw(torch.tensor(1.0), mix)).total
    both = mix.blend(wanted)
    torch.testing.assert_close(mixed, -(both * net(mix.blend(images)).log_softmax(1)).sum() / 4)


def test_a_flipped_label_is_learned_alone() -> None:
    """Where the student is surer, DMT-Flip takes its label: then the teacher's probabilities do not count."""
    student = Student(nn.Sequential(nn.Flatten(), _Fixed(torch.tensor([[0.0, 5.0, 0.0]]))), Execution(CPU))
    target = Target(torch.tensor([0]), torch.tensor([0.6]), torch.tensor([[0.6, 0.2, 0.2]]))
    batch = Batch(torch.zeros(1, 1, 1, 1), torch.tensor([IGNORE]), {"train": torch.zeros(1, 1, 1, 1)}, target)
    objective = Stored("flip", 1.0, ramp=False, soft=True)
    found = objective.loss(Cast((student,)), batch, StoredDraw(torch.tensor(1.0), None)).total
    expected = (1 - 0.6) * -torch.tensor([0.0, 5.0, 0.0]).log_softmax(0)[1]
    torch.testing.assert_close(found, expected)


class _Fixed(nn.Module):
    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self._logits = logits

    def forward(self, images: Tensor) -> Tensor:
        return self._logits.expand(len(images), -1)


@pytest.mark.parametrize("key", ["soft_labels", "cbst.renormalized"])
def test_pixels_have_one_stored_label_each(key: str) -> None:
    with pytest.raises(ConfigError, match=rf"{key} must be false where pixels"):
        configuration.override(presets.get("scenes").config, {key: "true"})


def test_both_train(tmp_path: Path) -> None:
    settings = TINY | {"soft_labels": True, "cbst.renormalized": True, "epochs": 2, "fractions": "1"}
    dmt.fit("digits", method="cbst", baseline=False, settings=settings, out=tmp_path / "run")
    (stage,) = (tmp_path / "run" / "stages").glob("A1-*")
    assert ImageStore.load(stage).target.soft is not None
    recipe = configuration.override(presets.get("digits").config, settings).recipe
    labels = catalogue.plan("cbst", recipe)["A1"].labels
    assert labels is not None
    assert labels.soft
    assert labels.renormalized
