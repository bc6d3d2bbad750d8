from pathlib import Path

import numpy as np
import pytest

from dmt.data.pixels import masks, published, voc
from dmt.data.pixels.masks import MaskedImages
from dmt.data.ragged import Ragged
from dmt.errors import DataError
from tests.data.pixels import segment_layout

LISTS = Path("VOCdevkit/VOC2012/ImageSets/Segmentation")


def silent(message: str) -> None:
    pytest.fail(message)


def failure(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        masks.open_set(voc.find(folder, silent).training(), len(voc.CLASSES))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("start", ["", "VOCdevkit", "VOCdevkit/VOC2012"])
def test_the_standard_layout_is_read_from_any_of_its_three_folders(tmp_path: Path, start: str) -> None:
    planes = segment_layout.write_voc(tmp_path)
    found = voc.find(tmp_path / start, silent)
    training, testing = found.training(), found.testing()
    assert training.ids == segment_layout.VOC_TRAIN + segment_layout.VOC_EXTRA
    assert testing.ids == segment_layout.VOC_VAL
    assert {path.parent.name for path in training.masks} == {"SegmentationClassAug"}
    assert {path.parent.name for path in testing.masks} == {"SegmentationClass"}
    for masked in (training, testing):
        opened = masks.open_set(masked, len(voc.CLASSES))
        images, labels = opened.images, opened.labels
        assert isinstance(images, Ragged)
        assert isinstance(labels, Ragged)
        assert opened.ids == masked.ids
        for position, name in enumerate(masked.ids):
            assert np.array_equal(labels.image(position).numpy(), planes[name])  # numbers, also of palette files
            assert images.image(position).shape == (*segment_layout.VOC_SIZES[name], 3)


def test_some_ids_can_be_asked_for_in_any_order(tmp_path: Path) -> None:
    segment_layout.write_voc(tmp_path)
    ids = ("2008_000008", "2007_000032")
    assert voc.find(tmp_path, silent).training(ids).ids == ids


def test_without_the_masks_of_sbd_only_the_official_training_list_is_used(tmp_path: Path) -> None:
    segment_layout.write_voc(tmp_path, extra=False)
    heard: list[str] = []
    found = voc.find(tmp_path, heard.append)
    assert found.training().ids == segment_layout.VOC_TRAIN
    assert len(heard) == 1
    assert "SegmentationClassAug" in heard[0]


def test_a_missing_list_is_our_own_copy(tmp_path: Path) -> None:
    segment_layout.write_voc(tmp_path)
    (tmp_path / LISTS / "trainaug.txt").unlink()
    found = voc.find(tmp_path, silent)
    assert found.train_ids == published.ids("voc_trainaug")
    with pytest.raises(DataError, match="10579 of 10582 images are missing"):
        found.training()


def test_a_list_of_paths_gives_ids(tmp_path: Path) -> None:
    segment_layout.write_voc(tmp_path)
    rows = [f"/JPEGImages/{name}.jpg /SegmentationClassAug/{name}.png" for name in segment_layout.VOC_TRAIN]
    segment_layout.save_list(tmp_path / LISTS / "trainaug.txt", rows)
    assert voc.find(tmp_path, silent).train_ids == segment_layout.VOC_TRAIN


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    assert "VOCdevkit/VOC2012/JPEGImages" in failure(tmp_path)
    root = tmp_path / "VOCdevkit" / "VOC2012"
    (root / "JPEGImages").mkdir(parents=True)
    assert "no SegmentationClass;" in failure(tmp_path)
    segment_layout.write_voc(tmp_path)
    (root / "SegmentationClassAug" / "2008_000008.png").unlink()
    assert "1 of 3 masks are missing, the first is '2008_000008'" in failure(tmp_path)


def test_what_is_damaged_is_named(tmp_path: Path) -> None:
    segment_layout.write_voc(tmp_path)
    root = tmp_path / "VOCdevkit" / "VOC2012"
    mask, image = root / "SegmentationClassAug" / "2008_000008.png", root / "JPEGImages" / "2008_000008.jpg"
    segment_layout.save(mask, np.full((18, 26), 21, np.uint8))
    assert "2008_000008.png has the class 21, outside 0..20" in failure(tmp_path)
    segment_layout.save(mask, np.zeros((18, 25), np.uint8))
    assert "18×25 pixels but its image has 18×26" in failure(tmp_path)
    segment_layout.save(mask, np.zeros((18, 26, 3), np.uint8))
    assert "2008_000008.png holds RGB pixels" in failure(tmp_path)
    segment_layout.save(mask, np.zeros((18, 26), np.uint8))
    image.write_bytes(image.read_bytes()[:-40])
    assert f"cannot read {image}" in failure(tmp_path)
    image.write_bytes(b"not an image")
    assert f"cannot read {image}" in failure(tmp_path)


def test_gray_of_few_bits_is_refused(tmp_path: Path) -> None:
    """Pillow stretches it to 0..255: class 1 of 4 bits would be read as 17."""
    from PIL import Image

    path = tmp_path / "mask.png"
    Image.fromarray(np.ones((4, 4), np.uint8)).save(path, bits=4)
    if Image.open(path).getpixel((0, 0)) == 1:
        pytest.skip("this Pillow writes 8 bits")
    with pytest.raises(DataError, match="few-bit gray"):
        masks.read_mask(path)


def test_both_passes_are_told_as_one(tmp_path: Path) -> None:
    segment_layout.write_voc(tmp_path)
    heard: list[tuple[int, int]] = []
    masked: MaskedImages = voc.find(tmp_path, silent).training()
    masks.open_set(masked, len(voc.CLASSES), tell=lambda done, of: heard.append((done, of)))
    assert heard == [(done, 6) for done in range(1, 7)]


def test_the_palette_is_the_official_one() -> None:
    assert len(voc.CLASSES) == 21
    assert len(set(voc.PALETTE)) == 256
    known = {0: (0, 0, 0), 1: (128, 0, 0), 2: (0, 128, 0), 4: (0, 0, 128), 8: (64, 0, 0), 15: (192, 128, 128)}
    known |= {20: (0, 64, 128), 255: (224, 224, 192)}
    assert {index: voc.PALETTE[index] for index in known} == known
