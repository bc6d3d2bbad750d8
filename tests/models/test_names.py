"""What names say about nets."""

import pytest

from dmt.models import names


@pytest.mark.parametrize(
    ("net", "kind", "encoder"),
    [
        ("timm:resnet18.tv_in1k", "timm", "resnet18.tv_in1k"),
        ("frozen:tf_efficientnet_lite0", "frozen", "tf_efficientnet_lite0"),
        ("deeplab2:resnet101", "deeplab2", "resnet101"),
        ("deeplab2x2:resnet50", "deeplab2x2", "resnet50"),
        ("deeplab2:resnet101@16", "deeplab2", "resnet101"),
        ("fpn:resnet50", "fpn", "resnet50"),
        ("frozen-fpn:tf_efficientnet_lite0", "frozen-fpn", "tf_efficientnet_lite0"),
        ("smp:unet/resnet34", "smp", "resnet34"),
        ("smp:unet/tu-convnext_tiny", "smp", "convnext_tiny"),
        ("wrn-28-2", "wrn", None),
        ("resnet8-16", "resnet8", None),
        ("fcn-16", "fcn", None),
        ("cnn13", "cnn13", None),
        ("cnn13-2", None, None),
        ("tiny", None, None),  # as users register nets
        ("deeplab2-like", None, None),
        ("fcn-wide", None, None),
    ],
)
def test_kind_and_encoder(net: str, kind: str | None, encoder: str | None) -> None:
    assert names.kind(net) == kind
    assert names.encoder(net) == encoder


def test_only_frozen_nets_are_frozen() -> None:
    assert all(map(names.is_frozen, ("frozen:resnet18", "frozen-fpn:resnet18")))
    assert not any(map(names.is_frozen, ("timm:resnet18", "fpn:resnet18", "frozen", "wrn-28-2")))


@pytest.mark.parametrize(
    ("net", "side"),
    [("frozen:vit_small_patch14_dinov2", 14), ("timm:vit_base_patch16_siglip_224", 16), ("timm:resnet18", 1)],
)
def test_names_speak_of_patches(net: str, side: int) -> None:
    assert names.patch(net) == side
