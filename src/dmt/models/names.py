"""Parse the names of nets.

Names are ``KIND:NAME`` for nets of a library, and ``KIND-SIZE`` or ``KIND`` for nets of this package. The name of a
DeepLab may end in ``@STRIDE``.
"""

import re

IMAGE_KINDS = ("timm", "frozen", "tuned", "wrn", "resnet8", "mlp", "cnn13")
PIXEL_KINDS = ("deeplab2", "deeplab2x2", "fpn", "frozen-fpn", "smp", "fcn")

OUTPUT_STRIDE = 8
"""Output stride of a dilated net whose name does not give another one."""

_STRIDE = re.compile(r"@(\d+)$")
_PATCH = re.compile(r"patch(\d+)")
_NAME = re.compile(
    r"(timm|frozen|tuned|deeplab2|deeplab2x2|fpn|frozen-fpn|smp):.*|(wrn)-\d+-\d+|(resnet8|mlp|fcn)-\d+|(cnn13)"
)


def kind(net: str) -> str | None:
    """Return the kind of a net, one of those above; None for any other name, such as that of a user-defined net."""
    match = _NAME.fullmatch(net)
    return match and next(filter(None, match.groups()))


def inner(net: str) -> str:
    """Return a net's name in its library: ``resnet18`` for ``timm:resnet18``."""
    name = net.partition(":")[2]
    return _STRIDE.sub("", name) if dilates(net) else name


def dilates(net: str) -> bool:
    """Return whether dilation replaces strides in a net, so that its output stride can be chosen."""
    return kind(net) in ("deeplab2", "deeplab2x2")


def output_stride(net: str) -> int:
    """Return the output stride of a dilated net: pixels from one feature to the next."""
    match = _STRIDE.search(net)
    return int(match[1]) if match else OUTPUT_STRIDE


def with_stride(net: str, stride: int) -> str:
    """Add an output stride to a net's name, unless it gives one already or the net is not dilated."""
    plain = not dilates(net) or stride == OUTPUT_STRIDE or _STRIDE.search(net)
    return net if plain else f"{net}@{stride}"


def patch(net: str) -> int:
    """Return the side in pixels of the patches that the encoder cuts images into; 1 if its name has no patch size."""
    match = _PATCH.search(encoder(net) or "")
    return int(match[1]) if match else 1


def is_frozen(net: str) -> bool:
    """Return whether the encoder is frozen, so that only the layers on top of it are trained."""
    return kind(net) in ("frozen", "frozen-fpn")


def encoder(net: str) -> str | None:
    """Return timm's name of a net's encoder; None for a net without a library's encoder."""
    match kind(net):
        case "timm" | "frozen" | "tuned" | "deeplab2" | "deeplab2x2" | "fpn" | "frozen-fpn":
            return inner(net)
        case "smp":
            return re.sub("^(tu|timm)-", "", inner(net).partition("/")[2])
        case _:
            return None
