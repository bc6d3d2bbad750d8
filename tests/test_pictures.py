"""Pictures as bytes come back as they were, and shrink in proportion."""

import io

import numpy as np
import pytest
from PIL import Image

from dmt import pictures


@pytest.mark.parametrize("options", [{}, {"optimize": True}])
def test_a_png_comes_back(options: dict[str, bool]) -> None:
    pixels = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    with Image.open(io.BytesIO(pictures.encode(Image.fromarray(pixels), "PNG", **options))) as image:
        assert image.format == "PNG"
        assert np.array_equal(np.asarray(image), pixels)


def test_other_kinds_take_their_options() -> None:
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8))
    low, high = (pictures.encode(image, "WEBP", quality=quality) for quality in (5, 95))
    assert low[8:12] == b"WEBP"
    assert len(low) < len(high)


@pytest.mark.parametrize(
    ("size", "longest", "expected"), [((40, 20), 10, (10, 5)), ((10, 5), 10, (10, 5)), ((1000, 1), 10, (10, 1))]
)
def test_shrinking_keeps_proportions_and_never_enlarges(
    size: tuple[int, int], longest: int, expected: tuple[int, int]
) -> None:
    assert pictures.shrink(Image.new("L", size), longest, Image.Resampling.NEAREST).size == expected
