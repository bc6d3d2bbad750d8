"""Sequences of many short strings, e.g. the names of a million images, without a Python object for each."""

from collections.abc import Callable, Iterable, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt


class Texts(Sequence[str]):
    """A sequence of strings in one buffer, each decoded when it is accessed.

    Args:
        buffer: all strings as UTF-8, one after the other, (bytes,) uint8.
        ends: (N,) int64, the offset at which each string ends.
    """

    def __init__(self, buffer: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]) -> None:
        self.buffer, self.ends = buffer, ends

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Texts":
        """Pack strings into a buffer. The iterable is consumed one string at a time."""
        buffer, ends = bytearray(), bytearray()
        for text in texts:
            buffer += text.encode()
            ends += len(buffer).to_bytes(8, "little")
        return cls(np.frombuffer(bytes(buffer), np.uint8), np.frombuffer(bytes(ends), "<i8").astype(np.int64))

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        start = int(self.ends[place - 1]) if place else 0
        return self.buffer[start : int(self.ends[place])].tobytes().decode()

    def take(self, places: npt.NDArray[np.int64]) -> "Texts":
        """Return the strings at these indices, in this order."""
        return Texts.of(self[place] for place in map(int, places))


class Derived(Sequence[str]):
    """A sequence of strings, each computed from its index when it is accessed.

    Args:
        count: number of strings.
        make: maps an index to its string.
    """

    def __init__(self, count: int, make: Callable[[int], str]) -> None:
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self._make(each) for each in range(*place.indices(self._count))]
        return self._make(range(self._count)[place])
