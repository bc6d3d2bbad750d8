"""A training step recorded once as a CUDA graph and then replayed: one launch instead of hundreds."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from dmt.core import trees

WARM_UP = 3
"""Number of runs before recording, in which code is compiled, kernels are selected and allocators settle."""


class Recorded:
    """A recorded function of a tree of tensors, replayed with new input values. Use it within `Execution.active`.

    Args:
        function: tensor code with static shapes and without host synchronization; returns a tensor.
        example: inputs of the right shapes.
        state: every tensor that the function changes; they are restored after the warm-up runs.
    """

    def __init__(self, function: Callable[[Any], Tensor], example: Any, state: Sequence[Tensor]) -> None:
        self._inputs = trees.clone(example)
        self._places = list(trees.tensors(self._inputs))
        before = [tensor.detach().clone() for tensor in state]
        for _ in range(WARM_UP):
            function(self._inputs)
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=torch.cuda.current_stream()):
            self._output = function(self._inputs)
        for tensor, value in zip(state, before, strict=True):
            tensor.detach().copy_(value)

    def __call__(self, inputs: Any) -> Tensor:
        """Replay with these inputs. The result is overwritten by the next call, so read it before."""
        for place, value in zip(self._places, trees.tensors(inputs), strict=True):
            place.copy_(value, non_blocking=True)
        self._graph.replay()
        return self._output
