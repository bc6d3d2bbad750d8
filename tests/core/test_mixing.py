import numpy as np
import pytest
import torch

from dmt.core import mixing

CPU = torch.device("cpu")


def draws(dominant: bool, count: int = 400) -> list[mixing.Mix]:
    rng = np.random.default_rng(0)
    return [mixing.draw(16, 0.75, rng, dominant=dominant, device=CPU) for _ in range(count)]


def test_images_and_weights_share_coefficient_and_partners() -> None:
    mix = draws(dominant=True, count=1)[0]
    images, weights = torch.rand(16, 3, 4, 4), torch.rand(16)
    mixed_images, mixed_weights = mix.blend(images), mix.blend(weights)
    for n, partner in enumerate(mix.partners.tolist()):
        torch.testing.assert_close(
            mixed_images[n], mix.coefficient * images[n] + (1 - mix.coefficient) * images[partner]
        )
        torch.testing.assert_close(
            mixed_weights[n], mix.coefficient * weights[n] + (1 - mix.coefficient) * weights[partner]
        )


def test_a_mix_by_sample_has_a_share_and_a_partner_for_each() -> None:
    """One λ for a whole batch is another method, and a share that is broadcast along another axis a wrong one."""
    mix = mixing.draw_each(9, 0.75, np.random.default_rng(1), CPU)
    assert mix.coefficients.dtype == torch.float32
    assert len(set(mix.coefficients.tolist())) == 9
    assert sorted(mix.partners.tolist()) == list(range(9))
    for values in (torch.rand(9, 3, 9, 9), torch.rand(9, 9), torch.rand(9)):
        mixed = mix.blend(values)
        assert mixed.shape == values.shape
        for n, (share, partner) in enumerate(zip(mix.coefficients.tolist(), mix.partners.tolist(), strict=True)):
            torch.testing.assert_close(mixed[n], share * values[n] + (1 - share) * values[partner])


def test_every_sample_stays_closer_to_itself_than_to_its_partner() -> None:
    rng = np.random.default_rng(2)
    shares = torch.cat([mixing.draw_each(50, 0.75, rng, CPU).coefficients for _ in range(20)])
    assert float(shares.min()) >= 0.5
    # of max(λ, 1 − λ): E|λ − ½| + ½ for Beta(.75, .75)
    assert abs(float(shares.mean()) - 0.775) < 0.02


def test_partners_are_a_permutation() -> None:
    for mix in draws(dominant=False, count=20):
        assert sorted(mix.partners.tolist()) == list(range(16))


def test_dominant_is_at_least_half_and_plain_is_not() -> None:
    dominant = [float(mix.coefficient) for mix in draws(dominant=True)]
    plain = [float(mix.coefficient) for mix in draws(dominant=False)]
    assert min(dominant) >= 0.5
    assert min(plain) < 0.1
    # Beta(.75, .75) has mean 1/2 and variance 1/(4·(2·.75 + 1)) = 0.1
    assert abs(np.mean(plain) - 0.5) < 0.05
    assert abs(np.var(plain) - 0.1) < 0.02
    assert dominant == pytest.approx([max(each, 1 - each) for each in plain], abs=1e-6)
