import pytest
import torch

from dmt.core import turning


def test_every_image_is_turned_by_its_own_quarters() -> None:
    images = torch.arange(5 * 2 * 3 * 3.0).view(5, 2, 3, 3)
    quarters = torch.tensor([3, 0, 1, 2, 1])
    found = turning.turned(images, quarters)
    for image, number, each in zip(images, quarters.tolist(), found, strict=True):
        assert torch.equal(each, image.rot90(number, (1, 2)))


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (6, 5)])
def test_of_other_images_the_square_in_the_middle_is_turned(shape: tuple[int, int]) -> None:
    image = torch.rand(1, 3, *shape)
    once = turning.turned(image, torch.tensor([1]))
    assert once.shape == image.shape
    assert not torch.equal(once, image)
    side = min(shape)
    top, left = ((each - side) // 2 for each in shape)
    square = image[..., top : top + side, left : left + side]
    assert torch.equal(once[..., top : top + side, left : left + side], square.rot90(1, (2, 3)))
    assert torch.equal(turning.turned(once, torch.tensor([3])), image)  # all else stays
