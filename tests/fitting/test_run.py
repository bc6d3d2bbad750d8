"""Whole runs on digits: every method, shared stages, stopping, killing, moving, leaking."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from torch import Tensor

import dmt
from dmt import files, presets
from dmt.data.images import datasets, splits
from dmt.data.sets import LabeledSet
from dmt.errors import ConfigError, DivergenceError, RunError
from dmt.methods import catalogue
from dmt.models import build
from dmt.pseudo.image_store import ImageStore
from dmt.results.report import Report
from dmt.runs import stopping
from dmt.runs.folder import Folder
from dmt.runs.progress import Silent, Watcher
from dmt.tasks import classification, opening
from dmt.training import inference
from dmt.use import scoring
from tests.data.images import cifar_layout

RECIPE = presets.get("digits").config.recipe
ROUNDS = [
    name for name in catalogue.METHODS if [stage.round for stage in catalogue.plan(name, RECIPE).stages][:2] == [0, 1]
]
"""Methods that go on from a Baseline. What holds for all is in tests/methods/test_all_methods.py."""


def fit(out: Path, tiny: dict[str, object], method: str | list[str] = "dmt", **options: object) -> Report:
    options = {"watcher": Silent()} | options
    return dmt.fit("digits", out=out, method=method, settings=tiny, **options)  # type: ignore[arg-type]


def nets(out: Path) -> dict[str, bytes]:
    """All parameters of a run by stage and file."""
    return {
        f"{path.parent.parent.name}/{path.name}": path.read_bytes()
        for path in sorted(out.glob("stages/*/step-*/*.safetensors"))
    }


def journal(out: Path) -> dict[str, list[dict[str, object]]]:
    """All journals without their timings."""
    timing = {"seconds", "images_per_s", "waiting", "peak_memory_mb", "cost", files.SEAL}
    return {
        path.parent.name: [
            {key: value for key, value in json.loads(line).items() if key not in timing}
            for line in path.read_text().splitlines()
        ]
        for path in sorted(out.glob("stages/*/journal.jsonl"))
    }


def test_repeating_a_command_trains_nothing(tiny: dict[str, object], tmp_path: Path) -> None:
    fit(tmp_path, tiny)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("stages/**/*") if path.is_file()}
    fit(tmp_path, tiny)
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.glob("stages/**/*") if path.is_file()}
    assert len((tmp_path / "sessions.jsonl").read_text().splitlines()) == 2


def test_a_run_grows_by_methods_and_seeds(tiny: dict[str, object], tmp_path: Path) -> None:
    fit(tmp_path, tiny, "baseline")
    grown = fit(tmp_path, tiny, ["baseline", "cl"], seed=[1, 2])
    assert [(job.method, job.seed) for job in grown.jobs] == [
        ("baseline", 1), ("cl", 1), ("baseline", 2), ("cl", 2),
    ]  # fmt: skip
    alone = fit(tmp_path.with_name("alone"), tiny, "cl", seed=2)
    assert alone.jobs[0].stages[-1].place == grown.jobs[-1].stages[-1].place
    assert nets(tmp_path.with_name("alone")).items() <= nets(tmp_path).items()


def test_seeds_and_methods_give_different_nets(tiny: dict[str, object], tmp_path: Path) -> None:
    report = fit(tmp_path, tiny, ["cl", "dmt"], seed=[1, 2])
    places = {stage.place for job in report.jobs for stage in job.stages}
    assert len(places) == 2 + 2 * 2 * 2
    assert len(set(nets(tmp_path).values())) == 2 * len(places)


class StopAt(Watcher):
    """Raises the stop flag of a run at a step, as a signal would."""

    def __init__(self, at: int) -> None:
        self.seen, self.at = 0, at

    def begin(self, total: float, done: float) -> None: ...
    def stage(self, title: str, steps: int, done: int, work: float) -> None: ...
    def note(self, text: str) -> None: ...
    def step(self, done: int) -> None:
        self.seen += 1
        if self.seen == self.at:
            os.kill(os.getpid(), signal.SIGINT)


class Adding(Watcher):
    """Adds up the work of a run as a bar would."""

    def __init__(self) -> None:
        self.total = self.done = self.step_work = 0.0
        self.steps_done = 0

    def begin(self, total: float, done: float) -> None:
        self.total, self.done = total, done

    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        self.step_work, self.steps_done = work, done

    def step(self, done: int) -> None:
        self.worked((done - self.steps_done) * self.step_work)
        self.steps_done = done

    def worked(self, work: float) -> None:
        self.done += work

    def note(self, text: str) -> None: ...


def test_work_adds_up_to_the_total(tiny: dict[str, object], tmp_path: Path) -> None:
    watcher = Adding()
    fit(tmp_path, tiny, "dmt", watcher=watcher)
    assert watcher.done == pytest.approx(watcher.total)
    again = Adding()
    fit(tmp_path, tiny, "dmt", watcher=again)
    assert again.done == pytest.approx(again.total) == pytest.approx(watcher.total)


@pytest.mark.parametrize("method", ["dmt", "dst"])
def test_ctrl_c_stops_at_a_checkpoint_and_the_result_is_the_same(
    method: str, tiny: dict[str, object], tmp_path: Path
) -> None:
    fit(tmp_path / "whole", tiny, method)
    for at in (5, 17, 9):
        with pytest.raises(stopping.Stopped, match=r"stopped by Ctrl-C \(SIGINT\) at a checkpoint") as caught:
            dmt.fit("digits", out=tmp_path / "parts", method=method, settings=tiny, watcher=StopAt(at))
        assert caught.value.code == 130
    fit(tmp_path / "parts", tiny, method)
    assert nets(tmp_path / "parts") == nets(tmp_path / "whole")
    assert journal(tmp_path / "parts") == journal(tmp_path / "whole")


def test_labels_of_two_copies_are_resumed_to_the_same_result(tiny: dict[str, object], tmp_path: Path) -> None:
    both = tiny | {"labeler": "mean", "labeling_views": "flip", "augment": "crop-flip", "epochs": 2, "fractions": "1"}
    watcher = Adding()
    fit(tmp_path / "whole", both, "cl", watcher=watcher)
    assert watcher.done == pytest.approx(watcher.total)
    for at in (3, 9):
        with pytest.raises(stopping.Stopped, match="SIGINT"):
            fit(tmp_path / "parts", both, "cl", watcher=StopAt(at))
    fit(tmp_path / "parts", both, "cl")
    assert nets(tmp_path / "parts") == nets(tmp_path / "whole")
    provenance = ImageStore.load(next(tmp_path.glob("parts/stages/A1-*"))).provenance
    assert (provenance["copy"], provenance["views"]) == ("mean", ["flip"])


def test_dropout_is_refused_for_a_net_without_it_before_anything_is_trained(
    tiny: dict[str, object], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"labeling_views=dropout needs a net with dropout layers, and .* has none"):
        fit(tmp_path, tiny | {"labeling_views": "dropout"})
    fit(tmp_path, tiny)  # the folder is not bound to what was refused


def test_a_budget_stops_and_repeating_goes_on(tiny: dict[str, object], tmp_path: Path) -> None:
    fit(tmp_path / "whole", tiny)
    codes: list[int] = []
    for _ in range(200):
        try:
            fit(tmp_path / "parts", tiny, budget=0.01 if len(codes) < 5 else 0.15)
            break
        except stopping.Stopped as stopped:
            codes.append(stopped.code)
    assert set(codes) == {3}
    assert nets(tmp_path / "parts") == nets(tmp_path / "whole")


COMMAND = [sys.executable, "-m", "dmt.cli"]
OFTEN = 0.05
"""Seconds from checkpoint to checkpoint."""


def arguments(out: Path, tiny: dict[str, object]) -> list[str]:
    settings = [word for key, value in tiny.items() for word in ("--set", f"{key}={value}")]
    return [*COMMAND, "fit", "digits", "--out", str(out), "--checkpoint-every", str(OFTEN), *settings]


@pytest.mark.slow
def test_resumed_after_sigkill_equals_unbroken(tiny: dict[str, object], tmp_path: Path) -> None:
    """A real process, really killed, several times; then the folder is moved to "another machine"."""
    tiny |= {"epochs": 60, "epochs_round": "2,4"}  # a second or more, to be caught in each stage
    fit(tmp_path / "whole", tiny, checkpoint_every=OFTEN)
    alike = os.environ | {"OMP_NUM_THREADS": "1"}  # as many threads as here
    for stage in ("A0-*", "A2-*"):
        process = subprocess.Popen(
            arguments(tmp_path / "parts", tiny), env=alike, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 120
        while not list(tmp_path.glob(f"parts/stages/{stage}/step-*-unfinished/optimizer.safetensors")):
            assert process.poll() is None, "the run ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not all(job.finished for job in Report.read([tmp_path / "parts"]).jobs)
    shutil.copytree(tmp_path / "parts", tmp_path / "moved")
    shutil.rmtree(tmp_path / "parts")
    subprocess.run(arguments(tmp_path / "moved", tiny), env=alike, check=True, capture_output=True)
    assert nets(tmp_path / "moved") == nets(tmp_path / "whole")
    assert journal(tmp_path / "moved") == journal(tmp_path / "whole")


def test_a_second_process_on_a_living_run_refuses(tiny: dict[str, object], tmp_path: Path) -> None:
    fit(tmp_path, tiny, "baseline")
    manifest = Folder(tmp_path).manifest()
    hold = "import sys, filelock; lock = filelock.FileLock(sys.argv[1]); lock.acquire(); print(flush=True); input()"
    command = [sys.executable, "-c", hold, str(tmp_path / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as held:
        assert held.stdout is not None
        held.stdout.readline()
        try:
            with pytest.raises(RunError, match="in use by another process"):
                fit(tmp_path, tiny, "cl")
        finally:
            held.kill()
    assert Folder(tmp_path).manifest() == manifest
    assert fit(tmp_path, tiny, "baseline").jobs[0].finished  # a killed process holds nothing


def test_another_configuration_is_refused(tiny: dict[str, object], tmp_path: Path) -> None:
    fit(tmp_path, tiny, "baseline")
    with pytest.raises(RunError, match=r"made with gamma=4.0, not gamma=5.0; give another --out"):
        fit(tmp_path, tiny | {"gamma": 5.0}, "baseline")


def test_a_mistake_does_not_bind_the_folder(tiny: dict[str, object], tmp_path: Path) -> None:
    """After an unknown net the same folder takes the right one."""
    with pytest.raises(ConfigError, match="unknown net"):
        fit(tmp_path / "run", tiny | {"net": "resnet9"}, "baseline")
    assert not (tmp_path / "run").exists()
    assert fit(tmp_path / "run", tiny, "baseline").jobs[0].finished


@pytest.mark.parametrize("kind", ["file", "foreign folder"])
def test_what_is_no_run_is_not_written_into(kind: str, tiny: dict[str, object], tmp_path: Path) -> None:
    out = tmp_path / "out"
    if kind == "file":
        out.write_text("precious")
    else:
        out.mkdir()
        (out / "thesis.tex").write_text("precious")
    with pytest.raises(RunError, match="--out"):
        fit(out, tiny, "baseline")
    assert [path.read_text() for path in ([out] if kind == "file" else list(out.iterdir()))] == ["precious"]


def test_truth_of_unlabeled_images_cannot_reach_training(
    tiny: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data set itself lies about every unlabeled image: the same nets, bit for bit; only the audit notices."""
    data = datasets.DATASETS["digits"]
    split = splits.draw(data.read(Path(), print)[0].labels, 10, labeled=100, validation=200, seed=1)
    # who is labeled is drawn per class: hold it fixed, so that nothing but the hidden truth differs
    monkeypatch.setattr(splits, "draw", lambda *_: split)
    fit(tmp_path / "honest", tiny)

    def lying(folder: Path, notify: object) -> tuple[LabeledSet[Tensor], LabeledSet[Tensor]]:
        train, test = data.read(folder, print)
        labels = train.labels.clone()
        labels[split.unlabeled] = (labels[split.unlabeled] + 1) % 10
        return LabeledSet(train.ids, train.images, labels), test

    monkeypatch.setitem(datasets.DATASETS, "digits", dataclasses.replace(data, read=lying))
    fit(tmp_path / "lied", tiny)
    assert nets(tmp_path / "lied") == nets(tmp_path / "honest")
    honest, lied = (Report.read([tmp_path / name]).jobs[0].stages[-1] for name in ("honest", "lied"))
    assert honest.place == lied.place
    assert honest.audited("error_kept") != lied.audited("error_kept")


