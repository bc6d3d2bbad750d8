"""Cross-validation of plans on the labels: train without one part of the labels, then predict that part."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dmt.config import Config
from dmt.core import streams
from dmt.core.evidence import Evidence, EvidenceCollector
from dmt.core.execution import Execution
from dmt.data import sets
from dmt.data.sets import LabeledSet
from dmt.errors import DivergenceError
from dmt.methods import catalogue
from dmt.methods.plan import Plan
from dmt.models.mean_of_nets import MeanOfNets
from dmt.runs.in_memory import InMemory, Nets
from dmt.runs.starting import Starts
from dmt.tasks.base import Task
from dmt.training import inference

FEWEST = 20
"""Minimum number of labels for cross-validation to be informative."""


def split(labeled: LabeledSet[Any], count: int, seed: int, purpose: str = "folds") -> list[Tensor]:
    """Partition the labels into ``count`` folds, stratified by class.

    Args:
        purpose: name of the random stream, so that folds for different purposes are drawn independently.

    Returns:
        Sorted positions of the labeled images in each fold.
    """
    kinds = sets.kinds(labeled.labels)
    order = streams.stream(seed, purpose).permutation(len(labeled))
    order = order[np.argsort(kinds[order], kind="stable")]  # class by class, each in random order
    return [torch.from_numpy(np.sort(order[first::count])) for first in range(count)]


def most(labeled: LabeledSet[Any], wanted: int) -> int:
    """Return the largest number of folds, up to ``wanted``, with every class in each fold.

    With fewer than two, cross-validation is impossible.
    """
    _, counts = np.unique(sets.kinds(labeled.labels), return_counts=True)
    return min(wanted, int(counts.min(initial=wanted)))


@dataclass(frozen=True)
class Folds:
    """Folds of a task's labels, and what is needed to train without each.

    Attributes:
        parts: positions of the labeled images in each fold.
        tell: is called after every step; it may raise to stop the cross-validation.
    """

    task: Task
    starts: Starts
    execution: Execution
    parts: Sequence[Tensor]
    tell: Callable[[], None] = lambda: None
    built: dict[str, nn.Module] = field(default_factory=dict)  # cache of nets with frozen encoders, by name

    def rounds(self, config: Config, method: str, lines: str = "AB", longest: int | None = None) -> list[Evidence]:
        """Train a method without each fold and predict that fold with the mean of all nets, after every round.

        Args:
            lines: the lines to train; plans with rounds need all of them.
            longest: maximum number of steps per stage, with its schedule scaled to fit; None for no limit.

        Returns:
            Evidence on all held-out images, for each round.
        """
        plan = catalogue.plan(method, config.recipe)
        numbers = sorted({stage.round for stage in plan.stages})
        classes, pixels = len(self.task.classes), self.task.pixels
        found = {number: EvidenceCollector(len(self.task.labeled), classes, pixels) for number in numbers}
        for place, part in enumerate(self.parts):
            for number, nets in self._trained(config, plan, part, lines, longest, place):
                self._ask(nets, part, found[number])
        return [found[number].evidence() for number in numbers]

    def _trained(
        self, config: Config, plan: Plan, without: Tensor, lines: str, longest: int | None, seed: int
    ) -> Iterator[tuple[int, Nets]]:
        """Train on all labels but those at ``without``; yield the number of each round and the nets after it."""
        rest = torch.ones(len(self.task.labeled), dtype=torch.bool)
        rest[without] = False
        labeled = self.task.labeled.take(rest.nonzero().squeeze(1))
        trains = InMemory(self.task, self.starts, self.execution, config.net_of, self.tell, self.built)
        current: dict[str, nn.Module] = {}
        stages = [stage for stage in plan.stages if set(stage.lines) <= set(lines)]
        for place, found in enumerate(trains.train(stages, labeled, lambda stage: seed, longest)):
            current |= found.nets
            if place + 1 == len(stages) or stages[place + 1].round != found.stage.round:
                yield found.stage.round, dict(current)

    def _ask(self, nets: Nets, part: Tensor, found: EvidenceCollector) -> None:
        net = MeanOfNets(nets) if len(nets) > 1 else next(iter(nets.values()))
        images, device = self.task.labeled.take(part), self.execution.device
        for view, output in inference.logits(net, self.task, images, device):
            assert view.truth is not None
            found.add(part[view.positions], output, view.truth)


def tried(folds: Folds, config: Config, method: str, **how: Any) -> list[Evidence] | None:
    """Return `Folds.rounds`, or None if training diverges."""
    try:
        return folds.rounds(config, method, **how)
    except DivergenceError:
        return None
