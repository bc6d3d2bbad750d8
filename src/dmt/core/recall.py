"""What a student last thought of each image: then only a part of a batch has to be asked in every step.

The memory holds one row for each unlabeled image, by its position. Who is asked depends on the memory alone and how
many are asked never changes, so that a step keeps its shapes. Of an image that was never asked about, the student is
taken to think as its teacher does.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from dmt.core import weighting
from dmt.core.weighting import Opinion
from dmt.types import Target

Memory = Mapping[str, Tensor]
"""By name, each (N,): the student's labels, its confidence, what it gives the teacher's label, and the step it was
asked in."""

NEVER = -1
"""The step of an image that was never asked about."""


def empty(images: int) -> dict[str, Tensor]:
    """Nobody was asked yet."""
    return {
        "labels": torch.zeros(images, dtype=torch.int64),
        "confidence": torch.zeros(images),
        "probability": torch.zeros(images),
        "asked": torch.full((images,), NEVER, dtype=torch.int64),
    }


def longest_ago(memory: Memory, positions: Tensor, count: int) -> Tensor:
    """Which images of a batch to ask about, (count,): those never asked about, then those for longest not.

    Args:
        positions: (U,) of the images of the batch.
    """
    return memory["asked"][positions].sort(stable=True).indices[:count]


def updated(memory: Memory, positions: Tensor, view: Opinion, step: Tensor) -> dict[str, Tensor]:
    """The memory after some images were asked about; of an image that is there twice, the last opinion counts.

    Args:
        positions: (n,) of these images.
        view: what the student thinks of them.
        step: 0-d int64, the number of the step.
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
    """For each row of a batch the last row of the same image: else a GPU would write either of the two."""
    places = torch.arange(1, len(positions) + 1, device=positions.device)
    return ((positions[:, None] == positions) * places).argmax(1)


def recall(memory: Memory, positions: Tensor, target: Target) -> Opinion:
    """What the student last thought of the images at these positions, for which this is the target: (U,)."""
    known = memory["asked"][positions] != NEVER
    labels = memory["labels"][positions].where(known, target.labels)
    confidence, probability = (
        memory[name][positions].where(known, target.confidence) for name in ("confidence", "probability")
    )
    return Opinion(labels, confidence, probability, weighting.cases_of(labels, confidence, target))
