"""Samples from all over a folder."""

import pytest

from dmt.data.folders import samples


@pytest.mark.parametrize(
    ("images", "count", "expected"),
    [
        (0, 4, ()),
        (3, 4, (0, 1, 2)),
        (8, 4, (0, 2, 4, 6)),
        (7, 4, (0, 1, 3, 5)),  # fewer than twice as many: still not only the first ones
        (399, 4, (0, 99, 199, 299)),
    ],
)
def test_samples_are_from_all_over(images: int, count: int, expected: tuple[int, ...]) -> None:
    assert samples.evenly(range(images), count) == expected
