"""Presets: the rows of Tab. 1 of the paper with fixed numbers of epochs, and our own, marked as ours."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dmt.config import Config
from dmt.data.folders.photo_options import PhotoMaskOptions, PhotoOptions
from dmt.data.images.options import DataOptions
from dmt.data.pixels.segment_options import SegmentOptions
from dmt.errors import unknown
from dmt.methods import published_images, published_pixels
from dmt.methods.groups import Groups, OnlineOptions
from dmt.methods.online import MeanTeacherSegOptions
from dmt.methods.recipe import Recipe

MARK = "*"
"""Mark of published scores that were obtained with another net, start, split or schedule."""


@dataclass(frozen=True)
class Preset:
    """A named configuration.

    Attributes:
        name: the name that users give.
        summary: the line that `dmt list` shows.
        config: data, recipe and nets.
        paper: test scores that the paper published for this preset, by method; empty for our own presets.
        elsewhere: scores published for as many labels with another net, start, split or schedule, by method.
        start: initialization of fresh nets; None if the user must give published parameters.
    """

    name: str
    summary: str
    config: Config
    paper: dict[str, float]
    start: str | None = "random"
    elsewhere: Mapping[str, float] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        return "paper" if self.paper else "ours"

    def published(self, method: str) -> str | None:
        """Return a method's published score as text, marked if the training differed; None if there is none."""
        if method in self.paper:
            return f"{self.paper[method]:.2f}"
        return f"{self.elsewhere[method]:.2f}{MARK}" if method in self.elsewhere else None


OWN = ("photos", "photo-masks")
"""Names of the presets for a user's own folder of images."""


def baseline_epochs(labels: int, images: int, oracle: int) -> int:
    """Return the Baseline's epochs by the paper's rule √(1/labeled ratio)·N, for data without a fixed number.

    Args:
        labels: number of labeled images.
        images: number of all training images.
        oracle: N, the epochs of the Oracle.
    """
    return math.floor(math.sqrt(images / labels) * oracle)


def get(name: str) -> Preset:
    if name not in PRESETS:
        raise unknown("data set", name, PRESETS, "dmt list data")
    return PRESETS[name]


def _cifar10(name: str, labels: int, recipe: Recipe, paper: dict[str, float]) -> Preset:
    data = DataOptions(
        "cifar10",
        labels=labels,
        validation=200,
        augment="paper",
        # DMT pads with gray, as its authors do; online methods see the views that they were published with
        augment_weak="reflect-flip",
        augment_strong="reflect-fixmatch",
    )
    summary = _cifar10_summary(labels, "row of the paper" if paper else "ours, not in the paper")
    groups = (
        published_images.CIFAR10.replace(*published_images.FEW_LABELS) if labels <= 40 else published_images.CIFAR10
    )
    published = replace(recipe, groups=groups)
    elsewhere = published_images.SCORES.get(name, {})
    return Preset(name, summary, Config(data, published, net="wrn-28-2"), paper, elsewhere=elsewhere)


def _cifar10_ours(name: str, row: Preset, recipe: Recipe, note: str) -> Preset:
    """Build our preset for the same labels as a row of the paper; the row's scores are listed with a mark."""
    data = row.config.data
    assert isinstance(data, DataOptions)
    # measured with gray padding in all views
    seen = replace(data, augment="sane-2", augment_weak=None, augment_strong=None)
    config = replace(row.config, data=seen, recipe=replace(recipe, groups=row.config.recipe.groups))
    return Preset(
        name, _cifar10_summary(data.labels, f"ours, {note}"), config, {}, elsewhere={**row.elsewhere, **row.paper}
    )


def _cifar10_summary(labels: int, origin: str) -> str:
    return f"CIFAR-10, 32×32 color, {labels:,} labels ({origin}); needs --data"


def _few(labels: int) -> Recipe:
    """Return our recipe for few labels: batches as in the 1k row, Baseline epochs by the paper's rule."""
    return Recipe(epochs=baseline_epochs(labels, 50_000, 300), batch_pseudo=496, batch_labeled=16)


