"""Catalogue entry of a method: the properties that other packages query instead of comparing its name."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dmt.methods import pretraining
from dmt.methods.groups import MethodOptions
from dmt.methods.plan import Plan
from dmt.methods.recipe import Recipe

Family = Literal["labels only", "stored labels", "online"]
"""Source of labels for unlabeled images: none, pseudo labels stored by an earlier stage, or the training step."""

Labeled = Literal["images", "pixels"]
"""The sites that get labels."""

COLORS = 8
"""Number of colors on a report's page; the first, gray, is for the Baseline."""


@dataclass(frozen=True)
class Method:
    """One entry of the catalogue.

    Attributes:
        name: name in commands.
        title: name in reports.
        summary: one line on what it does.
        family: source of labels for unlabeled images.
        build: makes its plan from a recipe and, if it has options of its own, from those.
        reference: authors, venue and year.
        serves: the sites that it can label.
        baseline: whether other methods are compared with it.
        ceiling: whether it sees the true labels of all training images. Then no validation images are left to score
            it, it has no pseudo labels to audit, and it is not available for a user's own images.
        alternative: whether cross-validation on a user's labels may prefer it to the default, for nets without a
            frozen encoder.
        options: class of its own options, such as `FixMatchOptions`; None if it has none.
        tint: its color in reports, 0 to 7; derived from the name if None.
    """

    name: str
    title: str
    summary: str
    family: Family
    build: Callable[..., Plan]
    reference: str | None = None
    serves: tuple[Labeled, ...] = ("images", "pixels")
    baseline: bool = False
    ceiling: bool = False
    alternative: bool = False
    options: type[MethodOptions] | None = None
    tint: int | None = None

    def plan(self, recipe: Recipe) -> Plan:
        """Return its plan under a recipe, including pretraining if the recipe asks for it."""
        plan = self.build(recipe) if self.options is None else self.build(recipe, recipe.groups[self.options])
        return pretraining.begun(plan, recipe)

    @property
    def semi_supervised(self) -> bool:
        """Whether it learns from unlabeled images, and so requires some."""
        return self.family != "labels only"

    @property
    def compared(self) -> bool:
        """Whether its gain is reported, so that it needs a Baseline to compare with."""
        return not (self.baseline or self.ceiling)

    @property
    def color(self) -> int:
        """Number of its color, the same in every report."""
        return self.tint if self.tint is not None else color_of(self.name)


def color_of(name: str) -> int:
    """Derive a color other than gray from a name; unlike with ``hash``, it is the same in every process."""
    return 1 + zlib.crc32(name.encode()) % (COLORS - 1)
