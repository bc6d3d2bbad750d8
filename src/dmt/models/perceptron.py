"""Multilayer perceptron for feature vectors, or for tiny images as vectors of pixels."""

from torch import Tensor, nn


class Perceptron(nn.Module):
    """Multilayer perceptron with two hidden layers, each with BatchNorm and ReLU.

    Args:
        width: width of the hidden layers.
        classes: number of classes.
        features: length of an input vector; for images, the number of values in all channels.
    """

    def __init__(self, width: int, classes: int, features: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs in (features, width):
            layers += [nn.Linear(inputs, width, bias=False), nn.BatchNorm1d(width), nn.ReLU()]
        self.hidden = nn.Sequential(*layers)
        self.head = nn.Linear(width, classes)

    def forward(self, rows: Tensor) -> Tensor:
        """Map images (N, C, H, W) or features (N, F) to logits (N, classes).

        Features may also be (N, V, F), for several views of each image, of which the first is used.
        """
        return self.head(self.embed(rows))  # type: ignore[no-any-return]

    def embed(self, rows: Tensor) -> Tensor:
        """Map the same to the input of the head, (N, width)."""
        first = rows[:, 0] if rows.dim() == 3 else rows.flatten(1)
        return self.hidden(first)  # type: ignore[no-any-return]
