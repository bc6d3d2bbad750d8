"""Given labels are judged by nets that never saw them."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from dmt import config as configuration
from dmt import presets
from dmt.auditing import given_labels, suspects
from dmt.auditing.given_labels import AuditContext, CrossFit
from dmt.config import Config
from dmt.core.execution import Execution
from dmt.data.pixels.segment_sets import SegmentSet
from dmt.data.sets import LabeledSet
from dmt.errors import ConfigError
from dmt.runs import starting
from dmt.runs.progress import Silent
from dmt.runs.stopping import Stop, Stopped
from dmt.tasks import opening
from dmt.tasks.base import Task
from dmt.tasks.classification import Classification
from tests.conftest import TINY, TINY_PIXELS

CPU = torch.device("cpu")


def opened(preset: str, **settings: object) -> tuple[Task, Config]:
    config = configuration.override(presets.get(preset).config, settings)
    return opening.read(config.data, Path("data"), print, lambda done, of: None).split(1)[0], config


def recipe(config: Config, work: Path, folds: int = 2) -> CrossFit:
    return CrossFit(config, starting.find({}, config, "random", None), seed=1, folds=folds, work=work)


def context(stop: Stop | None = None) -> AuditContext:
    return AuditContext(Execution(CPU), stop or Stop(None), Silent())


@pytest.fixture(scope="module")
def digits() -> tuple[Task, Config]:
    return opened("digits", **TINY | {"epochs": 30, "labels": 200, "net": "resnet8-8"})


def test_folds_share_out_all_labels_and_every_class(digits: tuple[Task, Config]) -> None:
    task, _ = digits
    folds = given_labels.deal(task, 5, seed=1)
    assert sorted(torch.cat(folds).tolist()) == list(range(len(task.labeled)))
    for fold in folds:
        assert task.labeled.labels[fold].bincount(minlength=10).tolist() == [4] * 10
    assert [fold.tolist() for fold in folds] == [fold.tolist() for fold in given_labels.deal(task, 5, seed=1)]
    assert [fold.tolist() for fold in folds] != [fold.tolist() for fold in given_labels.deal(task, 5, seed=2)]


def test_too_many_folds_are_refused(digits: tuple[Task, Config]) -> None:
    with pytest.raises(ConfigError, match="--folds"):
        given_labels.deal(digits[0], 201, seed=1)


def test_no_net_judges_a_label_that_it_learned_from(digits: tuple[Task, Config], tmp_path: Path) -> None:
    task, config = digits
    for judge in given_labels.judges(task, recipe(config, tmp_path, 4)):
        assert not set(judge.learned.tolist()) & set(judge.held.tolist())
        assert len(judge.learned) + len(judge.held) == len(task.labeled)


def test_both_nets_of_a_pair_judge(few_scenes: SegmentSet, tmp_path: Path) -> None:
    task, config = opened("scenes", **TINY_PIXELS)
    every = given_labels.judges(task, recipe(config, tmp_path))
    assert [judge.stage.lines for judge in every] == [("A",), ("B",)] * 2
    assert len({judge.seed for judge in every}) == 4


def test_flipped_labels_come_first_and_a_stopped_audit_goes_on(digits: tuple[Task, Config], tmp_path: Path) -> None:
    task, config = digits
    assert isinstance(task, Classification)
    labels = task.labeled.labels.clone()
    wrong = list(range(0, 200, 17))
    labels[wrong] = (labels[wrong] + 5) % 10
    task = replace(task, labeled=LabeledSet(task.labeled.ids, task.labeled.images, labels))
    how = recipe(config, tmp_path)
    with pytest.raises(Stopped):
        given_labels.train(task, how, context(Stop(0.0)))
    checks = given_labels.train(task, how, context())
    nets = sorted(tmp_path.iterdir())
    written = [each.stat().st_mtime_ns for each in nets]
    judged = given_labels.examine(task, checks)
    found = judged.found
    assert len(found) == judged.of == 200
    assert judged.bars.shape == (10,)
    said = {each.position: each.score <= 0 for each in found}
    assert judged.agreement == pytest.approx(sum(said.values()) / 200)
    assert len({each.position for each in found[: len(wrong)]} & set(wrong)) >= len(wrong) / 2
    hit = next(each for each in found if each.position in wrong and each.suspicious)
    assert hit.file == task.labeled.ids[hit.position]
    assert hit.given == labels[hit.position]
    assert len(hit.nets) == given_labels.NETS
    own, other = (sum(pair[side] for pair in hit.nets) / 2 for side in (0, 1))
    assert other - own == pytest.approx(hit.score, abs=1e-5)
    suspicious = [each.suspicious for each in found]
    assert suspicious == sorted(suspicious, reverse=True)
    assert given_labels.examine(task, given_labels.train(task, how, context())).found == found
    assert [each.stat().st_mtime_ns for each in sorted(tmp_path.iterdir())] == written  # nothing was trained again


def test_nets_of_other_labels_are_not_taken(digits: tuple[Task, Config], tmp_path: Path) -> None:
    task, config = digits
    assert isinstance(task, Classification)
    how = recipe(replace(config, recipe=replace(config.recipe, epochs=1)), tmp_path)
    given_labels.train(task, how, context())
    labels = task.labeled.labels.flip(0)
    other = replace(task, labeled=LabeledSet(task.labeled.ids, task.labeled.images, labels))
    given_labels.train(other, how, context())
    assert len(list(tmp_path.iterdir())) == 8


def test_a_class_with_one_label_is_not_judged(digits: tuple[Task, Config], tmp_path: Path) -> None:
    task, config = digits
    assert isinstance(task, Classification)
    labels = task.labeled.labels
    kept = torch.cat([(labels < 3).nonzero().squeeze(1), (labels == 9).nonzero()[0]])  # one image of the last class
    few = replace(task, labeled=task.labeled.take(kept))
    how = recipe(replace(config, recipe=replace(config.recipe, epochs=1)), tmp_path)
    judged = given_labels.examine(few, given_labels.train(few, how, context()))
    alone = next(each for each in judged.found if each.position == 60)
    assert not alone.suspicious
    assert alone.score == 0.0
    # nor do nets that never saw the class say what counts as sure of it: nothing is ever suggested to be of it
    assert judged.bars.isinf().tolist() == [False] * 3 + [True] * 7


def test_masks_are_judged_pixel_by_pixel(few_scenes: SegmentSet, tmp_path: Path) -> None:
    task, config = opened("scenes", **TINY_PIXELS | {"epochs": 8})
    checks = given_labels.train(task, recipe(config, tmp_path), context())
    judged = given_labels.examine(task, checks)
    assert sorted(each.position for each in judged.found) == list(range(10))
    for each in judged.found:
        assert 0 <= each.share <= 1
        assert each.suspicious == (each.share >= suspects.PART)
        assert (each.given == -1) == (each.share == 0)
    for part in (True, False):
        scores = [each.score for each in judged.found if each.suspicious == part]
        assert scores == sorted(scores, reverse=True)
    assert judged.share == pytest.approx(sum(each.share for each in judged.found) / 10)
    assert (
        judged.counted == f"{len(judged.suspicious)} of 10 masks, and {judged.share:.1%} of the pixels, mean over masks"
    )
