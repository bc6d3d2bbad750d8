"""What all tests share: one thread (tiny nets are far faster so), and a configuration that trains in a second."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import pytest
import torch

torch.set_num_threads(1)

TINY: dict[str, object] = {
    "net": "resnet8-4",
    "epochs": 10,
    "epochs_oracle": 1,
    "epochs_round": 2,
    "fractions": "0.5,1",
    "batch_pseudo": 64,
    "batch_labeled": 32,
}
"""Overrides of the digits preset: every stage in well under a second."""


@pytest.fixture
def tiny() -> dict[str, object]:
    return dict(TINY)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
