"""Samples of a folder's images, for choices that need not look at all of them."""

from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


def evenly(items: Sequence[Item], count: int) -> tuple[Item, ...]:
    """Return at most ``count`` items, spread evenly over all of them: folders are often sorted by class or source."""
    taken = min(count, len(items))
    return tuple(items[place * len(items) // taken] for place in range(taken))
