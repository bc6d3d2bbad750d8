"""What is known about a method beside what it trains: the facts that other rooms ask for instead of its name."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dmt.methods import pretraining
from dmt.methods.groups import MethodOptions
from dmt.methods.plan import Plan
from dmt.methods.recipe import Recipe

Family = Literal["labels only", "stored labels", "online"]
"""Where labels of unlabeled images come from: nowhere, a store that a finished net wrote, or the step itself."""

Labeled = Literal["images", "pixels"]
"""What gets a label."""

COLORS = 8
"""Of a report's page; the first, gray, is for what the others are compared with."""


@dataclass(frozen=True)
class Method:
    """One entry of the catalogue.

    Attributes:
        name: as typed by a user.
        title: as shown to people.
        summary: one line on what it does.
        build: its plan under a recipe; it is handed the method's own options too, if there are any.
        reference: who described it, where and when.
        serves: what it can label.
        baseline: whether it is what the others are compared with.
        ceiling: whether it sees every label: no validation image is left to judge it by, it has no pseudo labels to
            audit, and your own images, whose labels nobody knows, cannot have it.
        alternative: whether folds of a user's labels may prefer it to the default, where all of a net can learn.
        options: the class of its own options, ``online.…``.
        tint: its color in reports, 0 to 7; by its name if left out.
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
        """Its stages under a recipe."""
        plan = self.build(recipe) if self.options is None else self.build(recipe, recipe.groups[self.options])
        return pretraining.begun(plan, recipe)

    @property
    def semi_supervised(self) -> bool:
        """Whether it learns from unlabeled images, and so needs some."""
        return self.family != "labels only"

    @property
    def compared(self) -> bool:
        """Whether its gain is asked for, so that it needs a Baseline beside it."""
        return not (self.baseline or self.ceiling)

    @property
    def color(self) -> int:
        """The same in every report."""
        return self.tint if self.tint is not None else color_of(self.name)


def color_of(name: str) -> int:
    """A color for a name that has none of its own, never gray. Unlike ``hash`` it is the same in every process."""
    return 1 + zlib.crc32(name.encode()) % (COLORS - 1)
