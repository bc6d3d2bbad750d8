import pytest

from dmt.models import groups
from dmt.models.build import NetSpec, build
from dmt.types import IMAGENET


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("resnet8-4", "body.head."),
        ("wrn-10-1", "body.head."),
        ("cnn13", "body.head."),
        ("timm:resnet10t", "body.fc."),
        ("timm:convnext_atto", "body.head.fc."),
        ("frozen:resnet10t", "body.head."),
        ("fcn-4", "body.head."),
        ("deeplab2:resnet10t", "body.head."),
    ],
)
def test_all_but_the_layers_that_tell_classes_are_the_encoders(name: str, head: str) -> None:
    pixels = name.startswith(("fcn", "deeplab"))
    net = build(NetSpec(name, 7, (3, 65, 65), IMAGENET, pixels), seed=0)
    names = {each for each, _ in net.named_parameters()}
    rest = {each for each in names if each.startswith(head)}
    assert all(len(net.get_parameter(each)) == 7 for each in rest)
    assert rest
    assert groups.encoder_names(net) == names - rest


@pytest.mark.parametrize(
    ("name", "encoder"),
    [
        ("smp:unet/resnet18", "body.net.encoder."),
        ("fpn:resnet10t", "body.encoder."),
        ("frozen-fpn:resnet10t", "body.encoder."),
    ],
)
def test_a_decoder_is_no_encoder(name: str, encoder: str) -> None:
    net = build(NetSpec(name, 7, (3, 64, 64), IMAGENET, pixels=True), seed=0)
    names = {each for each, _ in net.named_parameters()}
    assert groups.encoder_names(net) == {each for each in names if each.startswith(encoder)} != names
