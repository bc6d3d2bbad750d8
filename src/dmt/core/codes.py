"""Confidences in 16 bits, near 1 as finely as anywhere: the log-odds log(p / (1 − p)), rounded to a step of 1/2048.

A code c in 0 … 65,535 stands for the log-odds c / 2048 − 6. That reaches from −6, less than the largest of 255
probabilities can have, to +26, where 1 − p is 5e-12: nets that are sure stay comparable far beyond 1 − 6e-8, the
last float32 before 1. Neighboring codes lie at most 1.2e-4 apart in p, and 5e-4 · (1 − p) near 1.

A code has three forms, in the same order:

- int32 0 … 65,535 where it is computed;
- int16, the code less 32,768 (`pack`), where many are kept on a device: torch hardly computes with uint16;
- uint16 in numpy arrays and files.
"""

import torch
from torch import Tensor

LEVELS = 65536
OFFSET = 32768
"""What `pack` takes off a code. In 16 bits this is the highest bit, inverted."""

LOW = -6.0
STEPS = 2048.0
"""Steps to one unit of log-odds. A power of two: code -> log-odds is exact in float32."""


def confident(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The winning class of every site and the code of its confidence.

    Args:
        logits: (N, C, *S), any float type.

    Returns:
        labels: (N, *S) int64.
        codes: (N, *S) int32, 0 … 65,535.
    """
    logits = logits.float()
    top, labels = logits.max(1, keepdim=True)
    # log-odds of the winner = −log Σ exp(z − z_top) over the others: nothing rounds to 1 on the way
    others = (logits - top).exp().scatter(1, labels, 0.0).sum(1)
    return labels.squeeze(1), encode(-others.log())


def most_likely(probabilities: Tensor) -> tuple[Tensor, Tensor]:
    """What `confident` gives, from probabilities (N, C, *S) that have no logits: the mean of several passes.

    The other classes are added up, not taken from 1: nothing rounds to 1 here either.
    """
    top, labels = probabilities.max(1, keepdim=True)
    others = probabilities.scatter(1, labels, 0.0).sum(1)
    return labels.squeeze(1), encode(top.squeeze(1).log() - others.log())


def encode(log_odds: Tensor) -> Tensor:
    """The nearest code, int32; what lies outside the range gets its end."""
    return ((log_odds - LOW) * STEPS).round().clamp(0, LEVELS - 1).to(torch.int32)


def encode_confidence(confidence: Tensor) -> Tensor:
    """The code of a confidence in [0, 1]. For those that exist as such only: near 1 they have lost their digits."""
    return encode(confidence.logit())


def decode(codes: Tensor) -> Tensor:
    """The confidence of packed or unpacked codes: float32 in (0, 1], never falling as codes rise.

    1 / (1 + exp(−x)) rounds as a float32 softmax does, which is 1 / (1 + the others' share) for the winner. So a
    stored confidence and one fresh from a softmax tie where they would have tied before.
    """
    return (unpack(codes).float() / STEPS + LOW).sigmoid()


def pack(codes: Tensor) -> Tensor:
    """0 … 65,535 as int16, by taking off 32,768; the order stays."""
    return (codes - OFFSET).to(torch.int16)


def unpack(codes: Tensor) -> Tensor:
    """Codes of either form as 0 … 65,535; int16 means packed."""
    return codes.to(torch.int32) + OFFSET if codes.dtype == torch.int16 else codes
