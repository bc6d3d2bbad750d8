"""Positions of features in the image, and exactly aligned upsampling of logits to pixels.

A convolution of stride 2 with symmetric padding has its output i at input 2i, so feature i of an encoder of stride s
lies at pixel s·i. Bilinear upsampling with aligned corners puts it exactly there if the last feature lies on the last
pixel: for sides of s·k + 1, such as the 321 and 505 pixels of the reference. TensorFlow's "same" padding shifts
features for even sides, but is symmetric for these sides. So images are padded to such a side, and logits are cropped.

Encoders that cut the image into patches, such as ConvNeXt, have feature i in the center of patch i, at pixel
s·i + (s − 1)/2. For them, sides of s·k are exact, and upsampling goes from center to center.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def padded(images: Tensor, stride: int, *, patches: bool = False) -> Tensor:
    """Pad images (N, C, H, W) with zeros at the right and bottom to sides of stride·k + 1; for patches, stride·k."""
    size = (images.shape[-2], images.shape[-1])
    height, width = padded_size(size, stride, patches=patches)
    return F.pad(images, (0, width - size[1], 0, height - size[0]))


def padded_size(size: tuple[int, int], stride: int, *, patches: bool = False) -> tuple[int, int]:
    """Return the height and width of images after `padded`."""
    over = 0 if patches else 1
    height, width = size
    return height + (over - height) % stride, width + (over - width) % stride


def grow(features: Tensor, size: tuple[int, int], *, patches: bool = False) -> Tensor:
    """Upsample features (N, F, h, w) bilinearly to ``size`` (H, W), exactly aligned with the pixels.

    Corners are aligned, from sides k + 1 to s·k + 1. For patches, from sides k to s·k, each feature lands in the center
    of its patch.
    """
    exact = features.dtype == torch.float32 and not torch.is_autocast_enabled("cuda")
    if features.is_cuda and features.requires_grad and exact and not patches:
        return by_products(features, size)
    return F.interpolate(features, size=size, mode="bilinear", align_corners=not patches)


def by_products(features: Tensor, size: tuple[int, int]) -> Tensor:
    """Upsample with aligned corners by two matrix products: on a GPU, the backward of `interpolate` is far slower."""
    rows, columns = (
        _blend(into, of, features) for into, of in zip(size, features.shape[-2:], strict=True)
    )  # (H, h), (W, w)
    return rows @ (features @ columns.T)


def _blend(into: int, of: int, like: Tensor) -> Tensor:
    """Return the matrix (into, of) of the linear interpolation from ``of`` features to ``into`` pixels."""
    places = torch.arange(into, device=like.device, dtype=like.dtype) * ((of - 1) / max(1, into - 1))
    features = torch.arange(of, device=like.device, dtype=like.dtype)
    return (1 - (places[:, None] - features).abs()).clamp_min(0)


def crop(logits: Tensor, size: tuple[int, int]) -> Tensor:
    """Crop logits of padded images to the original ``size`` (H, W)."""
    height, width = size
    return logits[..., :height, :width]


class GrowBy(nn.Module):
    """Aligned upsampling by an integer factor s, from sides k to s·k: feature i lands on pixel s·i.

    Pixels after the last feature repeat it. Plain upsampling with aligned corners would put the last feature on the
    last pixel, s − 1 pixels too far, and shift all others in proportion.
    """

    def __init__(self, factor: int) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, features: Tensor) -> Tensor:
        height, width = (self.factor * side for side in features.shape[-2:])
        repeated = F.pad(features, (0, 1, 0, 1), mode="replicate")
        return grow(repeated, (height + 1, width + 1))[..., :height, :width]


def replace_upsampling(net: nn.Module) -> None:
    """Replace every `nn.Upsample` with aligned corners in a net by `GrowBy`, in place."""
    for module in list(net.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Upsample) and child.align_corners:
                factor = child.scale_factor[0] if isinstance(child.scale_factor, tuple) else child.scale_factor
                assert factor is not None, "these modules have a factor, not a size"
                setattr(module, name, GrowBy(int(factor)))
