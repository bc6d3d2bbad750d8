"""Pictures that look alike: a hash that survives resizing and recompression, and all pairs of nearly equal hashes."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image

BITS = 64
STEP = 1
"""Gray levels by which neighbors must differ to count: below it lies the noise that compression adds to plain areas."""

TELLING = 6
"""A hash with fewer bits set, or unset, comes from a plain picture or a smooth ramp, and resembles every other such."""

DISTANCE = 4
"""Bits in which hashes of copies may differ: nearly all copies have no more, of slightly cropped ones four in five."""

_SMALL = 512  # members of a bucket that are simply compared with each other

Hashes = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int64]


def dhash(image: npt.NDArray[np.uint8]) -> int:
    """Difference hash of (H, W, 3): 64 bits, each saying whether a cell is brighter than its right neighbor.

    The picture is averaged over a grid of 8 rows and 9 columns, so that its size and small errors do not matter.
    A plain picture has the hash 0.
    """
    cells = Image.fromarray(image).resize((9, 8), Image.Resampling.BOX).convert("L")
    gray = np.asarray(cells, dtype=np.int16)  # (8, 9)
    brighter = gray[:, :-1] > gray[:, 1:] + STEP  # (8, 8)
    return int.from_bytes(np.packbits(brighter).tobytes(), "big")


def telling(value: int) -> bool:
    """Whether a hash says enough about its picture to be compared."""
    return TELLING <= value.bit_count() <= BITS - TELLING


def near_pairs(hashes: Sequence[int], distance: int = DISTANCE) -> list[tuple[int, int]]:
    """Positions (i, j), i < j, of hashes that differ in at most ``distance`` bits. None is missed or wrong.

    Two things keep the list short. Hashes that tell nothing (see ``telling``) are left out, equal ones too. And equal
    hashes are compared as one: their first position stands for all in the other pairs, and is paired with each.
    """
    firsts: dict[int, int] = {}
    pairs = []
    for position, value in enumerate(hashes):
        if telling(value) and firsts.setdefault(value, position) != position:
            pairs.append((firsts[value], position))
    distinct = np.fromiter(firsts.keys(), dtype=np.uint64, count=len(firsts))
    positions = list(firsts.values())  # ascending
    close = {pair for left, right in _close(distinct, distance) for pair in zip(left, right, strict=True)}
    pairs += [(positions[min(pair)], positions[max(pair)]) for pair in close]
    return sorted(pairs)


def groups(pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """What the pairs connect, directly or through others: each group ascending, groups by their first member."""
    parents: dict[int, int] = {}

    def root(member: int) -> int:
        while (parent := parents.setdefault(member, member)) != member:
            parents[member] = parents[parent]  # halves the path, so that chains stay short
            member = parent
        return member

    for left, right in pairs:
        first, second = sorted((root(left), root(right)))
        parents[second] = first
    members: dict[int, list[int]] = {}
    for member in sorted(parents):
        members.setdefault(root(member), []).append(member)
    return list(members.values())


def _close(hashes: Hashes, distance: int) -> Iterator[tuple[list[int], list[int]]]:
    """Positions of close hashes, all different, once or more.

    Of ``distance + 1`` bands of bits, close hashes have at least one in common. So only those that share a band are
    compared; where very many share one, the rest of their bits is cut into bands in turn.
    """
    work: list[Positions] = [np.arange(len(hashes))]
    while work:
        members = work.pop()
        for band in _bands(hashes[members], distance + 1):
            keys = hashes[members] & band
            order = np.argsort(keys, kind="stable")
            keys, ordered = keys[order], members[order]
            starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
            lengths = np.diff(np.r_[starts, len(keys)])
            large = (lengths > _SMALL) & (lengths < len(keys))
            work += [ordered[at : at + count] for at, count in zip(starts[large], lengths[large], strict=True)]
            rest = np.repeat(~large, lengths)
            yield from _compare(hashes, ordered[rest], keys[rest], distance)


def _bands(hashes: Hashes, count: int) -> list[np.uint64]:
    """Masks that share out the bits in which these hashes differ; fewer if there are not enough bits."""
    varying = int(np.bitwise_or.reduce(hashes ^ hashes[0])) if len(hashes) else 0
    bits = [1 << bit for bit in range(BITS) if varying >> bit & 1]
    if len(bits) < count:  # then all hashes are close
        return [np.uint64(0)] if bits else []
    return [np.uint64(sum(bits[start::count])) for start in range(count)]


def _compare(hashes: Hashes, members: Positions, keys: Hashes, distance: int) -> Iterator[tuple[list[int], list[int]]]:
    """Close ones among those whose keys, which are sorted, are equal."""
    for shift in range(1, len(keys)):
        same = np.flatnonzero(keys[shift:] == keys[:-shift])
        if not len(same):  # no bucket is longer than this
            return
        left, right = members[same], members[same + shift]
        close = _differing_bits(hashes[left] ^ hashes[right]) <= distance
        yield left[close].tolist(), right[close].tolist()


_ONES = np.array([value.bit_count() for value in range(1 << 16)], dtype=np.uint8)


def _differing_bits(values: Hashes) -> npt.NDArray[np.int64]:
    """(N,) set bits of each value; numpy counts them itself only since its second version."""
    counts: npt.NDArray[np.int64] = _ONES[values.view(np.uint16).reshape(-1, 4)].sum(axis=1, dtype=np.int64)
    return counts
