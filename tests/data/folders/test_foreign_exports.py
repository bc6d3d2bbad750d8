"""What annotation tools and spreadsheets write: read, or refused with what to do about it."""

import json
from pathlib import Path

import pytest

from dmt.data.folders import photos
from dmt.errors import DataError
from tests.data.folders import photo_layout


def failure(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        photos.open_folder(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_names_and_colors_of_cvat_are_read(tmp_path: Path) -> None:
    photo_layout.write_masks(tmp_path, labeled=6, unlabeled=0, kind="rgb")
    (tmp_path / "labeled/images").rename(tmp_path / "JPEGImages")
    (tmp_path / "labeled/masks").rename(tmp_path / "SegmentationClass")
    rows = [f"{name}:{','.join(map(str, color))}::" for name, color in photo_layout.MASK_COLORS.items()]
    (tmp_path / "labelmap.txt").write_text("\n".join(["# label:color_rgb:parts:actions", *rows]))
    contents = photos.open_folder(tmp_path)
    assert contents.classes == tuple(photo_layout.MASK_COLORS)
    assert contents.colors == {color: number for number, color in enumerate(photo_layout.MASK_COLORS.values())}
    photo_layout.write_images(tmp_path / "unlabeled", ["disk"] * 4, 900)
    photo_layout.write_pairs(tmp_path / "test", 3, "rgb", seed=5000)
    contents = photos.open_folder(tmp_path)
    assert (len(contents.labeled), len(contents.unlabeled), len(contents.test)) == (6, 4, 3)
    assert contents.layout.startswith("JPEGImages/ with SegmentationClass/, as PASCAL VOC, unlabeled/ and test/:")
    assert not any("not read" in note for note in contents.notes)
    (tmp_path / "classes.txt").write_text("\n".join(rows).replace("ground", "soil"))
    assert photos.open_folder(tmp_path).classes[0] == "soil"


def test_polygons_must_be_exported_as_masks(tmp_path: Path) -> None:
    for path in photo_layout.write_images(tmp_path / "labeled", ["disk"] * 3):
        path.with_suffix(".json").write_text(json.dumps({"shapes": []}))
    photo_layout.write_images(tmp_path / "unlabeled", ["disk"] * 2, 900)
    said = failure(tmp_path)
    assert "found 5 images in 2 folders but no class folders in labeled/ and no CSV" in said
    assert "3 JSON or XML files are not read: if annotations such as polygons are in there, export masks as PNG" in said


@pytest.mark.parametrize("flat", [False, True])
def test_an_ending_that_all_masks_have_is_named(tmp_path: Path, flat: bool) -> None:
    photo_layout.write_masks(tmp_path, labeled=3, unlabeled=0)
    for mask in (tmp_path / "labeled/masks").iterdir():
        mask.rename(mask.with_stem(f"{mask.stem}_mask"))
    root = tmp_path / "labeled" if flat else tmp_path
    said = failure(root)
    assert f"; remove '_mask' from the end of the names in {tmp_path / 'labeled/masks'}" in said
    next((tmp_path / "labeled/masks").iterdir()).rename(tmp_path / "labeled/masks/other.png")
    assert "add what is missing or remove the file" in failure(root)


def test_a_mask_without_its_image_is_not_taken_for_an_ending(tmp_path: Path) -> None:
    photo_layout.write_masks(tmp_path, labeled=3, unlabeled=0)
    (tmp_path / "labeled/images/0001.jpg").unlink()
    assert "1 files have no image of the same name" in (said := failure(tmp_path))
    assert "from the end of the names" not in said


def test_a_table_in_another_encoding_says_how_excel_calls_the_right_one(tmp_path: Path) -> None:
    photo_layout.write_images(tmp_path, ["disk"] * 2)
    (tmp_path / "labels.csv").write_bytes("file;label\r\n0000.jpg;Größe\r\n".encode("cp1252"))
    remedy = "save it as UTF-8 CSV, which Excel calls 'CSV UTF-8 (comma delimited)'"
    assert failure(tmp_path).endswith(f"labels.csv is not UTF-8 text; {remedy}")
