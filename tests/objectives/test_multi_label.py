"""s4GAN's classifier: what it learns, from whom and when; and that a run ships it. Its loss is in test_by_hand.py."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

import dmt
from dmt.core.ema import SlowCopy
from dmt.core.execution import Execution
from dmt.data.pixels.segment_sets import SegmentSet
from dmt.models import build
from dmt.models.build import Normalized
from dmt.objectives import multi_label
from dmt.objectives.base import Cast, Progress
from dmt.objectives.judged import S4GAN
from dmt.objectives.multi_label import S4GANMultiLabel
from dmt.runs.progress import Silent
from dmt.training import beside
from dmt.training.trainer import SlowTeacher, Student
from dmt.types import IGNORE, Batch, BatchShape
from dmt.use import exporting, scoring
from tests.conftest import TINY_PIXELS
from tests.models.test_encoder_decoder import spec

CPU = torch.device("cpu")
SHAPE = BatchShape(2, 3, 24, 20)
CLASSES = 4
ALONE = S4GANMultiLabel(S4GAN(semi=0.0, matching=0.0, judge_width=8))
"""Nothing but the classifier learns from unlabeled images."""


def moved(unlabeled: int, objective: S4GANMultiLabel, step: int = 90) -> dict[str, Tensor]:
    """The gradient of a net when it sees these unlabeled images, its BatchNorm in eval mode."""
    net = build.build(spec("fcn-4"), seed=1)
    beside.add_class_filters(objective, {"A": net}, spec("fcn-4"), seed=2)
    slow = SlowCopy(net, 0.9)
    with torch.no_grad():
        for each in slow.net.parameters():
            each.add_(0.05 * torch.randn(each.shape, generator=torch.Generator().manual_seed(each.numel())))
    given = torch.Generator().manual_seed(3)
    images = torch.rand(SHAPE.labeled, 3, SHAPE.height, SHAPE.width, generator=given)
    truth = torch.randint(0, CLASSES, (SHAPE.labeled, SHAPE.height, SHAPE.width), generator=given)
    other = torch.Generator().manual_seed(10 + unlabeled)
    views = {view: torch.rand(SHAPE.unlabeled, *images.shape[1:], generator=other) for view in objective.views}
    parts = beside.parts(objective, net, spec("fcn-4"), seed=2)
    execution = Execution(CPU)
    cast = Cast((Student(net.eval(), execution),), (SlowTeacher(slow, execution),), {"judge": parts["judge"].module})
    assert isinstance(net, Normalized)
    loss = objective.loss(cast, Batch(images, truth, views), objective.draw(Progress(step, 100, 1), SHAPE, CPU))
    loss.total.backward()  # type: ignore[no-untyped-call]
    assert all(each.grad is None for each in slow.net.parameters())
    return {name: each.grad for name, each in net.named_parameters() if each.grad is not None}


def test_the_classifier_learns_from_unlabeled_images_and_the_segmenter_nothing_of_it() -> None:
    first, second = (moved(number, ALONE) for number in (0, 1))
    differ = {name for name in first if not torch.allclose(first[name], second[name], atol=1e-7)}
    assert {"class_filter.head.weight", "class_filter.body.stem.0.weight"} <= differ
    assert all(name.startswith("class_filter.") for name in differ)


@pytest.mark.parametrize(
    ("objective", "step"), [(S4GANMultiLabel(ALONE.s4gan, consistency=0.0), 90), (ALONE, 0), (ALONE, 10)]
)
def test_without_weight_or_before_its_start_it_does_not(objective: S4GANMultiLabel, step: int) -> None:
    first, second = (moved(number, objective, step) for number in (0, 1))
    for name, gradient in first.items():
        torch.testing.assert_close(gradient, second[name])


def test_the_weight_grows_over_half_of_the_stage() -> None:
    found = [float(ALONE.draw(Progress(step, 100, 1), SHAPE, CPU).ramp) for step in (0, 10, 11, 35, 60, 99)]
    assert found == pytest.approx([0.0, 0.0, 0.02, 0.5, 1.0, 1.0])


def test_classes_are_those_that_labels_show() -> None:
    truth = torch.tensor([[[0, 2], [IGNORE, 2]], [[IGNORE, IGNORE], [IGNORE, IGNORE]]])
    logits = torch.tensor([[1.0, -2.0, 0.5, 0.1], [5.0, 5.0, 5.0, 5.0]])
    expected = torch.nn.functional.binary_cross_entropy_with_logits(logits[0], torch.tensor([1.0, 0.0, 1.0, 0.0]))
    torch.testing.assert_close(multi_label.class_loss(logits, truth), expected)
    assert float(multi_label.class_loss(logits, torch.full_like(truth, IGNORE))) == 0.0


def test_a_run_scores_ships_and_exports_nets_that_switch_classes_off(few_scenes: SegmentSet, tmp_path: Path) -> None:
    settings = TINY_PIXELS | {"s4gan_mlmt.epochs": 1, "s4gan_mlmt.judge_width": 8, "s4gan_mlmt.present": 0.5}
    dmt.fit("scenes", out=tmp_path / "run", method="s4gan-mlmt", settings=settings, watcher=Silent())
    shipped = scoring.shipped_net(tmp_path / "run", "s4gan-mlmt", None, CPU)
    assert isinstance(shipped.net, Normalized)
    assert shipped.net.class_filter is not None
    assert float(shipped.net.class_filter.threshold) == 0.5
    images = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        absent, given = shipped.net.presence(images).sigmoid() < 0.5, shipped.net(images)
    assert absent.any()
    assert not absent.all(1).any()
    assert torch.equal(given.softmax(1).amax((2, 3)) == 0.0, absent)
    for kind in exporting.FORMATS:
        (path, *_) = exporting.export(
            tmp_path / "run", kind, options=exporting.ExportOptions(method="s4gan-mlmt")
        ).paths
    assert torch.equal(exporting.load(path).net(images), given)
