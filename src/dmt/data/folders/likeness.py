"""A perceptual hash that is robust to resizing and recompression, and all pairs of nearly equal hashes."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image

BITS = 64
STEP = 1
"""A cell must be brighter than its neighbor by more than this many gray levels, the noise of compressed plain areas."""

TELLING = 6
"""A hash with fewer set or unset bits comes from a plain picture or smooth gradient and is close to all such hashes."""

DISTANCE = 4
"""Greatest distance of copies in bits: nearly all copies are within it, and four in five slightly cropped ones."""

_SMALL = 512  # members of a bucket up to which all pairs are compared

Hashes = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int64]


def dhash(image: npt.NDArray[np.uint8]) -> int:
    """Compute the difference hash of (H, W, 3): 64 bits, each set if a cell is brighter than its right neighbor.

    The picture is averaged over a grid of 8 rows and 9 columns, so that its size and small errors do not matter.
    A plain picture has the hash 0.
    """
    cells = Image.fromarray(image).resize((9, 8), Image.Resampling.BOX).convert("L")
    gray = np.asarray(cells, dtype=np.int16)  # (8, 9)
    brighter = gray[:, :-1] > gray[:, 1:] + STEP  # (8, 8)
    return int.from_bytes(np.packbits(brighter).tobytes(), "big")


def telling(value: int) -> bool:
    """Return whether a hash is distinctive enough to be compared."""
    return TELLING <= value.bit_count() <= BITS - TELLING


def near_pairs(hashes: Sequence[int], distance: int = DISTANCE) -> list[tuple[int, int]]:
    """Find all pairs (i, j), i < j, of positions of hashes that differ in at most ``distance`` bits. It is exact.

    Two rules keep the list short. Hashes that are not distinctive (see ``telling``) are left out, even if equal. And
    equal hashes are paired only with the first of them, which alone represents them in all other pairs.
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
    """Return the connected components of the pairs: each ascending, in the order of their first members."""
    parents: dict[int, int] = {}

    def root(member: int) -> int:
        while (parent := parents.setdefault(member, member)) != member:
            parents[member] = parents[parent]  # path halving, so that chains stay short
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
    """Yield the positions of close hashes; the hashes must be distinct, and a pair may be repeated.

    If the bits are divided into ``distance + 1`` bands, close hashes are equal in at least one band. So only hashes
    that share a band are compared. If very many share one, their other bits are divided into bands again.
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
    """Return bit masks that divide the bits in which these hashes differ; a mask of 0 if there are too few bits."""
    varying = int(np.bitwise_or.reduce(hashes ^ hashes[0])) if len(hashes) else 0
    bits = [1 << bit for bit in range(BITS) if varying >> bit & 1]
    if len(bits) < count:  # then all hashes are close to each other
        return [np.uint64(0)] if bits else []
    return [np.uint64(sum(bits[start::count])) for start in range(count)]


def _compare(hashes: Hashes, members: Positions, keys: Hashes, distance: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the positions of close hashes among those with equal keys; the keys must be sorted."""
    for shift in range(1, len(keys)):
        same = np.flatnonzero(keys[shift:] == keys[:-shift])
        if not len(same):  # no bucket is longer than the shift
            return
        left, right = members[same], members[same + shift]
        close = _differing_bits(hashes[left] ^ hashes[right]) <= distance
        yield left[close].tolist(), right[close].tolist()


_ONES = np.array([value.bit_count() for value in range(1 << 16)], dtype=np.uint8)


def _differing_bits(values: Hashes) -> npt.NDArray[np.int64]:
    """Count the set bits of each value, (N,); numpy has a function for it only since version 2."""
    counts: npt.NDArray[np.int64] = _ONES[values.view(np.uint16).reshape(-1, 4)].sum(axis=1, dtype=np.int64)
    return counts
