"""Doubt counts every reason to be unsure; disagreement only that nets contradict each other."""

import pytest
import torch

from dmt.core import disagreement


def nets(*rows: list[float]) -> torch.Tensor:
    """(nets, 1, C)."""
    return torch.tensor(rows).unsqueeze(1)


@pytest.mark.parametrize(
    ("said", "doubt", "apart"),
    [
        (nets([1.0, 0.0], [1.0, 0.0]), 0.0, 0.0),  # both sure of the same
        (nets([1.0, 0.0], [0.0, 1.0]), 1.0, 1.0),  # both sure, of different classes
        (nets([0.5, 0.5], [0.5, 0.5]), 1.0, 0.0),  # both unsure
        (nets([0.5, 0.5]), 1.0, 0.0),  # one net alone cannot disagree
    ],
)
def test_known_cases(said: torch.Tensor, doubt: float, apart: float) -> None:
    assert disagreement.doubt(said).item() == pytest.approx(doubt)
    assert disagreement.disagreement(said).item() == pytest.approx(apart)


def test_disagreement_is_part_of_doubt_for_every_pixel(generator: torch.Generator) -> None:
    said = torch.randn(2, 3, 4, 5, 6, generator=generator).mul(2).softmax(2)
    doubt, apart = disagreement.doubt(said), disagreement.disagreement(said)
    assert doubt.shape == apart.shape == (3, 5, 6)
    assert ((apart >= 0) & (apart <= doubt) & (doubt <= 1)).all()
