"""CNN-13, the net of the Π-model, Mean Teacher, Deep Co-Training, Dual Student and DAG, before Wide ResNets."""

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

SMALLEST = 12
"""Smallest side of an image in pixels, for which the last convolutions still have an output."""

_LAYERS: tuple[tuple[int, int, int], ...] = (
    (128, 3, 1), (128, 3, 1), (128, 3, 1),
    (256, 3, 1), (256, 3, 1), (256, 3, 1),
    (512, 3, 0), (256, 1, 0), (128, 1, 0),
)  # fmt: skip
"""Width, kernel and padding of each convolution."""


class Layer(nn.Sequential):
    """Convolution with weight normalization, BatchNorm, LeakyReLU."""

    def __init__(self, width_in: int, width: int, kernel: int, padding: int) -> None:
        conv = weight_norm(nn.Conv2d(width_in, width, kernel, padding=padding))
        super().__init__(conv, nn.BatchNorm2d(width), nn.LeakyReLU(0.1))


class CNN13(nn.Module):
    """Nine convolutions, max pooling and dropout after the third and the sixth, mean pooling, and a linear layer.

    All layers have weight normalization, and each convolution is followed by BatchNorm with scale and shift, as in Dual
    Student's net. The original nets had mean-only BatchNorm, and noise on their input.
    """

    def __init__(self, classes: int, channels: int = 3) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        width_in = channels
        for number, (width, kernel, padding) in enumerate(_LAYERS):
            if number in (3, 6):
                layers += [nn.MaxPool2d(2), nn.Dropout(0.5)]
            layers.append(Layer(width_in, width, kernel, padding))
            width_in = width
        self.layers = nn.Sequential(*layers)
        self.head = weight_norm(nn.Linear(width_in, classes))

    def forward(self, images: Tensor) -> Tensor:
        """Map images (N, C, H, W) to logits (N, classes)."""
        return self.head(self.embed(images))  # type: ignore[no-any-return]

    def embed(self, images: Tensor) -> Tensor:
        """Map images (N, C, H, W) to the input of the head, (N, 128)."""
        return torch.mean(self.layers(images), dim=(2, 3))
