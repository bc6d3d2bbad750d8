import math

import pytest
import torch
import torch.nn.functional as F

from dmt.core import losses
from dmt.types import IGNORE

SHAPES = pytest.mark.parametrize("sites", [(), (3, 4)], ids=["images", "pixels"])


@SHAPES
def test_is_the_plain_mean_without_weights(sites: tuple[int, ...], generator: torch.Generator) -> None:
    logits = torch.randn(6, 5, *sites, generator=generator)
    labels = torch.randint(0, 5, (6, *sites), generator=generator)
    torch.testing.assert_close(losses.cross_entropy(logits, labels), F.cross_entropy(logits, labels))


@SHAPES
def test_labeled_and_pseudo_parts_add_up_over_one_count(sites: tuple[int, ...], generator: torch.Generator) -> None:
    """L = L_X + L_U with one N: sites of weight 0 count, unlabeled ones do not."""
    logits = torch.randn(8, 5, *sites, generator=generator)
    labels = torch.randint(0, 5, (8, *sites), generator=generator)
    labels[0] = IGNORE
    weights = torch.rand(labels.shape, generator=generator)
    weights[1] = 0.0
    count = losses.labeled_sites(labels[:5], labels[5:])
    assert count == (labels != IGNORE).sum()
    parts = [losses.cross_entropy(logits[part], labels[part], weights[part], count) for part in (slice(5), slice(5, 8))]
    whole = losses.cross_entropy(logits, labels, weights)
    torch.testing.assert_close(parts[0] + parts[1], whole)
    by_hand = (losses.per_site(logits, labels) * weights).sum() / int((labels != IGNORE).sum())
    torch.testing.assert_close(whole, by_hand)


@SHAPES
@pytest.mark.parametrize("count", [None, 0.0])
def test_nothing_labeled_gives_zero_and_no_gradient(sites: tuple[int, ...], count: float | None) -> None:
    logits = torch.randn(4, 5, *sites, requires_grad=True)
    loss = losses.cross_entropy(logits, torch.full((4, *sites), IGNORE), count=count)
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == 0.0
    assert logits.grad is not None
    assert torch.equal(logits.grad, torch.zeros_like(logits))


def test_half_precision_logits_are_lifted_first() -> None:
    logits = (20 * torch.randn(16, 5)).to(torch.bfloat16)
    labels = torch.randint(0, 5, (16,))
    loss = losses.cross_entropy(logits, labels)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, F.cross_entropy(logits.float(), labels))


@SHAPES
def test_soft_targets(sites: tuple[int, ...], generator: torch.Generator) -> None:
    logits = torch.randn(6, 5, *sites, generator=generator)
    targets = torch.randn(6, 5, *sites, generator=generator).softmax(1)
    found = losses.soft_cross_entropy(logits, targets)
    assert found.shape == (6, *sites)
    torch.testing.assert_close(found.mean(), F.cross_entropy(logits, targets))
    apart = losses.divergence(logits, targets)
    torch.testing.assert_close(apart, F.kl_div(logits.log_softmax(1), targets, reduction="none").sum(1))
    torch.testing.assert_close(losses.divergence(logits, logits.softmax(1)), torch.zeros(6, *sites))


def test_a_sure_target_is_a_label() -> None:
    """0·log 0 is 0."""
    logits, labels = torch.randn(6, 5), torch.arange(6) % 5
    sure = F.one_hot(labels, 5).float()
    torch.testing.assert_close(losses.soft_cross_entropy(logits, sure), losses.per_site(logits, labels))
    torch.testing.assert_close(losses.divergence(logits, sure), losses.per_site(logits, labels))


def test_squares_by_hand() -> None:
    values, targets = torch.tensor([[1.0, 2.0], [0.0, 3.0]]), torch.tensor([[1.0, 0.0], [2.0, 1.0]])
    assert losses.squared(values, targets).tolist() == [2.0, 4.0]
    assert losses.squared(values, targets, summed=True).tolist() == [4.0, 8.0]


@pytest.mark.parametrize("name", ["soft_cross_entropy", "divergence", "squared"])
def test_targets_get_no_gradient(name: str) -> None:
    logits, source = torch.randn(4, 3, requires_grad=True), torch.randn(4, 3, requires_grad=True)
    getattr(losses, name)(logits, source.softmax(1)).sum().backward()
    assert logits.grad is not None
    assert logits.grad.any()
    assert source.grad is None


def test_the_mean_over_valid_sites() -> None:
    sites = torch.tensor([[1.0, 2.0, 0.0], [4.0, 50.0, 60.0]])
    valid = torch.tensor([[True, True, True], [True, False, False]])
    assert float(losses.mean_over(sites, None)) == pytest.approx(117 / 6)
    assert float(losses.mean_over(sites, valid)) == pytest.approx(7 / 4)  # a site of weight 0 counts
    assert float(losses.mean_over(sites, torch.zeros_like(valid))) == 0.0


def test_hard_sites_are_those_the_net_is_unsure_of() -> None:
    given = torch.tensor([[0.9, 0.7, 0.2, 0.5], [0.95, 0.8, 0.71, 1.0]])  # p(label); the last has no label
    labels = torch.tensor([[0, 1, 2, 0], [1, 1, 2, IGNORE]])
    sites = -given.log()
    unsure = [0.7, 0.2, 0.5]
    by_hand = sum(-math.log(each) for each in unsure) / len(unsure)
    assert float(losses.mean_over_hard(sites, labels, 0.25)) == pytest.approx(by_hand, abs=1e-6)
    filled = [*unsure, 0.71, 0.8]  # five of eight sites, though the net is unsure of three
    by_hand = sum(-math.log(each) for each in filled) / len(filled)
    assert float(losses.mean_over_hard(sites, labels, 0.6)) == pytest.approx(by_hand, abs=1e-6)
    everything = losses.mean_over_labeled(sites, labels)
    assert torch.allclose(losses.mean_over_hard(sites, labels, 1.0), everything)


def test_hard_sites_alone_are_learned_and_nothing_is_no_nan() -> None:
    logits = torch.tensor([[[3.0, 0.0], [0.0, 0.1]]], requires_grad=True)  # (1, C, S): sure of the first site
    labels = torch.tensor([[0, 0]])
    losses.mean_over_hard(losses.per_site(logits, labels), labels, 0.5).backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    assert torch.equal(logits.grad[..., 0], torch.zeros(1, 2))
    assert bool((logits.grad[..., 1] != 0).all())
    nothing = torch.full((1, 2), IGNORE)
    assert losses.mean_over_hard(losses.per_site(logits, nothing), nothing, 0.5).item() == 0.0
