"""Does an audit find wrong labels, and are the images it suggests to label worth more than randomly drawn ones?

    python -m benchmarks.audit labels digits --labels 100 --seeds 1-5 --out runs/audit
    python -m benchmarks.audit labels cifar10-4k --labels 2000 --net resnet8-16 --set epochs=20 --seeds 1-2 --data DIR
    python -m benchmarks.audit labels cifar10-4k --labels 10000 --size 224 --seeds 1-3 --data DIR
    python -m benchmarks.audit pseudo digits --labels 50 --seeds 1-5 --out runs/audit
    python -m benchmarks.audit next digits --labels 50 --seeds 1-5 --out runs/audit

``labels``: a tenth of the given labels is changed to another class, drawn uniformly. Measured are precision and recall
of the labels that the audit calls suspicious, and those of cleanlab's ``find_label_issues`` on the same probabilities
(pip install cleanlab). Every seed has other images. With ``--size``, images are treated as a user's photos of that
size, as by `dmt fit FOLDER` on a CPU: last layers are trained on features that encoders pretrained on ImageNet compute
once, and cross-validation on the labels chooses learning rate and length. All seeds then share the images, and differ
in the changed labels, in folds and in nets.

``pseudo``: precision and recall of the pseudo labels of DMT's last round that the audit calls suspicious.

``next``: 100 more images get their true labels, in one case the suggested ones, in the other randomly drawn ones; then
Baseline and DMT are trained from scratch on all labels. Results are written to a JSON file and printed.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

import dmt
from benchmarks import provenance
from dmt import config as configuration
from dmt import files, presets
from dmt.auditing import auditor, given_labels, label_next, pseudo_labels
from dmt.auditing.ensembles import Ensemble
from dmt.auditing.given_labels import AuditContext, CrossFit
from dmt.config import Config
from dmt.core import streams
from dmt.core.execution import Execution
from dmt.data.audits import Audit
from dmt.data.folders import photo_pools
from dmt.data.folders.photo_options import PhotoOptions
from dmt.data.images.audit import ImageAudit
from dmt.data.sets import LabeledSet
from dmt.fitting.conditions import Conditions
from dmt.fitting.features import FeatureMaker
from dmt.fitting.runner import Runner
from dmt.fitting.session import Session
from dmt.methods import catalogue
from dmt.own import choosing, known_nets, schedules
from dmt.own.search import Search
from dmt.results.report import Report
from dmt.results.tables import spread
from dmt.runs import environment, progress, starting
from dmt.runs.folder import Folder
from dmt.runs.starting import Starts
from dmt.runs.stopping import Stop
from dmt.tasks import opening
from dmt.tasks.classification import Classification
from dmt.training.encoding import FeatureFolder
from dmt.types import IMAGENET
from dmt.use.scoring import Finished

MORE = 100
"""Number of labels that are added."""


def main() -> None:
    options = _options()
    seeds = configuration.seeds(options.seeds)
    settings = configuration.from_pairs(options.set or [])
    settings |= {"labels": str(options.labels)} | ({} if options.net is None else {"net": options.net})
    config = presets.get(options.preset).config
    if options.size is None:
        config = configuration.override(config, settings)
    if options.what == "labels" and options.size is not None:
        shared = photos(config, settings, seeds[0], options)
        rows = [flipped(shared, seed, options) for seed in seeds]
        summary = _found(rows)
    elif options.what == "labels":
        rows = [flipped(drawn(config, seed, options), seed, options) for seed in seeds]
        summary = _found(rows)
    elif options.what == "pseudo":
        rows = [pseudo(config, settings, seed, options) for seed in seeds]
        summary = _found(rows)
    else:
        rows = [grown(config, settings, seed, options) for seed in seeds]
        summary = _gained(rows)
    described = environment.describe(torch.device("cpu"))
    about = {key: described[key] for key in ("dmt", "python", "torch", "numpy", "hardware")}
    about |= {"command": f"python -m benchmarks.audit {provenance.command(described['command'][1:])}"}
    about |= {"n": len(seeds), "settings": settings}
    about |= {"cleanlab": metadata.version("cleanlab")} if options.what == "labels" else {}
    sized = "" if options.size is None else f"-size-{options.size}"
    place = options.out / f"{options.what}-{options.preset}-{options.labels}{sized}.json"
    files.write_json(place, about | {"summary": summary, "seeds": rows})
    print(f"{options.what}, {options.preset}, {options.labels} labels, n = {len(seeds)} seeds; all numbers in {place}")
    for name, text in summary.items():
        print(f"  {name:42s} {text}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["labels", "pseudo", "next"])
    parser.add_argument("preset")
    parser.add_argument("--labels", type=int, required=True)
    parser.add_argument("--seeds", default="1-5")
    parser.add_argument("--net")
    parser.add_argument("--size", type=int, help="labels: take images for a user's photos, enlarged to so many pixels")
    parser.add_argument("--start", default="wheel", help="with --size: parameters of the encoders")
    parser.add_argument("--set", action="append", metavar="KEY=VALUE")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=Path("runs/audit"))
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    if options.size is not None and options.what != "labels":
        parser.error("--size is for labels")
    return options


# -- wrong labels


@dataclass(frozen=True)
class Labels:
    """Labels of which some will be flipped, and the configuration of the nets that judge them.

    Attributes:
        task: the labeled images.
        config: nets and recipe.
        starts: initial parameters of the nets.
        fixed: options that cross-validation must not change; None if there is no cross-validation.
    """

    task: Classification
    config: Config
    starts: Starts
    fixed: Mapping[str, str] | None = None


def drawn(config: Config, seed: int, options: argparse.Namespace) -> Labels:
    """Return a preset's labels for a seed, to be judged by randomly initialized nets."""
    opened = opening.read(config.data, options.data, print, lambda done, of: None)
    task, _ = opened.split(seed)
    assert isinstance(task, Classification)
    return Labels(task, config, starting.find({}, config, "random", None))


