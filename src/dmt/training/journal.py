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
        """The sums so far; waits for the device."""
        return {} if self._sums is None else dict(zip(self._names, self._sums.tolist(), strict=True))

    def means(self) -> dict[str, float]:
        """The interval's averages; the next interval starts."""
        means = {name: total / self.count for name, total in self.sums().items()}
        self._sums, self.count = None, 0
        return means

    def state(self) -> dict[str, Any]:
        """Exact enough to go on from: JSON keeps every bit of a float."""
        return {"count": self.count, "sums": self.sums()}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.count, sums = int(state["count"]), state["sums"]
        if sums:
            self._names = tuple(sums)
            self._sums = torch.tensor(list(sums.values()), dtype=torch.float64, device=self._device)


def _plain(value: Any) -> Any:
    """JSON has no NaN: what could not be measured is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
