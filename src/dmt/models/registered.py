"""Nets that users register, by name."""

import inspect
from collections.abc import Callable

from torch import nn

from dmt.errors import ConfigError
from dmt.models import names

OWN: dict[str, Callable[[int, int], nn.Module]] = {}
"""Functions that build registered nets, by name: (classes, channels) -> module."""


def register(name: str, make: Callable[[int, int], nn.Module]) -> None:
    """Register a user-defined net under a name.

    Args:
        name: the name, which no built-in net may have.
        make: (classes, channels) -> a module from images, already normalized, to logits: (N, classes) for images,
            (N, classes, H, W) for pixels.

    Raises:
        ConfigError: if it is no name, or that of a built-in net, or ``make`` is no such function.
    """
    if not isinstance(name, str) or not name.strip():
        raise ConfigError(f"a net is registered under a name, such as 'tiny', not {name!r}")
    if names.kind(name) is not None:
        raise ConfigError(f"'{name}' is a net of ours already; give yours another name")
    if isinstance(make, nn.Module) or not callable(make) or not _takes_two(make):
        raise ConfigError(f"give net '{name}' a function (classes, channels) -> module that builds it anew")
    OWN[name] = make


def build(name: str, classes: int, channels: int) -> nn.Module:
    """Build a registered net."""
    found: object = OWN[name](classes, channels)
    if not isinstance(found, nn.Module):
        raise ConfigError(
            f"net '{name}' was registered with a function that gives {type(found).__name__}; "
            "let it return a torch.nn.Module"
        )
    return found


def _takes_two(make: Callable[..., object]) -> bool:
    """Return whether a function can be called with two arguments, as far as it says which it takes."""
    try:
        inspect.signature(make).bind(2, 3)
    except ValueError:  # some that are not written in Python do not say
        return True
    except TypeError:
        return False
    return True
