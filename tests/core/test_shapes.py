"""Tensors that would be broadcast to a wrong number, and values that mean nothing, are refused."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from dmt.core import losses, selection, weighting
from dmt.core.mixing import Mix
from dmt.types import IGNORE, Target

LOGITS = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 1, 2, IGNORE])
SURE = torch.tensor([0.9, 0.4, 0.6, 0.5])
ONE = torch.tensor(0.7)
PIXELS = torch.zeros(2, 3, 5, 4)


def nan_at(position: int) -> Tensor:
    return SURE.index_fill(0, torch.tensor([position]), float("nan"))


WEIGHINGS: dict[str, Callable[[Tensor, Target], object]] = {
    "opinion": weighting.opinion,
    "dynamic": lambda logits, target: weighting.dynamic(logits, target, 4.0),
    "naive": lambda logits, target: weighting.naive(logits, target, 4.0),
    "flip": lambda logits, target: weighting.flip(logits, target, 4.0),
}


@pytest.mark.parametrize("name", WEIGHINGS)
@pytest.mark.parametrize(
    ("logits", "target", "error"),
    [
        (LOGITS, Target(LABELS, SURE[:, None]), ValueError),  # (4, 1): each site against all
        (LOGITS, Target(LABELS, ONE), ValueError),
        (LOGITS, Target(LABELS[:1], SURE[:1]), ValueError),
        (LOGITS, Target(LABELS.float(), SURE), TypeError),
        (LOGITS, Target(LABELS.int(), SURE), TypeError),
        (LOGITS, Target(LABELS, LABELS), TypeError),
        (LOGITS.long(), Target(LABELS, SURE), TypeError),
        (LOGITS[0], Target(LABELS[:1], SURE[:1]), ValueError),
        (PIXELS, Target(torch.zeros(2, 4, 5, dtype=torch.int64), torch.zeros(2, 4, 5)), ValueError),  # turned
    ],
)
def test_weightings_take_one_number_for_each_site(
    name: str, logits: Tensor, target: Target, error: type[Exception]
) -> None:
    with pytest.raises(error, match="must be"):
        WEIGHINGS[name](logits, target)


@pytest.mark.parametrize("name", [name for name in WEIGHINGS if name != "opinion"])
@pytest.mark.parametrize(
    ("target", "says"),
    [
        (Target(LABELS, nan_at(1)), "confidence must be within"),
        (Target(LABELS, SURE + 0.5), "confidence must be within"),
        (Target(LABELS + 1, SURE), "labels must be 0 … 2"),
        (Target(LABELS - 1, SURE), "labels must be 0 … 2"),
    ],
)
def test_weightings_refuse_values_that_mean_nothing(name: str, target: Target, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        WEIGHINGS[name](LOGITS, target)


def test_what_is_not_learned_may_be_anything() -> None:
    for weigh in WEIGHINGS.values():
        weigh(LOGITS, Target(LABELS, nan_at(3)))


def test_uniform_and_judge_take_what_fits() -> None:
    with pytest.raises(TypeError, match="int64"):
        weighting.uniform(None, Target(LABELS.float(), SURE))
    view = weighting.opinion(LOGITS, Target(LABELS, SURE))
    with pytest.raises(ValueError, match="opinion"):
        weighting.judge("dynamic", view, Target(LABELS[:2], SURE[:2]), 4.0)
    with pytest.raises(ValueError, match="0-d"):
        weighting.dynamic(LOGITS, Target(LABELS, SURE), torch.ones(3, 1))
    with pytest.raises(ValueError, match="0-d"):
        weighting.dynamic(LOGITS, Target(LABELS, SURE), 4.0, torch.ones(4))
    for gammas in ((-1.0,), (1.0, -1.0), (float("nan"),)):
        with pytest.raises(ValueError, match="must be 0 or more"):
            weighting.dynamic(LOGITS, Target(LABELS, SURE), *gammas)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: losses.per_site(LOGITS, LABELS, SURE[:, None]), ValueError),
        (lambda: losses.per_site(LOGITS, LABELS, ONE), ValueError),
        (lambda: losses.per_site(LOGITS, LABELS.tolist()), TypeError),  # type: ignore[arg-type]
        (lambda: losses.per_site(LOGITS, LABELS, SURE.tolist()), TypeError),  # type: ignore[arg-type]
        (lambda: losses.per_site(LOGITS.numpy(), LABELS), TypeError),  # type: ignore[arg-type]
        (lambda: losses.per_site(LOGITS, LABELS, torch.ones(4, dtype=torch.int64)), TypeError),
        (lambda: losses.per_site(LOGITS, LOGITS.softmax(1)), TypeError),  # torch takes it for probabilities
        (lambda: losses.cross_entropy(LOGITS, LABELS, SURE, count=SURE), ValueError),
        (lambda: losses.cross_entropy(LOGITS, LABELS, SURE[:1]), ValueError),
        (lambda: losses.mean_over_labeled(SURE[:, None], LABELS), ValueError),
        (lambda: losses.mean_over(SURE, torch.ones(4, 1, dtype=torch.bool)), ValueError),
        (lambda: losses.soft_cross_entropy(LOGITS, torch.full((3,), 1 / 3)), ValueError),
        (lambda: losses.divergence(LOGITS, torch.full((1, 3), 1 / 3)), ValueError),
        (lambda: losses.squared(LOGITS, LOGITS[:1]), ValueError),
        (lambda: losses.per_mixed_site(LOGITS, LABELS, None, Mix(SURE, torch.arange(4))), ValueError),
        (lambda: losses.per_mixed_site(LOGITS, LABELS, None, Mix(ONE, torch.arange(2))), ValueError),
        (lambda: losses.per_mixed_site(LOGITS, LABELS, SURE[:1], Mix(ONE, torch.arange(4))), (ValueError, IndexError)),
        (lambda: selection.top(torch.rand(2, 3), 0.5), ValueError),
        (lambda: selection.top(nan_at(0), 0.5), ValueError),
        (lambda: selection.top(SURE, 1.5), ValueError),
        (lambda: selection.top(SURE, -0.25), ValueError),
        (lambda: selection.quota(float("nan"), 4), ValueError),
        (lambda: selection.top_per_class(SURE, LABELS[:1], 0.5, 3), ValueError),
        (lambda: selection.top_per_class(SURE, LABELS.float(), 0.5, 3), ValueError),
        (lambda: selection.top_per_class(SURE, LABELS, 0.5, 2), ValueError),
    ],
)
def test_losses_and_selection_refuse_what_does_not_fit(
    call: Callable[[], object], error: type[Exception] | tuple[type[Exception], ...]
) -> None:
    with pytest.raises(error):
        call()


def test_checks_are_no_obstacle_to_tracing() -> None:
    """Whole graphs, as steps are compiled: no check looks at a value there."""

    def step(logits: Tensor, labels: Tensor, confidence: Tensor) -> Tensor:
        learned, weights = weighting.dynamic(logits, Target(labels, confidence), 4.0)
        return losses.cross_entropy(logits, learned, weights)

    traced = torch.compile(step, backend="eager", fullgraph=True)
    torch.testing.assert_close(traced(LOGITS, LABELS, SURE), step(LOGITS, LABELS, SURE))
