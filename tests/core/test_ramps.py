import math

import pytest

from dmt.core import ramps


@pytest.mark.parametrize(
    ("progress", "expected"), [(0, 0.007), (0.1, 0.017), (0.25, 0.060), (0.5, 0.287), (0.75, 0.732), (1, 1)]
)
def test_gamma_has_the_published_values(progress: float, expected: float) -> None:
    assert ramps.gamma(progress) == pytest.approx(expected, abs=5e-4)


def test_gamma_grows_from_exp_minus_five() -> None:
    values = [ramps.gamma(n / 100) for n in range(101)]
    assert values == sorted(values)
    assert values[0] == pytest.approx(math.exp(-5))
    assert values[-1] == 1.0


def test_rates_fall_from_one_to_zero() -> None:
    for name in ("cosine", "poly"):
        values = [ramps.RATES[name](n / 100) for n in range(101)]
        assert values == sorted(values, reverse=True)
        assert values[0] == 1.0
        assert values[-1] == pytest.approx(0.0, abs=1e-12)
    assert ramps.cosine(0.5) == pytest.approx(0.5)
    assert ramps.poly(0.5) == pytest.approx(0.5**0.9)
    assert ramps.constant(0.3) == 1.0
    with pytest.raises(ValueError, match="progress must be at most 1"):
        ramps.poly(1.01)


def test_fixmatchs_rate_falls_to_a_fifth() -> None:
    values = [ramps.RATES["cosine-7-16"](n / 100) for n in range(101)]
    assert values == sorted(values, reverse=True)
    assert values[0] == 1.0
    assert values[50] == pytest.approx(math.cos(7 * math.pi / 32))
    assert values[-1] == pytest.approx(0.195, abs=5e-4)


@pytest.mark.parametrize(
    ("progress", "share", "expected"), [(0, 0.4, 0), (0.1, 0.4, 0.25), (0.4, 0.4, 1), (0.9, 0.4, 1), (0, 0, 1)]
)
def test_linear_and_exponential_end_after_their_share(progress: float, share: float, expected: float) -> None:
    assert ramps.linear(progress, share) == pytest.approx(expected)
    assert ramps.exponential(progress, share) == pytest.approx(math.exp(-5 * (1 - expected) ** 2))
