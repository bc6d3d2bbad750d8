from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from dmt.core import outliers


class Largest(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Keeps the number of elements of the largest tensor that is computed."""

    numel = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        self.numel = max(self.numel, found.numel() if isinstance(found, Tensor) else 0)
        return found


def test_one_in_twenty_of_the_same_kind_and_all_of_another(generator: torch.Generator) -> None:
    center, other = torch.randn(2, 64, generator=generator)
    known = center + torch.randn(200, 64, generator=generator)
    same = center + torch.randn(1000, 64, generator=generator)
    foreign = other + torch.randn(300, 64, generator=generator)
    unlike = outliers.unlike(known, torch.cat([same, foreign]).half())
    assert unlike[:1000].float().mean() < 0.1
    assert unlike[1000:].float().mean() > 0.99


def test_copies_are_alike_whatever_their_length(generator: torch.Generator) -> None:
    known = torch.randn(30, 8, generator=generator)
    assert not outliers.unlike(known, 3 * known).any()


def test_many_are_compared_in_parts(generator: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    known, others = torch.randn(20, 4, generator=generator), torch.randn(50, 4, generator=generator)
    whole = outliers.unlike(known, others)
    monkeypatch.setattr(outliers, "ROWS", 7)
    with Largest() as largest:  # type: ignore[no-untyped-call]  # 20,000 known images compared at once would take 1.6 GB
        assert torch.equal(outliers.unlike(known, others), whole)
    assert largest.numel == 7 * len(known)
    assert len(outliers.unlike(known, others[:0])) == 0


def test_one_image_has_no_other() -> None:
    with pytest.raises(ValueError, match="two"):
        outliers.unlike(torch.ones(1, 3), torch.ones(2, 3))
