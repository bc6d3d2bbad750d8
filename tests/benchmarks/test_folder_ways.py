"""Ways to teach on folders: every way is a fit that dmt understands, as long as it says."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import folder_ways
from dmt import config as configuration
from dmt.config import Config
from dmt.methods import catalogue
from dmt.own import choosing
from dmt.own.known_nets import Asked
from tests.data.folders import photo_layout

GPU = torch.device("cuda")


def configured(way: dict[str, Any], folder: Path) -> tuple[Config, list[str]]:
    """The options of a fit on a GPU, and its words."""
    words = folder_ways.words(way, folder, folder / "run", "cuda")
    pairs = [words[at + 1] for at, word in enumerate(words) if word == "--set"]
    given = configuration.given(configuration.from_pairs(pairs))
    starts = {"A": "wheel", "B": "wheel"} if "--start" in words else {}
    setup = choosing.choose(folder, GPU, Asked.of(given, starts))
    return configuration.override(setup.preset.config, given), words


@pytest.mark.parametrize("ways", [folder_ways.IMAGES, folder_ways.MASKS], ids=["images", "masks"])
def test_every_way_is_understood(ways: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    write = photo_layout.write_masks if ways is folder_ways.MASKS else photo_layout.write_classes
    folder = write(tmp_path / "photos", labeled=16, unlabeled=60)
    assert folder_ways.ways_of(folder) is ways
    for name, way in ways.items():
        config, words = configured(way, folder)
        method = way.get("method", "dmt")
        stages = catalogue.plan(method, config.recipe).stages
        assert ("--method" in words) is ("method" in way), name
        if steps := way.get("steps", way.get("first_steps")):
            assert stages[0].steps(config.data.sizes) == pytest.approx(steps, rel=0.1), (name, shlex.join(words))