_CIFAR10_4K = _cifar10(
    "cifar10-4k", 4000, Recipe(epochs=1060), {"baseline": 86.08, "cl": 94.02, "dmt": 94.21, "oracle": 96.35}
)
_CIFAR10_1K = _cifar10(
    "cifar10-1k",
    1000,
    Recipe(epochs=2120, batch_pseudo=496, batch_labeled=16),
    {"baseline": 75.14, "cl": 90.61, "dmt": 91.51, "oracle": 96.35},
)

_FAST = Recipe(
    epochs=1060,
    online_stage="fixmatch",
    epochs_online_stage=116,
    fractions=(1.0, 1.0),
    epochs_round=(116, 280),
    rate_round=0.2,
    mixup_round=None,
    start_round="teacher",
    strong_pseudo=True,
    weight_view="weak",
    weight_every=4,
    labeler="mean",
    labeling_views=("flip",),
)
"""Ours: FixMatch continues the Baseline for 11,948 steps and labels for a round of 11,948 steps, whose net labels for
one of 28,840. Students learn from strong views of pseudo-labeled images and weight the labels by their predictions on
weak views; labels are the mean of four predictions (benchmarks/results/cifar_screening.md)."""

_BEST = replace(
    _FAST, fractions=(1.0, 1.0, 1.0), epochs_round=(116, 280, 480), start_round=("teacher", "teacher", "fresh")
)
"""Ours: as `_FAST`, with a third round that trains a fresh net for 49,440 steps."""

_BEST_1K = replace(
    _FAST, epochs=2120, batch_pseudo=496, batch_labeled=16, epochs_online_stage=184, epochs_round=(152, 303)
)
"""Ours: first nets are correct on only 75 % of the images, so FixMatch takes longer: 20,056 steps, then rounds of
15,048 and 29,997 steps."""

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

_PIXELS = Recipe(
    batch=8,
    batch_pseudo=7,
    batch_labeled=1,
    epochs_oracle=30,
    epochs_round=4,
    rate=2e-3,
    rate_round=1e-3,
    rate_ramp="poly",
    mixup=None,
    gamma=5.0,
    gamma_ramp=False,
    per_class=True,
    shape="pair",
    ema=None,
    groups=published_pixels.VOC,
)
"""Settings shared by the paper's rows for segmentation, with the values for PASCAL VOC."""

_CITY = replace(
    _PIXELS,
    rate=4e-3,
    rate_round=4e-3,
    gamma=3.0,
    epochs_oracle=60,
    groups=published_pixels.VOC.replace(*published_pixels.CITYSCAPES),
)

_SCENES = replace(
    _PIXELS,
    batch=16,
    batch_pseudo=12,
    batch_labeled=4,
    epochs=100,
    epochs_oracle=20,
    epochs_round=3,
    rate=0.05,
    rate_round=0.05,
    gamma=2.0,
    gamma_ramp=True,
    groups=Groups.of(OnlineOptions(epochs=10), MeanTeacherSegOptions(rate=0.01)),
)
"""Ours. A student that starts from random parameters is unsure for a long time, so γ is ramped up: early in a round,
the student follows its teacher. MT-Seg minimizes squared differences of logits, and diverges at the learning rate of
the other methods."""


def _voc(labels: str, recipe: Recipe, paper: dict[str, float]) -> Preset:
    data = SegmentOptions("voc", labels, validation=100, crop=(321, 321))
    summary = f"PASCAL VOC 2012 with SBD's masks, {data.labeled:,} labels (row of the paper); needs --data and --start"
    config, elsewhere = Config(data, recipe, net="deeplab2:resnet101"), published_pixels.SCORES.get(_named(data), {})
    return Preset(_named(data), summary, config, paper, start=None, elsewhere=elsewhere)


def _named(data: SegmentOptions) -> str:
    """Return a preset's name, from data set and published list; in "train", VOC's images are labeled, SBD's are not."""
    return f"{data.dataset}-{'sbd' if data.labels == 'train' else data.labels.replace('/', 'of')}"


def _cityscapes(labels: str, recipe: Recipe, paper: dict[str, float]) -> Preset:
    data = SegmentOptions("cityscapes", labels, validation=100, crop=(256, 512))
    summary = f"Cityscapes at half size, {data.labeled} labels (row of the paper); needs --data and --start"
    config, elsewhere = Config(data, recipe, net="deeplab2:resnet101"), published_pixels.SCORES.get(_named(data), {})
    return Preset(_named(data), summary, config, paper, start=None, elsewhere=elsewhere)


