"""The net teaches itself. Online self-training over one normalizer first, then the traps of the others."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmt.core.execution import Execution
from dmt.objectives.base import Cast, Loss, Progress
from dmt.objectives.itself import Online
from dmt.training.trainer import Student
from dmt.types import IGNORE, Batch, BatchShape
from tests.objectives import by_hand

PLAIN = Execution(torch.device("cpu"))


class Pixels(nn.Module):
    """Logits of every pixel, of four classes; its gain makes it sure or not."""

    def __init__(self, gain: float) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.body = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 4, 1))
        self.gain = gain

    def forward(self, images: Tensor) -> Tensor:
        return self.gain * self.body(images)  # type: ignore[no-any-return]


@pytest.fixture
def batch(generator: torch.Generator) -> Batch:
    truth = torch.randint(0, 4, (2, 6, 5), generator=generator)
    truth[:, 4:] = IGNORE
    return Batch(
        images=torch.rand(2, 3, 6, 5, generator=generator),
        truth=truth,
        views={"train": torch.rand(3, 3, 6, 5, generator=generator)},
    )


def loss(net: nn.Module, batch: Batch, threshold: float) -> Loss:
    objective = Online(threshold)
    draw = objective.draw(Progress(3, 10, 5), BatchShape(2, 3, 6, 5), PLAIN.device)
    return objective.loss(Cast((Student(net, PLAIN),)), batch, draw)


def gradient(net: nn.Module, total: Tensor) -> Tensor:
    total.backward()  # type: ignore[no-untyped-call]
    return torch.cat([parameter.grad.flatten() for parameter in net.parameters() if parameter.grad is not None])


@pytest.mark.parametrize("threshold", [0.0, 0.6, 0.9])
def test_is_cross_entropy_with_sure_labels_and_truth_over_one_count(threshold: float, batch: Batch) -> None:
    found = loss(Pixels(6.0).train(), batch, threshold)
    logits = Pixels(6.0).train()(torch.cat([batch.views["train"], batch.images]))
    confidence, labels = logits[:3].softmax(1).max(1)
    sure = confidence > threshold
    assert bool(sure.all()) if threshold == 0.0 else 0 < int(sure.sum()) < sure.numel()
    count = int(sure.sum()) + int((batch.truth != IGNORE).sum())
    pseudo = F.cross_entropy(logits[:3], labels, reduction="none")[sure].sum() / count
    labeled = F.cross_entropy(logits[3:], batch.truth, ignore_index=IGNORE, reduction="sum") / count
    torch.testing.assert_close(found.total, pseudo + labeled)
    torch.testing.assert_close(found.logged["pseudo"], pseudo.detach())
    torch.testing.assert_close(found.logged["labeled"], labeled.detach())
    assert float(found.logged["kept"]) == pytest.approx(float(sure.float().mean()))


def test_a_confidence_at_the_threshold_teaches_nothing(batch: Batch) -> None:
    class Even(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return torch.zeros(len(images), 2, *images.shape[2:])  # 0.5 for either class, exactly

    truth = batch.truth.clamp(max=1)
    halves = Batch(batch.images, truth, batch.views)
    assert float(loss(Even(), halves, 0.5).logged["kept"]) == 0.0
    assert float(loss(Even(), halves, 0.499).logged["kept"]) == 1.0


def test_an_unsure_net_learns_from_truth_alone(batch: Batch) -> None:
    found = loss(Pixels(0.01).train(), batch, 0.9)
    logits = Pixels(0.01).train()(torch.cat([batch.views["train"], batch.images]))[3:]
    torch.testing.assert_close(found.total, F.cross_entropy(logits, batch.truth, ignore_index=IGNORE))
    assert float(found.logged["pseudo"]) == 0.0


def test_nothing_labeled_and_nothing_sure_is_a_loss_of_zero(batch: Batch) -> None:
    """A crop that is all padding, and a net that is sure of nothing: 0 and no gradient, not NaN."""
    blank = Batch(batch.images, torch.full_like(batch.truth, IGNORE), batch.views)
    net = Pixels(0.01).train()
    found = loss(net, blank, 0.9)
    assert float(found.total.detach()) == 0.0
    assert not gradient(net, found.total).any()
    assert all(bool(torch.isfinite(part)) for part in found.logged.values())


def test_sure_labels_teach_where_nothing_is_labeled(batch: Batch) -> None:
    blank = Batch(batch.images, torch.full_like(batch.truth, IGNORE), batch.views)
    net = Pixels(6.0).train()
    found = loss(net, blank, 0.6)
    assert float(found.total.detach()) > 0
    assert float(found.logged["labeled"]) == 0.0
    moved = gradient(net, found.total)
    assert bool(torch.isfinite(moved).all())
    assert float(moved.abs().max()) > 0


@pytest.mark.parametrize("sites", [(), (6, 5)], ids=["images", "pixels"])
def test_unlabeled_images_move_the_net(sites: tuple[int, ...], batch: Batch) -> None:
    """Gradients differ when only the unlabeled images do, and not by BatchNorm's statistics alone."""

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(5)
            self.conv = nn.Conv2d(3, 4, 3, padding=1)

        def forward(self, images: Tensor) -> Tensor:
            logits: Tensor = 20 * self.conv(images)
            return logits if sites else logits.mean((2, 3))

    truth = batch.truth if sites else batch.truth[:, 0, 0]
    gradients = []
    for shift in (0, 1):
        views = {"train": batch.views["train"].roll(shift, dims=0) * (1 - 0.5 * shift)}
        net = Plain()
        gradients.append(gradient(net, loss(net, Batch(batch.images, truth, views), 0.5).total))
    assert not torch.allclose(gradients[0], gradients[1])
    alone = Plain()
    without = Batch(batch.images, truth, {"train": batch.views["train"][:0]})
    assert not torch.allclose(gradients[0], gradient(alone, loss(alone, without, 0.5).total))


