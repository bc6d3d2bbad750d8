import math

import pytest
import torch
from torch import Tensor

from dmt.core import codes, weighting
from dmt.types import Target

ALL = torch.arange(codes.LEVELS, dtype=torch.int32)


def test_decoding_never_falls_and_stays_a_confidence() -> None:
    confidence = codes.decode(ALL)
    assert confidence.dtype == torch.float32
    assert bool((confidence.diff() >= 0).all())
    assert 0 < confidence[0] < 1 / 256  # lower than the winner of 255 classes can be
    assert confidence[-1] == 1


def test_codes_survive_decoding_until_float32_runs_out() -> None:
    sure = int(codes.encode(torch.tensor(7.0)))
    assert torch.equal(codes.encode(codes.decode(ALL[:sure]).logit()), ALL[:sure])


def test_packing_keeps_order_and_value() -> None:
    packed = codes.pack(ALL)
    assert packed.dtype == torch.int16
    assert bool((packed[1:] > packed[:-1]).all())
    assert torch.equal(codes.unpack(packed), ALL)
    assert torch.equal(codes.decode(packed), codes.decode(ALL))


@pytest.mark.parametrize("shape", [(), (5, 7)], ids=["images", "pixels"])
@pytest.mark.parametrize("classes", [2, 21, 255])
def test_label_and_confidence_of_a_softmax(shape: tuple[int, ...], classes: int, generator: torch.Generator) -> None:
    logits = 3 * torch.randn(20, classes, *shape, generator=generator)
    labels, code = codes.confident(logits)
    expected = logits.softmax(1).max(1)
    assert torch.equal(labels, expected.indices)
    assert code.dtype == torch.int32
    torch.testing.assert_close(codes.decode(code), expected.values, rtol=0, atol=6.2e-5)  # half a step


def test_confidences_that_float32_calls_1_stay_apart() -> None:
    margins = torch.arange(17.0, 25.0, 0.01, dtype=torch.float64)
    logits = torch.stack([margins, torch.zeros_like(margins), torch.zeros_like(margins)], 1)
    assert bool((logits.float().softmax(1)[:, 0] == 1).any())
    _, code = codes.confident(logits.float())
    assert bool((code.diff() > 0).all())
    exact = codes.encode(margins - torch.tensor(2.0).double().log())
    assert int((code - exact).abs().max()) <= 1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_logits_are_not_rounded_further(dtype: torch.dtype, generator: torch.Generator) -> None:
    logits = (8 * torch.randn(50, 10, generator=generator)).to(dtype)
    assert torch.equal(codes.confident(logits)[1], codes.confident(logits.float())[1])


def test_extremes_get_the_ends() -> None:
    logits = torch.tensor([[0.0, 500.0, 0.0], [0.0, 0.0, 0.0]])
    assert codes.confident(logits)[1].tolist()[0] == codes.LEVELS - 1
    assert codes.encode(torch.tensor([0.0, 1.0]).logit()).tolist() == [0, codes.LEVELS - 1]
    assert codes.confident(torch.zeros(1, 1000))[1].tolist() == [0]


def near_one(winners: Tensor, classes: int, generator: torch.Generator) -> Tensor:
    """Logits (N, C) whose winner leads by 4 to 12 over noise, scaled like a net's."""
    logits = torch.randn(len(winners), classes, generator=generator)
    margin = 4 + 8 * torch.rand(len(winners), 1, generator=generator)
    return logits.scatter(1, winners[:, None], logits.amax(1, keepdim=True) + margin)


@pytest.mark.parametrize("disturbance", [None, 1.0, 0.3], ids=["unrelated", "related", "close"])
def test_the_three_cases_come_out_as_with_float32(disturbance: float | None, generator: torch.Generator) -> None:
    count, classes = 100_000, 21
    winners = torch.randint(0, classes, (count,), generator=generator)
    teacher = near_one(winners, classes, generator)
    rivals = (winners + 1) % classes  # disagreement everywhere, so that every comparison decides a case
    if disturbance is None:
        student = near_one(rivals, classes, generator)
    else:
        student = teacher.roll(1, 1) + disturbance * torch.randn(count, classes, generator=generator)
    confidence, labels = teacher.softmax(1).max(1)
    stored = Target(labels, codes.decode(codes.pack(codes.confident(teacher)[1])))
    cases = weighting.opinion(student, Target(labels, confidence)).cases
    assert 0.2 < float((cases == weighting.POSITIVE).float().mean()) < 0.8
    differing = int((weighting.opinion(student, stored).cases != cases).sum())
    assert differing < 0.001 * count


def test_a_mean_of_probabilities_has_the_code_of_its_log_odds() -> None:
    """Two passes over two sites, by hand: 0.6 and 0.2 to 0.4, 0.3 and 0.7 to 0.5."""
    first, second = torch.tensor([[0.6, 0.1, 0.3], [0.3, 0.4, 0.3]]), torch.tensor([[0.2, 0.1, 0.7], [0.7, 0.2, 0.1]])
    labels, code = codes.most_likely((first + second) / 2)
    assert labels.tolist() == [2, 0]
    assert code.tolist() == [6 * 2048, 6 * 2048]  # both 0.5, even odds
    labels, code = codes.most_likely(torch.tensor([[0.0, 0.8, 0.2]]))
    assert (labels.item(), code.item()) == (1, round((math.log(4) + 6) * 2048))


@pytest.mark.parametrize("shape", [(), (5, 7)], ids=["images", "pixels"])
def test_probabilities_are_coded_as_their_logits(shape: tuple[int, ...], generator: torch.Generator) -> None:
    logits = 8 * torch.randn(50, 21, *shape, generator=generator)
    labels, code = codes.confident(logits)
    same, close = codes.most_likely(logits.softmax(1))
    assert close.dtype == torch.int32
    assert torch.equal(labels, same)
    assert int((code - close).abs().max()) <= 1


def test_means_that_float32_calls_1_stay_apart() -> None:
    margins = torch.arange(17.0, 25.0, 0.01)
    logits = torch.stack([margins, torch.zeros_like(margins)], 1)
    mean = (logits.softmax(1) + (logits + torch.tensor([0.5, 0.0])).softmax(1)) / 2
    assert bool((mean[:, 0] == 1).any())
    _, code = codes.most_likely(mean)
    assert bool((code.diff() > 0).all())
    assert codes.most_likely(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))[1].tolist() == [codes.LEVELS - 1, 6 * 2048]
