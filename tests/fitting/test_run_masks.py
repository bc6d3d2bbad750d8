"""Whole runs on unusual data: lying, void and poor masks, other images, and the layouts of VOC and Cityscapes."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import dmt
from dmt import files
from dmt.data import ragged
from dmt.data.pixels import segment_sets
from dmt.data.pixels.segment_sets import Notify, Parts, SegmentSet
from dmt.data.sets import LabeledSet
from dmt.errors import ConfigError, DataError
from dmt.runs.folder import Folder
from dmt.runs.progress import Silent
from dmt.types import NetName, ProgressCallback
from dmt.use import scoring
from tests.data.pixels import segment_layout
from tests.fitting.test_run import nets, saved
from tests.fitting.test_run_pixels import fit, opened, pseudo

CPU = torch.device("cpu")


def replaced(monkeypatch: pytest.MonkeyPatch, known: SegmentSet, train: LabeledSet[ragged.Ragged]) -> None:
    """From here on the scenes have other training images or masks."""
    _, test = known.read(Path(), print, lambda done, of: None)

    def read(folder: Path, notify: Notify, tell: ProgressCallback) -> Parts:
        return train, test

    monkeypatch.setitem(segment_sets.SEGMENT_SETS, "scenes", dataclasses.replace(known, read=read))


def with_masks(known: SegmentSet, change: dict[str, int]) -> LabeledSet[ragged.Ragged]:
    """The training images, some of them with a mask that holds one number only."""
    train, _ = known.read(Path(), print, lambda done, of: None)
    planes = [train.labels.image(position).numpy() for position in range(len(train))]
    planes = [
        np.full_like(plane, change[name]) if name in change else plane
        for name, plane in zip(train.ids, planes, strict=True)
    ]
    return LabeledSet(train.ids, train.images, ragged.stack(planes))


def test_masks_of_unlabeled_images_cannot_reach_training(
    tiny_pixels: dict[str, object], tmp_path: Path, few_scenes: SegmentSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data set itself lies about every unlabeled image: the same nets, bit for bit; only the audit notices."""
    honest = fit(tmp_path / "honest", tiny_pixels).jobs[0].stages[-1]
    hidden = files.read_json(tmp_path / "honest" / "splits" / "seed-1.json")["unlabeled"]
    replaced(monkeypatch, few_scenes, with_masks(few_scenes, dict.fromkeys(hidden, 7)))
    lied = fit(tmp_path / "lied", tiny_pixels).jobs[0].stages[-1]
    assert nets(tmp_path / "lied") == nets(tmp_path / "honest")
    assert pseudo(tmp_path / "lied") == pseudo(tmp_path / "honest")
    assert honest.place == lied.place
    assert honest.audited("error_kept") != lied.audited("error_kept")


