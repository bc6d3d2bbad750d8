"""Presets: Tab. 1 of the paper row by row with its pinned epochs, and our own, marked so."""

import math
from dataclasses import dataclass

from dmt.config import Config
from dmt.data.options import DataOptions
from dmt.errors import unknown
from dmt.methods.recipe import Recipe


@dataclass(frozen=True)
class Preset:
    """A named configuration. ``paper`` holds the published test scores by method, where there are any."""

    name: str
    summary: str
    config: Config
    paper: dict[str, float]

    @property
    def origin(self) -> str:
        return "paper" if self.paper else "ours"


def baseline_epochs(labels: int, images: int, oracle: int) -> int:
    """The paper's rule √(1/labeled ratio)·N, for data without a pinned number."""
    return math.floor(math.sqrt(images / labels) * oracle)


def get(name: str) -> Preset:
    if name not in PRESETS:
        raise unknown("data set", name, PRESETS)
    return PRESETS[name]


def _cifar10(name: str, labels: int, recipe: Recipe, paper: dict[str, float]) -> Preset:
    data = DataOptions("cifar10", labels=labels, validation=200, augment="paper")
    origin = "row of the paper" if paper else "ours, not in the paper"
    summary = f"CIFAR-10, 32×32 color, {labels:,} labels ({origin}); needs --data"
    return Preset(name, summary, Config(data, recipe, net="wrn-28-2"), paper)


def _few(labels: int) -> Recipe:
    """Ours: the 1k row's batches, and the paper's rule for the Baseline's epochs."""
    return Recipe(epochs=baseline_epochs(labels, 50_000, 300), batch_pseudo=496, batch_labeled=16)


_DIGITS = Recipe(
    batch=64,
    batch_pseudo=32,
    batch_labeled=32,
    epochs=100,
    epochs_oracle=20,
    epochs_round=12,
    rate=0.1,
    rate_round=0.1,
    ema=0.95,
)

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "digits",
            "scikit-learn's handwritten digits, 8×8 gray, 100 labels, embedded: trains on a CPU in seconds",
            Config(DataOptions("digits", labels=100, validation=200, augment="shift"), _DIGITS, net="resnet8-12"),
            paper={},
        ),
        _cifar10(
            "cifar10-4k",
            4000,
            Recipe(epochs=1060),
            {"baseline": 86.08, "cl": 94.02, "dmt": 94.21, "oracle": 96.35},
        ),
        _cifar10(
            "cifar10-1k",
            1000,
            Recipe(epochs=2120, batch_pseudo=496, batch_labeled=16),
            {"baseline": 75.14, "cl": 90.61, "dmt": 91.51, "oracle": 96.35},
        ),
        _cifar10("cifar10-250", 250, _few(250), {}),
        _cifar10("cifar10-40", 40, _few(40), {}),
    )
}
