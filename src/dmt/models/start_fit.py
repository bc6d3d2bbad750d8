"""Match the tensors of a parameter file with those of a net, and describe the outcome."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch import Tensor

from dmt.models import start_names

# prefixes of the plain names of heads
_HEADS = ("fc.", "classifier.", "head.", "last.linear.", "decoder.", "segmentation.head.")


@dataclass(frozen=True)
class Fit:
    """The outcome of `match`.

    Attributes:
        filled: tensors from the file by the net's names.
        encoder, head: all names of the net, in its order, without BatchNorm's step counters.
        reasons: why a name of the net has no tensor in the file, by name.
        unused: names in the file that fill nothing.
    """

    filled: dict[str, Tensor]
    encoder: list[str]
    head: list[str]
    reasons: dict[str, str]
    unused: list[str]

    @property
    def encoder_count(self) -> int:
        return sum(name in self.filled for name in self.encoder)

    @property
    def first_misfit(self) -> str:
        """Name of the encoder's first tensor that is not filled, and why; empty if all are filled."""
        return next((f"{name} {self.reasons[name]}" for name in self.encoder if name in self.reasons), "")

    def line(self, source: str) -> str:
        """Return one line for users: what was filled from ``source``, and what was not."""
        if not self.reasons:
            parts = [f"all {len(self.encoder) + len(self.head)} tensors of the net from {source}"]
        else:
            parts = [f"{_count(self.encoder_count, self.encoder)} of the encoder from {source}", *self._head_part()]
        if self.first_misfit:
            parts.append(f"not filled: {self.first_misfit}{_more(len(self.encoder) - self.encoder_count - 1)}")
        if self.unused:
            parts.append(f"not used: {self.unused[0]}{_more(len(self.unused) - 1)}")
        return "; ".join(parts)

    def _head_part(self) -> list[str]:
        if not self.head:
            return []
        name = "decoder and head" if any("decoder." in name for name in self.head) else "head"
        count = sum(name in self.filled for name in self.head)
        return [f"{_count(count, self.head)} of the {name}" if count else f"{name} random"]


def match(own: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> Fit:
    """Match a net's own tensors with the given ones by plain name and shape."""
    by_name: dict[str, list[str]] = {}
    for name in given:
        by_name.setdefault(start_names.plain(name), []).append(name)
    filled: dict[str, Tensor] = {}
    reasons: dict[str, str] = {}
    used: set[str] = set()
    for name, tensor in own.items():
        candidates = by_name.get(start_names.plain(name), [])
        # a file may hold two nets that both have a conv1: the shape decides which is used
        for candidate in candidates:
            if (adapted := _adapted(given[candidate], tensor)) is not None:
                filled[name] = adapted
                used.add(candidate)
                break
        else:
            reasons[name] = _reason(tensor, [given[candidate] for candidate in candidates])
    counted = _counted(own)
    head = [name for name in counted if start_names.plain(name).startswith(_HEADS)]
    encoder = [name for name in counted if name not in head]
    reasons = {name: reason for name, reason in reasons.items() if name in counted}
    return Fit(filled, encoder, head, reasons, [name for name in _counted(given) if name not in used])


def _adapted(given: Tensor, own: Tensor) -> Tensor | None:
    """Return the given tensor if its shape fits; a first convolution for RGB is summed over colors for gray images."""
    if given.shape == own.shape:
        return given
    if given.dim() == own.dim() == 4 and given.shape[1] == 3 and own.shape[1] == 1:
        summed = given.sum(1, keepdim=True)
        return summed if summed.shape == own.shape else None
    return None


def _reason(own: Tensor, candidates: list[Tensor]) -> str:
    if not candidates:
        return "is not there"
    return f"has shape {tuple(candidates[0].shape)} there, {tuple(own.shape)} here"


def _counted(names: Iterable[str]) -> list[str]:
    """Return the names without BatchNorm's step counters, which old files lack and nothing needs."""
    return [name for name in names if not name.endswith("num_batches_tracked")]


def _count(count: int, names: list[str]) -> str:
    return f"{count} tensors" if count == len(names) else f"{count} of {len(names)} tensors"


def _more(count: int) -> str:
    return f" and {count} more" if count else ""
