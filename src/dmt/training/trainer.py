"""The trainer of all methods: nets, EMA copies, parts, memory, optimizers and progress of one stage."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dmt.core import batchnorm, batchnorm_sync, blocks, dropout, losses, streams, trees
from dmt.core.ema import SlowCopy
from dmt.core.execution import Execution
from dmt.core.schedule import Schedule
from dmt.errors import DivergenceError
from dmt.models import fpn
from dmt.objectives.base import Cast, Objective, Part, Progress
from dmt.tasks.base import Batches
from dmt.training import inference
from dmt.training.optimizers import Optimizers
from dmt.training.recording import Recorded


class Student:
    """A net as an objective sees it: bf16 convolutions on CUDA, float32 logits everywhere.

    With several processes, each runs the net on its own rows of a batch, and all get the logits of all rows.
    """

    def __init__(self, net: nn.Module, execution: Execution) -> None:
        self._net = net
        self._halves: Any = net  # typed loosely for `features`, `decode` and `presence`, which not every net has
        self._execution = execution
        self._forward: Callable[[Tensor], Tensor] = execution.compiled_net(net)
        self._embed: Callable[[Tensor], Tensor] | None = None

    def __call__(self, images: Tensor, *, update_statistics: bool = True) -> Tensor:
        if update_statistics:
            return self._logits(images)
        with batchnorm.statistics_untouched(self._net):
            return self._logits(images)

    def input_gradient(self, images: Tensor, labels: Tensor) -> Tensor:
        images = images.detach().requires_grad_()
        with inference.in_eval_mode([self._net]):
            (found,) = torch.autograd.grad(losses.per_site(self._logits(images), labels).sum(), images)
        processes = self._execution.processes
        return found if processes is None else processes.all_rows(found[processes.rows(len(found))], len(found))

    @torch.no_grad()
    def peek(self, images: Tensor, *, update_statistics: bool = False) -> Tensor:
        return self(images, update_statistics=update_statistics)

    def embed(self, images: Tensor, *, update_statistics: bool = True) -> Tensor:
        if self._embed is None:  # created on demand: few methods need it, and not every net has it
            told: Callable[[Tensor], Tensor] = self._net.embed  # type: ignore[assignment]
            self._embed = self._execution.compiled(told)
        if update_statistics:
            return self._shared(self._embed, images)
        with batchnorm.statistics_untouched(self._net):
            return self._shared(self._embed, images)

    def _logits(self, images: Tensor) -> Tensor:
        return self._shared(self._forward, images)

    def _shared(self, forward: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
        processes = self._execution.processes
        if processes is None:
            return self._own(forward, images)
        return processes.gathered(self._own(forward, images[processes.rows(len(images))]), len(images))

    def _own(self, forward: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
        if images.dim() == 4:  # stored features have fewer dimensions
            images = images.contiguous(memory_format=self._execution.layout)
        with self._bfloat16():
            found = forward(images)
        return found.float()

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        processes, count = self._execution.processes, len(images)
        mine = images if processes is None else images[processes.rows(count)]
        with self._bfloat16():
            found = self._halves.features(mine.contiguous(memory_format=self._execution.layout))
        return tuple(each if processes is None else processes.gathered(each, count) for each in found)

    def decode(self, features: tuple[Tensor, ...], size: tuple[int, int]) -> Tensor:
        processes, count = self._execution.processes, len(features[0])
        mine = features if processes is None else tuple(map(processes.dealt, features))
        with self._bfloat16():
            logits = self._halves.decode(mine, size).float()
        return logits if processes is None else processes.gathered(logits, count)

    def presence(self, images: Tensor) -> Tensor:
        return self._shared(self._halves.presence, images)

    def _bfloat16(self) -> torch.autocast:
        return torch.autocast(self._execution.device.type, torch.bfloat16, enabled=self._execution.on_cuda)


class SlowTeacher:
    """An EMA copy as an objective sees it: in eval mode, without gradient."""

    def __init__(self, copy: SlowCopy, execution: Execution) -> None:
        self._look = Student(copy.net, execution)

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        return self._look(images)

    @torch.no_grad()
    def presence(self, images: Tensor) -> Tensor:
        return self._look.presence(images)


class Inputs(NamedTuple):
    """Everything that differs between steps: a tree of small tensors on the device."""

    batch: Any  # which images, and their augmentation
    objective: Any  # random draws and schedule values of the objective
    rate: Tensor  # 0-d, the learning rate
    stride: Tensor | None  # 0-d, the share of the way that EMA copies move to their nets; None if there are none
    encoders: Tensor | None = None  # 0-d, 0 while encoders are frozen, then 1; None if they never are


@dataclass(frozen=True)
class Training:
    """What a stage trains besides its nets, how, and for how long.

    Attributes:
        seed: the seed of everything random in the stage.
        parts: modules to train beside the nets, by name.
        memory: the objective's memory at the first step, by name.
        clean: yields unaugmented images to reestimate BatchNorm statistics on at the end; needed only if the schedule
            asks for that.
    """

    objective: Objective
    schedule: Schedule
    steps: int
    seed: int
    parts: Mapping[str, Part] = field(default_factory=dict)
    memory: Mapping[str, Tensor] = field(default_factory=dict)
    clean: Callable[[torch.device], Iterable[Tensor]] | None = None


class Trainer:
    """Fits nets to an objective, step by step, independently of methods, files and data sets.

    Attributes:
        nets: the nets in training by line, on the device.
        slow: their EMA copies by line; empty if the schedule has none.
        parts: modules trained beside the nets, by name.
        memory: tensors that one step leaves for the next, by name.
        step: number of steps done so far; equals ``steps`` when finished.
        logged: names of the numbers that `advance` returns.
    """

    def __init__(
        self, nets: Mapping[str, nn.Module], training: Training, batches: Batches, execution: Execution
    ) -> None:
        objective, schedule = training.objective, training.schedule
        if len(nets) != objective.lines:
            raise ValueError(f"{type(objective).__name__} trains {objective.lines} nets, not {len(nets)}")
        if objective.slow and schedule.ema is None:
            raise ValueError(f"{type(objective).__name__} needs EMA copies, but the schedule keeps none")
        execution = execution.plain() if objective.input_gradient else execution
        device, layout = execution.device, execution.layout
        self.nets = {line: net.to(device, memory_format=layout).train() for line, net in nets.items()}  # type: ignore[call-overload]
        self.slow = {} if schedule.ema is None else {k: SlowCopy(net, schedule.ema) for k, net in self.nets.items()}
        self.parts: dict[str, nn.Module] = {name: part.module.to(device) for name, part in training.parts.items()}
        self.memory = {name: tensor.to(device, copy=True) for name, tensor in training.memory.items()}
        self.objective, self.schedule, self.execution = objective, schedule, execution
        self.step, self.steps, self._seed = 0, training.steps, training.seed
        self.logged: tuple[str, ...] = ()
        self._batches, self._clean = batches, training.clean
        self._cast = Cast(
            nets=tuple(Student(net, execution) for net in self.nets.values()),
            slow=tuple(SlowTeacher(each, execution) for each in self.slow.values()) if objective.slow else (),
            parts=self.parts,
            memory=self.memory,
        )
        self.optimizers = Optimizers(self.nets, training.parts, schedule.descent)
        if execution.processes is not None:
            for net in self.nets.values():
                batchnorm_sync.synchronize(net, execution.processes)
        self._run: Callable[[Inputs], Tensor] | None = None

    @property
    def device(self) -> torch.device:
        return self.execution.device

    @property
    def engine(self) -> str | None:
        """The library that runs frozen encoders, if it depends on the machine: results then differ by rounding."""
        return next(filter(None, (fpn.engine(net, self.device) for net in self.nets.values())), None)

    def draw(self) -> Inputs:
        """Draw the inputs of the next step: little work for the host, while the device still runs the last step."""
        progress = Progress(self.step, self.steps, self._seed)
        slow = next(iter(self.slow.values()), None)
        moves = float(self.schedule.encoder_moves(progress.fraction))
        return Inputs(
            batch=self._batches.draw(self.step),
            objective=self.objective.draw(progress, self._batches.shape, self.device),
            rate=trees.send(self.schedule.rate_at(progress.fraction), self.device),
            stride=None if slow is None else trees.send(slow.stride(self.step), self.device),
            encoders=trees.send(moves, self.device) if self.schedule.descent.head_first else None,
        )

    def advance(self, inputs: Inputs) -> Tensor:
        """Run one training step. Returns the numbers named by ``logged``, on the device, without waiting for it."""
        if self._run is None:
            self._run = Recorded(self._descend, inputs, self.state()) if self.execution.records else self._descend
        # nets with dropout draw from the device's generator, which must depend only on the step, too
        processes = self.execution.processes
        rank = () if processes is None or processes.leads else (processes.rank,)  # each process draws for other rows
        self._generator().manual_seed(streams.seed_of(self._seed, "net noise", self.step, *rank))
        numbers = self._run(inputs)
        self.step += 1
        return numbers

    def finish(self) -> None:
        """Reestimate the BatchNorm statistics of nets and EMA copies after the last step, if the schedule says so."""
        if self.schedule.batchnorm == "running":
            return
        assert self._clean is not None, "statistics are taken from clean images"
        self.close()
        for net in (*self.nets.values(), *(slow.net for slow in self.slow.values())):
            batchnorm.reestimate(net, self._clean(self.device))

    def close(self) -> None:
        """End training: release the recorded step, which keeps nets and images alive, and compiled code.

        Afterwards the nets no longer synchronize with other processes.
        """
        self._run = None
        for module in self.modules():
            blocks.plain(module)
            batchnorm_sync.separate(module)

    def _generator(self) -> torch.Generator:
        # torch.manual_seed would queue a call for CUDA in every step and, where CUDA is not in use, keep them all
        return dropout.default_generator(self.device)

    def _descend(self, inputs: Inputs) -> Tensor:
        """Compute one step: only tensor code, the same in every step, so that it can be recorded."""
        batch = self._batches.make(inputs.batch)
        loss = self.objective.loss(self._cast, batch, inputs.objective)
        self.optimizers.zero_grad()
        loss.total.backward()  # type: ignore[no-untyped-call]
        self._add_up()
        self.optimizers.step(inputs.rate, inputs.encoders)
        if inputs.stride is not None:
            for slow in self.slow.values():
                slow.update(inputs.stride)
        for name, value in loss.memory.items():
            self.memory[name].copy_(value)  # in place, where a recorded step reads it
        numbers = {"loss": loss.total.detach(), "rate": inputs.rate, **loss.logged}
        self.logged = tuple(numbers)
        return torch.stack(list(numbers.values()))

    def _add_up(self) -> None:
        """Sum the nets' gradients over all processes, each of which has those of its own rows.

        Parts see all rows in every process, so their gradients are already complete.
        """
        if self.execution.processes is not None:
            self.execution.processes.sum_gradients(each for net in self.nets.values() for each in net.parameters())

    def align(self) -> None:
        """Copy the step number and all state of the first process to the others."""
        if self.execution.processes is not None:
            step = torch.tensor(self.step)
            self.execution.processes.align([step, *self.state()])
            self.step = int(step)

    def modules(self) -> list[nn.Module]:
        """Return all modules whose parameters or buffers a step changes."""
        return [*self.nets.values(), *(slow.net for slow in self.slow.values()), *self.parts.values()]

    def state(self) -> list[Tensor]:
        """Return all tensors that a step changes."""
        held = [tensor for module in self.modules() for tensor in (*module.parameters(), *module.buffers())]
        return [*held, *self.optimizers.state().values(), *self.memory.values()]

    def require_finite(self, numbers: Mapping[str, float]) -> None:
        """Raise a `DivergenceError` if one of ``numbers``, or any tensor that a step changes, is not finite."""
        tensors = [tensor for tensor in self.state() if tensor.is_floating_point()]
        largest = torch.stack(torch._foreach_norm(tensors, ord=math.inf))  # finite if and only if every element is
        if not all(map(math.isfinite, numbers.values())) or not bool(torch.isfinite(largest).all()):
            raise DivergenceError(
                f"the loss or a parameter stopped being finite by step {self.step} of {self.steps}; "
                f"the last good checkpoint is kept; try a lower learning rate "
                f"(--set rate=…, rate_round=…, or the method's own, as in fixmatch.rate=…)"
            )
