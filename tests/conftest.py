"""What all tests share: one thread (tiny nets are far faster so), and a configuration that trains in a second."""

import dataclasses
import functools
import os
from collections.abc import Iterator

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import pytest
import torch

from dmt.data.pixels import scenes, segment_sets
from dmt.data.pixels.segment_sets import Parts, SegmentSet

torch.set_num_threads(1)

TINY: dict[str, object] = {
    "net": "resnet8-4",
    "epochs": 10,
    "epochs_oracle": 1,
    "epochs_round": 1,
    "fractions": "0.5,1",
    "batch_pseudo": 64,
    "batch_labeled": 32,
}
"""Overrides of the digits preset: every stage in well under a second."""

TINY_PIXELS: dict[str, object] = {
    "net": "fcn-4",
    "labels": "10",
    "validation": 6,
    "crop": "32,32",
    "batch": 8,
    "batch_pseudo": 6,
    "batch_labeled": 2,
    "epochs": 2,
    "epochs_oracle": 1,
    "epochs_round": 1,
    "online.epochs": 1,
    "fractions": "0.5,1",
    "share": 0.8,
}
"""Overrides of the scenes preset for `few_scenes`: every stage in a few tenths of a second."""


@pytest.fixture(scope="session", autouse=True)
def no_disk_is_waited_for() -> Iterator[None]:
    """Files need not outlive a loss of power: no test could tell, and a tiny run waits for the disk sixty times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture
def tiny() -> dict[str, object]:
    return dict(TINY)


@functools.cache
def _forty_scenes() -> Parts:
    return scenes.scenes(train=40, test=12)


@pytest.fixture(scope="module")
def few_scenes() -> Iterator[SegmentSet]:
    """For one file of tests "scenes" are the first 40 and 12 of them, made once for all files."""
    few = dataclasses.replace(
        segment_sets.SEGMENT_SETS["scenes"], train=40, test=12, read=lambda folder, notify, tell: _forty_scenes()
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(segment_sets.SEGMENT_SETS, "scenes", few)
        yield few


@pytest.fixture
def tiny_pixels(few_scenes: SegmentSet) -> dict[str, object]:
    return dict(TINY_PIXELS)


@pytest.fixture
def by_http() -> None:
    """For tests that read from an HTTP server."""
    pytest.importorskip("fsspec.implementations.http", exc_type=ImportError, reason="fsspec[http] is not installed")


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
