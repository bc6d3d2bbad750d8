"""Which parameters of a net are its encoder's, and which its head's."""

from torch import nn


def encoder_names(net: nn.Module) -> set[str]:
    """Names of the parameters that published starts fill: all but those of the layers that tell classes.

    Nets of ours say it by their attributes ``encoder`` and ``head``, those of timm by ``get_classifier``.
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
