from pathlib import Path

import numpy as np
import pytest

from dmt.data.pixels import flat, masks
from dmt.data.ragged import Ragged
from dmt.errors import DataError
from tests.data.pixels import segment_layout


def failure(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        flat.open_folder(folder).split("train")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_images_of_any_format_are_found_by_the_lists(tmp_path: Path) -> None:
    planes = segment_layout.write_flat(tmp_path)
    found = flat.open_folder(tmp_path)
    assert found.classes == ("ground", "thing")
    assert found.splits == {"train": ("a", "b"), "val": ("c",)}
    opened = masks.open_set(found.split("train"), len(found.classes))
    assert isinstance(opened.labels, Ragged)
    assert opened.labels.sizes == [(10, 12), (9, 7)]
    for position, name in enumerate(opened.ids):
        assert np.array_equal(opened.labels.image(position).numpy(), planes[name])
    assert found.masked(["c", "a"]).ids == ("c", "a")


@pytest.mark.parametrize(
    ("lines", "classes"),
    [
        (["0 background", "1 potted plant", "255 ignore"], ("background", "potted plant")),
        (["3 wheeler", "car", "tree"], ("3 wheeler", "car", "tree")),
        (["1 dog", "0 cat"], ("cat", "dog")),
        (["# numbers and names", "1: thing", "0: ground"], ("ground", "thing")),
        (["ground 0 0 0", "thing 255 0 0", "void 9 9 9"], ("ground", "thing")),
        (["0", "1"], ("0", "1")),
        (["background", "", "  cat "], ("background", "cat")),
    ],
)
def test_classes_may_be_numbered(tmp_path: Path, lines: list[str], classes: tuple[str, ...]) -> None:
    segment_layout.write_flat(tmp_path, lines)
    assert flat.open_folder(tmp_path).classes == classes


@pytest.mark.parametrize("lines", [["1 cat", "2 dog"], ["cat 1", "dog 0"], ["cat", "cat"], ["cat"], []])
def test_classes_that_cannot_be_meant(tmp_path: Path, lines: list[str]) -> None:
    segment_layout.write_flat(tmp_path, lines)
    assert "classes.txt" in failure(tmp_path)


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    assert "has no folder images" in failure(tmp_path)
    segment_layout.write_flat(tmp_path)
    segment_layout.save(tmp_path / "images" / "a.png", segment_layout.random_image((10, 12), 0))
    assert "a.jpg and a.png have one id, 'a'" in failure(tmp_path)
    (tmp_path / "images" / "a.png").unlink()
    (tmp_path / "masks" / "b.png").unlink()
    assert "1 of 2 masks are missing, the first is 'b'" in failure(tmp_path)
    segment_layout.save_list(tmp_path / "splits" / "train.txt", ["a", "a"])
    assert "lists 'a' twice" in failure(tmp_path)
    (tmp_path / "splits" / "train.txt").write_text("\n")
    assert "train.txt is empty" in failure(tmp_path)
    (tmp_path / "splits" / "train.txt").unlink()
    assert "has no train.txt" in failure(tmp_path)
    (tmp_path / "classes.txt").unlink()
    assert "classes.txt is missing" in failure(tmp_path)
    (tmp_path / "splits" / "val.txt").unlink()
    assert "has no *.txt" in failure(tmp_path)
