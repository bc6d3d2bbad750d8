"""Stored student predictions for each unlabeled image, so that only a part of each batch is predicted per step.

The memory has one row per unlabeled image, by its position. Which images of a batch are predicted depends on the memory
alone, and their number never changes, so a step keeps its shapes. Before its first prediction, an image counts as if
the student agreed with its teacher, with the teacher's confidence (docs/decisions, 30).
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from dmt.core import weighting
from dmt.core.weighting import Opinion
from dmt.types import Target

Memory = Mapping[str, Tensor]
"""Tensors (N,) by name: the student's labels, their confidence, its probability of the teacher's label, and the step of
the prediction."""

NEVER = -1
"""Step of an image that was never predicted."""


def empty(images: int) -> dict[str, Tensor]:
    """Return a memory of this many images without any prediction."""
    return {
        "labels": torch.zeros(images, dtype=torch.int64),
        "confidence": torch.zeros(images),
        "probability": torch.zeros(images),
        "asked": torch.full((images,), NEVER, dtype=torch.int64),
    }


def longest_ago(memory: Memory, positions: Tensor, count: int) -> Tensor:
    """Return the rows of a batch to predict, (count,): images without a prediction, then those with the oldest ones.

    Args:
        memory: the stored predictions.
        positions: (U,), positions of the batch's images in the memory.
        count: number of rows to predict.
    """
    return memory["asked"][positions].sort(stable=True).indices[:count]


def updated(memory: Memory, positions: Tensor, view: Opinion, step: Tensor) -> dict[str, Tensor]:
    """Return the memory with new predictions; if an image occurs twice, its last prediction is stored.

    Args:
        memory: the stored predictions.
        positions: (n,), positions of the predicted images.
        view: the student's predictions for them.
        step: 0-d int64, number of the current step.
    """
    last = last_of(positions)
    fresh = {
        "labels": view.labels[last],
        "confidence": view.confidence[last],
        "probability": view.probability[last],
        "asked": step.expand(len(positions)),
    }
    return {name: values.index_copy(0, positions, fresh[name]) for name, values in memory.items()}


def last_of(positions: Tensor) -> Tensor:
    """Return, for each row, the last row with the same position: a GPU writes duplicates in undefined order."""
    places = torch.arange(1, len(positions) + 1, device=positions.device)
    return ((positions[:, None] == positions) * places).argmax(1)


def recall(memory: Memory, positions: Tensor, target: Target) -> Opinion:
    """Return the stored opinions of the images at these positions, (U,), given the teacher's target for them."""
    known = memory["asked"][positions] != NEVER
    labels = memory["labels"][positions].where(known, target.labels)
    confidence, probability = (
        memory[name][positions].where(known, target.confidence) for name in ("confidence", "probability")
    )
    return Opinion(labels, confidence, probability, weighting.cases_of(labels, confidence, target))
