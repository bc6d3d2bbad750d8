"""Shapes of plans: labels alone, a chain in which each net labels for the next, a pair that label for each other."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from dmt.core import labeling_views
from dmt.core.graph import Graph
from dmt.core.schedule import Descent, Schedule
from dmt.methods import online_stages
from dmt.methods.groups import CBSTOptions, GraphOptions, OnlineOptions
from dmt.methods.plan import Labels, Line, Plan, Share, Stage
from dmt.methods.recipe import Recipe, Round
from dmt.objectives.itself import Online
from dmt.objectives.stored import Stored, StoredAskedWeak, StoredStrong, StoredStrongAskedWeak
from dmt.objectives.truth import Supervised

_STORED: dict[tuple[bool, bool], type[Stored]] = {
    (False, False): Stored,
    (True, False): StoredStrong,
    (False, True): StoredAskedWeak,
    (True, True): StoredStrongAskedWeak,
}
"""Objectives by whether pseudo-labeled images are in strong views, and whether weights come from weak views."""


def alone(recipe: Recipe, truth: Literal["labeled", "everything"] = "labeled") -> Plan:
    """Return the plan of training on labels only: one stage, or one for each net of a pair."""
    lines: tuple[Line, ...] = ("A", "B") if recipe.shape == "pair" and truth == "labeled" else ("A",)
    stages = tuple(_supervised(line, recipe, truth=truth) for line in lines)
    return Plan(stages, tuple(stage.name for stage in stages))


def online(recipe: Recipe, own: OnlineOptions) -> Plan:
    """Return the plan of Online ST: a Baseline, then a stage in which its net also learns its own current labels."""
    first = _supervised("A", recipe)
    sizes = {"labeled": recipe.batch_labeled, "unlabeled": recipe.batch_pseudo}
    schedule = _schedule(recipe, own.epochs, recipe.rounds()[0].rate, **sizes)
    second = Stage("A1", ("A",), 1, Online(own.threshold), schedule, start=first.name)
    return Plan((first, second), (second.name,))


def chain(recipe: Recipe, weighting: str, *, restart: bool, per_class: bool = False) -> Plan:
    """Return a chain (Algorithm 1): each net labels for the next, which is fresh or continues from it.

    If the recipe has an online stage, it comes between the Baseline and the first round.

    Args:
        recipe: the options.
        weighting: a key of `core.weighting.WEIGHTINGS`.
        restart: start the net of each round as the recipe says, by default fresh; otherwise every round continues the
            net before.
        per_class: rank pseudo labels within each class, whatever the recipe says.
    """
    recipe = replace(recipe, per_class=True) if per_class else recipe
    first = _supervised("A", recipe)
    stages = [first, *online_stages.after(first, recipe)]
    for each in recipe.rounds():
        start = None if restart and each.start == "fresh" else stages[-1].name
        stages.append(_round("A", each, recipe, weighting, _labels(recipe, stages, "A", each), start))
    return Plan(tuple(stages), (stages[-1].name,))


def class_balanced(recipe: Recipe, own: CBSTOptions) -> Plan:
    """Return the plan of CBST: one net, fine-tuned round by round on equally weighted labels selected per class."""
    plan = chain(recipe, "uniform", restart=False, per_class=True)
    return _with_labels(plan, renormalized=True) if own.renormalized else plan


def graph_labels(recipe: Recipe, own: GraphOptions) -> Plan:
    """Return the plan of CL with labels that are propagated over a graph of the teacher's features."""
    return _with_labels(chain(recipe, "uniform", restart=True), graph=Graph(own.neighbors, own.reach))


def _with_labels(plan: Plan, **changes: Any) -> Plan:
    """Return the plan with changed fields in the `Labels` of all its stages."""
    stages = (
        stage if stage.labels is None else replace(stage, labels=replace(stage.labels, **changes))
        for stage in plan.stages
    )
    return replace(plan, stages=tuple(stages))


