"""The journal of a stage: JSON lines, one for each interval of steps and one for each event of the round."""

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dmt import files


class Journal:
    """An append-only file. A line that a crash cut short is dropped when the stage goes on."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, kind: str, **values: Any) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"kind": kind, **_plain(values)}, ensure_ascii=False)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

    def read(self) -> Iterator[dict[str, Any]]:
        if not self.path.exists():
            return
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                return  # the rest was never complete

    def rewind(self, step: int) -> None:
        """Forget the intervals after ``step``, which will be trained again, and every score, which will follow."""
        kept = [line for line in self.read() if line["kind"] != "interval" or line["step"] <= step]
        kept = [line for line in kept if line["kind"] != "score"]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in kept)
        files.write(self.path, text.encode())


class Ledger:
    """Sums of an interval, kept on the device: the loop never waits for a number."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._sums: dict[str, Tensor] = {}
        self.count = 0

    def add(self, parts: Mapping[str, Tensor | float]) -> None:
        for name, part in parts.items():
            value = part.double() if isinstance(part, Tensor) else torch.tensor(part, dtype=torch.float64)
            if name not in self._sums:
                self._sums[name] = torch.zeros((), dtype=torch.float64, device=self._device)
            self._sums[name] += value.to(self._device)
        self.count += 1

    @property
    def sums(self) -> list[Tensor]:
        return list(self._sums.values())

    def means(self) -> dict[str, float]:
        """The interval's averages; the next interval starts."""
        means = {name: float(total) / self.count for name, total in self._sums.items()}
        self._sums, self.count = {}, 0
        return means

    def state(self) -> dict[str, Any]:
        """Exact enough to go on from: JSON keeps every bit of a float."""
        return {"count": self.count, "sums": {name: float(total) for name, total in self._sums.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.count = int(state["count"])
        as_tensor = {name: torch.tensor(value, dtype=torch.float64) for name, value in state["sums"].items()}
        self._sums = {name: value.to(self._device) for name, value in as_tensor.items()}


def _plain(value: Any) -> Any:
    """JSON has no NaN: what could not be measured is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
