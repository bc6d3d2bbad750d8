import pytest
import torch

from dmt.errors import ConfigError
from dmt.models import names
from dmt.models.build import NetSpec, build
from dmt.types import Normalization

PLAIN = Normalization((0.0,), (1.0,))


def test_images_and_their_pixels_as_rows_are_seen_alike(generator: torch.Generator) -> None:
    net = build(NetSpec("mlp-16", 3, (1, 4, 5), PLAIN), seed=1).eval()
    images = torch.rand(6, 1, 4, 5, generator=generator)
    rows = images.flatten(1)
    assert net(images).shape == (6, 3)
    assert torch.equal(net(images), net(rows))
    assert torch.equal(net(rows), net(torch.stack([rows, 1 - rows], 1)))  # of several views the first counts


def test_names() -> None:
    assert names.kind("mlp-64") == "mlp"
    with pytest.raises(ConfigError, match="width must be 1 or more"):
        build(NetSpec("mlp-0", 3, (1, 4, 5), PLAIN), seed=1)