def pair(recipe: Recipe, weighting: str) -> Plan:
    """Return a pair (Algorithm 2): two lines, each fine-tuned on labels by the *previous* net of the other.

    If the recipe has an online stage, it comes before the first round of each line.
    """
    share_a = None if recipe.share is None else Share(recipe.share, "head")
    share_b = None if recipe.share is None else Share(recipe.share, "tail")
    stages = [_supervised("A", recipe, share=share_a), _supervised("B", recipe, share=share_b)]
    stages += [after for first in tuple(stages) for after in online_stages.after(first, recipe)]
    for each in recipe.rounds():
        # both learn from the nets of round i − 1, never from the peer's net of this round
        a, b = (_labels(recipe, stages, "A", each), _labels(recipe, stages, "B", each))
        stages += [_round("A", each, recipe, weighting, b, a.by), _round("B", each, recipe, weighting, a, b.by)]
    return Plan(tuple(stages), (stages[-2].name, stages[-1].name))


def mutual(weighting: str) -> Callable[[Recipe], Plan]:
    """Return a builder of DMT's plan with this weighting: a pair or a chain, as the recipe says."""

    def build(recipe: Recipe) -> Plan:
        return pair(recipe, weighting) if recipe.shape == "pair" else chain(recipe, weighting, restart=True)

    return build


def _supervised(
    line: Line, recipe: Recipe, truth: Literal["labeled", "everything"] = "labeled", share: Share | None = None
) -> Stage:
    epochs = recipe.epochs_oracle if truth == "everything" else recipe.epochs
    schedule = _afresh(recipe, _schedule(recipe, epochs, recipe.rate, labeled=recipe.batch))
    return Stage(
        f"{line}0", (line,), 0, Supervised(recipe.mixup, recipe.class_weights), schedule, truth=truth, share=share
    )


def _round(line: Line, given: Round, recipe: Recipe, weighting: str, labels: Labels, start: str | None) -> Stage:
    # with uniform weights, γ has no effect, and must not make the identities of equal stages differ
    dynamic = weighting != "uniform"
    asked_weak = dynamic and recipe.weight_view == "weak"
    objective = _STORED[recipe.strong_pseudo, asked_weak](
        weighting,
        gamma=given.gamma if dynamic else 1.0,
        gamma2=given.gamma2 if dynamic else None,
        ramp=recipe.gamma_ramp if dynamic else False,
        mixup=given.mixup,
        double_statistics=recipe.double_statistics if dynamic else False,
        # without a weight pass there is nothing to save
        weight_every=recipe.weight_every if dynamic and (asked_weak or given.mixup is not None) else 1,
        class_weights=recipe.class_weights,
        soft=recipe.soft_labels,
    )
    sizes = {"labeled": recipe.batch_labeled, "unlabeled": recipe.batch_pseudo}
    schedule = _schedule(recipe, given.epochs, given.rate, **sizes)
    if recipe.encoder_round != "same":
        schedule = replace(schedule, descent=replace(schedule.descent, encoder=recipe.encoder_round))
    schedule = _afresh(recipe, schedule) if start is None else schedule
    return Stage(f"{line}{given.number}", (line,), given.number, objective, schedule, start=start, labels=labels)


def _schedule(recipe: Recipe, epochs: int, rate: float, labeled: int, unlabeled: int = 0) -> Schedule:
    descent = Descent(
        rate, recipe.optimizer, recipe.momentum, recipe.weight_decay, decay=recipe.decay, encoder=recipe.encoder
    )
    return Schedule(epochs, descent, recipe.rate_ramp, labeled, unlabeled, recipe.ema, recipe.batchnorm)


def _afresh(recipe: Recipe, schedule: Schedule) -> Schedule:
    """Return the schedule for fresh nets, whose new heads may be trained first."""
    return replace(schedule, descent=replace(schedule.descent, head_first=recipe.head_first))


def _labels(recipe: Recipe, finished: Sequence[Stage], line: Line, given: Round) -> Labels:
    """Return the labels of a round: by the latest net of a line and, with ``teachers``, by earlier ones, too."""
    latest, *before = (stage for stage in reversed(finished) if line in stage.lines)
    also = tuple(stage.name for stage in before if stage.round > 0)[: given.teachers - 1]
    views = labeling_views.sorted_names(recipe.labeling_views)
    noise, soft = recipe.pseudo_noise, recipe.soft_labels
    return Labels(latest.name, line, given.fraction, recipe.per_class, recipe.labeler, noise, views, soft, also=also)
