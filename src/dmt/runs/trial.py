"""Checks before a run: whether steps can be compiled here, a net accepts the images, and a start fits the net."""

import itertools
from collections.abc import Callable, Iterable, Mapping

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from dmt.core import batchnorm, dropout
from dmt.core.execution import Execution
from dmt.data.images.batches import kind_of
from dmt.errors import ConfigError
from dmt.methods.plan import Stage
from dmt.models import build, embedding, names, starts
from dmt.models.starts import Start
from dmt.objectives.base import Objective
from dmt.tasks.base import Task
from dmt.types import TRAIN, Batch, BatchPlan


def compiles(execution: Execution) -> None:
    """Refuse an execution that compiles steps if that does not work here."""
    if not (execution.fast and execution.compiles):
        return
    try:
        _compile(execution)
    except Exception as error:  # a missing or broken compiler may raise anything
        reason = (str(error) or type(error).__name__).strip().splitlines()[0]
        raise ConfigError(f"steps cannot be compiled here ({reason}); use --plain") from error


def can_compile(execution: Execution) -> bool:
    """Whether compiling works here, for callers that also work without it."""
    try:
        _compile(execution)
    except Exception:  # a missing or broken compiler may raise anything
        return False
    return True


def _compile(execution: Execution) -> None:
    torch.compile(lambda x: x * 2 + 1, dynamic=False)(torch.ones(2, device=execution.device))


def fits(task: Task, name: str) -> None:
    """Run augmentation and net on two images, so that a net that does not fit is refused before anything is written."""
    batch = _batch(task, TRAIN)
    images, expected = batch.images, (2, len(task.classes), *batch.truth.shape[1:])
    net = build.build(task.net_spec(name), seed=0).eval()
    _require_parameters(name, net)
    try:
        with torch.no_grad():
            output = net(images)
    except (RuntimeError, AssertionError, ValueError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ConfigError(
            f"net '{name}' does not take images of {tuple(images.shape[1:])}: {reason}{_size_hint(name)}"
        ) from error
    if not isinstance(output, torch.Tensor):
        kind = type(output).__name__
        example = 'net(x)["out"]' if isinstance(output, Mapping) else "net(x)[0]"
        raise ConfigError(f"net '{name}' gives a {kind}, not a tensor; let it return its logits alone, e.g. {example}")
    if output.shape != expected:
        raise ConfigError(
            f"net '{name}' gives {tuple(output.shape)} for 2 images, not {expected}, a score for each class"
        )


def shows(task: Task, objectives: Iterable[Objective]) -> None:
    """Augment two images as each view that these objectives use and `fits` has not tried: some are for RGB only."""
    views = (view for each in objectives for view in (*each.views, each.labeled_view))
    for kind in sorted({*map(kind_of, views)} - {TRAIN}):
        _batch(task, kind)


def provides(task: Task, net_of: Callable[[str], str], stages: Iterable[Stage], method: str) -> None:
    """Refuse nets without what a method's stages take from them besides logits.

    Args:
        task: the data.
        net_of: returns the name of a line's net.
        stages: the stages of the method's plan.
        method: its title.
    """
    embedding_nets, divided_nets = set[str](), set[str]()
    for stage in stages:
        objective, labels, own = stage.objective, stage.labels, set(map(net_of, stage.lines))
        embedding_nets |= own if objective.embeds else set()
        embedding_nets |= {net_of(labels.line)} if labels is not None and labels.graph is not None else set()
        divided_nets |= own if objective.features or objective.class_threshold is not None else set()
    for name in sorted(embedding_nets):
        _require_embedding(task, name, method)
    for name in sorted(divided_nets):
        spec = task.net_spec(name)
        build.feature_maps(build.build(spec, seed=0), spec)


@torch.no_grad()
def _require_embedding(task: Task, name: str, method: str) -> None:
    net = build.build(task.net_spec(name), seed=0).eval()
    if not embedding.known(net.body):
        raise ConfigError(
            f"net '{name}' does not provide the input of its last layer, which {method} needs here; "
            "give it a method embed(images) that returns (N, features)"
        )
    found = net.embed(_batch(task, TRAIN).images)
    if not isinstance(found, torch.Tensor) or found.dim() != 2 or len(found) != 2:
        told = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
        raise ConfigError(
            f"embed(images) of net '{name}' gives {told} for 2 images; let it return (N, features) for {method}"
        )


def _batch(task: Task, kind: str) -> Batch:
    """Return a batch of two labeled images, augmented as this kind of view."""
    batches = task.batches(task.labeled, None, BatchPlan(labeled=2, labeled_view=kind), Execution(torch.device("cpu")))
    return batches.make(batches.draw(0))


def _require_parameters(name: str, net: nn.Module) -> None:
    """Refuse a net without parameters to train, and one whose parameters have no size before they see images."""
    parameters = list(net.parameters())
    if any(map(is_lazy, parameters)):
        raise ConfigError(f"net '{name}' has layers of unknown size (nn.Lazy…); build it with layers of a given size")
    if not any(each.requires_grad for each in parameters):
        raise ConfigError(f"net '{name}' has no parameters to train; give a net that has some")


def drops(task: Task, name: str) -> None:
    """Refuse a net without dropout layers that is to label with dropout."""
    if not dropout.layers(build.build(task.net_spec(name), seed=0)):
        raise ConfigError(f"labeling_views=dropout needs a net with dropout layers, and {name} has none; leave it out")


def reestimates(task: Task, name: str, device: torch.device) -> None:
    """Refuse a net whose BatchNorm statistics cannot be reestimated, before it is trained and not at the end.

    After global pooling, a layer needs several images at a time, but of large ones the device may take only one.
    """
    some = task.unlabeled.take(torch.arange(min(2, len(task.unlabeled))))
    images = (view.images for view in itertools.islice(task.views(some, device), 1))
    try:
        batchnorm.reestimate(build.build(task.net_spec(name), seed=0).to(device), images)
    except ValueError as error:
        raise ConfigError(
            f"batchnorm=reestimate does not work for net '{name}' with images of this size and number on this device: "
            f"{error}; leave it out"
        ) from error


def _size_hint(net: str) -> str:
    encoder = names.encoder(net)
    return "" if encoder is None else build.size_hint(encoder)


def fills(task: Task, name: str, start: Start) -> None:
    """Refuse a start that does not fit the net, by loading it into a temporary one: line B is trained much later."""
    spec = task.net_spec(name)
    starts.load(build.build(spec, seed=0), spec, start)
