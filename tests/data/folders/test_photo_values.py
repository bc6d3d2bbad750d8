"""Photos of more than 8 bits that look different once they are read with 8."""

import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dmt.data.folders import photo_values
from tests.data.folders import photo_layout, png_files


@pytest.mark.parametrize(
    ("greatest", "dtype", "expected"),
    [
        (255, np.uint8, "usual"),
        (0, np.uint16, "usual"),
        (200, np.uint16, "faint"),
        (4095, np.uint16, "faint"),
        (16383, np.uint16, "faint"),
        (60000, np.uint16, "usual"),
        (4095, np.int32, "faint"),
        (70000, np.int32, "stretched"),
        (1, np.float32, "usual"),
        (255, np.float32, "usual"),
        (4095, np.float32, "stretched"),
        (-1, np.float32, "stretched"),
        (np.nan, np.float32, "infinite"),
        (np.inf, np.float32, "infinite"),
    ],
)
def test_gray(tmp_path: Path, greatest: float, dtype: type, expected: str) -> None:
    plane: np.ndarray = np.array([[0, greatest]]).astype(dtype)
    assert photo_values.values(photo_layout.save(Image.fromarray(plane), tmp_path / "x.tif")) == expected
    if dtype is np.uint16:
        assert photo_values.values(photo_layout.save(Image.fromarray(plane), tmp_path / "x.png")) == expected


@pytest.mark.parametrize(("greatest", "expected"), [(4095, "faint"), (65535, "usual")])
def test_colors_of_16_bits(tmp_path: Path, greatest: int, expected: str) -> None:
    row = struct.pack(">6H", 0, 1, 2, 3, greatest, 5)
    assert photo_values.values(png_files.write_row(tmp_path / "x.png", row, 2, 16, png_files.RGB)) == expected
    row = struct.pack(">4H", 0, greatest, 2, 65535)
    assert photo_values.values(png_files.write_row(tmp_path / "a.png", row, 1, 16, png_files.RGBA)) == expected


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "LA", "CMYK", "LAB"])
def test_8_bits_are_as_expected(tmp_path: Path, mode: str) -> None:
    image = Image.new(mode, (4, 4))
    path = photo_layout.save(image, tmp_path / ("x.tif" if mode in ("CMYK", "LAB") else "x.png"))
    assert photo_values.values(path) == "usual"
