"""One trainer for every method: nets, slow copies, optimizer and progress of one stage."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dmt.core import batchnorm
from dmt.core.ema import SlowCopy
from dmt.core.schedule import Schedule
from dmt.errors import DivergenceError
from dmt.objectives.base import Loss, Objective, Progress
from dmt.types import Batch


class Student:
    """A net as an objective sees it: bf16 convolutions on CUDA, float32 logits everywhere."""

    def __init__(self, net: nn.Module, device: torch.device) -> None:
        self._net = net
        self._device = device

    def __call__(self, images: Tensor) -> Tensor:
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._device.type == "cuda"):
            logits: Tensor = self._net(images)
        return logits.float()

    @torch.no_grad()
    def peek(self, images: Tensor, *, update_statistics: bool = False) -> Tensor:
        if update_statistics:
            return self(images)
        with batchnorm.statistics_untouched(self._net):
            return self(images)


class Trainer:
    """Fits nets to an objective, step by step. Knows no method, no file and no data set.

    Attributes:
        nets: the nets in training, on the device.
        slow: their slow copies.
        step: steps done so far; ``steps`` when finished.
    """

    def __init__(
        self,
        nets: Sequence[nn.Module],
        objective: Objective,
        schedule: Schedule,
        steps: int,
        seed: int,
        device: torch.device,
    ) -> None:
        self.nets = [net.to(device).train() for net in nets]
        self.slow = [SlowCopy(net, schedule.ema) for net in self.nets]
        self.objective, self.schedule, self.device = objective, schedule, device
        self.step, self.steps, self._seed = 0, steps, seed
        self._students = [Student(net, device) for net in self.nets]
        self.optimizer = torch.optim.SGD(
            [parameter for net in self.nets for parameter in net.parameters()],
            lr=schedule.rate,
            momentum=schedule.momentum,
            weight_decay=schedule.weight_decay,
            foreach=True,  # one call for all parameters; the default on a CPU is one for each
        )

    @property
    def rate(self) -> float:
        """The learning rate of the step to come."""
        return self.schedule.rate_at(self.step / self.steps)

    def advance(self, batch: Batch) -> Loss:
        """Descend one step."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate
        progress = Progress(self.step, self.steps, self._seed)
        loss = self.objective.loss(self._students, batch, progress)
        self.optimizer.zero_grad(set_to_none=True)
        loss.total.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        for slow in self.slow:
            slow.update(self.step)
        self.step += 1
        return loss

    def momentum(self) -> dict[str, Tensor]:
        """The optimizer's memory by parameter number; empty before the first step."""
        states = self.optimizer.state
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        return {str(n): states[p]["momentum_buffer"] for n, p in enumerate(parameters) if p in states}

    def set_momentum(self, momentum: dict[str, Tensor]) -> None:
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        for number, buffer in momentum.items():
            parameter = parameters[int(number)]
            # the layout follows the parameter: a run may go on where channels_last is in use
            self.optimizer.state[parameter]["momentum_buffer"] = torch.empty_like(parameter).copy_(buffer)

    def require_finite(self, *more: Tensor) -> None:
        """Stop if a parameter, a running statistic or one of ``more`` is not finite, before it can be saved."""
        tensors = [t for net in self.nets for t in (*net.parameters(), *net.buffers()) if t.is_floating_point()]
        bad = torch.stack([~torch.isfinite(t).all() for t in (*tensors, *more)]).any()
        if bool(bad):
            raise DivergenceError(
                f"the loss or a parameter stopped being finite by step {self.step} of {self.steps}; "
                f"the last good checkpoint is kept; try a lower learning rate (--set rate=…, rate_round=…)"
            )
