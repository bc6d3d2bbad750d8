"""Published options of methods for pixels, for nets with pretrained encoders, and their published scores."""

from typing import Any

from dmt.methods.groups import Groups, MethodOptions
from dmt.methods.online import (
    CrossPseudoOptions,
    CrossPseudoPastedOptions,
    CutMixSegOptions,
    FixMatchSegOptions,
    MeanTeacherSegOptions,
)
from dmt.methods.online_pixels import (
    AdvSemiSegOptions,
    AugSegOptions,
    CCTOptions,
    ClassMixOptions,
    GCTOptions,
    S4GANMultiLabelOptions,
    S4GANOptions,
    UniMatchOptions,
    UniMatchV2Options,
)
from dmt.objectives.perturbations import ADVERSARIAL, CHANNELS, NOISE, SALIENT

_POLY: dict[str, Any] = {"rate_ramp": "poly"}
_DEEPLAB2: dict[str, Any] = _POLY | {"rate": 2.5e-3, "encoder": 0.1, "weight_decay": 5e-4}
_CCT: dict[str, Any] = _POLY | {
    "epochs": 45, "labeled": 10, "unlabeled": 10, "rate": 1e-2, "encoder": 0.1, "weight_decay": 1e-4
}  # fmt: skip
_FRENCH: dict[str, Any] = {
    "rate": 3e-5, "rate_ramp": "constant", "optimizer": "adam", "encoder": 0.1, "weight_decay": 0.0
}  # fmt: skip
_EIGHT: dict[str, Any] = _POLY | {"labeled": 8, "unlabeled": 8}
_HEAD_FASTER: dict[str, Any] = {"rate": 1e-2, "encoder": 0.1}
"""1e-3 for the encoder, and ten times as much for what decodes its features."""
_VIT: dict[str, Any] = _POLY | {
    "epochs": 60, "labeled": 16, "unlabeled": 16, "rate": 2e-4, "encoder": 0.025, "optimizer": "adamw",
    "weight_decay": 0.01,
}  # fmt: skip

VOC = Groups.of(
    FixMatchSegOptions(**_EIGHT, **_HEAD_FASTER, epochs=80, weight_decay=1e-4),
    MeanTeacherSegOptions(**_EIGHT, **_HEAD_FASTER, epochs=20),
    CutMixSegOptions(**_FRENCH, epochs=40, labeled=10, unlabeled=10),
    CrossPseudoOptions(**_EIGHT, epochs=34, rate=1e-2, weight_decay=1e-4),
    CrossPseudoPastedOptions(**_EIGHT, epochs=34, rate=1e-2, weight_decay=1e-4),
    ClassMixOptions(**_DEEPLAB2, epochs=40, labeled=10, unlabeled=10),
    AugSegOptions(**_POLY, **_HEAD_FASTER, epochs=80, labeled=16, unlabeled=16, weight_decay=1e-4),
    UniMatchOptions(**_EIGHT, **_HEAD_FASTER, epochs=80, weight_decay=1e-4),
    UniMatchV2Options(**_VIT),
    CCTOptions(**_CCT),
    AdvSemiSegOptions(**_DEEPLAB2, epochs=20, labeled=10, unlabeled=10),
    S4GANOptions(**_DEEPLAB2, epochs=30, labeled=8, unlabeled=8),
    S4GANMultiLabelOptions(**_DEEPLAB2, epochs=30, labeled=8, unlabeled=8),
    GCTOptions(**_EIGHT, **_HEAD_FASTER, epochs=20),
)
"""Options as published for PASCAL VOC, for nets that start from pretrained parameters."""

CITYSCAPES: tuple[MethodOptions, ...] = (
    CutMixSegOptions(**_FRENCH, epochs=60, labeled=4, unlabeled=4),
    AdvSemiSegOptions(**_DEEPLAB2, epochs=80, labeled=10, unlabeled=10),
    # published for VOC only: here with about the same number of steps
    MeanTeacherSegOptions(**_EIGHT, **_HEAD_FASTER, epochs=73),
    GCTOptions(**_EIGHT, **_HEAD_FASTER, epochs=73),
    ClassMixOptions(**_DEEPLAB2, epochs=30, labeled=2, unlabeled=2),
    AugSegOptions(
        **_POLY,
        epochs=240,
        labeled=16,
        unlabeled=16,
        rate=1e-2,
        weight_decay=5e-4,
        ema=0.996,
        threshold=0.0,
        hard=0.04,
    ),
    FixMatchSegOptions(**_EIGHT, epochs=240, rate=5e-3, weight_decay=1e-4, threshold=0.0, hard=0.16),
    UniMatchOptions(**_EIGHT, epochs=240, rate=5e-3, weight_decay=1e-4, threshold=0.0, hard=0.16),
    UniMatchV2Options(**_VIT | {"epochs": 180, "labeled": 8, "unlabeled": 8}, hard=0.16),
    CrossPseudoOptions(**_EIGHT, epochs=137, rate=2e-2, weight_decay=1e-4, weight=6.0, hard=0.08),
    CrossPseudoPastedOptions(
        **_POLY, epochs=137, labeled=16, unlabeled=16, rate=4e-2, weight_decay=1e-4, weight=5.0, hard=0.08
    ),
    CCTOptions(**_CCT, perturbations=(CHANNELS, SALIENT, NOISE, ADVERSARIAL)),  # Cityscapes has no background class
    S4GANOptions(**_DEEPLAB2, epochs=100, labeled=8, unlabeled=8, threshold=0.7, judge_rate=1e-5),
    S4GANMultiLabelOptions(**_DEEPLAB2, epochs=100, labeled=8, unlabeled=8, threshold=0.7, judge_rate=1e-5),
)
"""Options for Cityscapes of methods that were published with other options for it, or that need others. The shares of
hard pixels are 200,000 of 2 × 801² as in the code of UniMatch, 100,000 of 4 × 800² as in that of AugSeg, and 50,000 of
800² as in that of CPS."""

SCORES: dict[str, dict[str, float]] = {
    "voc-1of106": {"cutmix-seg": 53.79},
    "voc-1of50": {"adv-semi-seg": 57.2, "s4gan-mlmt": 63.3, "cutmix-seg": 64.81},
    "voc-1of20": {"adv-semi-seg": 64.7, "s4gan-mlmt": 67.2, "cutmix-seg": 66.48},
    "voc-1of8": {
        "mt-seg": 67.65, "adv-semi-seg": 69.5, "s4gan": 69.8, "s4gan-mlmt": 71.4, "cutmix-seg": 67.60,
        "classmix": 71.00, "cct": 70.45, "gct": 70.57, "cps": 73.20, "cps-cutmix": 73.67,
    },
    "cityscapes-1of30": {"cutmix-seg": 51.20, "classmix": 54.07},
    "cityscapes-1of8": {"adv-semi-seg": 58.8, "s4gan": 59.3, "cutmix-seg": 60.34, "classmix": 61.35},
}  # fmt: skip
"""Mean IoU in % as published by others for this number of labels, with another net, start, split or schedule than the
preset's (docs/methods)."""
