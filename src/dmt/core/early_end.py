"""When to end rounds by their validation scores."""

from collections.abc import Sequence


def best(scores: Sequence[float]) -> int:
    """The position of the highest score, of equals the first."""
    return max(range(len(scores)), key=lambda at: (scores[at], -at))


def end(scores: Sequence[float], patience: int) -> int | None:
    """After how many rounds to end; None if these scores are no reason to.

    Args:
        scores: of the rounds so far, in order.
        patience: how many in a row may be no better than the best before them; with the last of these it ends.
    """
    for count in range(patience + 1, len(scores) + 1):
        if count - 1 - best(scores[:count]) >= patience:
            return count
    return None
