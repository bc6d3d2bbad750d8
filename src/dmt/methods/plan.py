"""Plans: a method's stages in order. A stage is one training, with its objective, schedule and pseudo labels."""

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
    """Which pseudo labels a stage learns from: the teacher, how it labels, and which labels are kept.

    Attributes:
        by: the teacher: name of the stage whose finished net labels all unlabeled images.
        line: line of the teacher's net.
        fraction: α, share of labels to keep, the most confident first.
        per_class: rank labels within each predicted class instead of over all.
        copy: which net of the teacher labels: the raw one, its EMA copy, or the mean of both in probabilities.
        noise: share of kept labels replaced by a wrong class, for stress tests only.
        views: names of additional `labeling_views`, over which probabilities are averaged.
        soft: also store the probabilities of all classes (images only).
        renormalized: rank labels by probabilities over each class's threshold, as CBST does (images only).
        graph: propagate the given labels over a graph of the teacher's features instead of taking its predictions
            (images only); None for predictions.
        also: names of earlier stages whose nets of the same line label too; probabilities are averaged.
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
    also: tuple[str, ...] = neutral(())

    @property
    def whole(self) -> bool:
        """Whether the teacher's probabilities of all classes are needed."""
        return self.soft or self.renormalized

    @property
    def teachers(self) -> tuple[str, ...]:
        """Names of all stages whose nets label, the latest first."""
        return (self.by, *self.also)

    @property
    def copies(self) -> tuple[Copy, ...]:
        """The nets of each teacher that predict."""
        return ("raw", "ema") if self.copy == "mean" else (self.copy,)

    @property
    def seen(self) -> tuple[LabelingView, ...]:
        """All views of an image that each of these nets predicts, the original image first."""
        return labeling_views.every(self.views)

    @property
    def passes(self) -> float:
        """Forward passes that the label of an image takes; passes over a resized image count by its pixels."""
        nets = len(self.teachers) * len(self.copies)
        return nets * (sum(view.pixels for view in self.seen) + (self.graph is not None))


@dataclass(frozen=True)
class Share:
    """Part of the labels for difference-maximized sampling, Eq. 11: the head or tail of the shuffled labeled list."""

    portion: float
    side: Literal["head", "tail"]

    def slice(self, count: int) -> slice:
        """Return the positions in the shuffled list; either side leaves out ⌈(1 − portion)·n⌉ of n."""
        kept = count - math.ceil(round((1.0 - self.portion) * count, 9))
        return slice(0, kept) if self.side == "head" else slice(count - kept, count)


@dataclass(frozen=True)
class Stage:
    """One training, which refers to its parents by name.

    Attributes:
        name: unique name within the plan, made of lines and round, e.g. "A3".
        lines: lines of the nets it trains, as many as the objective trains together.
        round: number of the round; 0 for a Baseline and for pretraining.
        objective: loss of a step.
        schedule: training length, batches and optimizer.
        start: name of the stage whose nets of the same lines it continues to train; None for fresh nets.
        labels: the pseudo labels it learns from; None for none.
        truth: which given labels it sees; "everything" is for the Oracle only.
        share: the part of the labeled images it sees; None for all.
        before: whether it is pretraining for other stages, without classes: it is not scored and not among results.
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
        """Return how batches are composed; ``seed`` is the seed of all randomness in the stage."""
        objective, schedule = self.objective, self.schedule
        unlabeled = schedule.unlabeled if objective.views else 0
        return BatchPlan(schedule.labeled, unlabeled, objective.views, objective.labeled_view, seed)

    def cost(self) -> Cost:
        """Return the cost of a step, which does not depend on the size of the images."""
        plan = self.batch_plan(seed=0)
        return self.objective.cost(BatchShape(plan.labeled, plan.unlabeled, height=1, width=1))

    def steps_per_epoch(self, sizes: Sizes) -> int:
        """Return ⌈n/B⌉: a short last batch is filled from the next permutation, so that all batches have one shape."""
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
        """Return the planned number of steps."""
        return self.schedule.epochs * self.steps_per_epoch(sizes)

    def steps_over(self, kept: int) -> int:
        """Return the number of steps for ``kept`` pseudo-labeled images: with ``per_class``, more than planned."""
        return self.schedule.epochs * self._pass(kept)

    @property
    def parents(self) -> tuple[str, ...]:
        """Stages that must be finished before this one."""
        teachers = () if self.labels is None else self.labels.teachers
        return tuple(dict.fromkeys(name for name in (self.start, *teachers) if name is not None))


@dataclass(frozen=True)
class Plan:
    """Stages in an order in which they can be trained.

    Attributes:
        stages: all stages; parents come before the stages that need them.
        results: names of the last stage of each line.
    """

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
