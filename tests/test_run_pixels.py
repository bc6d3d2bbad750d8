"""Whole runs on a few scenes: every method, two lines, stored pixels, stopping, lying masks, standard layouts."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tests.conftest import TINY_PIXELS
from tests.data import segment_layout
from tests.test_run import StopAt, journal, nets, saved
from torch import Tensor

import dmt
from dmt import config as configuration
from dmt import files, presets, scoring, stopping
from dmt.core import codes, ranks
from dmt.data import ragged, segment_sets
from dmt.data.ragged import Tell
from dmt.data.segment_sets import Notify, Parts, SegmentSet
from dmt.data.sets import LabeledSet
from dmt.errors import ConfigError
from dmt.folder import Folder
from dmt.methods import catalogue
from dmt.models import build
from dmt.progress import Silent
from dmt.report import Report
from dmt.tasks import opening
from dmt.tasks.base import Task
from dmt.tasks.segmentation import Segmentation
from dmt.training import inference
from dmt.training.pixel_store import PixelStore

CPU = torch.device("cpu")


def fit(out: Path, settings: dict[str, object], method: str | list[str] = "dmt", **options: object) -> Report:
    return dmt.fit("scenes", out=out, method=method, settings=settings, watcher=Silent(), **options)  # type: ignore[arg-type]


def pseudo(out: Path) -> dict[str, bytes]:
    """All stored pseudo labels of a run, by stage and file."""
    return {f"{path.parent.parent.name}/{path.name}": path.read_bytes() for path in out.glob("stages/*/pseudo/*")}


def opened(settings: dict[str, object]) -> Task:
    options = configuration.override(presets.get("scenes").config, settings).data
    return opening.read(options, Path(), print, lambda done, of: None).split(seed=1)[0]


@pytest.fixture(scope="module")
def whole(few_scenes: SegmentSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One unbroken run of DMT that tests look at and leave as it is."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    fit(out, TINY_PIXELS)
    return out


def test_every_method_runs_and_equal_stages_are_trained_once(tiny_pixels: dict[str, object], tmp_path: Path) -> None:
    report = fit(tmp_path, tiny_pixels | {"fractions": "0.5"}, list(catalogue.METHODS))
    assert all(job.finished for job in report.jobs)
    # Baselines A, B; Oracle; Online ST, CL, CBST, DST on top of Baseline A; two first nets on shares, three pairs
    assert len(list((tmp_path / "stages").iterdir())) == 2 + 1 + 4 + 2 + 3 * 2
    alone = [job for job in report.jobs if job.method in ("baseline", "online", "cl", "cbst", "dst")]
    assert len({job.stages[0].place for job in alone}) == 1
    for job in report.jobs:
        for stage in job.stages:
            score = stage.score("test", "raw")
            assert score is not None
            assert 0 <= score <= 100
            assert stage.copies == ["raw"]
    text = str(report)
    assert all(catalogue.METHODS[method].title in text for method in catalogue.METHODS)
    assert "nan" not in text
    assert not list(tmp_path.glob("stages/*/step-*/ema*"))  # ema=none


def test_a_slow_copy_is_kept_where_it_is_asked_for(tiny_pixels: dict[str, object], tmp_path: Path) -> None:
    slow = tiny_pixels | {"ema": 0.9, "labeler": "ema", "fractions": "0.5", "shape": "chain", "share": "none"}
    report = fit(tmp_path, slow)
    assert report.jobs[0].stages[-1].copies == ["raw", "ema"]
    task = opened(slow)
    assert_labeled_by(tmp_path, task, "A1", saved(tmp_path, "A0", "ema"), 0.5)


def test_repeating_a_command_trains_nothing(whole: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*") if path.is_file()}
    assert fit(whole, TINY_PIXELS).jobs[0].finished
    after = {path: path.stat().st_mtime_ns for path in whole.rglob("*") if path.is_file()}
    assert {path.name for path in after if before.get(path) != after[path]} <= {"sessions.jsonl", "run.json", ".lock"}


def test_stopped_at_any_step_the_result_is_the_same(
    whole: Path, tiny_pixels: dict[str, object], tmp_path: Path
) -> None:
    for at in (1, 4, 5, 9):
        with pytest.raises(stopping.Stopped, match="SIGINT"):
            dmt.fit("scenes", out=tmp_path, settings=tiny_pixels, watcher=StopAt(at))
    fit(tmp_path, tiny_pixels)
    assert nets(tmp_path) == nets(whole)
    assert pseudo(tmp_path) == pseudo(whole)
    assert journal(tmp_path) == journal(whole)


def test_a_stage_that_lost_its_labeling_half_way_makes_it_again(
    whole: Path, tiny_pixels: dict[str, object], tmp_path: Path
) -> None:
    """What a process leaves that was killed while it labeled: files without the marker that comes last."""
    with pytest.raises(stopping.Stopped):
        dmt.fit("scenes", out=tmp_path, settings=tiny_pixels, watcher=StopAt(5))  # in A1, labels are there
    place = next(tmp_path.glob("stages/A1-*"))
    (place / "pseudo.json").unlink()
    (place / "pseudo").rename(place / "pseudo-unfinished")
    fit(tmp_path, tiny_pixels)
    assert nets(tmp_path) == nets(whole)
    assert pseudo(tmp_path) == pseudo(whole)


def assert_labeled_by(out: Path, task: Task, student: str, teacher: dict[str, Tensor], fraction: float) -> None:
    """The stored labels of a stage are the surest of this net: labeled again here, ranked by a full sort."""
    net = build.build(task.net_spec("fcn-4"), seed=0)
    net.load_state_dict(teacher)
    images: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    sizes = task.unlabeled.images.sizes
    for view, logits in inference.logits(net, task, task.unlabeled, CPU):
        found, code = codes.confident(logits)
        for row, position in enumerate(view.positions.tolist()):
            tall, wide = sizes[position]
            images[position] = found[row, :tall, :wide].numpy(), code[row, :tall, :wide].numpy()
    labels = np.concatenate([images[position][0].ravel() for position in range(len(sizes))])
    code = np.concatenate([images[position][1].ravel() for position in range(len(sizes))])
    place = next(out.glob(f"stages/{student}-*"))
    paths = sorted((place / "pseudo").glob("*.png"))
    assert len(paths) == len(sizes)
    for path, size in zip(paths, sizes, strict=True):
        with Image.open(path) as image:
            assert image.mode == "P"
            assert image.size == (size[1], size[0])
    stored = np.concatenate([np.asarray(Image.open(path)).ravel() for path in paths])
    expected = np.full(len(labels), 255)
    for label in range(len(task.classes)):
        members = np.flatnonzero(labels == label)
        quota = math.floor(round(fraction * len(members), 9) + 0.5)
        best = members[np.argsort(-code[members], kind="stable")[:quota]]
        expected[best] = label
        assert int((stored == label).sum()) == quota
    assert np.array_equal(stored, expected)
    told = next(line for line in journal(out)[place.name] if line["kind"] == "labels")
    counts = np.bincount(stored, minlength=256)
    assert told["coverage"] == {
        "predicted": np.bincount(labels, minlength=len(task.classes)).tolist(),
        "kept": counts[: len(task.classes)].tolist(),
    }
    assert (told["kept"], told["of"]) == (int(counts[:255].sum()), len(labels))


def test_each_round_is_labeled_by_the_previous_net_of_the_other_line(
    whole: Path, tiny_pixels: dict[str, object]
) -> None:
    task = opened(tiny_pixels)
    for student, teacher, fraction in (("A1", "B0", 0.5), ("B1", "A0", 0.5), ("A2", "B1", 1.0), ("B2", "A1", 1.0)):
        assert_labeled_by(whole, task, student, saved(whole, teacher), fraction)
        provenance = PixelStore.load(next(whole.glob(f"stages/{student}-*"))).provenance
        assert provenance["by"] == teacher
        assert (whole / "stages" / provenance["teacher"]).is_dir()


def test_finished_stages_keep_labels_and_drop_codes(
    whole: Path, tiny_pixels: dict[str, object], tmp_path: Path
) -> None:
    assert len(list(whole.glob("stages/*/pseudo/*.png"))) == 4 * 24
    assert not list(whole.glob("stages/*/pseudo/*.code"))
    assert not list(whole.glob("stages/*/step-*/optimizer*"))
    with pytest.raises(stopping.Stopped):
        dmt.fit("scenes", out=tmp_path, settings=tiny_pixels, watcher=StopAt(6))
    place = next(tmp_path.glob("stages/A1-*"))  # under way: it needs its codes
    assert len(list((place / "pseudo").glob("*.code"))) == 24
    store = PixelStore.load(place)
    assert store.bytes == sum(path.stat().st_size for path in (place / "pseudo").iterdir())
    assert store.bytes <= 2 * store.of + 24 * 1024  # palettes and headers of tiny files


def test_eight_samples_and_their_rounds_are_there_to_look_at(whole: Path, tiny_pixels: dict[str, object]) -> None:
    task = opened(tiny_pixels)
    folder = whole / "samples" / "seed-1"
    names = sorted(path.name.removesuffix("-image.png") for path in folder.glob("*-image.png"))
    assert len(names) == 8
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        f"{name}-{kind}.png" for name in names for kind in ("image", "truth")
    )
    for stage in ("A1", "B1", "A2", "B2"):
        place = next(whole.glob(f"stages/{stage}-*"))
        assert sorted(path.name for path in (place / "samples").iterdir()) == sorted(
            f"{name}-{kind}.png" for name in names for kind in ("label", "confidence", "weight")
        )
        for name in names:
            position = int(name.split("-")[0])
            label, confidence, weight = (
                np.asarray(Image.open(place / "samples" / f"{name}-{kind}.png"))
                for kind in ("label", "confidence", "weight")
            )
            assert label.shape == confidence.shape == weight.shape == task.unlabeled.images.sizes[position]
            assert np.array_equal(label, np.asarray(Image.open(place / "pseudo" / f"{name}.png")))
            assert not weight[label == 255].any()  # what was not kept counts nothing
    truth = np.asarray(Image.open(folder / f"{names[0]}-truth.png"))
    assert set(np.unique(truth)) <= set(range(11))
    assert not list(whole.glob("stages/A0-*/samples"))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Ids of the labeled images that each stage, and each trial of a net, was given."""
    found: list[tuple[str, ...]] = []
    real = Segmentation.batches

    def spy(self: Segmentation, labeled: LabeledSet[ragged.Ragged], *rest: object) -> object:
        found.append(labeled.ids)
        return real(self, labeled, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Segmentation, "batches", spy)
    return found


