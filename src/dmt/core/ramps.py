"""Schedules of learning rates and loss weights over a stage. ``progress`` is t/T, 0 at the first step."""

import math
from collections.abc import Callable


def gamma(progress: float) -> float:
    """Return exp(−5(1 − t/T)²), which grows from 0.0067 to 1.

    The paper prints exp(+5…), which would start at 148; its code has the minus sign, as here.
    """
    return math.exp(-5.0 * (1.0 - progress) ** 2)


def constant(progress: float) -> float:
    """Return 1."""
    return 1.0


def cosine(progress: float) -> float:
    """Return half a period of a cosine, from 1 to 0, without restarts: the learning rate for images."""
    return 0.5 * (1.0 + math.cos(math.pi * progress))


def poly(progress: float) -> float:
    """Return (1 − t/T)^0.9: the learning rate for pixels."""
    if progress > 1.0:  # the power would be a complex number
        raise ValueError(f"progress must be at most 1, not {progress}")
    return float((1.0 - progress) ** 0.9)


def cosine_7_16(progress: float) -> float:
    """Return cos(7πt/16T), from 1 to 0.2: FixMatch's learning rate."""
    return math.cos(7.0 * math.pi * progress / 16.0)


def late_linear(progress: float) -> float:
    """Return 1 up to 0.4 T, then a straight line to 0: Co-Teaching's learning rate."""
    return min(1.0, (1.0 - progress) / 0.6)


def linear(progress: float, share: float) -> float:
    """Return min(1, t/(aT)), which grows from 0 to 1 over the first share a of a stage; 1 if a is 0."""
    return min(1.0, progress / share) if share else 1.0


def exponential(progress: float, share: float) -> float:
    """Return exp(−5(1 − min(1, t/(aT)))²), which grows from 0.0067 to 1 over the first share a of a stage."""
    return gamma(linear(progress, share))


RATES: dict[str, Callable[[float], float]] = {
    "constant": constant,
    "cosine": cosine,
    "poly": poly,
    "cosine-7-16": cosine_7_16,
    "late-linear": late_linear,
}
