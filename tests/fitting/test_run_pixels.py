"""Whole runs on a few scenes: every method, two lines, stored pixels, stopping."""

import dataclasses
import math
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import dmt
from dmt import config as configuration
from dmt import presets
from dmt.core import codes
from dmt.data import buffers, ragged
from dmt.data.pixels.segment_sets import SegmentSet
from dmt.data.sets import LabeledSet
from dmt.errors import ConfigError, DivergenceError
from dmt.models import build
from dmt.pseudo import code_planes
from dmt.pseudo.pixel_store import PixelStore
from dmt.pseudo.pixel_writer import PixelWriter
from dmt.results.report import Report
from dmt.run_files import CACHE
from dmt.runs import stopping
from dmt.runs.progress import Silent
from dmt.tasks import opening
from dmt.tasks.base import Task
from dmt.tasks.segmentation import Segmentation
from dmt.training import inference
from dmt.training.checkpoint import Checkpoint
from dmt.training.trainer import Trainer
from dmt.use import scoring
from tests.conftest import TINY_PIXELS
from tests.fitting.test_run import Adding, StopAt, journal, nets, saved

CPU = torch.device("cpu")


def fit(out: Path, settings: dict[str, object], method: str | list[str] = "dmt", **options: object) -> Report:
    """These methods and no others: no Baseline unless it is named."""
    options = {"method": method, "baseline": False, "settings": settings, "watcher": Silent()} | options
    return dmt.fit("scenes", out=out, **options)  # type: ignore[arg-type]


def pseudo(out: Path) -> dict[str, bytes]:
    """All stored pseudo labels of a run, by stage and file."""
    return {f"{path.parent.parent.name}/{path.name}": path.read_bytes() for path in out.glob("stages/*/pseudo/*")}


def opened(settings: dict[str, object]) -> Task:
    options = configuration.override(presets.get("scenes").config, settings).data
    return opening.read(options, Path(), print, lambda done, of: None).split(seed=1)[0]


def test_work_adds_up_to_the_total(few_scenes: SegmentSet, tmp_path: Path) -> None:
    watcher = Adding()
    fit(tmp_path, TINY_PIXELS, watcher=watcher)
    assert watcher.done == pytest.approx(watcher.total)


