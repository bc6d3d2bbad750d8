"""A method is a plan plus an objective. A plan is a tuple of stages; a stage is one training."""

import math
from dataclasses import dataclass
from typing import Literal

from dmt.core import labeling_views, selection
from dmt.core.graph import Graph
from dmt.core.labeling_views import LabelingView
from dmt.core.schedule import Schedule
from dmt.errors import ConfigError
from dmt.objectives.base import Cost, Objective
from dmt.options import neutral
from dmt.types import BatchPlan, BatchShape, Sizes

Copy = Literal["raw", "ema"]
Labeler = Literal["raw", "ema", "mean"]
Line = Literal["A", "B"]


@dataclass(frozen=True)
class Labels:
    """Whose pseudo labels a stage learns from, and how many of them.

    Attributes:
        by: the stage whose finished net labels all unlabeled images.
        line: which of its nets.
        fraction: α, the share that is kept, most confident first.
        per_class: rank within each predicted class instead of over all.
        copy: which of the teacher's nets labels: the raw one, its slow copy, or both by the mean of what they say.
        noise: share of kept labels replaced by a wrong class. For stress tests only.
        views: further views of every image, by the names of `labeling_views`, whose probabilities are averaged too.
        soft: store what the teacher gives every class, beside its label (images).
        renormalized: choose labels by probabilities divided by each class's threshold, as CBST does (images).
        graph: spread the given labels over a graph of the teacher's features instead of taking its labels (images).
    """

    by: str
    line: Line
    fraction: float
    per_class: bool = False
    copy: Labeler = "raw"
    noise: float = 0.0
    views: tuple[str, ...] = neutral(())
    soft: bool = neutral(False)
    renormalized: bool = neutral(False)
    graph: Graph | None = neutral(None)

    @property
    def whole(self) -> bool:
        """Whether what the teacher gives every class of an image is needed."""
        return self.soft or self.renormalized

    @property
    def copies(self) -> tuple[Copy, ...]:
        """The nets that are asked."""
        return ("raw", "ema") if self.copy == "mean" else (self.copy,)

    @property
    def seen(self) -> tuple[LabelingView, ...]:
        """All views in which each of them sees an image, the plain one first."""
        return labeling_views.every(self.views)

    @property
    def passes(self) -> float:
        """Forward passes over an image that its label takes, those over a resized one counted by its pixels."""
        return len(self.copies) * sum(view.pixels for view in self.seen) + (self.graph is not None)


@dataclass(frozen=True)
class Share:
    """Difference-maximized sampling, Eq. 11: the head or the tail of the shuffled labeled list."""

    portion: float
    side: Literal["head", "tail"]

    def slice(self, count: int) -> slice:
        """Positions in the shuffled list; both sides drop ⌈(1 − portion)·n⌉."""
        kept = count - math.ceil(round((1.0 - self.portion) * count, 9))
        return slice(0, kept) if self.side == "head" else slice(count - kept, count)


@dataclass(frozen=True)
class Stage:
    """One training, with its parents by name.

    Attributes:
        name: unique within the plan: lines and round, "A3".
        lines: whose nets it trains; several at once if the objective wants that.
        start: the stage whose nets of the same lines this one continues with; None for fresh nets.
        truth: which labels it may see; "everything" only for the Oracle.
        share: the part of the labeled list it sees; None for all.
        before: a start for others, which knows no class yet: it is not scored, and no result shows it.
    """

    name: str
    lines: tuple[Line, ...]
    round: int
    objective: Objective
    schedule: Schedule
    start: str | None = None
    labels: Labels | None = None
    truth: Literal["labeled", "everything"] = "labeled"
    share: Share | None = None
    before: bool = neutral(False)

    def __post_init__(self) -> None:
        if len(self.lines) != self.objective.lines:
            raise ValueError(f"stage {self.name} has lines {self.lines}, its objective {self.objective.lines}")

    def batch_plan(self, seed: int) -> BatchPlan:
        """What the stage wants of its batches; ``seed`` is that of everything random in it."""
        objective, schedule = self.objective, self.schedule
        unlabeled = schedule.unlabeled if objective.views else 0
        return BatchPlan(schedule.labeled, unlabeled, objective.views, objective.labeled_view, seed)

    def cost(self, size: tuple[int, int] = (1, 1)) -> Cost:
        """Images that a step sends through nets. ``size``: height and width, which no cost depends on so far."""
        plan = self.batch_plan(seed=0)
        return self.objective.cost(BatchShape(plan.labeled, plan.unlabeled, *size))

    def steps_per_epoch(self, sizes: Sizes) -> int:
        """⌈n/B⌉: a short last batch is filled from the next permutation, so that every step has one shape."""
        if self.labels is not None:
            kept = sizes.unlabeled if sizes.pixels else selection.quota(self.labels.fraction, sizes.unlabeled)
            if not kept:
                raise ConfigError(
                    f"{self.name} would keep none of {sizes.unlabeled} pseudo labels; "
                    f"a fraction of {self.labels.fraction:g} is too small"
                )
            return self._pass(kept)
        if self.objective.views:
            return self._pass(sizes.unlabeled)
        count = sizes.everything if self.truth == "everything" else sizes.labeled
        if self.share is not None:
            labels, count = count, len(range(*self.share.slice(count).indices(count)))
            if not count:
                raise ConfigError(f"{self.name} would see none of {labels} labels; set share=none")
        return self._pass(count)

    def _pass(self, count: int) -> int:
        size = self.schedule.unlabeled if self.objective.views else self.schedule.labeled
        return -(-count // size)

    def steps(self, sizes: Sizes) -> int:
        """How many steps the stage is planned to take."""
        return self.schedule.epochs * self.steps_per_epoch(sizes)

    def steps_over(self, kept: int) -> int:
        """How many steps it takes over so many pseudo-labeled images; per class there may be more than planned."""
        return self.schedule.epochs * self._pass(kept)

    @property
    def parents(self) -> tuple[str, ...]:
        """Stages that must be finished before this one."""
        teacher = None if self.labels is None else self.labels.by
        return tuple(dict.fromkeys(name for name in (self.start, teacher) if name is not None))


@dataclass(frozen=True)
class Plan:
    """Stages in an order in which they can be trained. ``results`` are those that train a line last."""

    stages: tuple[Stage, ...]
    results: tuple[str, ...]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for stage in self.stages:
            missing = set(stage.parents) - seen
            if missing or stage.name in seen:
                raise ValueError(f"stage {stage.name} is a duplicate or comes before its parents {missing}")
            seen.add(stage.name)

    def __getitem__(self, name: str) -> Stage:
        return next(stage for stage in self.stages if stage.name == name)
