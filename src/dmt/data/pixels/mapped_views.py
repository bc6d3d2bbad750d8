"""Logits of mirrored or resized whole images, mapped back to the pixels of the original image.

The images of a batch have different sizes and are padded at the bottom and right. Each is mirrored and resized within
its own size, so that its padding stays at the bottom and right, as nets know it from training.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from dmt.core import trees
from dmt.core.labeling_views import LabelingView
from dmt.data.pixels import size_groups

Size = tuple[int, int]
"""The (height, width) of an image without padding."""


def logits(images: Tensor, sizes: Sequence[Size], view: LabelingView, net: Callable[[Tensor], Tensor]) -> Tensor:
    """Compute the logits (n, classes, H, W) of a view of images (n, C, H, W), aligned with the original pixels.

    A net returns logits at the resolution of its input, so those of a resized image are resized back to the image's
    own size. Logits in padding are meaningless.

    Args:
        images: (n, C, H, W), padded to one size.
        sizes: the (height, width) of each image without padding.
        view: how the net sees the images.
        net: maps images to logits of the same height and width.
    """
    if view.scale == 1:
        return _turned(images, sizes, view.mirrored, net)
    scaled = [_scaled(size, view.scale) for size in sizes]
    height, width = (size_groups.padded(max(sides)) for sides in zip(*scaled, strict=True))
    most = max(1, images[:, 0].numel() // (height * width))  # at most as many pixels at once as in the plain batch
    found = []
    for at in range(0, len(images), most):
        part = slice(at, at + most)
        seen = resize(images[part], sizes[part], scaled[part], (height, width))
        output = _turned(seen, scaled[part], view.mirrored, net)
        found.append(resize(output, scaled[part], sizes[part], (images.shape[-2], images.shape[-1])))
    return torch.cat(found)


def _turned(images: Tensor, sizes: Sequence[Size], mirrored: bool, net: Callable[[Tensor], Tensor]) -> Tensor:
    return mirror(net(mirror(images, sizes)), sizes) if mirrored else net(images)


def _scaled(size: Size, scale: float) -> Size:
    """Return the resized size of an image, rounded down as `windows` does in training."""
    height, width = (max(1, int(scale * side)) for side in size)
    return height, width


def mirror(planes: Tensor, sizes: Sequence[Size]) -> Tensor:
    """Mirror planes (n, C, H, W) horizontally within each image's own width. Mirroring twice is the identity."""
    columns = torch.arange(planes.shape[-1])
    widths = torch.tensor([width for _, width in sizes])[:, None]
    turned = torch.where(columns < widths, widths - 1 - columns, columns)  # (n, W)
    index = trees.send(turned.numpy(), planes.device)[:, None, None, :]
    return planes.gather(-1, index.expand_as(planes))


def resize(planes: Tensor, sizes: Sequence[Size], to: Sequence[Size], room: Size) -> Tensor:
    """Resize each of the planes (n, C, H, W), whose images have the sizes ``sizes``, to its size in ``to``.

    Bilinear with ``align_corners=False`` and without antialiasing, as `windows` resizes in training.

    Returns:
        (n, C, *room), zero-padded.
    """
    alike: defaultdict[tuple[Size, Size], list[int]] = defaultdict(list)
    for row, pair in enumerate(zip(sizes, to, strict=True)):
        alike[pair].append(row)
    made = planes.new_zeros(*planes.shape[:2], *room)
    for ((height, width), (high, wide)), rows in alike.items():
        images = planes[rows, :, :height, :width]
        made[rows, :, :high, :wide] = F.interpolate(images, size=(high, wide), mode="bilinear", align_corners=False)
    return made