def _voc_small(labels: str, epochs: int) -> Preset:
    """Build our preset that takes minutes on one GPU instead of hours, with options chosen by validation at 1/50.

    No round keeps all pseudo labels: a third of the last fifth of the pixels is wrong, and scores fall.
    """
    data = SegmentOptions("voc-small", labels, validation=100, crop=(256, 256))
    recipe = replace(
        _PIXELS, batch=16, batch_pseudo=14, batch_labeled=2, epochs=epochs, epochs_oracle=8,
        rate_round=2e-3, gamma=2.0, fractions=(0.2, 0.4, 0.6, 0.8), strong_pseudo=True,
    )  # fmt: skip
    summary = f"PASCAL VOC 2012 at 256 pixels, {data.labeled:,} labels (ours, in minutes); needs --data and --start"
    config = Config(data, recipe, net="deeplab2:resnet101", output_stride=16)
    return Preset(_named(data), summary, config, {}, start=None)


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "digits",
            "scikit-learn's handwritten digits, 8×8 gray, 100 labels, embedded: trains on a CPU in seconds",
            Config(DataOptions("digits", labels=100, validation=200, augment="shift"), _DIGITS, net="resnet8-12"),
            paper={},
        ),
        Preset(
            "scenes",
            "scenes of handwritten digits, 64×64 color, 40 labeled masks, embedded: trains on a CPU in minutes",
            Config(
                SegmentOptions("scenes", "40", validation=60, crop=(64, 64), scale=(0.75, 1.25), flip=False),
                replace(_SCENES, epochs=200, epochs_round=6, rate_round=0.02),
                net="fcn-16",
            ),
            paper={},
        ),
        Preset(
            "photos",
            "a folder of your images: dmt fit FOLDER (dmt check FOLDER first)",
            Config(PhotoOptions(), Recipe(), net="resnet8-16"),
            paper={},
        ),
        Preset(
            "photo-masks",
            "the same with masks",
            Config(PhotoMaskOptions(), _SCENES, net="fcn-16"),
            paper={},
        ),
        _CIFAR10_4K,
        _CIFAR10_1K,
        _cifar10_ours("cifar10-4k-fast", _CIFAR10_4K, _FAST, "FixMatch then DMT, 10 minutes of one H200"),
        _cifar10_ours("cifar10-4k-best", _CIFAR10_4K, _BEST, "FixMatch then DMT, 15 minutes of one H200"),
        _cifar10_ours("cifar10-1k-best", _CIFAR10_1K, _BEST_1K, "FixMatch then DMT, 10 minutes of one H200"),
        _cifar10("cifar10-250", 250, _few(250), {}),
        _cifar10("cifar10-40", 40, _few(40), {}),
        _voc("1/8", replace(_PIXELS, epochs=85, epochs_round=5), {"baseline": 67.37, "dmt": 72.70, "oracle": 74.75}),
        _voc("1/20", replace(_PIXELS, epochs=134), {"baseline": 62.29, "dmt": 69.92, "oracle": 74.75}),
        _voc("1/50", replace(_PIXELS, epochs=212, share=0.8), {"baseline": 55.62, "dmt": 67.15, "oracle": 74.75}),
        _voc("1/106", replace(_PIXELS, epochs=300, share=0.8), {"baseline": 46.66, "dmt": 63.04, "oracle": 74.75}),
        _voc("train", replace(_PIXELS, epochs=85, epochs_round=5), {"baseline": 72.10, "dmt": 74.85, "oracle": 74.75}),
        _cityscapes(
            "1/8",
            replace(_CITY, epochs=170, epochs_round=10, batch_pseudo=6, batch_labeled=2),
            {"baseline": 59.65, "dmt": 63.03, "oracle": 68.16},
        ),
        _cityscapes(
            "1/30",
            replace(_CITY, epochs=330, epochs_round=8, share=0.8),
            {"baseline": 49.54, "dmt": 54.80, "oracle": 68.16},
        ),
        _voc_small("1/8", 48),
        _voc_small("1/20", 90),
        _voc_small("1/50", 200),
        _voc_small("1/106", 400),
        _voc_small("train", 48),  # as many epochs as 1/8, as in the paper
    )
}
