"""How methods for images were published: their scores."""

SCORES: dict[str, dict[str, float]] = {
    "cifar10-40": {
        "mean-teacher": 29.9, "uda": 89.4, "fixmatch": 86.19, "flexmatch": 95.03, "freematch": 95.03,
        "softmatch": 94.94, "mixmatch": 63.8, "remixmatch": 80.90,
    },
    "cifar10-250": {
        "pseudo-label": 50.02, "pi-model": 46.98, "mean-teacher": 52.68, "uda": 94.57, "fixmatch": 94.93,
        "flexmatch": 95.02, "freematch": 95.15, "softmatch": 95.16, "mixmatch": 88.92, "remixmatch": 93.73,
    },
    "cifar10-1k": {
        "pseudo-label": 69.09, "pi-model": 68.47, "mean-teacher": 82.68, "uda": 95.25, "mixmatch": 92.25,
        "dual-student": 85.83,
    },
    "cifar10-4k": {
        "pseudo-label": 83.79, "pi-model": 82.59, "mean-teacher": 89.64, "uda": 95.68, "fixmatch": 95.74,
        "flexmatch": 95.81, "freematch": 95.86, "softmatch": 95.73, "mixmatch": 93.76, "remixmatch": 94.86,
        "dual-student": 91.11, "deep-co-training": 90.97,
    },
}  # fmt: skip
"""Accuracy in % as others published it for so many labels with a Wide ResNet 28-2, those of Dual Student and
Deep Co-Training with CNN-13: other labels were drawn, training was longer, and for some the test set chose the
checkpoint (docs/methods)."""
