"""One trainer for every method: nets, slow copies, optimizer and progress of one stage."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dmt.core import batchnorm, streams, trees
from dmt.core.ema import SlowCopy
from dmt.core.execution import Execution
from dmt.core.schedule import Schedule
from dmt.errors import DivergenceError
from dmt.objectives.base import Objective, Progress
from dmt.tasks.base import Batches
from dmt.training.recording import Recorded


class Student:
    """A net as an objective sees it: bf16 convolutions on CUDA, float32 logits everywhere."""

    def __init__(self, net: nn.Module, execution: Execution) -> None:
        self._net = net
        self._execution = execution
        self._forward: Callable[[Tensor], Tensor] = execution.compiled(net)

    def __call__(self, images: Tensor) -> Tensor:
        images = images.contiguous(memory_format=self._execution.layout)
        with torch.autocast(self._execution.device.type, torch.bfloat16, enabled=self._execution.on_cuda):
            logits = self._forward(images)
        return logits.float()

    @torch.no_grad()
    def peek(self, images: Tensor, *, update_statistics: bool = False) -> Tensor:
        if update_statistics:
            return self(images)
        with batchnorm.statistics_untouched(self._net):
            return self(images)


class Inputs(NamedTuple):
    """Everything that differs from one step to the next: a tree of small tensors on the device."""

    batch: Any  # which images, and their augmentation
    objective: Any  # what the objective drew
    rate: Tensor  # 0-d, the learning rate
    stride: Tensor | None  # 0-d, how far the slow copies move


class Trainer:
    """Fits nets to an objective, step by step. Knows no method, no file and no data set.

    Attributes:
        nets: the nets in training, on the device.
        slow: their slow copies; empty if the schedule wants none.
        step: steps done so far; ``steps`` when finished.
        parts: names of the numbers that `advance` returns.
    """

    def __init__(
        self,
        nets: Sequence[nn.Module],
        objective: Objective,
        schedule: Schedule,
        batches: Batches,
        steps: int,
        seed: int,
        execution: Execution,
    ) -> None:
        self.nets = [net.to(execution.device, memory_format=execution.layout).train() for net in nets]  # type: ignore[call-overload]
        self.slow = [] if schedule.ema is None else [SlowCopy(net, schedule.ema) for net in self.nets]
        self.objective, self.schedule, self.execution = objective, schedule, execution
        self.step, self.steps, self._seed = 0, steps, seed
        self.parts: tuple[str, ...] = ()
        self._batches = batches
        self._students = [Student(net, execution) for net in self.nets]
        self._named = {
            f"{number}.{name}": parameter
            for number, net in enumerate(self.nets)
            for name, parameter in net.named_parameters()
        }
        self.optimizer = torch.optim.SGD(
            list(self._named.values()),
            lr=torch.tensor(schedule.rate, device=execution.device),
            momentum=schedule.momentum,
            weight_decay=schedule.weight_decay,
            fused=True,
        )
        # a first step from zero momentum equals one without; and a recorded step needs the buffers to be there
        self.set_momentum({name: torch.zeros_like(parameter) for name, parameter in self._named.items()})
        self._run: Callable[[Inputs], Tensor] | None = None

    @property
    def device(self) -> torch.device:
        return self.execution.device

    def draw(self) -> Inputs:
        """What the step to come takes. Small work for the host, done while the device is busy with the last step."""
        progress = Progress(self.step, self.steps, self._seed)
        return Inputs(
            batch=self._batches.draw(self.step),
            objective=self.objective.draw(progress, self._batches.size, self.device),
            rate=trees.send(self.schedule.rate_at(progress.fraction), self.device),
            stride=trees.send(self.slow[0].stride(self.step), self.device) if self.slow else None,
        )

    def advance(self, inputs: Inputs) -> Tensor:
        """Descend one step. Returns the numbers named by ``parts``, on the device: nobody has to wait for them."""
        if self._run is None:
            self._run = Recorded(self._descend, inputs, self.state()) if self.execution.records else self._descend
        # nets with dropout draw from the device's own generator: that too must depend on the step alone
        self._generator().manual_seed(streams.seed_of(self._seed, "net noise", self.step))
        numbers = self._run(inputs)
        self.step += 1
        return numbers

    def close(self) -> None:
        """Let go of the recorded step: it refers to the trainer, and would keep nets and images alive."""
        self._run = None

    def _generator(self) -> torch.Generator:
        # not torch.manual_seed: without CUDA it queues a call for every device at every step, and keeps them all
        if self.execution.on_cuda:
            return torch.cuda.default_generators[self.device.index or 0]
        return torch.default_generator

    def _descend(self, inputs: Inputs) -> Tensor:
        """The step itself: tensor code only, the same in every step."""
        batch = self._batches.make(inputs.batch)
        loss = self.objective.loss(self._students, batch, inputs.objective)
        self.optimizer.zero_grad(set_to_none=True)
        loss.total.backward()  # type: ignore[no-untyped-call]
        for group in self.optimizer.param_groups:
            group["lr"] = inputs.rate
        self.optimizer.step()
        if inputs.stride is not None:
            for slow in self.slow:
                slow.update(inputs.stride)
        numbers = {"loss": loss.total.detach(), "rate": inputs.rate, **loss.parts}
        self.parts = tuple(numbers)
        return torch.stack(list(numbers.values()))

    def state(self) -> list[Tensor]:
        """Every tensor that a step changes."""
        modules = [*self.nets, *(slow.net for slow in self.slow)]
        return [t for module in modules for t in (*module.parameters(), *module.buffers())] + list(
            self.momentum().values()
        )

    def momentum(self) -> dict[str, Tensor]:
        """The optimizer's memory by the name of the parameter."""
        return {name: self.optimizer.state[parameter]["momentum_buffer"] for name, parameter in self._named.items()}

    def set_momentum(self, momentum: Mapping[str, Tensor]) -> None:
        for name, parameter in self._named.items():
            # the layout follows the parameter: a run may go on where channels_last is in use
            self.optimizer.state[parameter]["momentum_buffer"] = torch.empty_like(parameter).copy_(momentum[name])

    def require_finite(self, numbers: Mapping[str, float]) -> None:
        """Stop if one of ``numbers``, a parameter or a running statistic is not finite, before it can be saved."""
        tensors = [t for net in self.nets for t in (*net.parameters(), *net.buffers()) if t.is_floating_point()]
        largest = torch.stack(torch._foreach_norm(tensors, ord=math.inf))  # finite if and only if every element is
        if not all(map(math.isfinite, numbers.values())) or not bool(torch.isfinite(largest).all()):
            raise DivergenceError(
                f"the loss or a parameter stopped being finite by step {self.step} of {self.steps}; "
                f"the last good checkpoint is kept; try a lower learning rate (--set rate=…, rate_round=…)"
            )
