"""Checks of shapes and types: tensors that do not belong together raise an error instead of being broadcast.

Shapes and types are known while a step is compiled or captured, so these checks cost nothing there. Only
`require_values` looks at values, and only in eager execution.
"""

import torch
from torch import Tensor

from dmt.types import IGNORE, Target

SUREST = 1.0 + 1e-4
"""Largest value accepted as a confidence: sums of rounded probabilities may slightly exceed 1."""


def require_logits(logits: Tensor) -> None:
    """Require float logits (N, C, *S)."""
    _require_tensor("logits", logits)
    if not logits.is_floating_point():
        raise TypeError(f"logits must be floats, not {logits.dtype}")
    if logits.ndim < 2:
        raise ValueError(f"logits must be (N, C, *S), not {tuple(logits.shape)}")


def require_labels(labels: Tensor, logits: Tensor | None = None) -> None:
    """Require int64 labels, of shape (N, *S) if logits (N, C, *S) are given."""
    _require_tensor("labels", labels)
    if labels.dtype != torch.int64:
        hint = "; probabilities are for soft_cross_entropy" if labels.is_floating_point() else ""
        raise TypeError(f"labels must be int64, not {labels.dtype}{hint}")
    if logits is not None:
        require_logits(logits)
        require_shape("labels", labels, (*logits.shape[:1], *logits.shape[2:]))


def require_sites(what: str, values: Tensor, labels: Tensor) -> None:
    """Require a float for each label: the shape of ``labels``, (N, *S)."""
    _require_tensor(what, values)
    if not values.is_floating_point():
        raise TypeError(f"{what} must be floats, not {values.dtype}")
    require_shape(what, values, tuple(labels.shape))


def _require_tensor(what: str, values: object) -> None:
    if not isinstance(values, Tensor):
        raise TypeError(f"{what} must be a tensor, not {type(values).__name__}")


def require_alike(what: str, values: Tensor, like: Tensor) -> None:
    """Require the shape of another tensor."""
    require_shape(what, values, tuple(like.shape))


def require_shape(what: str, values: Tensor, shape: tuple[int, ...]) -> None:
    """Require exactly this shape."""
    if tuple(values.shape) != shape:
        raise ValueError(f"{what} must be {shape}, not {tuple(values.shape)}")


def require_scalar(what: str, value: float | Tensor | None) -> None:
    """Require a number, a 0-d tensor or None."""
    if isinstance(value, Tensor) and value.ndim:
        raise ValueError(f"{what} must be a number or a 0-d tensor, not {tuple(value.shape)}")


def require_exponent(what: str, value: float | Tensor | None) -> None:
    """Require the same, and 0 or more of a number. Tensors are not looked into, since they may be on a GPU."""
    require_scalar(what, value)
    if value is not None and not isinstance(value, Tensor) and not value >= 0:
        raise ValueError(f"{what} must be 0 or more, not {value}")


def require_target(logits: Tensor, target: Target) -> None:
    """Require logits (N, C, *S), and a target with labels and confidence (N, *S)."""
    require_labels(target.labels, logits)
    require_sites("confidence", target.confidence, target.labels)


def require_values(logits: Tensor, target: Target) -> None:
    """Require the same, and that every label is a class and its confidence a probability.

    Values are not checked while a step is compiled or captured.
    """
    require_target(logits, target)
    classes = logits.shape[1]
    if torch.compiler.is_compiling() or (target.labels.is_cuda and torch.cuda.is_current_stream_capturing()):
        return
    labeled, confidence = target.labels != IGNORE, target.confidence
    if bool((labeled & ((target.labels < 0) | (target.labels >= classes))).any()):
        raise ValueError(f"labels must be 0 … {classes - 1}, or {IGNORE} where there is none")
    if bool((labeled & ~((confidence >= 0) & (confidence <= SUREST))).any()):  # true for NaN
        raise ValueError("confidence must be within [0, 1], and not NaN")
