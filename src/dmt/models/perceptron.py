"""A perceptron for rows of features, or for tiny images as rows of pixels."""

from torch import Tensor, nn


class Perceptron(nn.Module):
    """Two hidden layers, each with BatchNorm and ReLU.

    Args:
        width: of the hidden layers.
        classes: how many there are.
        features: numbers in a row, of an image all of its pixels.
    """

    def __init__(self, width: int, classes: int, features: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs in (features, width):
            layers += [nn.Linear(inputs, width, bias=False), nn.BatchNorm1d(width), nn.ReLU()]
        self.hidden = nn.Sequential(*layers)
        self.head = nn.Linear(width, classes)

    def forward(self, rows: Tensor) -> Tensor:
        """Images (N, C, H, W), or features (N, F), to logits (N, classes).

        Features may be (N, V, F), several views of each image, of which the first counts.
        """
        return self.head(self.embed(rows))  # type: ignore[no-any-return]

    def embed(self, rows: Tensor) -> Tensor:
        """The same to what the head reads, (N, F)."""
        first = rows[:, 0] if rows.dim() == 3 else rows.flatten(1)
        return self.hidden(first)  # type: ignore[no-any-return]
