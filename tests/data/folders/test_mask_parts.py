"""How thin the parts of masks are."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dmt.data.folders import mask_parts, photos
from tests.data.folders import photo_layout

BAR = np.zeros((100, 200), np.uint8)
BAR[40:44, 20:180] = 1  # four pixels across


def folder(root: Path, *masks: np.ndarray) -> Path:
    for number, mask in enumerate(masks):
        photo_layout.save(Image.new("RGB", mask.shape[::-1]), root / f"labeled/images/{number}.jpg")
        photo_layout.save(Image.fromarray(mask), root / f"labeled/masks/{number}.png")
    return root


def needed(root: Path, *masks: np.ndarray) -> int:
    return mask_parts.needed_side(photos.open_folder(folder(root, *masks)))


def test_a_pixel_is_as_wide_as_the_shorter_run_through_it() -> None:
    plane = np.array([[0, 1, 1, 1, 0], [0, 1, 2, 2, 2]], np.uint8)
    assert mask_parts.widths(plane).tolist() == [[1, 2, 1, 1, 1], [1, 1, 1, 1, 1]]
    assert mask_parts.widths(BAR)[42, 100] == mask_parts.widths(BAR.T)[100, 42] == 4


@pytest.mark.parametrize("upright", [True, False])
def test_a_thin_part_needs_more_than_a_thick_one(tmp_path: Path, upright: bool) -> None:
    turn = np.transpose if upright else np.asarray
    thick = np.kron(BAR, np.ones((4, 4), np.uint8))
    assert needed(tmp_path / "thin", turn(BAR)) == 200  # all of its pixels
    assert needed(tmp_path / "thick", turn(thick)) == 400  # half of 800, where 16 pixels become 8


def test_specks_and_few_images_do_not_count(tmp_path: Path) -> None:
    large = np.zeros((100, 200), np.uint8)
    large[20:80, 20:100] = 1
    specked = large.copy()
    specked[90, 150], specked[5, 5] = 1, 1
    assert needed(tmp_path / "specks", specked) == needed(tmp_path / "large", large) < 40
    assert needed(tmp_path / "few", BAR, *[large] * 9) < 40
    assert needed(tmp_path / "half", *[BAR, large] * 3) == 200


def test_the_class_that_needs_most_decides(tmp_path: Path) -> None:
    both = np.where(BAR == 1, 2, 0).astype(np.uint8)
    both[60:95, 20:180] = 1
    both[:10] = 255  # no label: no part
    assert needed(tmp_path, both) == 200


def test_masks_that_cannot_be_read_are_left_to_the_check(tmp_path: Path) -> None:
    contents = photos.open_folder(folder(tmp_path, BAR, BAR))
    (tmp_path / "labeled/masks/0.png").write_text("no image")
    assert mask_parts.needed_side(contents) == 200
    (tmp_path / "labeled/masks/1.png").write_text("no image")
    assert mask_parts.needed_side(contents) == 0
