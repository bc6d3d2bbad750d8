import pytest
import torch

from dmt.core import targets
from dmt.types import IGNORE


def test_one_hot_has_zeros_where_there_is_no_label() -> None:
    found = targets.one_hot(torch.tensor([2, IGNORE, 0]), 3)
    assert found.tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    assert found.dtype == torch.float32


def test_sharpening_by_a_half_squares() -> None:
    found = targets.sharpened(torch.tensor([[0.6, 0.3, 0.1]]), 0.5)
    torch.testing.assert_close(found, torch.tensor([[0.36, 0.09, 0.01]]) / 0.46)
    torch.testing.assert_close(targets.sharpened(found, 1.0), found)


def test_alignment_takes_from_what_is_given_too_often() -> None:
    said, wanted, given = torch.tensor([[0.5, 0.4, 0.1]]), torch.full((3,), 1 / 3), torch.tensor([0.8, 0.1, 0.1])
    found = targets.aligned(said, wanted, given)
    assert found.argmax() == 1
    torch.testing.assert_close(found, said / given / (said / given).sum(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(targets.aligned(said, given, given), said)


def test_a_class_that_never_came_up_is_no_division_by_zero() -> None:
    found = targets.aligned(torch.tensor([[0.9, 0.1, 0.0]]), torch.full((3,), 1 / 3), torch.tensor([1.0, 0.0, 0.0]))
    assert float(found.sum()) == pytest.approx(1.0)
    assert bool(torch.isfinite(found).all())
    assert targets.normalized(torch.zeros(3)).tolist() == [0, 0, 0]
