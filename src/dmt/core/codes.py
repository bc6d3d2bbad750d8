"""Confidences as 16-bit codes: the log-odds log(p / (1 − p)), rounded to steps of 1/2048, so also precise near 1.

A code c in 0 … 65,535 stands for the log-odds c / 2048 − 6. The range begins at −6, below the log-odds that the largest
of 255 probabilities can have, and ends at +26, where 1 − p is 5e-12. So very confident predictions remain comparable
far beyond 1 − 6e-8, the last float32 before 1. Neighboring codes differ by at most 1.2e-4 in p, and by
5e-4 · (1 − p) near 1.

A code takes one of three forms, all with the same order:

- int32 in 0 … 65,535, where it is computed;
- int16, the code minus 32,768 (`pack`), where many are kept on a device: torch supports few operations on uint16;
- uint16, in numpy arrays and files.
"""

import torch
from torch import Tensor

LEVELS = 65536
OFFSET = 32768
"""Number that `pack` subtracts from a code; in 16 bits, this inverts the highest bit."""

LOW = -6.0
STEPS = 2048.0
"""Codes per unit of log-odds: a power of two, so that the log-odds of a code are exact in float32."""


def confident(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Return the most probable class of every site and the code of its confidence.

    Args:
        logits: (N, C, *S), any float type.

    Returns:
        labels: (N, *S) int64.
        codes: (N, *S) int32, 0 … 65,535.
    """
    logits = logits.float()
    top, labels = logits.max(1, keepdim=True)
    # log-odds of the winner = −log Σ exp(z − z_top) over the other classes: no intermediate value rounds to 1
    others = (logits - top).exp().scatter(1, labels, 0.0).sum(1)
    return labels.squeeze(1), encode(-others.log())


def most_likely(probabilities: Tensor) -> tuple[Tensor, Tensor]:
    """Return the same as `confident` from probabilities (N, C, *S), such as the mean over several forward passes.

    1 − p is computed as the sum over the other classes, so that no confidence rounds to 1 here either.
    """
    top, labels = probabilities.max(1, keepdim=True)
    others = probabilities.scatter(1, labels, 0.0).sum(1)
    return labels.squeeze(1), encode(top.squeeze(1).log() - others.log())


def encode(log_odds: Tensor) -> Tensor:
    """Return the nearest codes, int32; log-odds outside of the range get its first or last code."""
    return ((log_odds - LOW) * STEPS).round().clamp(0, LEVELS - 1).to(torch.int32)


def decode(codes: Tensor) -> Tensor:
    """Return the confidence of packed or unpacked codes, float32 in (0, 1]; a higher code never has a lower one.

    1 / (1 + exp(−x)) rounds as a float32 softmax does, which computes 1 / (1 + Σ of the other classes) for the winner.
    So a stored confidence ties with one fresh from a softmax exactly where the two would have tied before encoding.
    """
    return (unpack(codes).float() / STEPS + LOW).sigmoid()


def pack(codes: Tensor) -> Tensor:
    """Convert codes 0 … 65,535 to int16 by subtracting 32,768; their order does not change."""
    return (codes - OFFSET).to(torch.int16)


def unpack(codes: Tensor) -> Tensor:
    """Return codes as 0 … 65,535, whether they are packed (int16) or not."""
    return codes.to(torch.int32) + OFFSET if codes.dtype == torch.int16 else codes
