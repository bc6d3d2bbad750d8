"""What to label next: doubtful images, not too many of a class; and what nets see in them, whatever net it is."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from dmt import config as configuration
from dmt import presets
from dmt.auditing import ensembles, label_next
from dmt.auditing.ensembles import Ensemble
from dmt.auditing.label_next import Reading
from dmt.core import diverse
from dmt.core.diverse import Pool
from dmt.data import set_pictures
from dmt.data.pixels.segment_sets import SegmentSet
from dmt.models import build
from dmt.tasks import opening
from dmt.tasks.base import Task, View
from dmt.tasks.classification import Classification
from tests.conftest import TINY_PIXELS

CPU = torch.device("cpu")


def task_of(preset: str, settings: dict[str, object]) -> Task:
    config = configuration.override(presets.get(preset).config, settings)
    return opening.read(config.data, Path("data"), print, lambda done, of: None).split(1)[0]


@pytest.fixture(scope="module")
def digits() -> Classification:
    task = task_of("digits", {})
    assert isinstance(task, Classification)
    return replace(task, unlabeled=task.unlabeled.take(torch.arange(300)))


def ensemble_of(task: Task, net: str, count: int = 2) -> Ensemble:
    nets = tuple(build.build(task.net_spec(net), seed=seed).eval() for seed in range(count))
    return Ensemble(task, nets, tuple("AB"[:count]), CPU)


class Certain(nn.Module):
    """Knows one class of all images but a few, of which it knows nothing."""

    def __init__(self, doubtful: Tensor) -> None:
        super().__init__()
        self.doubtful = doubtful  # (n, C, H, W)

    def forward(self, images: Tensor) -> Tensor:
        logits = torch.zeros(len(images), 10)
        unsure = (images.flatten(1).unsqueeze(1) == self.doubtful.flatten(1)).all(2).any(1)
        logits[:, 3] = torch.where(unsure, 0.0, 20.0)
        return logits


def test_what_nets_are_unsure_of_comes_first(digits: Classification) -> None:
    doubtful = [7, 130, 255]
    net = Certain(digits.unlabeled.images[:][doubtful].float() / 255)
    found = label_next.choose(Ensemble(digits, (net, net), ("A", "B"), CPU), 3)
    assert sorted(each.position for each in found) == doubtful
    assert {each.file for each in found} == {digits.unlabeled.ids[position] for position in doubtful}
    assert all(each.doubt == pytest.approx(1.0) and each.disagreement == 0.0 for each in found)


def test_nets_that_contradict_each_other_make_doubt(digits: Classification) -> None:
    none = digits.unlabeled.images[:0].float()
    same, other = Certain(none), Certain(none)
    other.forward = lambda images: Certain.forward(other, images).roll(1, 1)  # type: ignore[method-assign]
    reading = label_next.read(Ensemble(digits, (same, other), ("A", "B"), CPU), digits.unlabeled)
    assert reading.disagreement.min() > 0.25
    torch.testing.assert_close(reading.disagreement, reading.doubt)
    assert reading.says[0].tolist() == [3, 4]


class Torn(nn.Module):
    """Says the same of every image."""

    def __init__(self, *probabilities: float) -> None:
        super().__init__()
        self.logits = torch.tensor(probabilities + (1e-9,) * (10 - len(probabilities))).log()

    def forward(self, images: Tensor) -> Tensor:
        return self.logits.expand(len(images), -1)


def test_how_sure_the_nets_are_is_said_of_the_class_that_is_suggested(digits: Classification) -> None:
    ensemble = Ensemble(digits, (Torn(0.6, 0.4, 0.0), Torn(0.0, 0.45, 0.55)), ("A", "B"), CPU)
    for each in label_next.choose(ensemble, 3):
        assert [label for label, _ in each.nets] == [0, 2]
        assert each.label == 1  # neither's first choice, but both's second
        assert each.sure == pytest.approx(0.425)


def test_an_image_without_doubt_has_its_class(digits: Classification) -> None:
    net = Certain(digits.unlabeled.images[:0].float())
    net.forward = lambda images: 100 * Certain.forward(net, images)  # type: ignore[method-assign]
    found = label_next.choose(Ensemble(digits, (net,), ("A",), CPU), 3)
    assert [(each.doubt, each.label, each.sure) for each in found] == [(0.0, 3, 1.0)] * 3


def test_a_long_list_is_not_chosen_from_ever_more_images(
    digits: Classification, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_next, "FEWEST", 20)
    monkeypatch.setattr(label_next, "MOST", 50)
    sizes: list[int] = []
    choose = diverse.choose

    def noted(pool: Pool, count: int, most: int) -> list[int]:
        sizes.append(len(pool.worth))
        return choose(pool, count, most)

    monkeypatch.setattr(diverse, "choose", noted)
    for count in (1, 2, 10, 80):
        label_next.choose(ensemble_of(digits, "resnet8-4", 1), count)
    assert sizes == [20, 40, 50, 80]


def test_a_class_gets_at_most_twice_its_even_part(digits: Classification) -> None:
    found = label_next.choose(ensemble_of(digits, "resnet8-4"), 60)
    labels = [each.label for each in found]
    assert len({each.position for each in found}) == 60
    # untrained nets call nearly all images by a few names; once those are full, the list goes on all the same
    full = 12 * len(set(labels))
    assert max(labels[:full].count(label) for label in set(labels)) <= 12 or full > 60


def test_pictures_are_about_the_class_that_stands_out() -> None:
    shares = torch.tensor([[0.5, 0.1, 0.0], [0.5, 0.0, 0.0], [0.4, 0.0, 0.2]])
    blank = torch.zeros(3)
    kinds = Reading(blank, blank, shares, blank[:, None], blank[:, None], blank).kinds()
    assert kinds.tolist() == [1, 0, 2]


def test_pixels_are_read_without_their_padding(few_scenes: SegmentSet) -> None:
    task = task_of("scenes", TINY_PIXELS)
    ensemble = ensemble_of(task, "fcn-4")
    reading = label_next.read(ensemble, task.unlabeled)
    torch.testing.assert_close(reading.shares.sum(1), reading.doubt)
    alone = label_next.read(ensemble, task.unlabeled.take(torch.tensor([5])))
    torch.testing.assert_close(alone.doubt[0], reading.doubt[5])
    for view in task.views(task.unlabeled, CPU):
        count = set_pictures.inside(task.unlabeled, view.positions, view.images).flatten(1).sum(1)
        sizes = [task.unlabeled.images.sizes[position] for position in view.positions.tolist()]
        assert count.tolist() == [height * width for height, width in sizes]


@pytest.mark.parametrize(("net", "width"), [("resnet8-4", 16), ("wrn-10-1", 64)])
def test_features_are_what_the_last_layer_gets(digits: Classification, net: str, width: int) -> None:
    ensemble = ensemble_of(digits, net)
    features = ensemble.features(digits.unlabeled)
    assert features.shape == (300, width)
    layer = ensembles.last_layer(ensemble.nets[0], 10)
    assert layer is not None
    logits = torch.cat([probabilities[0].log() for _, probabilities in ensemble.predictions(digits.unlabeled)])
    again = layer(features)
    torch.testing.assert_close(again.log_softmax(1), logits, atol=1e-4, rtol=1e-4)


def test_features_of_pixels_are_means_in_the_order_of_the_images(few_scenes: SegmentSet) -> None:
    task = task_of("scenes", TINY_PIXELS)
    ensemble = ensemble_of(task, "fcn-4")
    every = ensemble.features(task.unlabeled)
    assert every.shape == (len(task.unlabeled), 4)
    torch.testing.assert_close(ensemble.features(task.unlabeled.take(torch.tensor([3]))), every[3:4])


def test_a_net_without_a_last_layer_is_replaced_by_the_images(digits: Classification) -> None:
    net = Certain(digits.unlabeled.images[:0].float())
    features = Ensemble(digits, (net,), ("A",), CPU).features(digits.unlabeled)
    assert torch.equal(features, set_pictures.thumbnails(digits.unlabeled))


def test_images_of_one_label_have_no_padding(digits: Classification) -> None:
    view = View(torch.arange(3), torch.zeros(3, 1, 8, 8), None)
    assert set_pictures.inside(digits.unlabeled, view.positions, view.images).tolist() == [True] * 3