def test_shares_differ_as_much_as_they_can_and_only_at_first(
    tiny_pixels: dict[str, object], tmp_path: Path, seen: list[tuple[str, ...]]
) -> None:
    fit(tmp_path, tiny_pixels | {"fractions": "1", "share": 0.8})
    trial, a0, b0, a1, b1 = map(set, seen)
    assert (len(a0), len(b0), len(a0 & b0), len(a0 | b0)) == (8, 8, 6, 10)
    assert a1 == b1 == trial == a0 | b0


def test_a_pair_of_baselines_sees_all_labels_and_gain_is_mean_minus_mean(
    tiny_pixels: dict[str, object], tmp_path: Path, seen: list[tuple[str, ...]]
) -> None:
    report = fit(tmp_path, tiny_pixels | {"fractions": "1", "share": 0.8}, ["baseline", "dmt", "cbst"])
    assert [len(ids) for ids in seen[1:3]] == [10, 10]
    assert seen[1] == seen[2]
    base, pair, single = report.jobs
    assert (base.results, pair.results, single.results) == (("A0", "B0"), ("A1", "B1"), ("A1",))
    scores = {(job.method, stage.name): stage.score("test", "raw") for job in report.jobs for stage in job.stages}

    def score(method: str, stage: str) -> float:
        value = scores[method, stage]
        assert value is not None
        return value

    before = (score("baseline", "A0") + score("baseline", "B0")) / 2
    gain = (score("dmt", "A1") + score("dmt", "B1")) / 2 - before
    rows = {line.split("│")[2].strip(): line for line in report.summary().splitlines() if line.startswith("│")}
    assert f"{gain:+.2f}" in rows["DMT"]
    assert f"{before:.2f}" in rows["Baseline"]
    assert all(f"{score('baseline', name):.2f}" in rows["Baseline"] for name in ("A0", "B0"))
    # of a method with one line, that line against the same line
    assert f"{score('cbst', 'A1') - score('baseline', 'A0'):+.2f}" in rows["CBST"]


