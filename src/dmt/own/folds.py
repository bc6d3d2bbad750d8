"""Plans tried on the given labels alone: trained without a part of them, then asked about that part."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dmt.config import Config
from dmt.core import streams
from dmt.core.evidence import Evidence, EvidenceCollector
from dmt.core.execution import Execution
from dmt.data import sets
from dmt.data.sets import LabeledSet, PseudoLabels
from dmt.errors import DivergenceError
from dmt.methods import catalogue
from dmt.methods.plan import Plan, Stage
from dmt.models import build
from dmt.models.frozen import Frozen
from dmt.models.mean_of_nets import MeanOfNets
from dmt.pseudo import labeler
from dmt.pseudo.labeler import Teacher, Wish
from dmt.runs.starting import Starts
from dmt.tasks.base import Task
from dmt.tasks.features import FeatureTask
from dmt.training import inference
from dmt.training.trainer import Trainer, Training

Nets = Mapping[str, nn.Module]
"""By line."""


def split(labeled: LabeledSet[Any], count: int, seed: int, purpose: str = "folds") -> list[Tensor]:
    """So many parts of the labels, disjoint and together all of them; the images of a class are spread evenly.

    Args:
        purpose: folds for another one are drawn otherwise.
    """
    kinds = sets.kinds(labeled.labels)
    order = streams.stream(seed, purpose).permutation(len(labeled))
    order = order[np.argsort(kinds[order], kind="stable")]  # class by class, each in random order
    return [torch.from_numpy(np.sort(order[first::count])) for first in range(count)]


def most(labeled: LabeledSet[Any], wanted: int) -> int:
    """How many folds there can be, so that every class is in each; below two there is nothing to learn from."""
    _, counts = np.unique(sets.kinds(labeled.labels), return_counts=True)
    return min(wanted, int(counts.min(initial=wanted)))


@dataclass(frozen=True)
class Folds:
    """The labels of a task in parts, and what trains on the rest.

    Attributes:
        parts: positions of the labeled images in each part.
        tell: is called after every step; it may raise to end everything.
    """

    task: Task
    starts: Starts
    execution: Execution
    parts: Sequence[Tensor]
    tell: Callable[[], None] = lambda: None
    built: dict[str, nn.Module] = field(default_factory=dict)  # nets with frozen encoders, by name

    def rounds(self, config: Config, method: str, lines: str = "AB", longest: int | None = None) -> list[Evidence]:
        """What a method's nets say of images that they were not taught, all nets of a round together, round by round.

        Args:
            lines: whose nets are trained; of a plan with rounds all of them.
            longest: steps after which a stage ends, its schedule in proportion; None for as planned.
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
        """The nets after each round, trained on all labels but these."""
        rest = torch.ones(len(self.task.labeled), dtype=torch.bool)
        rest[without] = False
        labeled = self.task.labeled.take(rest.nonzero().squeeze(1))
        done: dict[str, Nets] = {}
        current: dict[str, nn.Module] = {}
        stages = [stage for stage in plan.stages if set(stage.lines) <= set(lines)]
        for place, stage in enumerate(stages):
            done[stage.name] = self._train(config, stage, labeled, done, longest, seed)
            current |= done[stage.name]
            if place + 1 == len(stages) or stages[place + 1].round != stage.round:
                yield stage.round, dict(current)

    def _train(
        self, config: Config, stage: Stage, labeled: LabeledSet[Any], done: Mapping[str, Nets],
        longest: int | None, seed: int,
    ) -> Nets:  # fmt: skip
        stage = replace(stage, schedule=replace(stage.schedule, ema=None))
        nets: Nets
        if stage.start is not None:
            nets = {line: _copied(done[stage.start][line]) for line in stage.lines}
        else:
            nets = {line: self._fresh(config, line, seed) for line in stage.lines}
        pseudo, sizes = None, replace(self.task.sizes(0), labeled=len(labeled))
        steps = stage.steps(sizes)
        if stage.labels is not None:
            pseudo = self._labels(done[stage.labels.by][stage.labels.line], stage, seed)
            steps = stage.steps_over(int(pseudo.selected.sum()))
        steps = steps if longest is None else min(steps, longest)
        batches = self.task.batches(labeled, pseudo, stage.batch_plan(seed), self.execution)
        memory = stage.objective.memory(self.task.sizes(0), len(self.task.classes))
        clean = partial(self.task.clean_images, seed)
        training = Training(stage.objective, stage.schedule, steps, seed, memory=memory, clean=clean)
        trainer = Trainer(nets, training, batches, self.execution)
        try:
            with torch.random.fork_rng(devices=[self.execution.device] if self.execution.on_cuda else []):
                while trainer.step < steps:
                    trainer.advance(trainer.draw())
                    self.tell()
            trainer.finish()
            trainer.require_finite({})
        finally:
            trainer.close()
        return nets

    def _fresh(self, config: Config, line: str, seed: int) -> nn.Module:
        spec = self.task.net_spec(config.net_of(line))
        number = streams.seed_of(seed, "net", line)
        if not isinstance(self.task, FeatureTask):
            net = build.build(spec, number)
            self.starts.fill(net, spec, line)
            return net
        if spec.name not in self.built:
            self.built[spec.name] = build.build(spec, number)
        fresh = _copied(self.built[spec.name])  # its encoder has looked already, and stays
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(number)
            for module in fresh.body.head.modules():  # type: ignore[union-attr]
                if isinstance(module, nn.Linear | nn.BatchNorm1d):
                    module.reset_parameters()
        return fresh

    def _labels(self, teacher: nn.Module, stage: Stage, seed: int) -> PseudoLabels[Tensor]:
        wanted = stage.labels
        assert wanted is not None
        assert not self.task.pixels, "labels of pixels are made in files"
        by = Teacher((teacher,), self.task, self.execution.device, wanted.seen)
        store = labeler.label(by, Wish(wanted.fraction, wanted.per_class, wanted.noise, seed))
        return store.open(self.task.unlabeled)

    def _ask(self, nets: Nets, part: Tensor, found: EvidenceCollector) -> None:
        net = MeanOfNets(nets) if len(nets) > 1 else next(iter(nets.values()))
        images, device = self.task.labeled.take(part), self.execution.device
        for view, output in inference.logits(net, self.task, images, device):
            assert view.truth is not None
            found.add(part[view.positions], output, view.truth)


def _copied(net: nn.Module) -> nn.Module:
    """A net of its own; a frozen encoder is shared."""
    body = getattr(net, "body", None)
    shared = {id(body.encoder): body.encoder} if isinstance(body, Frozen) else {}
    return copy.deepcopy(net, shared)


def tried(folds: Folds, config: Config, method: str, **how: Any) -> list[Evidence] | None:
    """As `Folds.rounds`; None for options with which training diverges."""
    try:
        return folds.rounds(config, method, **how)
    except DivergenceError:
        return None
