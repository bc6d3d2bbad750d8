"""What the name of a net says about it.

``KIND:NAME`` for nets of a library, ``KIND-SIZE`` or ``KIND`` for nets of this package. A DeepLab may end in
``@STRIDE``.
"""

import re

IMAGE_KINDS = ("timm", "frozen", "tuned", "wrn", "resnet8", "mlp", "cnn13")
PIXEL_KINDS = ("deeplab2", "deeplab2x2", "fpn", "frozen-fpn", "smp", "fcn")

OUTPUT_STRIDE = 8
"""Of a net that dilates, if its name says nothing else."""

_STRIDE = re.compile(r"@(\d+)$")
_PATCH = re.compile(r"patch(\d+)")
_NAME = re.compile(
    r"(timm|frozen|tuned|deeplab2|deeplab2x2|fpn|frozen-fpn|smp):.*|(wrn)-\d+-\d+|(resnet8|mlp|fcn)-\d+|(cnn13)"
)


def kind(net: str) -> str | None:
    """One of the kinds above; None for any other name, such as that of a net which a user registered."""
    match = _NAME.fullmatch(net)
    return match and next(filter(None, match.groups()))


def inner(net: str) -> str:
    """What a library calls its net: ``resnet18`` for ``timm:resnet18``."""
    name = net.partition(":")[2]
    return _STRIDE.sub("", name) if dilates(net) else name


def dilates(net: str) -> bool:
    """Whether dilation replaces strides, so that an output stride can be chosen."""
    return kind(net) in ("deeplab2", "deeplab2x2")


def output_stride(net: str) -> int:
    """Pixels from one feature to the next, of a net that dilates."""
    match = _STRIDE.search(net)
    return int(match[1]) if match else OUTPUT_STRIDE


def with_stride(net: str, stride: int) -> str:
    """The same net with another output stride; names that have one, and nets that do not dilate, stay as they are."""
    plain = not dilates(net) or stride == OUTPUT_STRIDE or _STRIDE.search(net)
    return net if plain else f"{net}@{stride}"


def patch(net: str) -> int:
    """Pixels of a side of the patches that the encoder cuts images into; 1 if its name speaks of none."""
    match = _PATCH.search(encoder(net) or "")
    return int(match[1]) if match else 1


def is_frozen(net: str) -> bool:
    """Whether the encoder stays as it starts, and only what is on top of it learns."""
    return kind(net) in ("frozen", "frozen-fpn")


def encoder(net: str) -> str | None:
    """What timm calls the encoder of a net; None for a net without one."""
    match kind(net):
        case "timm" | "frozen" | "tuned" | "deeplab2" | "deeplab2x2" | "fpn" | "frozen-fpn":
            return inner(net)
        case "smp":
            return re.sub("^(tu|timm)-", "", inner(net).partition("/")[2])
        case _:
            return None
