from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from dmt.core import trees


class Leafy(NamedTuple):
    first: Tensor
    rest: tuple[Tensor, None]


def test_tensors_come_in_order_and_clones_are_apart() -> None:
    tree = Leafy(torch.tensor(1.0), (torch.tensor(2.0), None))
    copy = trees.clone(tree)
    assert isinstance(copy, Leafy)
    assert copy.rest[1] is None
    assert [float(each) for each in trees.tensors(copy)] == [1.0, 2.0]
    next(trees.tensors(copy)).fill_(9.0)
    assert float(tree.first) == 1.0


def test_what_cannot_be_replayed_is_refused() -> None:
    with pytest.raises(TypeError, match="float"):
        list(trees.tensors((torch.tensor(1.0), 3.5)))


def test_send_keeps_types() -> None:
    cpu = torch.device("cpu")
    assert trees.send(0.1, cpu).dtype == torch.float32
    assert trees.send(np.arange(3), cpu).dtype == torch.int64