@pytest.mark.parametrize("method", ["online", "cbst", "dmt"])
def test_unlabeled_images_move_the_net(
    method: str, tiny_pixels: dict[str, object], tmp_path: Path, few_scenes: SegmentSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other unlabeled images, same labels: another net; and the first stage stays the same."""
    settings = tiny_pixels | {"fractions": "0.5", "online.threshold": 0.2}
    first = fit(tmp_path / "a", settings, method)
    hidden = set(files.read_json(tmp_path / "a" / "splits" / "seed-1.json")["unlabeled"])
    train, _ = few_scenes.read(Path(), print, lambda done, of: None)
    planes = [train.images.image(position).numpy() for position in range(len(train))]
    images = ragged.stack([255 - p if n in hidden else p for n, p in zip(train.ids, planes, strict=True)])
    replaced(monkeypatch, few_scenes, LabeledSet(train.ids, images, train.labels))
    second = fit(tmp_path / "b", settings, method)
    assert first.jobs[0].stages[0].place == second.jobs[0].stages[0].place
    assert first.jobs[0].stages[-1].place != second.jobs[0].stages[-1].place
    last = first.jobs[0].results[-1]
    one, other = (saved(tmp_path / run, last)["body.head.weight"] for run in "ab")
    assert not torch.allclose(one, other)


def test_images_without_any_label_train_without_nan(
    tiny_pixels: dict[str, object], tmp_path: Path, few_scenes: SegmentSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but one labeled mask is void, and so is every unlabeled and every validation mask."""
    settings = tiny_pixels | {"batch": 1, "batch_labeled": 1, "fractions": "0.5"}
    task = opened(settings)
    void = [*task.labeled.ids[1:], *task.unlabeled.ids, *task.validation.ids]
    replaced(monkeypatch, few_scenes, with_masks(few_scenes, dict.fromkeys(void, 255)))
    report = fit(tmp_path, settings, ["baseline", "dmt", "online"])
    assert all(job.finished for job in report.jobs)
    for parameters in tmp_path.glob("stages/*/step-*/*-raw.safetensors"):
        tensors = files.read_tensors(parameters).values()
        assert all(bool(torch.isfinite(each).all()) for each in tensors if each.is_floating_point())
    stage = report.jobs[1].stages[-1]
    assert stage.audited("error_kept") is None
    assert stage.score("validation", "raw") is None
    assert stage.score("test", "raw") is not None
    assert "nan" not in str(report)
    assert report.jobs[1].preferred()[0].name in report.jobs[1].results  # validation has nothing to say


def test_test_images_without_any_truth_give_a_report_without_numbers(
    tiny_pixels: dict[str, object], tmp_path: Path, few_scenes: SegmentSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, test = few_scenes.read(Path(), print, lambda done, of: None)
    void = ragged.stack([np.full(size, 255, np.uint8) for size in test.images.sizes])
    parts = train, LabeledSet(test.ids, test.images, void)
    blind = dataclasses.replace(few_scenes, read=lambda folder, notify, tell: parts)
    monkeypatch.setitem(segment_sets.SEGMENT_SETS, "scenes", blind)
    report = fit(tmp_path, tiny_pixels | {"fractions": "1"}, ["baseline", "dmt"])
    assert all(job.finished for job in report.jobs)
    assert math.isnan(report.jobs[0].test_score("raw"))
    assert "nan" not in str(report)


def test_a_share_of_too_few_labels_is_refused(tiny_pixels: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="A0 would see none of 1 labels; set share=none"):
        fit(tmp_path, tiny_pixels | {"labels": "1", "share": 0.8})


def test_a_class_that_nobody_predicts_is_no_obstacle(
    tiny_pixels: dict[str, object], tmp_path: Path, few_scenes: SegmentSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every labeled pixel is background: soon nothing else is predicted."""
    settings = tiny_pixels | {"epochs": 20}
    task = opened(settings)
    replaced(monkeypatch, few_scenes, with_masks(few_scenes, dict.fromkeys(task.labeled.ids, 0)))
    report = fit(tmp_path / "a", settings | {"fractions": "0.5"}, ["dmt", "cbst"])
    stage = report.jobs[0].stages[-1]
    assert stage.labels is not None
    assert 0 in stage.labels["coverage"]["predicted"]
    assert stage.labels["coverage"]["kept"].count(0) >= stage.labels["coverage"]["predicted"].count(0)
    assert stage.audited("weight_right") is not None
    assert "0%" in str(report)
    with pytest.raises(ConfigError, match="keeps no pseudo label at all; set fractions higher"):
        fit(tmp_path / "b", settings | {"fractions": "0.000001"})


def test_absent_classes_are_named(tiny_pixels: dict[str, object], tmp_path: Path, few_scenes: SegmentSet) -> None:
    fit(tmp_path, tiny_pixels | {"validation": 1}, "baseline")
    finished = scoring.Finished(tmp_path, Path(), CPU, print)
    (job,) = finished.jobs(None, None)
    score = finished.score(job, "validation")[NetName("A0", "A", "raw")]
    assert score.absent
    assert score.iou is not None
    assert [label for label, value in enumerate(score.iou) if math.isnan(value)] == score.absent
    (name, *_) = [few_scenes.classes[label] for label in score.absent]
    text = scoring.table(finished, job, "validation")
    assert f"left out of the mean: {name}" in text
    assert "pixel accuracy" in text


def test_corrupted_labels_are_a_share_of_the_kept(tiny_pixels: dict[str, object], tmp_path: Path) -> None:
    settings = tiny_pixels | {"fractions": "0.5", "pseudo_noise": 0.3, "shape": "chain", "share": "none"}
    fit(tmp_path / "noisy", settings, "cbst")
    fit(tmp_path / "clean", settings | {"pseudo_noise": 0.0}, "cbst")
    noisy, clean = (
        np.concatenate([np.asarray(Image.open(path)).ravel() for path in sorted(run.glob("stages/*/pseudo/*.png"))])
        for run in (tmp_path / "noisy", tmp_path / "clean")
    )
    assert np.array_equal(noisy == 255, clean == 255)
    kept = clean != 255
    assert (noisy != clean)[kept].mean() == pytest.approx(0.3, abs=0.01)


LAYOUTS = {
    "voc-1of20": {"labels": "2", "validation": 1, "net": "fcn-4", "crop": "32,32", "epochs": 1, "epochs_round": 1,
                  "fractions": "0.5,1", "batch": 2, "batch_pseudo": 2, "batch_labeled": 1},
    "cityscapes-1of30": {"labels": "2", "validation": 1, "net": "fcn-4", "crop": "16,24", "epochs": 1,
                         "epochs_round": 1, "fractions": "0.5,1", "batch": 2, "batch_pseudo": 2, "batch_labeled": 1},
}  # fmt: skip


@pytest.mark.parametrize("preset", LAYOUTS)
def test_standard_layouts_go_through_to_the_end(preset: str, tmp_path: Path) -> None:
    """The paper's presets on folders of six images in the layout of the originals, cut to a few steps."""
    data = tmp_path / "data"
    if preset.startswith("voc"):
        segment_layout.write_voc(data, more=3)
    else:
        segment_layout.write_cityscapes(data, more=3)
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    notes: list[str] = []

    class Listening(Silent):
        def note(self, text: str) -> None:
            notes.append(text)

    options = {"settings": LAYOUTS[preset], "data_folder": data, "start": "random", "watcher": Listening()}
    report = dmt.fit(preset, out=tmp_path / "run", method=["baseline", "dmt"], **options)  # type: ignore[arg-type]
    assert all(job.finished for job in report.jobs)
    split = files.read_json(tmp_path / "run" / "splits" / "seed-1.json")
    assert {name: len(ids) for name, ids in split.items()} == {"labeled": 2, "unlabeled": 3, "validation": 1}
    assert any("this folder has 6 and 1" in note for note in notes)
    assert len(list((tmp_path / "run").glob("stages/A2-*/pseudo/*.png"))) == 3
    assert len(list((tmp_path / "run" / "samples" / "seed-1").iterdir())) == 2 * 3
    outlines = Folder(tmp_path / "run").jobs()[1].stages
    assert all(outline["labels"] is None or outline["labels"]["per_class"] for outline in outlines)
    assert before == {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    finished = scoring.Finished(tmp_path / "run", data, CPU, notes.append)
    assert "mean IoU" in scoring.table(finished, finished.jobs("dmt", 1)[0], "test")


def test_a_published_list_that_the_folder_lacks_is_told_before_anything_is_written(tmp_path: Path) -> None:
    segment_layout.write_voc(tmp_path / "data", more=3)
    with pytest.raises(DataError, match="530 images that are not here"):
        dmt.fit("voc-1of20", out=tmp_path / "run", data_folder=tmp_path / "data", start="random", watcher=Silent())
    assert not (tmp_path / "run").exists()