@pytest.mark.parametrize("method", ROUNDS)
def test_unlabeled_images_move_the_nets_but_not_the_baseline(
    method: str, tiny: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other unlabeled images, same labels: another net; and the Baseline stage stays the same."""
    tiny |= {"fractions": "1", "batch_pseudo": 256}
    report = fit(tmp_path / "a", tiny, method)
    hidden = set(files.read_json(tmp_path / "a" / "splits" / "seed-1.json")["unlabeled"])
    data = datasets.DATASETS["digits"]

    def other(folder: Path, notify: object) -> tuple[LabeledSet[Tensor], LabeledSet[Tensor]]:
        train, test = data.read(folder, print)
        where = torch.tensor([name in hidden for name in train.ids])
        images = torch.where(where[:, None, None, None], 255 - train.images, train.images)
        return LabeledSet(train.ids, images, train.labels), test

    monkeypatch.setitem(datasets.DATASETS, "digits", dataclasses.replace(data, read=other))
    changed = fit(tmp_path / "b", tiny, method)
    assert changed.jobs[0].stages[0].place == report.jobs[0].stages[0].place
    assert changed.jobs[0].stages[-1].place != report.jobs[0].stages[-1].place
    places = [each.jobs[0].stages[-1].place for each in (report, changed)]
    last = [
        next((tmp_path / run / "stages" / place).glob("step-*/*-raw.safetensors"))
        for run, place in zip("ab", places, strict=True)
    ]
    first, second = (files.read_tensors(path)["body.head.weight"] for path in last)
    assert not torch.allclose(first, second)


def test_pair_runs_two_lines_on_two_shares(tiny: dict[str, object], tmp_path: Path) -> None:
    report = fit(tmp_path, tiny | {"shape": "pair", "share": 0.8}, baseline=False)
    (job,) = report.jobs
    assert [stage.name for stage in job.stages] == ["A0", "B0", "A1", "B1", "A2", "B2"]
    assert job.results == ("A2", "B2")
    accuracies = [stage.score("test", "raw") for stage in job.stages[-2:]]
    assert job.test_score("raw") == pytest.approx(sum(filter(None, accuracies)) / 2)
    biases = [
        files.read_tensors(next(tmp_path.glob(f"stages/{name}-*/step-*/*-raw.safetensors")))["body.head.bias"]
        for name in ("A0", "B0")
    ]
    assert not torch.allclose(biases[0], biases[1])
    assert job.preferred()[0].name in job.results


def saved(out: Path, stage: str, copy: str = "raw") -> dict[str, torch.Tensor]:
    return files.read_tensors(next(out.glob(f"stages/{stage}-*/step-*/*-{copy}.safetensors")))


@pytest.mark.parametrize(
    ("copy", "shape"), [("raw", "chain"), ("raw", "pair"), ("ema", "chain"), ("ema", "pair"), ("mean", "chain")]
)
def test_each_round_is_labeled_by_its_teacher(copy: str, shape: str, tiny: dict[str, object], tmp_path: Path) -> None:
    """The stored labels are those of the right net of the right stage: computed again here, from its file."""
    fit(tmp_path, tiny | {"labeler": copy, "shape": shape, "batch_pseudo": 256})
    options = presets.get("digits").config.data
    task, _ = opening.read(options, Path(), print, lambda done, of: None).split(seed=1)
    teachers = {"A1": "A0", "A2": "A1"} if shape == "chain" else {"A1": "B0", "B1": "A0", "A2": "B1", "B2": "A1"}
    for student, teacher in teachers.items():
        probabilities = []
        for each in ("raw", "ema") if copy == "mean" else (copy,):
            net = build.build(task.net_spec("resnet8-4"), seed=0)
            net.load_state_dict(saved(tmp_path, teacher, each))
            outputs = [output for _, output in inference.logits(net, task, task.unlabeled, torch.device("cpu"))]
            probabilities.append(torch.cat(outputs).softmax(1))
        confidence, labels = (sum(probabilities[1:], probabilities[0]) / len(probabilities)).max(1)
        store = ImageStore.load(next(tmp_path.glob(f"stages/{student}-*")))
        assert torch.equal(store.target.labels, labels)
        assert torch.equal(store.target.confidence, confidence)
        assert (store.provenance["copy"], store.provenance["views"]) == (copy, [])
        assert int(store.selected.sum()) == (549 if student.endswith("1") else 1097)


def test_fine_tuned_rounds_start_where_their_parent_ended(tiny: dict[str, object], tmp_path: Path) -> None:
    """With a learning rate of almost nothing DST's nets stay at the Baseline's, a fresh chain's do not."""
    still = tiny | {"rate_round": 1e-12, "weight_decay": 0.0}
    for method in ("dst", "dmt"):
        fit(tmp_path / method, still, method)
    key = "body.head.weight"
    baseline = saved(tmp_path / "dst", "A0")[key]
    torch.testing.assert_close(saved(tmp_path / "dst", "A2")[key], baseline)
    assert not torch.allclose(saved(tmp_path / "dmt", "A2")[key], baseline)
    assert not torch.allclose(saved(tmp_path / "dmt", "A2")[key], saved(tmp_path / "dmt", "A1")[key])


def test_shares_and_oracle_see_the_labels_they_should(
    tiny: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, set[str]] = {}
    real = classification.Classification.batches

    def spy(self: object, labeled: LabeledSet[Tensor], *rest: object) -> object:
        seen[str(len(seen))] = set(labeled.ids)
        return real(self, labeled, *rest)  # type: ignore[arg-type]

    fit(tmp_path / "warm", tiny, "baseline")  # the trial before a run makes batches too: count from here
    monkeypatch.setattr(classification.Classification, "batches", spy)
    fit(tmp_path / "pair", tiny | {"shape": "pair", "share": 0.8, "fractions": "1"})
    _, a0, b0, a1, b1, *baselines = seen.values()
    assert (len(a0), len(b0), len(a0 & b0)) == (80, 80, 60)
    assert a1 == b1 == a0 | b0
    assert baselines == [a1, a1]  # all labels, for each net of the pair
    seen.clear()
    fit(tmp_path / "oracle", tiny, "oracle")
    assert len(list(seen.values())[1]) == 1397


def test_a_net_with_dropout_is_repeatable_and_resumable(tmp_path: Path) -> None:
    settings = {"net": "timm:tiny_vit_5m_224", "epochs": 3, "batch": 10, "labels": 20, "augment": "none"}
    settings["validation"] = 0
    images = torch.randint(0, 256, (40, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(40) % 10
    cifar_layout.write_binary(tmp_path / "data", images, labels, images[:20], labels[:20])
    options = {"method": "baseline", "settings": settings, "data_folder": tmp_path / "data"}
    dmt.fit("cifar10-40", out=tmp_path / "whole", watcher=Silent(), **options)  # type: ignore[arg-type]
    with pytest.raises(stopping.Stopped):
        dmt.fit("cifar10-40", out=tmp_path / "parts", watcher=StopAt(3), **options)  # type: ignore[arg-type]
    dmt.fit("cifar10-40", out=tmp_path / "parts", watcher=Silent(), **options)  # type: ignore[arg-type]
    assert nets(tmp_path / "parts") == nets(tmp_path / "whole")


def test_a_fraction_that_keeps_nothing_is_refused(tiny: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="too small"):
        fit(tmp_path / "a", tiny | {"fractions": "0.0001"})
    with pytest.raises(ConfigError, match="keeps no pseudo label"):
        fit(tmp_path / "b", tiny | {"fractions": "0.0006", "per_class": True})


def test_per_class_an_epoch_is_still_one_pass(tiny: dict[str, object], tmp_path: Path) -> None:
    report = fit(tmp_path, tiny | {"per_class": True, "fractions": "0.05", "batch_pseudo": 1, "epochs_round": 1})
    stage = report.jobs[0].stages[-1]
    assert stage.labels is not None
    assert stage.outcome is not None
    assert stage.outcome["cost"]["steps"] == stage.labels["kept"]


def test_other_images_are_refused(tmp_path: Path) -> None:
    settings = {"net": "wrn-10-1", "labels": 20, "fractions": "1", "epochs": 1, "batch": 20, "validation": 0}
    for name, count in (("one", 400), ("two", 410)):
        images = torch.zeros(count, 3, 32, 32, dtype=torch.uint8)
        labels = torch.arange(count) % 10
        cifar_layout.write_binary(tmp_path / name, images, labels, images[:20], labels[:20])

    def baseline(folder: str) -> Report:
        options = {"out": tmp_path / "run", "data_folder": tmp_path / folder, "settings": settings}
        return dmt.fit("cifar10-40", method="baseline", watcher=Silent(), **options)  # type: ignore[arg-type]

    assert baseline("one").jobs[0].finished
    with pytest.raises(RunError, match="other images"):
        baseline("two")
    cpu = torch.device("cpu")
    assert scoring.Finished(tmp_path / "run", tmp_path / "one", cpu, print).jobs(None, None)
    with pytest.raises(RunError, match="other images"):
        scoring.Finished(tmp_path / "run", tmp_path / "two", cpu, print)


@pytest.mark.parametrize(
    ("method", "settings", "says"),
    [
        ("baseline", {"augment": "paper"}, "RandAugment takes"),
        ("fixmatch", {"augment_strong": "fixmatch"}, "RandAugment takes"),
        ("dmt", {"augment_strong": "fixmatch", "strong_pseudo": True}, "RandAugment takes"),
        ("baseline", {"net": "timm:vit_tiny_patch16_224"}, "8 is no multiple"),
    ],
)
def test_what_does_not_fit_the_images_is_told_first(
    method: str, settings: dict[str, object], says: str, tiny: dict[str, object], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=says):
        fit(tmp_path / "run", tiny | settings, method)
    assert not (tmp_path / "run").exists()


def test_files_of_a_killed_writer_are_swept(tiny: dict[str, object], tmp_path: Path) -> None:
    fit(tmp_path, tiny, "baseline")
    stray = next((tmp_path / "stages").iterdir()) / f"{files.TEMPORARY}abc123"
    stray.write_text("half")
    (tmp_path / ".gitignore").write_text("mine")
    fit(tmp_path, tiny, "baseline")
    assert not stray.exists()
    assert (tmp_path / ".gitignore").read_text() == "mine"


def test_divergence_stops_the_run_with_one_line(tiny: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(DivergenceError, match="try a lower learning rate") as caught:
        fit(tmp_path, tiny | {"rate": 1e30, "mixup": "none"}, "baseline")
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "least"),
    [({"labels": 20, "fractions": "0.4,0.7,1"}, 2), ({"pseudo_noise": 0.2, "fractions": "0.5,1"}, 2)],
    ids=["mistakes of its own", "every fifth label corrupted"],
)
def test_dynamic_weights_tell_right_from_wrong_in_every_round(
    settings: dict[str, object], least: int, tmp_path: Path
) -> None:
    """On digits, in a third of the preset's time. A round whose labels are all right has nothing to tell apart."""
    brief = settings | {"net": "resnet8-8", "epochs": 60, "epochs_round": 4}
    report = dmt.fit("digits", method="dmt", out=tmp_path, settings=brief, watcher=Silent())
    judged = 0
    for stage in report.jobs[0].stages[1:]:
        right, wrong = stage.audited("weight_right"), stage.audited("weight_wrong")
        plain, weighted = stage.audited("error_kept"), stage.audited("error_kept_weighted")
        assert right is not None
        assert plain is not None
        assert weighted is not None
        if wrong is None:
            assert plain == 0.0
            continue
        judged += 1
        assert right > wrong
        assert weighted < plain
    assert judged >= least


@pytest.mark.parametrize("layout", ["python", "binary"])
def test_twenty_steps_from_a_cifar_folder(layout: str, tmp_path: Path) -> None:
    """The paper's preset on a folder in CIFAR's own layout, augmentation and all, cut to 20 steps."""
    write = cifar_layout.write_python if layout == "python" else cifar_layout.write_binary
    images = torch.randint(0, 256, (600, 3, 32, 32), dtype=torch.uint8)
    labels = torch.arange(600) % 10
    write(tmp_path / "data", images, labels, images[:50], labels[:50])
    before = {path: path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()}
    settings = {
        "net": "wrn-10-1", "labels": 100, "fractions": "1", "epochs": 2, "epochs_round": 2,
        "batch": 20, "batch_pseudo": 60, "batch_labeled": 10,
    }  # fmt: skip
    report = dmt.fit(
        "cifar10-4k", out=tmp_path / "run", data_folder=tmp_path / "data", settings=settings, watcher=Silent()
    )
    outlines = Folder(tmp_path / "run").jobs()[0].stages
    assert [outline["steps"] for outline in outlines] == [10, 10]  # 300 images are left unlabeled
    assert report.jobs[0].finished
    assert before == {path: path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()}


def test_runs_in_a_thread_where_signals_cannot_be_handled(tiny: dict[str, object], tmp_path: Path) -> None:
    reports: list[Report] = []
    thread = threading.Thread(target=lambda: reports.append(fit(tmp_path, tiny, "baseline")))
    thread.start()
    thread.join()
    assert reports[0].jobs[0].finished


def test_the_folder_says_how_it_was_made(tiny: dict[str, object], tmp_path: Path) -> None:
    fit(tmp_path, tiny)
    manifest = Folder(tmp_path).manifest()
    assert manifest["config"]["net"] == "resnet8-4"
    session = json.loads((tmp_path / "sessions.jsonl").read_text())
    assert {"torch", "python", "hardware", "git", "command", "time"} <= set(session)
    provenance = files.read_json(next(tmp_path.glob("stages/A2-*/pseudo.json")))
    assert provenance["by"] == "A1"
    assert provenance["round"] == 2
    assert (tmp_path / "stages" / provenance["teacher"]).is_dir()
    lines = journal(tmp_path)[next(tmp_path.glob("stages/A2-*")).name]
    assert [line["kind"] for line in lines] == ["labels", *["interval"] * 2, "round", "guard"]
    interval = {"step", "loss", "labeled", "pseudo", "rate", "gamma", "agree", "negative", "positive", "weight"}
    assert interval <= set(lines[1])
    assert {"scores", "audit"} <= set(lines[-2])
