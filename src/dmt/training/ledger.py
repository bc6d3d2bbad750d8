"""Running sums of the numbers that training steps return, between two lines of the journal."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


class Ledger:
    """Running sums of an interval, kept on the device so that the training loop never waits for it."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._sums: Tensor | None = None  # (P,) float64
        self._names: tuple[str, ...] = ()
        self.count = 0

    def add(self, names: tuple[str, ...], numbers: Tensor) -> None:
        """Add a step's numbers, (P,), in the order of ``names``."""
        if self._sums is None:
            self._names, self._sums = names, torch.zeros(len(names), dtype=torch.float64, device=self._device)
        self._sums += numbers
        self.count += 1

    def sums(self) -> dict[str, float]:
        """Return the sums so far; this waits for the device."""
        return {} if self._sums is None else dict(zip(self._names, self._sums.tolist(), strict=True))

    def means(self) -> dict[str, float]:
        """Return the averages over the interval, and start the next one."""
        means = {name: total / self.count for name, total in self.sums().items()}
        self._sums, self.count = None, 0
        return means

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint; JSON preserves every bit of the sums."""
        return {"count": self.count, "sums": self.sums()}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.count, sums = int(state["count"]), state["sums"]
        if sums:
            self._names = tuple(sums)
            self._sums = torch.tensor(list(sums.values()), dtype=torch.float64, device=self._device)
