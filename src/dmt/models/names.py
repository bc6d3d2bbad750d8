"""What the name of a net says about it: ``KIND:NAME`` for nets of a library, ``KIND-SIZE`` for nets of this package."""

import re

IMAGE_KINDS = ("timm", "frozen", "wrn", "resnet8")
PIXEL_KINDS = ("deeplab2", "deeplab2x2", "fpn", "frozen-fpn", "smp", "fcn")

_NAME = re.compile(r"(timm|frozen|deeplab2|deeplab2x2|fpn|frozen-fpn|smp):.*|(wrn)-\d+-\d+|(resnet8|fcn)-\d+")


def kind(net: str) -> str | None:
    """One of the kinds above; None for any other name, such as that of a net which a user registered."""
    match = _NAME.fullmatch(net)
    return match and next(filter(None, match.groups()))


def inner(net: str) -> str:
    """What a library calls its net: ``resnet18`` for ``timm:resnet18``."""
    return net.partition(":")[2]


def is_frozen(net: str) -> bool:
    """Whether the encoder stays as it starts, and only what is on top of it learns."""
    return kind(net) in ("frozen", "frozen-fpn")


def encoder(net: str) -> str | None:
    """What timm calls the encoder of a net; None for a net without one."""
    match kind(net):
        case "timm" | "frozen" | "deeplab2" | "deeplab2x2" | "fpn" | "frozen-fpn":
            return inner(net)
        case "smp":
            return re.sub("^(tu|timm)-", "", inner(net).partition("/")[2])
        case _:
            return None
