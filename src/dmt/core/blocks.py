"""Blocks that a large net repeats. Compiled one by one they take a fraction of what the whole net would.

A ResNet-152 has 50 blocks of 8 shapes. Code compiled for a block serves all blocks of its shape, of later nets too.
"""

from collections import Counter
from collections.abc import Iterator

from torch import nn

SMALL = 4
"""Modules with fewer parts than this are layers, not blocks."""


def repeated(net: nn.Module) -> Iterator[nn.Module]:
    """Modules of which a sequence within the net has several."""
    for parent in net.modules():
        if isinstance(parent, nn.Sequential | nn.ModuleList):
            kinds = Counter(map(type, parent))
            yield from (each for each in parent if kinds[type(each)] > 1 and _is_block(each))


def _is_block(module: nn.Module) -> bool:
    return not isinstance(module, nn.Sequential | nn.ModuleList) and sum(1 for _ in module.modules()) > SMALL


def compile_repeated(net: nn.Module) -> None:
    """Compile them in place, for fixed shapes; names of parameters stay."""
    for block in repeated(net):
        block.compile(dynamic=False)


def plain(net: nn.Module) -> None:
    """Undo `compile_repeated`: images of many sizes would be compiled for, each anew."""
    for block in repeated(net):
        block._compiled_call_impl = None  # what Module.compile sets, and copies of a module leave out