def photos(config: Config, settings: Mapping[str, str], seed: int, options: argparse.Namespace) -> Labels:
    """Return labels treated as a user's photos and judged as by `dmt fit FOLDER`; features are stored in ``--out``."""
    small = drawn(configuration.override(config, {"labels": options.labels}), seed, options).task
    config = configuration.override(photo_config(small.classes, len(small.labeled), options.size), settings)
    starts = starting.find({}, config, options.start, None)
    execution, folder = environment.pick_execution(options.device), FeatureFolder(options.out / "features")
    with progress.default() as watcher:
        maker = FeatureMaker(config, starts, folder, execution.device, watcher, Stop(None))
        task = maker.of(enlarged(small, options.size))
    assert isinstance(task, Classification)
    return Labels(task, config, starts, settings)


def photo_config(classes: tuple[str, ...], labels: int, size: int) -> Config:
    """Return the configuration that dmt chooses on a CPU for this many labeled photos and no unlabeled ones."""
    net, net_b = (f"frozen:{each}" for each in (known_nets.KNOWN, known_nets.KNOWN_B))
    views = max(1, min(choosing.VIEWS[0], choosing.LOOKS // labels))
    data = PhotoOptions(classes=classes, labels=labels, size=size, stored_views=views)
    return Config(data, schedules.for_a_last_layer(data, large=False, alike=False), net=net, net_b=net_b)


def enlarged(task: Classification, size: int) -> Classification:
    """Return a task of the labeled images only, which must be RGB, resized like photos from files."""
    images = torch.empty(len(task.labeled), 3, size, size, dtype=torch.uint8)
    for place, image in enumerate(task.labeled.images):
        square = photo_pools.square(Image.fromarray(image.permute(1, 2, 0).numpy()), size)
        images[place] = torch.from_numpy(np.array(square)).permute(2, 0, 1)
    labeled = LabeledSet(task.labeled.ids, images, task.labeled.labels)
    none = labeled.take(torch.arange(0))
    return replace(
        task, shape=(3, size, size), normalization=IMAGENET,
        labeled=labeled, unlabeled=none.without_truth(), validation=none, test=none,
    )  # fmt: skip


def by_folds(labels: Labels, execution: Execution) -> tuple[Config, list[str]]:
    """Return the configuration after cross-validation on the labels, as in `dmt fit FOLDER`, and messages about it."""
    if labels.fixed is None:
        return labels.config, []
    methods = [catalogue.baseline().name]
    found = Search(labels.config, labels.task, labels.starts, execution, methods, labels.fixed).run()
    return configuration.override(found.config or labels.config, found.settings), list(found.lines)


def flipped(labels: Labels, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Measure one seed: precision and recall of the audit and of cleanlab on the same probabilities."""
    task, wrong = flip(labels.task, seed)
    execution = environment.pick_execution(options.device).for_net(labels.config.net, False)
    with (
        progress.default() as watcher,
        environment.threads(environment.fitting_threads(task.shape)),
        execution.active(),
    ):
        config, told = by_folds(replace(labels, task=task), execution)
        recipe = CrossFit(config, labels.starts, seed, 5, options.out / "work")
        checks = given_labels.train(task, recipe, AuditContext(execution, Stop(None), watcher))
    found = given_labels.examine(task, checks).found
    given, probabilities = task.labeled.labels.numpy(), np.zeros((len(task.labeled), len(task.classes)))
    for check in checks:
        for view, said in check.ensemble.predictions(check.images):
            probabilities[check.places[view.positions]] = said.mean(0).cpu().numpy()
    ours = np.zeros(len(given), dtype=bool)
    ours[[each.position for each in found if each.suspicious]] = True
    right = probabilities.argmax(1) == np.where(wrong, -1, given)
    result: dict[str, Any] = {"seed": seed, "flipped": int(wrong.sum())} | ({"folds": told} if told else {})
    result |= {"accuracy on held-out right labels": 100 * float(right[~wrong].mean()), "dmt audit": _score(ours, wrong)}
    others = _cleanlab(given, probabilities)
    return result | {f"cleanlab {name}": _score(flags, wrong) for name, flags in others.items()}


def flip(task: Classification, seed: int, share: float = 0.1) -> tuple[Classification, np.ndarray]:
    """Return the task with a share of its labels changed, and (N,) which ones are wrong."""
    chance, count = streams.stream(seed, "flip"), len(task.labeled)
    chosen = np.sort(chance.permutation(count)[: round(share * count)])
    labels = task.labeled.labels.clone()
    shift = torch.from_numpy(chance.integers(1, len(task.classes), len(chosen)))
    labels[chosen] = (labels[chosen] + shift) % len(task.classes)
    wrong = np.zeros(count, dtype=bool)
    wrong[chosen] = True
    return replace(task, labeled=LabeledSet(task.labeled.ids, task.labeled.images, labels)), wrong


def _cleanlab(given: np.ndarray, probabilities: np.ndarray) -> dict[str, np.ndarray]:
    """Return (N,) the labels that cleanlab flags with its default filter and with the others, by filter."""
    from cleanlab.filter import find_label_issues

    ways = ("prune_by_noise_rate", "both", "confident_learning", "low_self_confidence")
    return {way: np.asarray(find_label_issues(given, probabilities, filter_by=way, n_jobs=1)) for way in ways}


def _score(flags: np.ndarray, wrong: np.ndarray) -> dict[str, float]:
    hits = float((flags & wrong).sum())
    precision, recall = hits / max(float(flags.sum()), 1.0), hits / float(wrong.sum())
    harmonic = 2 * precision * recall / (precision + recall) if hits else 0.0
    return {"precision": 100 * precision, "recall": 100 * recall, "f1": 100 * harmonic, "flagged": int(flags.sum())}


def _found(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    counts = [key for key, value in rows[0].items() if isinstance(value, float)]
    summary = {f"{key}, %": spread([row[key] for row in rows]) for key in counts}
    for name in [key for key, value in rows[0].items() if isinstance(value, dict)]:
        parts = {part: spread([row[name][part] for row in rows]) for part in ("precision", "recall", "f1")}
        summary[name] = ", ".join(f"{part} {text}" for part, text in parts.items())
    return summary


# -- wrong pseudo labels


def pseudo(config: Config, settings: Mapping[str, Any], seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Measure one seed: precision and recall over the kept pseudo labels."""
    ensemble, _ = _begun(config, settings, seed, options)
    folder, task = Folder(_start(seed, options)), ensemble.task
    checks = pseudo_labels.checks(ensemble, folder, auditor.chosen_job(folder.path, "dmt", seed))
    found = pseudo_labels.examine(task, checks).found
    given = torch.cat([labels for check in checks for _, _, labels in check.predictions()])
    opened = opening.read(config.data, options.data, print, lambda done, of: None)
    truth = _truth(opened.split(seed)[1], task.unlabeled.ids)
    wrong = ((given != truth) & (given >= 0)).numpy()
    flags = np.zeros(len(wrong), dtype=bool)
    flags[[each.position for each in found]] = True
    return {"seed": seed, "pseudo labels that are wrong": 100 * float(wrong.mean()), "dmt audit": _score(flags, wrong)}


# -- what to label next


class Relabeled(Runner):
    """A run in which some unlabeled images of each seed's split have been labeled."""

    more: Mapping[int, np.ndarray] = {}

    def open(self, seeds: Sequence[int]) -> None:
        super().open(seeds)
        for seed in seeds:
            task, audit = self._tasks[seed]
            assert isinstance(task, Classification)
            assert isinstance(audit, ImageAudit)
            self._tasks[seed] = grow(task, audit, self.more[seed])


def grow(task: Classification, audit: ImageAudit, positions: np.ndarray) -> tuple[Classification, ImageAudit]:
    """Return task and audit after the unlabeled images at these positions have got their true labels."""
    every = _truth(audit, task.unlabeled.ids)
    chosen = torch.from_numpy(np.asarray(positions, dtype=np.int64))
    left = torch.ones(len(every), dtype=torch.bool)
    left[chosen] = False
    rest, new = left.nonzero().squeeze(1), task.unlabeled.take(chosen)
    labeled = LabeledSet(
        (*task.labeled.ids, *new.ids),
        torch.cat([task.labeled.images, new.images[:]]),
        torch.cat([task.labeled.labels, every[chosen]]),
    )
    return replace(task, labeled=labeled, unlabeled=task.unlabeled.take(rest)), ImageAudit(
        every[rest], audit.everything, len(task.classes)
    )


def _truth(audit: Audit[Any], ids: Sequence[str]) -> torch.Tensor:
    """Return (N,) the true labels of training images."""
    assert isinstance(audit, ImageAudit)
    known = dict(zip(audit.everything.ids, audit.everything.labels.tolist(), strict=True))
    return torch.tensor([known[each] for each in ids])


def _start(seed: int, options: argparse.Namespace) -> Path:
    place: Path = options.out / f"next-{options.preset}-{options.labels}" / f"seed-{seed}" / "start"
    return place


def _begun(
    config: Config, settings: Mapping[str, Any], seed: int, options: argparse.Namespace
) -> tuple[Ensemble, Report]:
    """Train Baseline and DMT on the original labels; return the nets of DMT that an audit uses, and the report."""
    place, where = _start(seed, options), {"data_folder": options.data, "device": options.device}
    begun = dmt.fit(options.preset, out=place, method=["baseline", "dmt"], seed=seed, settings=settings, **where)
    execution = environment.pick_execution(options.device)
    task = Finished(place, options.data, execution.device, print).task(seed)
    return auditor.ensemble(Folder(place), auditor.chosen_job(place, "dmt", seed), task, config, execution), begun


def grown(config: Config, settings: Mapping[str, Any], seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Measure one seed: scores with the original labels, with suggested ones added and with random ones added."""
    ensemble, begun = _begun(config, settings, seed, options)
    suggested = np.array([each.position for each in label_next.choose(ensemble, MORE)])
    drawn = streams.stream(seed, "random labels").permutation(len(ensemble.task.unlabeled))[:MORE]
    result: dict[str, Any] = {"seed": seed, "start": _scores(begun)}
    for name, positions in (("suggested", suggested), ("random", drawn)):
        result[name] = _scores(_fit(config, _start(seed, options).with_name(name), seed, positions, options))
        print(f"seed {seed}, {name}: {result[name]}", flush=True)
    return result


def _fit(config: Config, out: Path, seed: int, positions: np.ndarray, options: argparse.Namespace) -> Report:
    """Train Baseline and DMT on a split with additional labels."""
    execution = environment.pick_execution(options.device)
    folder, starts = Folder(out), starting.find({}, config, "random", None)
    with progress.default() as watcher:
        runner = Relabeled(config, folder, starts, Conditions(options.data, execution, 30.0, Stop(None), watcher))
        runner.more = {seed: positions}
        runner.open([seed])
        head = {
            "data": options.preset,
            "folder": None,
            "config": configuration.flat(config),
            "images": runner.fingerprint,
            "starts": starts.known,
            "threads": environment.fitting_threads(runner.threads_for),
        }
        with folder.claimed(head) as manifest, environment.threads(manifest["threads"]), execution.active():
            Session(runner, ["baseline", "dmt"], [seed]).run()
    return Report.read([out])


def _scores(report: Report) -> dict[str, float]:
    return {job.method: job.test_score("raw") for job in report.jobs}


def _gained(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    summary = {}
    for method in ("baseline", "dmt"):
        for name in ("start", "random", "suggested"):
            summary[f"{method}, {name}, test accuracy, %"] = spread([row[name][method] for row in rows])
        paired = [row["suggested"][method] - row["random"][method] for row in rows]
        summary[f"{method}, suggested − random, points"] = spread(paired)
    return summary


if __name__ == "__main__":
    main()
