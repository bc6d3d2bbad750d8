"""Methods that paste: what a net sees at a pixel decides what it learns there. Whole losses are in test_by_hand.py."""

from typing import Any

import pytest
import torch
from torch import Tensor

from dmt.core.pasting import Paste
from dmt.methods import catalogue
from dmt.methods.recipe import Recipe
from dmt.objectives.base import Cast, Objective, Progress
from dmt.objectives.itself import FixMatchSeg, sure
from dmt.objectives.peers import CrossPseudoPasted
from dmt.objectives.perturbed import PerturbedDraw, UniMatch, UniMatchV2, channel_masks, complementary_masks
from dmt.objectives.slow import CutMixSeg
from dmt.objectives.slow_pasted import AugSeg, ClassMix, trust
from dmt.types import Batch, BatchShape
from tests.objectives.by_hand import SlowTable, Table

CPU = torch.device("cpu")
SHAPE = BatchShape(labeled=3, unlabeled=5, height=7, width=6)
PIXELS = SHAPE.height * SHAPE.width
VIEWS = ("weak", "strong", "strong2")


def branches(tree: object) -> list[Any]:
    """A tree and all that is in it."""
    return [tree, *(each for branch in tree for each in branches(branch))] if isinstance(tree, tuple) else [tree]


def plans(objective: Objective, step: int = 0) -> list[Any]:
    """What is pasted into whom."""
    return [each for each in branches(objective.draw(Progress(step, 20, 1), SHAPE, CPU)) if hasattr(each, "partners")]


ONLINE = [
    method.plan(Recipe()).stages[-1].objective
    for method in catalogue.METHODS.values()
    if method.family == "online" and "pixels" in method.serves
]
PASTING = [objective for objective in ONLINE if plans(objective)]


def numbered(first: int, count: int) -> Tensor:
    """Images whose pixels are numbers, no two alike."""
    return (first + torch.arange(count * PIXELS)).view(count, 1, SHAPE.height, SHAPE.width).float()


class Watching(Table):
    """A table that keeps what it was shown."""

    def __init__(self, rows: Tensor) -> None:
        super().__init__(rows.numpy(), pixels=True)
        self.shown: list[Tensor] = []

    def __call__(self, images: Tensor, *, update_statistics: bool = True) -> Tensor:
        self.shown.append(images)
        return super().__call__(images)


@pytest.mark.parametrize(
    "objective", [ClassMix(0.0), AugSeg(0.5), FixMatchSeg(0.5)], ids=lambda each: type(each).__name__
)
def test_label_confidence_and_valid_plane_are_those_of_the_pixel_shown(objective: Objective) -> None:
    """The loss is computed once more from the numbers of the pixels that the net saw, and from nothing else."""
    generator = torch.Generator().manual_seed(3)
    count = (3 * SHAPE.unlabeled + SHAPE.labeled) * PIXELS
    rows = 2 * torch.randn(count, 4, generator=generator)
    net, slow = Watching(rows), SlowTable((rows * 1.1).numpy(), pixels=True)
    views = {view: numbered(place * SHAPE.unlabeled * PIXELS, SHAPE.unlabeled) for place, view in enumerate(VIEWS)}
    images = numbered(3 * SHAPE.unlabeled * PIXELS, SHAPE.labeled)
    truth = torch.randint(-1, 4, (SHAPE.labeled, SHAPE.height, SHAPE.width), generator=generator)
    valid = torch.rand(SHAPE.unlabeled, SHAPE.height, SHAPE.width, generator=generator) < 0.8
    batch = Batch(images, truth, views, valid=valid)
    found = objective.loss(Cast((net,), (slow,)), batch, objective.draw(Progress(1, 9, 2), SHAPE, CPU))

    guess = slow(views["weak"]) if objective.slow else Table(rows.numpy(), pixels=True)(views["weak"])
    confidence, labels = sure(guess)
    planes = torch.zeros(3, count)  # label, confidence and validity of every pixel there is
    strong = slice(SHAPE.unlabeled * PIXELS, 2 * SHAPE.unlabeled * PIXELS)
    planes[:, strong] = torch.stack([labels.flatten().float(), confidence.flatten(), valid.flatten().float()])
    planes[:, 3 * SHAPE.unlabeled * PIXELS :] = torch.stack(
        [truth.flatten().float(), torch.ones(truth.numel()), (truth >= 0).flatten().float()]
    )
    seen = net.shown[-1].long()[:, 0]
    label, sureness, counted = planes[:, seen]
    sites = torch.nn.functional.cross_entropy(
        net.rows[seen].movedim(-1, 1), label.long(), ignore_index=-1, reduction="none"
    )
    kept = sureness >= objective.threshold  # type: ignore[attr-defined]
    expected = (sites * kept * counted).sum() / counted.sum()
    torch.testing.assert_close(found.logged["unlabeled"], expected.float().detach())
    other = seen // PIXELS != torch.arange(5)[:, None, None] + SHAPE.unlabeled
    assert other.any()  # something was pasted
    assert not other.all()


