"""Lengths for folders of masks: the folders are what they say, and fits have the steps they are named after."""

import random
from pathlib import Path

import pytest
import torch

from benchmarks import mask_lengths
from benchmarks.mask_lengths import Fit
from dmt import config as configuration
from dmt.data.folders import photos
from dmt.methods import catalogue
from dmt.own import choosing
from dmt.own.known_nets import Asked
from tests.data.folders import photo_layout


def voc(root: Path, count: int) -> Path:
    """The flat layout of PASCAL VOC, in whose lists all images are for training."""
    photo_layout.write_pairs(root, count)
    names = sorted(path.stem for path in (root / "images").iterdir())
    for path in (root / "images").iterdir():
        path.rename(path.with_suffix(".webp"))
    photo_layout.write_names(root / "classes.txt")
    (root / "splits").mkdir()
    (root / "splits" / "train_aug.txt").write_text("\n".join(names) + "\n")
    return root


def test_a_folder_of_voc_shares_no_image_between_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mask_lengths, "TEST", 5)
    source = voc(tmp_path / "voc", 40)
    contents = photos.open_folder(mask_lengths.write_folder(source, tmp_path / "folder", masks=12, unlabeled=20))
    parts = (contents.labeled, contents.unlabeled, contents.test)
    assert [len(part) for part in parts] == [12, 20, 5]
    assert len({Path(str(photo.path)).stem for part in parts for photo in part}) == 37
    ids = (source / "splits/train_aug.txt").read_text().split()
    random.Random(1).shuffle(ids)
    assert {Path(str(photo.path)).stem for photo in contents.labeled} == set(ids[:12])


@pytest.mark.parametrize("one_net", [False, True])
def test_first_nets_have_the_steps_of_the_fit(one_net: bool, tmp_path: Path) -> None:
    folder = photo_layout.write_masks(tmp_path / "masks", labeled=16, unlabeled=60)
    given = Fit("masks", 400, "baseline", one_net).arguments(folder, tmp_path / "run", "cpu")
    settings = configuration.given(given["settings"])
    setup = choosing.choose(folder, torch.device("cpu"), Asked.of(settings, {"A": "wheel", "B": "wheel"}))
    config = choosing.override(setup.preset.config, settings)
    stages = catalogue.plan("baseline", config.recipe).stages
    assert [stage.name for stage in stages] == (["A0"] if one_net else ["A0", "B0"])
    assert config.recipe.batch == mask_lengths.BATCH["cpu"]
    assert [stage.steps(config.data.sizes) for stage in stages] == [400] * len(stages)
