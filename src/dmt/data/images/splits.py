"""Reproducible splits into labeled, unlabeled and validation images, drawn per class from a seed."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dmt.core import selection, streams
from dmt.errors import ConfigError


@dataclass(frozen=True)
class Split:
    """A partition of the training images into three disjoint parts, as positions."""

    labeled: Tensor
    unlabeled: Tensor
    validation: Tensor


def draw(labels: Tensor, classes: int, labeled: int, validation: int, seed: int) -> Split:
    """Draw a split like the paper's, but from a seed.

    Every class contributes the same number of labeled and the same number of validation images. The validation images
    are the same for every seed. With the same seed, a smaller labeled set is a subset of a larger one.

    Args:
        labels: (N,) int64, the class of every training image.
        classes: number of classes.
        labeled: number of labeled images in all, a multiple of the number of classes.
        validation: number of validation images in all, a multiple of the number of classes.
        seed: determines which images are labeled.
    """
    per_class = _even(labeled, classes, "labels")
    held_out = _even(validation, classes, "validation")
    parts: dict[str, list[np.ndarray]] = {"labeled": [], "unlabeled": [], "validation": []}
    for label in range(classes):
        members = (labels == label).nonzero().squeeze(1).numpy()
        if len(members) < per_class + held_out:
            raise ConfigError(
                f"labels={labeled} and validation={validation} need {per_class + held_out} images of class {label}, "
                f"there are {len(members)}; set labels lower"
            )
        # one validation set for all seeds, so that their scores are comparable
        members = streams.stream("validation", label).permutation(members)
        rest, kept = members[: len(members) - held_out], members[len(members) - held_out :]
        rest = streams.stream(seed, "labels", label).permutation(rest)
        parts["validation"].append(kept)
        parts["labeled"].append(rest[:per_class])
        parts["unlabeled"].append(rest[per_class:])
    return Split(**{name: torch.from_numpy(np.sort(np.concatenate(part))) for name, part in parts.items()})


def carve(labels: Tensor, classes: int, count: int, role: str) -> tuple[Tensor, Tensor]:
    """Hold out ``count`` images, the same number per class; which ones depends on ``role`` only.

    Returns:
        Sorted positions (rest, held out).
    """
    per_class = _even(count, classes, role)
    members = [
        streams.stream(role, label).permutation((labels == label).nonzero().squeeze(1).numpy())
        for label in range(classes)
    ]
    carved = np.sort(np.concatenate([each[:per_class] for each in members]))
    rest = np.sort(np.concatenate([each[per_class:] for each in members]))
    return torch.from_numpy(rest), torch.from_numpy(carved)


def mislabeled(labels: Tensor, classes: int, share: float, seed: int) -> Tensor:
    """Return a copy of the labels in which a share is replaced by another class drawn uniformly, for stress tests."""
    rng = streams.stream(seed, "label noise")
    chosen = torch.from_numpy(rng.permutation(len(labels))[: selection.quota(share, len(labels))])
    wrong = labels.clone()
    wrong[chosen] = (wrong[chosen] + torch.from_numpy(rng.integers(1, classes, size=len(chosen)))) % classes
    return wrong


def _even(count: int, classes: int, key: str) -> int:
    if count < 0 or count % classes:
        raise ConfigError(f"{key} must be a multiple of the number of classes, {classes}, not {count}")
    return count // classes
