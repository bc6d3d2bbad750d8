"""Parameter groups of a net: its encoder and its head."""

from torch import nn


def encoder_names(net: nn.Module) -> set[str]:
    """Return the names of the encoder's parameters, which pretrained starts fill: all but those of the head.

    Nets with an ``encoder`` attribute have their encoder there. In other nets, the head is the layers that timm's
    ``pretrained_cfg`` names as classifier or, without it, the attribute ``head``.
    """
    names = [name for name, _ in net.named_parameters()]
    if any(".encoder." in f".{name}" for name in names):
        return {name for name in names if ".encoder." in f".{name}"}
    heads = _classifiers(net)
    return {name for name in names if not any(f".{head}." in f".{name}" for head in heads)}


def _classifiers(net: nn.Module) -> tuple[str, ...]:
    for module in net.modules():
        config = getattr(module, "pretrained_cfg", None)
        if isinstance(config, dict) and "classifier" in config:
            found = config["classifier"]
            return (found,) if isinstance(found, str) else tuple(found)
    return ("head",)
