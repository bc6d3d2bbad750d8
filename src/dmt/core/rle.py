"""Run-length encoding of bytes in the bit format that Label Studio uses for brush strokes.

All numbers are written with their highest bit first:

```
32 bits          n, the number of bytes
5 bits           bits per byte − 1, here 7
4 × 4 bits       sizes of four length fields in bits, each − 1; here the sizes are 3, 4, 8 and 16
until n bytes:   1 bit, 1 for a run; 2 bits, which length field; the length − 1 in that field;
                 then the byte to repeat or, if this is no run, that many bytes
0 … 7 bits       0, to fill the last byte
```
"""

import numpy as np

_WORD = 8
_FIELDS = (3, 4, 8, 16)


def encode(values: np.ndarray) -> bytes:
    """Encode values (n,) uint8; every stretch of equal values becomes a run, or several if it is very long."""
    bits = [f"{len(values):032b}", f"{_WORD - 1:05b}", *(f"{size - 1:04b}" for size in _FIELDS)]
    starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]]) if len(values) else np.zeros(0, np.int64)
    for start, length in zip(starts, np.diff(np.r_[starts, len(values)]), strict=True):
        value = f"{values[start]:0{_WORD}b}"
        bits += [f"1{_length(part)}{value}" for part in _parts(int(length))]
    text = "".join(bits)
    text += "0" * (-len(text) % 8)
    return int(text, 2).to_bytes(len(text) // 8, "big")


def decode(packed: bytes) -> np.ndarray:
    """Decode to values (n,) uint8; also understands stretches that are no runs, which `encode` never writes."""
    bits = _Bits(packed)
    values = np.zeros(bits.take(32), np.uint8)
    word = bits.take(5) + 1
    fields = [bits.take(4) + 1 for _ in range(4)]
    at = 0
    while at < len(values):
        run = bits.take(1)
        length = bits.take(fields[bits.take(2)]) + 1
        values[at : at + length] = bits.take(word) if run else [bits.take(word) for _ in range(length)]
        at += length
    return values


def _parts(length: int) -> list[int]:
    """Split a length into parts that fit into the longest length field."""
    longest = 1 << _FIELDS[-1]
    return [longest] * (length // longest) + ([length % longest] if length % longest else [])


def _length(length: int) -> str:
    """Return the bits of a length in the shortest field that holds it, after the number of that field."""
    number = next(number for number, size in enumerate(_FIELDS) if length <= 1 << size)
    return f"{number:02b}{length - 1:0{_FIELDS[number]}b}"


class _Bits:
    """Reads numbers of given sizes in bits from bytes, one after the other."""

    def __init__(self, packed: bytes) -> None:
        self._text = "".join(f"{byte:08b}" for byte in packed)
        self._at = 0

    def take(self, size: int) -> int:
        self._at += size
        return int(self._text[self._at - size : self._at], 2)
