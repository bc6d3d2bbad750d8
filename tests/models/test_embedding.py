"""What the last layer reads."""

import pytest
import torch
from torch import Tensor, nn

from dmt.errors import ConfigError
from dmt.models import embedding
from dmt.models.build import NetSpec, Normalized, build
from dmt.types import Normalization

COLOR = Normalization((0.5, 0.4, 0.3), (0.2, 0.2, 0.2))


@pytest.mark.parametrize(
    ("name", "size", "wide"),
    [("wrn-10-1", 16, 64), ("resnet8-4", 8, 16), ("mlp-8", 8, 8), ("cnn13", 12, 128), ("timm:resnet18", 32, 512),
     ("frozen:resnet18", 32, 512), ("tuned:resnet18", 32, 512), ("timm:vit_tiny_patch16_224", 32, 192)],
)  # fmt: skip
def test_the_last_layer_makes_logits_of_it(name: str, size: int, wide: int) -> None:
    net = build(NetSpec(name, 5, (3, size, size), COLOR), seed=1)
    assert embedding.width(net, (3, size, size)) == wide
    assert net.training
    net.eval()
    images = torch.rand(2, 3, size, size)
    head = [module for module in net.modules() if isinstance(module, nn.Linear)][-1]
    with torch.no_grad():
        torch.testing.assert_close(head(net.embed(images)), net(images))


def test_features_of_a_frozen_encoder_are_read_as_they_are() -> None:
    net = build(NetSpec("frozen:resnet18", 5, (3, 32, 32), COLOR), seed=1).eval()
    rows = torch.rand(3, 2, 512)
    with torch.no_grad():
        torch.testing.assert_close(net.body.head[1](net.embed(rows)), net(rows))  # type: ignore[index,operator]


def test_a_net_that_does_not_tell_is_refused_in_one_line() -> None:
    class Silent(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return images.flatten(1)

    with pytest.raises(ConfigError, match=r"Silent does not provide .* embed\(images\)") as caught:
        Normalized(Silent(), COLOR).embed(torch.rand(1, 3, 4, 4))
    assert "\n" not in str(caught.value)
