"""Who is labeled, unlabeled and held out: drawn per class from seeds, so that a split can be made again."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dmt.core import selection, streams
from dmt.errors import ConfigError


@dataclass(frozen=True)
class Split:
    """Positions in the training images. The three parts are disjoint and together all of them."""

    labeled: Tensor
    unlabeled: Tensor
    validation: Tensor


def draw(labels: Tensor, classes: int, labeled: int, validation: int, seed: int) -> Split:
    """The paper's split, but seeded: the validation images are the same for every seed, the labeled ones are nested.

    Of each class the same number is taken for validation and for labels. A smaller labeled set of the same seed is
    part of a larger one.
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
        # one validation set for all seeds, so that their scores can be compared
        members = streams.stream("validation", label).permutation(members)
        rest, kept = members[: len(members) - held_out], members[len(members) - held_out :]
        rest = streams.stream(seed, "labels", label).permutation(rest)
        parts["validation"].append(kept)
        parts["labeled"].append(rest[:per_class])
        parts["unlabeled"].append(rest[per_class:])
    return Split(**{name: torch.from_numpy(np.sort(np.concatenate(part))) for name, part in parts.items()})


def carve(labels: Tensor, classes: int, count: int, role: str) -> tuple[Tensor, Tensor]:
    """Positions (rest, carved): ``count`` images, the same number of each class, fixed by ``role`` alone."""
    per_class = _even(count, classes, role)
    members = [
        streams.stream(role, label).permutation((labels == label).nonzero().squeeze(1).numpy())
        for label in range(classes)
    ]
    carved = np.sort(np.concatenate([each[:per_class] for each in members]))
    rest = np.sort(np.concatenate([each[per_class:] for each in members]))
    return torch.from_numpy(rest), torch.from_numpy(carved)


def mislabeled(labels: Tensor, classes: int, share: float, seed: int) -> Tensor:
    """Labels of which a share was replaced by another class, drawn evenly: for stress tests."""
    rng = streams.stream(seed, "label noise")
    chosen = torch.from_numpy(rng.permutation(len(labels))[: selection.quota(share, len(labels))])
    wrong = labels.clone()
    wrong[chosen] = (wrong[chosen] + torch.from_numpy(rng.integers(1, classes, size=len(chosen)))) % classes
    return wrong


def _even(count: int, classes: int, key: str) -> int:
    if count < 0 or count % classes:
        raise ConfigError(f"{key} must be a multiple of the number of classes, {classes}, not {count}")
    return count // classes