@pytest.fixture(scope="module")
def whole(few_scenes: SegmentSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One unbroken run of DMT that tests look at and leave as it is."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    fit(out, TINY_PIXELS)
    return out


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


@pytest.mark.parametrize("memory", [buffers.MEMORY, 0])
def test_stopped_at_any_step_the_result_is_the_same(
    whole: Path, tiny_pixels: dict[str, object], tmp_path: Path, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where labels do not fit into memory."""
    monkeypatch.setattr(buffers, "MEMORY", memory)
    for at in (1, 4, 5, 9):
        with pytest.raises(stopping.Stopped, match="SIGINT"):
            dmt.fit("scenes", out=tmp_path, settings=tiny_pixels, watcher=StopAt(at))
    fit(tmp_path, tiny_pixels)
    assert nets(tmp_path) == nets(whole)
    assert pseudo(tmp_path) == pseudo(whole)
    assert journal(tmp_path) == journal(whole)
    assert not list(tmp_path.glob(f"{CACHE}/pseudo*"))


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
    labels, sure = (np.concatenate([images[at][part].ravel() for at in range(len(sizes))]) for part in (0, 1))
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
        best = members[np.argsort(-sure[members], kind="stable")[:quota]]
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
            f"{name}-{kind}.png" for name in names for kind in ("label", "confidence", "weight", "said")
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
    for place in whole.glob("stages/A0-*"):  # without pseudo labels: only what the net says itself
        assert sorted(path.name for path in (place / "samples").iterdir()) == [f"{name}-said.png" for name in names]
    lost = folder / f"{names[3]}-truth.png"  # a process may be killed while it writes them
    content = lost.read_bytes()
    lost.unlink()
    fit(whole, tiny_pixels)
    assert lost.read_bytes() == content


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


def test_a_pair_of_baselines_sees_all_labels_and_gains_compare_like_with_like(
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
    assert f"{gain:+.2f}" in rows["DMT"]  # of single nets
    assert f"{pair.test_score('shipped') - base.test_score('shipped'):+.2f}" in rows["DMT"]
    assert f"{base.test_score('both'):.2f}" in rows["Baseline"]
    assert all(f"{score('baseline', name):.2f}" in rows["Baseline"] for name in ("A0", "B0"))
    # of a method with one line, that line against the same line
    assert f"{score('cbst', 'A1') - score('baseline', 'A0'):+.2f}" in rows["CBST"]


def test_lines_may_have_different_nets(tiny_pixels: dict[str, object], tmp_path: Path) -> None:
    pair = tmp_path / "pair"
    report = fit(pair, tiny_pixels | {"net_b": "fcn-6", "fractions": "1", "share": "none"})
    assert report.jobs[0].finished
    widths = {name: saved(pair, name)["body.head.weight"].shape[1] for name in ("A0", "B0", "A1", "B1")}
    assert widths == {"A0": 4, "B0": 6, "A1": 4, "B1": 6}
    finished = scoring.Finished(pair, Path(), CPU, print)
    (job,) = finished.jobs(None, None)
    now = finished.score(job, "test")
    for stage in job.stages[-2:]:
        assert now[stage.net("raw")].mean_iou == pytest.approx(stage.score("test", "raw"))
    with pytest.raises(ConfigError, match="shape=pair"):
        fit(tmp_path / "chain", tiny_pixels | {"net_b": "fcn-6", "shape": "chain", "share": "none"})


def test_of_two_nets_one_without_a_validation_score_is_not_shipped(whole: Path) -> None:
    job = Report.read([whole]).jobs[0]
    stages = list(job.stages)
    first = stages[-2]
    assert first.outcome is not None
    scores = first.outcome["scores"] | {"validation": {"raw": {"accuracy": None, "mean_iou": None}}}
    stages[-2] = dataclasses.replace(first, outcome=first.outcome | {"scores": scores})
    assert dataclasses.replace(job, stages=tuple(stages)).preferred()[0].name == "B2"


class StopWhileLabeling(Silent):
    """Ctrl-C, after some images got their labels."""

    def busy(self, what: str, done: int, of: int) -> None:
        if done > of // 2:
            signal.raise_signal(signal.SIGINT)


def test_ctrl_c_while_labeling_stops_there(whole: Path, tiny_pixels: dict[str, object], tmp_path: Path) -> None:
    """Labels are lost, which a net makes again; nothing else is."""
    with pytest.raises(stopping.Stopped) as stopped:
        dmt.fit("scenes", out=tmp_path, method="dmt", settings=tiny_pixels, watcher=StopWhileLabeling())
    assert stopped.value.code == 128 + signal.SIGINT
    assert not list(tmp_path.glob("stages/*/pseudo.json"))
    fit(tmp_path, tiny_pixels)
    assert nets(tmp_path) == nets(whole)


def test_a_checkpoint_waits_for_the_labels_it_depends_on(
    few_scenes: SegmentSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are slow, so the stage is trained before they are written."""
    orders: list[str] = []
    save, write = Checkpoint.save, PixelWriter.write

    def saved_(self: Checkpoint, trainer: Trainer, **extra: object) -> None:
        orders.append(f"{self.folder.name[:2]} checkpoint, labels there: {PixelStore.exists(self.folder)}")
        save(self, trainer, **extra)

    def slow(self: PixelWriter, *rest: object) -> None:
        time.sleep(1.5)
        write(self, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Checkpoint, "save", saved_)
    monkeypatch.setattr(PixelWriter, "write", slow)
    watcher = Told()
    fit(tmp_path, TINY_PIXELS | {"fractions": "1"}, watcher=watcher)
    assert [line for line in orders if line.startswith(("A1", "B1"))] == [
        "A1 checkpoint, labels there: True",
        "B1 checkpoint, labels there: True",
    ]
    assert sum("still being written" in note for note in watcher.notes) == 2
    assert not list(tmp_path.glob("stages/*/pseudo/*.code"))


class Told(Silent):
    """Keeps what is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_labels_that_cannot_be_written_stop_the_run_and_are_made_again(
    few_scenes: SegmentSet, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(codes: np.ndarray) -> bytes:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(code_planes, "pack", full)
        with pytest.raises(OSError, match="no space"):
            fit(tmp_path, TINY_PIXELS)
    assert not list(tmp_path.glob("stages/A1*/state.json"))  # nothing that depends on them
    fit(tmp_path, TINY_PIXELS)
    assert nets(tmp_path) == nets(whole)
    assert pseudo(tmp_path) == pseudo(whole)


def test_what_went_wrong_in_training_is_not_hidden_by_labels(
    few_scenes: SegmentSet, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(codes: np.ndarray) -> bytes:
        raise OSError("no space left on device")

    def bad(self: Trainer, numbers: object) -> None:
        raise DivergenceError("not finite")

    with monkeypatch.context() as patch:
        patch.setattr(code_planes, "pack", full)
        fit(tmp_path, TINY_PIXELS, "baseline")
        patch.setattr(Trainer, "require_finite", bad)
        with pytest.raises(DivergenceError):
            fit(tmp_path, TINY_PIXELS)
    fit(tmp_path, TINY_PIXELS)
    assert {place: net for place, net in nets(tmp_path).items() if place in nets(whole)} == nets(whole)


SEVERAL: dict[str, object] = TINY_PIXELS | {
    "ema": 0.9, "labeler": "mean", "labeling_views": "flip,0.75", "flip": True, "fractions": "0.5",
}  # fmt: skip


def test_labels_from_several_passes_are_resumed_to_the_same_result(few_scenes: SegmentSet, tmp_path: Path) -> None:
    watcher = Adding()
    fit(tmp_path / "whole", SEVERAL, watcher=watcher)
    assert watcher.done == pytest.approx(watcher.total)
    for at in (3, 4):
        with pytest.raises(stopping.Stopped, match="SIGINT"):
            fit(tmp_path / "parts", SEVERAL, watcher=StopAt(at))
    fit(tmp_path / "parts", SEVERAL)
    assert nets(tmp_path / "parts") == nets(tmp_path / "whole")
    assert pseudo(tmp_path / "parts") == pseudo(tmp_path / "whole")
    place = next(tmp_path.glob("whole/stages/A1-*"))
    provenance = PixelStore.load(place).provenance
    assert (provenance["by"], provenance["copy"], provenance["views"]) == ("B0", "mean", ["flip", "0.75"])


@pytest.mark.usefixtures("few_scenes")
def test_a_method_that_teaches_encoders_wants_one_that_learns(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="CCT trains encoders, and that of 'frozen-fpn:resnet10t' is frozen"):
        dmt.fit(
            "scenes", method="cct", out=tmp_path / "run", settings={"net": "frozen-fpn:resnet10t"}, watcher=Silent()
        )
