import math

import pytest

from dmt.core import early_end


@pytest.mark.parametrize(
    ("scores", "patience", "expected"),
    [
        ([], 1, None),
        ([90.0], 1, None),
        ([90.0, 91.0, 92.0], 1, None),
        ([90.0, 89.0], 1, 2),
        ([90.0, 90.0], 1, 2),  # as good is no better
        ([90.0, 89.0, 95.0], 1, 2),  # what comes after an end does not count
        ([90.0, 89.0], 2, None),
        ([90.0, 89.0, 91.0, 88.0], 2, None),
        ([90.0, 89.0, 89.5, 99.0], 2, 3),  # better than the round before, but not than the best
        ([-math.inf, -math.inf], 1, 2),
        ([-math.inf, 1.0], 1, None),
    ],
)
def test_rounds_end_once_so_many_were_no_better(scores: list[float], patience: int, expected: int | None) -> None:
    assert early_end.end(scores, patience) == expected


def test_the_best_of_equals_is_the_first() -> None:
    assert early_end.best([1.0, 3.0, 2.0, 3.0]) == 1
