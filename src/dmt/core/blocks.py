"""Compile the repeated blocks of a large net one by one, in a fraction of the time that the whole net would take.

A ResNet-152 has 50 blocks of 8 shapes. Code compiled for one block serves all blocks of its shape, also in later nets.
"""

from collections import Counter
from collections.abc import Iterator

from torch import nn

SMALL = 4
"""Modules with at most this many submodules, themselves included, count as layers, not as blocks."""


def repeated(net: nn.Module) -> Iterator[nn.Module]:
    """Yield the blocks whose type occurs more than once in a Sequential or ModuleList of the net."""
    for parent in net.modules():
        if isinstance(parent, nn.Sequential | nn.ModuleList):
            kinds = Counter(map(type, parent))
            yield from (each for each in parent if kinds[type(each)] > 1 and _is_block(each))


def _is_block(module: nn.Module) -> bool:
    return not isinstance(module, nn.Sequential | nn.ModuleList) and sum(1 for _ in module.modules()) > SMALL


def compile_repeated(net: nn.Module) -> None:
    """Compile the repeated blocks in place for fixed shapes; names of parameters do not change."""
    for block in repeated(net):
        block.compile(dynamic=False)


def plain(net: nn.Module) -> None:
    """Undo `compile_repeated`, for images of many sizes: each size would be compiled for anew."""
    for block in repeated(net):
        block._compiled_call_impl = None  # set by Module.compile, and not carried over to copies of a module
