from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from dmt.data.pixels import cityscapes, masks
from dmt.data.ragged import Ragged
from dmt.errors import DataError
from tests.data.pixels import segment_layout


def test_the_standard_layout_is_read_at_half_size(tmp_path: Path) -> None:
    images, planes = segment_layout.write_cityscapes(tmp_path)
    found = cityscapes.find(tmp_path)
    assert found.training().ids == segment_layout.CITY_TRAIN
    assert found.testing().ids == segment_layout.CITY_VAL
    opened = masks.open_set(found.training(), len(cityscapes.CLASSES), cityscapes.TABLE, cityscapes.half)
    assert isinstance(opened.images, Ragged)
    assert isinstance(opened.labels, Ragged)
    for position, name in enumerate(opened.ids):
        image = torch.from_numpy(images[name]).permute(2, 0, 1)[None].float()
        expected = (F.interpolate(image, (8, 16), mode="bilinear", align_corners=False) + 0.5).byte()[0]
        assert torch.equal(opened.images.image(position).permute(2, 0, 1), expected)
        mask = F.interpolate(torch.from_numpy(planes[name])[None, None].float(), (8, 16), mode="nearest")[0, 0]
        assert np.array_equal(opened.labels.image(position).numpy(), cityscapes.TABLE[mask.byte().numpy()])


def test_the_table_keeps_19_of_34_numbers() -> None:
    kept = [7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33]
    assert cityscapes.TABLE[kept].tolist() == list(range(19))
    assert (np.delete(cityscapes.TABLE, kept) == 255).all()
    assert len(cityscapes.CLASSES) == len(set(cityscapes.PALETTE)) == 19
    assert cityscapes.half((1024, 2048)) == (512, 1024)


@pytest.mark.parametrize("size", [(7, 9), (8, 16), (30, 40)])
def test_other_sizes_are_bilinear_and_nearest_too(tmp_path: Path, size: tuple[int, int]) -> None:
    pixels, plane = segment_layout.random_image((16, 32), 0), segment_layout.random_mask((16, 32), range(9), 0)
    segment_layout.save(tmp_path / "image.png", pixels)
    segment_layout.save(tmp_path / "mask.png", plane)
    image = torch.from_numpy(pixels).permute(2, 0, 1)[None].float()
    exact = F.interpolate(image, size, mode="bilinear", align_corners=False)[0].permute(1, 2, 0).numpy()
    assert np.abs(masks.read_image(tmp_path / "image.png", size) - exact).max() <= 0.5
    nearest = F.interpolate(torch.from_numpy(plane)[None, None].float(), size, mode="nearest")[0, 0].numpy()
    assert np.array_equal(masks.read_mask(tmp_path / "mask.png", size=size), nearest)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"leftImg8bit is missing; unpack"):
        cityscapes.find(tmp_path)
    segment_layout.write_cityscapes(tmp_path)
    (tmp_path / "gtFine" / "val" / f"{segment_layout.CITY_VAL[0]}_gtFine_labelIds.png").unlink()
    with pytest.raises(DataError, match=r"1 of 1 masks are missing, the first is 'lindau/lindau_000000_000019'"):
        cityscapes.find(tmp_path).testing()
    with pytest.raises(DataError, match=r"1 of 1 images are missing"):
        cityscapes.find(tmp_path).training(["ulm/ulm_000000_000019"])
    (tmp_path / "leftImg8bit" / "val" / f"{segment_layout.CITY_VAL[0]}_leftImg8bit.png").unlink()
    with pytest.raises(DataError, match=r"no images"):
        cityscapes.find(tmp_path)