def test_lines_may_have_different_nets(tiny_pixels: dict[str, object], tmp_path: Path) -> None:
    report = fit(tmp_path, tiny_pixels | {"net_b": "fcn-6", "fractions": "1", "share": "none"})
    assert report.jobs[0].finished
    widths = {
        name: saved(tmp_path, name)["body.head.weight"].shape[1] for name in ("A0", "B0", "A1", "B1")
    }
    assert widths == {"A0": 4, "B0": 6, "A1": 4, "B1": 6}
    finished = scoring.Finished(tmp_path, Path(), CPU, print)
    (job,) = finished.jobs(None, None)
    now = finished.score(job, "test")
    for stage in job.stages[-2:]:
        assert now[stage.name, "raw"].mean_iou == pytest.approx(stage.score("test", "raw"))
    with pytest.raises(ConfigError, match="shape=pair"):
        fit(tmp_path / "chain", tiny_pixels | {"net_b": "fcn-6", "shape": "chain", "share": "none"})


def replaced(monkeypatch: pytest.MonkeyPatch, known: SegmentSet, train: LabeledSet[ragged.Ragged]) -> None:
    """From here on the scenes have other training images or masks."""
    _, test = known.read(Path(), print, lambda done, of: None)

    def read(folder: Path, notify: Notify, tell: Tell) -> Parts:
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
    whole: Path, tiny_pixels: dict[str, object], tmp_path: Path, few_scenes: SegmentSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data set itself lies about every unlabeled image: the same nets, bit for bit; only the audit notices."""
    hidden = files.read_json(whole / "splits" / "seed-1.json")["unlabeled"]
    replaced(monkeypatch, few_scenes, with_masks(few_scenes, dict.fromkeys(hidden, 7)))
    lied = fit(tmp_path, tiny_pixels).jobs[0].stages[-1]
    assert nets(tmp_path) == nets(whole)
    assert pseudo(tmp_path) == pseudo(whole)
    honest = Report.read([whole]).jobs[0].stages[-1]
    assert honest.place == lied.place
    assert honest.audited("error_kept") != lied.audited("error_kept")


@pytest.mark.parametrize("method", ["online", "cbst", "dmt"])
def test_unlabeled_images_move_the_net(
    method: str, tiny_pixels: dict[str, object], tmp_path: Path, few_scenes: SegmentSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other unlabeled images, same labels: another net; and the first stage stays the same."""
    settings = tiny_pixels | {"fractions": "0.5", "threshold": 0.2}
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
    weights = [saved(tmp_path / run, last)["body.head.weight"] for run in "ab"]
    assert not torch.allclose(*weights)


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
    for parameters in tmp_path.glob("stages/*/step-*/net.safetensors"):
        tensors = files.read_tensors(parameters).values()
        assert all(bool(torch.isfinite(each).all()) for each in tensors if each.is_floating_point())
    stage = report.jobs[1].stages[-1]
    assert stage.audited("error_kept") is None
    assert stage.score("validation", "raw") is not None
    assert "nan" not in str(report)
    assert report.jobs[1].shipped()[0].name in report.jobs[1].results  # validation has nothing to say


