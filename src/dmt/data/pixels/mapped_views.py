"""Whole images mirrored or resized, and what a net says of them brought back to the pixels that it belongs to.

Images of a batch have sizes of their own and are padded at the bottom and right. So each is mirrored and resized within
its own size, and its padding stays where nets are used to it.
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
"""Height and width of an image, without padding."""


def logits(images: Tensor, sizes: Sequence[Size], view: LabelingView, net: Callable[[Tensor], Tensor]) -> Tensor:
    """Logits (n, classes, H, W) of images (n, C, H, W) as the net sees them in a view, each at its pixel.

    A net gives logits for the very pixels that it sees, whatever the size, so those of a resized image go back by the
    inverse of the way its pixels came. In padding they mean nothing.
    """
    if view.scale == 1:
        return _turned(images, sizes, view.mirrored, net)
    scaled = [_scaled(size, view.scale) for size in sizes]
    height, width = (size_groups.padded(max(sides)) for sides in zip(*scaled, strict=True))
    most = max(1, images[:, 0].numel() // (height * width))  # at once no more pixels than in the plain batch
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
    """As `windows` rounds the sizes that training sees."""
    height, width = (max(1, int(scale * side)) for side in size)
    return height, width


def mirror(planes: Tensor, sizes: Sequence[Size]) -> Tensor:
    """Planes (n, C, H, W) with left and right exchanged within each image. Doing it twice changes nothing."""
    columns = torch.arange(planes.shape[-1])
    widths = torch.tensor([width for _, width in sizes])[:, None]
    turned = torch.where(columns < widths, widths - 1 - columns, columns)  # (n, W)
    index = trees.send(turned.numpy(), planes.device)[:, None, None, :]
    return planes.gather(-1, index.expand_as(planes))


def resize(planes: Tensor, sizes: Sequence[Size], to: Sequence[Size], room: Size) -> Tensor:
    """Planes (n, C, H, W) of images of these sizes, each resized to another; zero-padded to (n, C, *room).

    Bilinear between the centers of pixels and without a filter, as `windows` resizes what training sees.
    """
    alike: defaultdict[tuple[Size, Size], list[int]] = defaultdict(list)
    for row, pair in enumerate(zip(sizes, to, strict=True)):
        alike[pair].append(row)
    made = planes.new_zeros(*planes.shape[:2], *room)
    for ((height, width), (high, wide)), rows in alike.items():
        images = planes[rows, :, :height, :width]
        made[rows, :, :high, :wide] = F.interpolate(images, size=(high, wide), mode="bilinear", align_corners=False)
    return made
