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