def test_most_methods_for_pixels_paste() -> None:
    pasting = {type(objective) for objective in PASTING}
    assert {FixMatchSeg, CutMixSeg, ClassMix, AugSeg, UniMatch, UniMatchV2, CrossPseudoPasted} <= pasting


@pytest.mark.parametrize("objective", PASTING, ids=lambda each: type(each).__name__)
def test_no_image_is_pasted_with_itself(objective: Objective) -> None:
    """UniMatch, CorrMatch and CPS drew image and partner from equal seeds."""
    for step in range(20):
        assert all((each.partners != torch.arange(SHAPE.unlabeled)).all() for each in plans(objective, step))


def test_trust_is_0_where_nothing_is_known_and_1_where_all_is() -> None:
    logits = torch.zeros(3, 4, 1, 2)
    logits[1, 2] = 100.0
    logits[2, 1, 0, 0] = 100.0
    valid = torch.tensor([[[True, True]], [[True, True]], [[True, False]]])
    torch.testing.assert_close(trust(logits, valid), torch.tensor([0.0, 1.0, 1.0]))


def draw(seeds: list[int], whole: list[bool]) -> PerturbedDraw:
    paste = Paste(torch.zeros(2, 1, 1, dtype=torch.bool), torch.tensor([1, 0]))
    return PerturbedDraw((paste, paste), torch.tensor(seeds), torch.tensor(whole))


def test_channels_are_dropped_by_halves_and_level_by_level() -> None:
    features = (torch.ones(2, 400, 3, 3), torch.ones(2, 400, 2, 2))
    first, second = channel_masks(features, torch.tensor([1, 2]))
    assert first.shape == second.shape == (2, 400, 1, 1)
    for mask in (first, second):
        assert set(mask.flatten().tolist()) == {0.0, 2.0}
        assert float(mask.mean()) == pytest.approx(1.0, abs=0.1)
    assert not torch.equal(first, second)
    assert not torch.equal(first[0], first[1])


def test_one_view_keeps_what_the_other_drops() -> None:
    (mask,) = complementary_masks((torch.ones(4, 50, 1, 1),), draw([3, 4], [False, True]))
    first, second = mask[:2], mask[2:]
    assert torch.equal(first[0] + second[0], torch.full((50, 1, 1), 2.0))
    assert set(first[0].flatten().tolist()) == {0.0, 2.0}
    assert torch.equal(first[1], torch.ones(50, 1, 1))
    assert torch.equal(second[1], torch.ones(50, 1, 1))


@pytest.mark.parametrize("objective", [UniMatch(), UniMatchV2()], ids=lambda each: type(each).__name__)
def test_a_random_half_of_the_images_stays_whole(objective: Objective) -> None:
    seen = torch.stack([objective.draw(Progress(step, 50, 1), SHAPE, CPU).whole for step in range(50)])
    assert (seen.sum(1) == SHAPE.unlabeled // 2).all()
    assert seen.any(0).all()
    assert not seen.all(0).any()