def test_costs_one_pass() -> None:
    assert Online().cost(BatchShape(2, 3, 6, 5)) == (5, 0)
    assert Online().views == ("train",)


THRESHOLDED = [by_hand.CASES[name][0] for name in ("PseudoLabel", "UDA", "FixMatch")]


def unlabeled(case: by_hand.Case, **options: float) -> float:
    return float(by_hand.step(case, **options).loss.logged["unlabeled"])


@pytest.mark.parametrize("case", THRESHOLDED, ids=str)
def test_an_unsure_sample_teaches_nothing_and_still_counts(case: by_hand.Case) -> None:
    """Of two samples one is sure: half of its loss. A mask (N, 1) times losses (N,) would teach both alike."""
    found = by_hand.step(case)
    assert float(found.loss.logged["kept"]) == 0.5
    found.loss.total.backward()  # type: ignore[no-untyped-call]
    (view,) = {"PseudoLabel": ["weak"], "UDA": ["strong"], "FixMatch": ["strong"]}[type(case.objective).__name__]
    places = by_hand.batch_of(case).views[view][:, 0, 0, 0].long()
    assert found.nets[0].rows.grad is not None
    moved = found.nets[0].rows.grad[places].abs().sum(1)
    assert float(moved[0]) > 0
    assert float(moved[1]) == 0.0
    weak = case.given()[0][0]["weak"]
    probabilities = by_hand.p(case.given()[0][0][view])
    if view == "strong" and "UDA" in str(case):
        target = by_hand.p(weak / 0.5)[0]
        first = (target * np.log(target / probabilities[0])).sum()
    else:
        first = -np.log(probabilities[0, 1])
    assert unlabeled(case) == pytest.approx(first / 2, rel=1e-5)


@pytest.mark.parametrize(("case", "kept"), list(zip(THRESHOLDED, (0.0, 0.0, 0.5), strict=True)))
def test_at_the_threshold_fixmatch_alone_learns(case: by_hand.Case, kept: float) -> None:
    weak = torch.tensor(case.given()[0][0]["weak"], dtype=torch.float64).float()
    exactly = float(weak.softmax(1).max())
    assert float(by_hand.step(case, threshold=exactly).loss.logged["kept"]) == kept
    assert float(by_hand.step(case, threshold=exactly - 1e-4).loss.logged["kept"]) == 0.5
    assert float(by_hand.step(case, threshold=exactly + 1e-4).loss.logged["kept"]) == 0.0


def test_uda_asks_how_sure_it_is_before_it_sharpens() -> None:
    """The second sample has .45, and .64 once sharpened by .4: between them it teaches nothing, below both it does."""
    case = by_hand.CASES["UDA"][0]
    unsure = case.given()[0][0]["weak"][1:]
    plain, sharpened = (float(by_hand.p(unsure / heat).max()) for heat in (1.0, 0.4))
    assert plain < 0.5 < sharpened
    assert float(by_hand.step(case, threshold=0.5, temperature=0.4).loss.logged["kept"]) == 0.5
    assert float(by_hand.step(case, threshold=0.4, temperature=0.4).loss.logged["kept"]) == 1.0
    target, found = by_hand.p(case.given()[0][0]["weak"] / 0.4), by_hand.p(case.given()[0][0]["strong"])
    both = (target * np.log(target / found)).sum(1).mean()
    assert unlabeled(case, threshold=0.4, temperature=0.4) == pytest.approx(both, rel=1e-5)


def test_pi_model_divides_by_the_classes_and_learns_by_its_first_view() -> None:
    (case,) = by_hand.CASES["PiModel"]
    said = case.given()[0][0]
    squares = (by_hand.p(said["weak"]) - by_hand.p(said["weak2"])) ** 2
    assert unlabeled(case) == pytest.approx(squares.sum() / (2 * 3), rel=1e-5)


def test_fixmatch_seg_is_half_of_both_terms_and_pastes_confidence_too() -> None:
    (case,) = by_hand.CASES["FixMatchSeg"]
    found = by_hand.step(case).loss
    labeled = by_hand.supervised(case.given()[0][0][by_hand.LABELED])
    assert float(found.total.detach()) == pytest.approx((labeled + unlabeled(case)) / 2, rel=1e-5)
    # sure are both pixels of the first sample; the second is pasted over by an unsure one
    assert float(found.logged["kept"]) == pytest.approx(1 / 4)
