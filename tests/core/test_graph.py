import pytest
import torch
from torch import Tensor

from dmt.core import graph
from dmt.core.graph import Graph
from dmt.types import IGNORE


@pytest.fixture
def features(generator: torch.Generator) -> Tensor:
    return torch.randn(30, 4, generator=generator)


def test_neighbors_are_the_most_alike_whatever_the_block(features: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    cosines = torch.nn.functional.normalize(features, dim=1)
    alike = cosines @ cosines.T
    expected = alike.fill_diagonal_(-1).topk(5, dim=1)
    for block in (graph.BLOCK, 70):
        monkeypatch.setattr(graph, "BLOCK", block)
        found, positions = graph.nearest(3 * features, 5)
        assert torch.equal(positions, expected.indices)
        torch.testing.assert_close(found, expected.values)
    assert graph.nearest(features[:3], 50)[0].shape == (3, 2)


def test_what_spreads_solves_the_equation(features: Tensor) -> None:
    """Beside the same in dense matrices."""
    chosen = Graph(neighbors=5, reach=0.8, power=3.0)
    cosines, neighbors = graph.nearest(features, 5)
    given = torch.full((30,), IGNORE)
    given[:4] = torch.tensor([0, 1, 2, 0])
    one_way = torch.zeros(30, 30, dtype=torch.float64)
    one_way.scatter_(1, neighbors, cosines.double().clamp_min(0) ** 3)
    both = (one_way + one_way.T) / 2
    scale = both.sum(1).rsqrt()
    truth = torch.zeros(30, 3, dtype=torch.float64)
    truth[torch.arange(4), given[:4]] = 1.0
    expected = torch.linalg.solve(torch.eye(30) - 0.8 * scale[:, None] * both * scale, truth)
    torch.testing.assert_close(graph.spread(cosines, neighbors, given, 3, chosen), expected, atol=1e-6, rtol=1e-4)


def test_one_label_reaches_its_whole_cluster_and_no_other(generator: torch.Generator) -> None:
    centers = torch.eye(3)
    features = torch.cat([center + 0.1 * torch.randn(20, 3, generator=generator) for center in centers])
    given = torch.full((60,), IGNORE)
    given[[0, 20]] = torch.tensor([1, 0])  # nobody labels the third
    found = graph.spread(*graph.nearest(features, 6), given, 2, Graph(neighbors=6))
    assert bool((found[:20].argmax(1) == 1).all())
    assert bool((found[20:40].argmax(1) == 0).all())
    assert float(found[40:].sum()) == 0.0
