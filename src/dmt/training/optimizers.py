"""The optimizers of a stage: one for its nets, and one for each part that is trained beside them."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from dmt.core.schedule import Descent
from dmt.models import groups
from dmt.objectives.base import Part

Named = dict[str, nn.Parameter]
STATE = {
    "sgd": ("momentum_buffer",),
    "nesterov": ("momentum_buffer",),
    "adam": ("exp_avg", "exp_avg_sq", "step"),
    "adamw": ("exp_avg", "exp_avg_sq", "step"),
}
"""State tensors of each optimizer per parameter. All of them start at zero."""


class Optimizers:
    """Optimizers of all parameters of a stage.

    Every learning rate is a multiple of the nets' rate, so that a step needs only one number. Optimizer state is
    allocated up front, since a step recorded as a CUDA graph needs its tensors in place. A first step from a state of
    zeros equals one without state.

    Args:
        nets: the nets by line.
        parts: modules trained beside the nets, by name.
        descent: optimizer and learning rate of the nets, and of parts that have none of their own.
    """

    def __init__(self, nets: Mapping[str, nn.Module], parts: Mapping[str, Part], descent: Descent) -> None:
        self._rules: list[tuple[torch.optim.Optimizer, str, Named]] = []
        named: Named = {}
        encoders: set[str] = set()
        for line, net in nets.items():
            named |= {f"{line}.{name}": parameter for name, parameter in net.named_parameters()}
            encoders |= {f"{line}.{name}" for name in groups.encoder_names(net)}
        self._add(named, encoders, descent, descent.rate)
        for name, part in parts.items():
            beside = {f"{name}.{key}": parameter for key, parameter in part.module.named_parameters()}
            if not beside:
                raise ValueError(f"part '{name}' has no parameters to train")
            self._add(beside, set(), part.descent or descent, descent.rate)

    def _add(self, named: Named, encoders: set[str], descent: Descent, rate: float) -> None:
        optimizer = _build(_groups(named, encoders, descent, rate), descent, next(iter(named.values())).device)
        self._rules.append((optimizer, descent.optimizer, named))
        for _ in self._places(self._rules[-1:]):
            pass  # iterating allocates the state

    def zero_grad(self) -> None:
        for optimizer, _, _ in self._rules:
            optimizer.zero_grad(set_to_none=True)

    def step(self, rate: Tensor, encoders: Tensor | None = None) -> None:
        """Update all parameters by their gradients.

        Args:
            rate: 0-d, the learning rate of the nets, on their device.
            encoders: 0-d, a factor for the learning rate of encoders; None for 1.
        """
        for optimizer, _, _ in self._rules:
            for group in optimizer.param_groups:
                moved = rate if group["share"] == 1.0 else rate * group["share"]
                group["lr"] = moved if encoders is None or not group["encoder"] else moved * encoders
            optimizer.step()

    def state(self) -> dict[str, Tensor]:
        """Return all optimizer state, keyed by ``<parameter>:<state tensor>``."""
        return {f"{name}:{key}": place for name, key, place in self._places(self._rules)}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Copy saved state into the optimizers."""
        for name, key, place in self._places(self._rules):
            place.copy_(state[f"{name}:{key}"])

    def _places(self, rules: Iterable[tuple[torch.optim.Optimizer, str, Named]]) -> Iterable[tuple[str, str, Tensor]]:
        for optimizer, kind, named in rules:
            for name, parameter in named.items():
                if not parameter.requires_grad:
                    continue
                for key in STATE[kind]:
                    memory = optimizer.state[parameter]
                    if key not in memory:
                        memory[key] = _nothing(parameter, key)
                    yield name, key, memory[key]


def _nothing(parameter: nn.Parameter, key: str) -> Tensor:
    """Return the state before the first step: zeros in the memory layout of the parameter."""
    return torch.zeros((), device=parameter.device) if key == "step" else torch.zeros_like(parameter.detach())


def _groups(named: Named, encoders: set[str], descent: Descent, rate: float) -> list[dict[str, Any]]:
    """Group parameters with equal learning rate, as a multiple of the nets' rate ``rate``, and weight decay."""
    found: dict[tuple[float, float, bool], list[nn.Parameter]] = {}
    for name, parameter in named.items():
        # encoders with the learning rate of the rest share its group, which saves a kernel launch
        encoder = name in encoders and (descent.encoder != 1.0 or descent.head_first > 0)
        share = descent.rate / rate * (descent.encoder if encoder else 1.0)
        decays = descent.decay == "all" or parameter.ndim > 1
        found.setdefault((share, descent.weight_decay if decays else 0.0, encoder), []).append(parameter)
    return [
        {"params": params, "share": share, "weight_decay": decay, "encoder": encoder}
        for (share, decay, encoder), params in found.items()
    ]


def _build(groups_: list[dict[str, Any]], descent: Descent, device: torch.device) -> torch.optim.Optimizer:
    rate = torch.tensor(descent.rate, device=device)
    if descent.optimizer in ("sgd", "nesterov"):
        nesterov = descent.optimizer == "nesterov"
        return torch.optim.SGD(groups_, lr=rate, momentum=descent.momentum, nesterov=nesterov, fused=True)
    kind = torch.optim.Adam if descent.optimizer == "adam" else torch.optim.AdamW
    betas = (descent.momentum, 0.999)
    return kind(groups_, lr=rate, betas=betas, fused=True, capturable=device.type == "cuda")