def test_of_two_nets_one_without_a_validation_score_is_not_shipped(whole: Path) -> None:
    job = Report.read([whole]).jobs[0]
    stages = list(job.stages)
    first = stages[-2]
    assert first.outcome is not None
    scores = first.outcome["scores"] | {"validation": {"raw": {"accuracy": None, "mean_iou": None}}}
    stages[-2] = dataclasses.replace(first, outcome=first.outcome | {"scores": scores})
    assert dataclasses.replace(job, stages=tuple(stages)).shipped()[0].name == "B2"


def test_a_class_that_nobody_predicts_is_no_obstacle(
    tiny_pixels: dict[str, object], tmp_path: Path, few_scenes: SegmentSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every labeled pixel is background: soon nothing else is predicted."""
    settings = tiny_pixels | {"epochs": 20, "fractions": "0.5,0.000001"}
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
    score = finished.score(job, "validation")["A0", "raw"]
    assert score.absent
    assert score.iou is not None
    assert [label for label, value in enumerate(score.iou) if math.isnan(value)] == score.absent
    (name, *_) = [few_scenes.classes[label] for label in score.absent]
    text = scoring.table(finished, job, "validation")
    assert f"left out of the mean: {name}" in text
    assert "pixel accuracy" in text


def test_falsified_labels_are_a_share_of_the_kept(tiny_pixels: dict[str, object], tmp_path: Path) -> None:
    settings = tiny_pixels | {"fractions": "0.5", "pseudo_noise": 0.3, "shape": "chain", "share": "none"}
    fit(tmp_path / "noisy", settings, "cbst")
    fit(tmp_path / "clean", settings | {"pseudo_noise": 0.0}, "cbst")
    noisy, clean = (
        np.concatenate([np.asarray(Image.open(path)).ravel() for path in sorted((tmp_path / run).glob("stages/*/pseudo/*.png"))])
        for run in ("noisy", "clean")
    )
    assert np.array_equal(noisy == 255, clean == 255)
    kept = clean != 255
    assert (noisy != clean)[kept].mean() == pytest.approx(0.3, abs=0.01)


def test_the_last_code_of_every_class_is_the_cutoff(generator: torch.Generator) -> None:
    """A quota that falls among equals is filled in the order of images."""
    counter = ranks.ClassRanks(2)
    labels, found = torch.zeros(3, 4, dtype=torch.int64), torch.full((3, 4), 500)
    for row in range(3):
        counter.add(labels[row], found[row])
    selector = ranks.Selector(counter.cutoffs(0.5))
    kept = [selector(labels[row].numpy(), found[row].numpy().astype(np.uint16)).sum() for row in range(3)]
    assert kept == [4, 2, 0]


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
    with pytest.raises(dmt.errors.DataError, match="530 images that are not here"):
        dmt.fit("voc-1of20", out=tmp_path / "run", data_folder=tmp_path / "data", start="random", watcher=Silent())
    assert not (tmp_path / "run").exists()
