"""Images as training sees them. An unlabeled image has no truth: not by discipline, by type."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True)
class UnlabeledSet:
    """Images without truth.

    Attributes:
        ids: a name for each image, stable between machines.
        images: (N, C, H, W) uint8.
    """

    ids: tuple[str, ...]
    images: Tensor

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of every bit."""
        return _digest("\n".join(self.ids), self.images)


@dataclass(frozen=True)
class LabeledSet:
    """Images with truth: ``labels`` is (N, *S) int64."""

    ids: tuple[str, ...]
    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of every bit."""
        return _digest("\n".join(self.ids), self.images, self.labels)

    def take(self, positions: Tensor) -> "LabeledSet":
        """The samples at these positions, in this order."""
        ids = tuple(self.ids[position] for position in positions.tolist())
        return LabeledSet(ids, self.images[positions], self.labels[positions])

    def without_truth(self) -> UnlabeledSet:
        return UnlabeledSet(self.ids, self.images)


def fingerprint(images: tuple[LabeledSet, LabeledSet]) -> str:
    """Of a whole data set, train and test."""
    return " ".join(part.fingerprint for part in images)


def _digest(text: str, *tensors: Tensor) -> str:
    digest = hashlib.sha256(text.encode())
    for tensor in tensors:
        digest.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
        # 0-d and empty tensors have bytes too, and reshape makes a view of them where it can
        digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
