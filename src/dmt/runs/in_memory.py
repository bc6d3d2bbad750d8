"""A plan trained in memory, without a run's folder: for folds of labels, and for arrays.

Nothing is saved, scored or audited, and there are no slow copies but those that an objective asks.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import nn

from dmt.core import streams
from dmt.core.execution import Execution
from dmt.data.sets import LabeledSet, PseudoLabels
from dmt.errors import ConfigError
from dmt.methods.plan import Stage
from dmt.models import build, names
from dmt.models.frozen import Frozen
from dmt.pseudo import labeler
from dmt.pseudo.labeler import Teacher, Wish
from dmt.runs.starting import Starts
from dmt.tasks.base import Task
from dmt.tasks.features import FeatureTask
from dmt.training import beside
from dmt.training.trainer import Trainer, Training

Nets = Mapping[str, nn.Module]
"""By line."""


@dataclass(frozen=True)
class Trained:
    """A finished stage.

    Attributes:
        nets: of its lines.
        pseudo: the labels it learned from besides truth, if any.
    """

    stage: Stage
    nets: Nets
    pseudo: PseudoLabels[Any] | None


@dataclass(frozen=True)
class InMemory:
    """Trains stages of a plan one after the other.

    Attributes:
        net_of: the name of a line's net.
        tell: is called after every step; it may raise to end everything.
    """

    task: Task
    starts: Starts
    execution: Execution
    net_of: Callable[[str], str]
    tell: Callable[[], None] = lambda: None
    built: dict[str, nn.Module] = field(default_factory=dict)  # nets with frozen encoders, by name

    def train(
        self,
        stages: Sequence[Stage],
        labeled: LabeledSet[Any],
        seed_of: Callable[[Stage], int],
        longest: int | None = None,
    ) -> Iterator[Trained]:
        """Each stage when it is finished.

        Args:
            stages: in the order of their plan, none without its parents.
            labeled: the labels that teach.
            seed_of: the seed of everything random in a stage.
            longest: steps after which a stage ends, its schedule in proportion; None for as planned.
        """
        done: dict[str, Nets] = {}
        for stage in stages:
            found = self._train(stage, labeled, done, seed_of(stage), longest)
            done[stage.name] = found.nets
            yield found

    def _train(
        self, stage: Stage, labeled: LabeledSet[Any], done: Mapping[str, Nets], seed: int, longest: int | None
    ) -> Trained:
        if not stage.objective.slow:
            stage = replace(stage, schedule=replace(stage.schedule, ema=None))
        nets: Nets
        if stage.start is not None:
            nets = {line: _copied(done[stage.start][line]) for line in stage.lines}
        else:
            nets = {line: self._fresh(line, seed) for line in stage.lines}
        pseudo, sizes = None, replace(self.task.sizes(0), labeled=len(labeled))
        steps = stage.steps(sizes)
        if stage.labels is not None:
            pseudo = self._labels(done[stage.labels.by][stage.labels.line], stage, seed)
            steps = stage.steps_over(int(pseudo.selected.sum()))
        steps = steps if longest is None else min(steps, longest)
        batches = self.task.batches(labeled, pseudo, stage.batch_plan(seed), self.execution)
        memory = stage.objective.memory(self.task.sizes(0), len(self.task.classes))
        line = stage.lines[0]
        spec = self.task.net_spec(self.net_of(line))
        beside.add_class_filters(stage.objective, nets, spec, seed)
        parts = beside.parts(stage.objective, nets[line], spec, seed)
        clean = partial(self.task.clean_images, seed)
        training = Training(stage.objective, stage.schedule, steps, seed, parts, memory, clean)
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
        return Trained(stage, nets, pseudo)

    def _fresh(self, line: str, seed: int) -> nn.Module:
        spec = self.task.net_spec(self.net_of(line))
        number = streams.seed_of(seed, "net", line)
        if not (isinstance(self.task, FeatureTask) and names.is_frozen(spec.name)):
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

    def _labels(self, teacher: nn.Module, stage: Stage, seed: int) -> PseudoLabels[Any]:
        wanted = stage.labels
        assert wanted is not None
        by = Teacher((teacher,), self.task, self.execution.device, wanted.seen, whole=wanted.whole)
        wish = Wish(wanted.fraction, wanted.per_class, wanted.noise, seed)
        if self.task.pixels:
            return labeler.pixels_in_memory(by, wish)
        wish = replace(wish, soft=wanted.soft, renormalized=wanted.renormalized, graph=wanted.graph)
        store = labeler.label(by, wish)
        if not store.kept:
            raise ConfigError(f"{stage.name} keeps no pseudo label at all; set fractions higher")
        return store.open(self.task.unlabeled)


def _copied(net: nn.Module) -> nn.Module:
    """A net of its own; a frozen encoder is shared."""
    body = getattr(net, "body", None)
    shared = {id(body.encoder): body.encoder} if isinstance(body, Frozen) else {}
    return copy.deepcopy(net, shared)
