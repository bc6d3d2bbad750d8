"""Options with which methods for pixels were published, for nets that start from published parameters."""

from typing import Any

from dmt.methods.groups import MethodOptions
from dmt.methods.online_pixels import AugSegOptions, ClassMixOptions

_POLY: dict[str, Any] = {"rate_ramp": "poly"}
_DEEPLAB2: dict[str, Any] = _POLY | {"rate": 2.5e-3, "encoder": 0.1, "weight_decay": 5e-4}

VOC: tuple[MethodOptions, ...] = (
    ClassMixOptions(**_DEEPLAB2, epochs=40, labeled=10, unlabeled=10),
    AugSegOptions(**_POLY, epochs=80, labeled=16, unlabeled=16, rate=1e-3, weight_decay=1e-4),
)

CITYSCAPES: tuple[MethodOptions, ...] = (
    ClassMixOptions(**_DEEPLAB2, epochs=30, labeled=2, unlabeled=2),
    AugSegOptions(**_POLY, epochs=80, labeled=16, unlabeled=16, rate=1e-3, weight_decay=1e-4, ema=0.996, threshold=0.0),
)
