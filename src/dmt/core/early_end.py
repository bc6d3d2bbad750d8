"""Early stopping of rounds by their validation scores."""

from collections.abc import Sequence


def best(scores: Sequence[float]) -> int:
    """Return the position of the highest score, the first one in case of ties."""
    return max(range(len(scores)), key=lambda at: (scores[at], -at))


def end(scores: Sequence[float], patience: int) -> int | None:
    """Return the number of rounds after which to stop, or None if these scores give no reason to stop.

    Args:
        scores: scores of the rounds so far, in order.
        patience: stop after this many rounds in a row that do not exceed the best score before them.
    """
    for count in range(patience + 1, len(scores) + 1):
        if count - 1 - best(scores[:count]) >= patience:
            return count
    return None
