import numpy as np
import pytest
import torch

from dmt.core import noise

CPU = torch.device("cpu")


def test_numbers_are_uniform_and_depend_on_seed_and_place_alone() -> None:
    seeds = noise.draw((50,), np.random.default_rng(1), CPU)
    found = noise.uniform(seeds, 2000)
    assert found.shape == (50, 2000)
    assert found.dtype == torch.float32
    assert float(found.min()) >= 0
    assert float(found.max()) < 1
    counts = torch.histc(found, 20, 0, 1)
    assert float((counts / counts.mean() - 1).abs().max()) < 0.1
    assert torch.equal(noise.uniform(seeds[7:9], 100), found[7:9, :100])


@pytest.mark.parametrize("seeds", [torch.arange(400), torch.arange(400) * 2**20])
def test_neighbors_know_nothing_of_each_other(seeds: torch.Tensor) -> None:
    """Neither those of one seed, nor the same place of the next seed."""
    found = noise.uniform(seeds, 400).double()
    for each in (found, found.T):
        pairs = torch.stack([each[:-1].flatten(), each[1:].flatten()])
        assert abs(float(torch.corrcoef(pairs)[0, 1])) < 0.02
    assert len(set(found.flatten().tolist())) > 0.98 * found.numel()
