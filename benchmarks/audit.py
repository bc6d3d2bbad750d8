"""Does an audit find wrong labels, and is what it suggests to label worth more than images drawn at random?

    python -m benchmarks.audit labels digits --labels 100 --seeds 1-5 --out runs/audit
    python -m benchmarks.audit labels cifar10-4k --labels 2000 --net resnet8-16 --set epochs=20 --seeds 1-2 --data DIR
    python -m benchmarks.audit pseudo digits --labels 50 --seeds 1-5 --out runs/audit
    python -m benchmarks.audit next digits --labels 50 --seeds 1-5 --out runs/audit

``labels``: a tenth of the given labels is flipped to another class, drawn evenly. Precision and recall of what the
audit calls suspicious, beside cleanlab's ``find_label_issues`` on the same probabilities (pip install cleanlab).

``pseudo``: precision and recall of the pseudo labels of DMT's last round that the audit calls suspicious.

``next``: 100 images more get their true labels, once the suggested ones and once others drawn at random; then
Baseline and DMT are trained afresh on all labels. Results are added to a JSON file and printed.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import dmt
from dmt import config as configuration
from dmt import files, presets
from dmt.auditing import auditor, given_labels, label_next, pseudo_labels
from dmt.auditing.ensembles import Ensemble
from dmt.auditing.given_labels import AuditContext, CrossFit
from dmt.config import Config
from dmt.core import streams
from dmt.data.audits import Audit
from dmt.data.images.audit import ImageAudit
from dmt.data.sets import LabeledSet
from dmt.fitting.conditions import Conditions
from dmt.fitting.runner import Runner
from dmt.results.report import Report
from dmt.results.tables import spread
from dmt.runs import environment, progress, starting
from dmt.runs.folder import Folder
from dmt.runs.stopping import Stop
from dmt.tasks import opening
from dmt.tasks.classification import Classification
from dmt.use.scoring import Finished

MORE = 100
"""Labels that are added."""


def main() -> None:
    options = _options()
    seeds = configuration.seeds(options.seeds)
    settings = configuration.from_pairs(options.set or [])
    settings |= {"labels": str(options.labels)} | ({} if options.net is None else {"net": options.net})
    config = configuration.override(presets.get(options.preset).config, settings)
    if options.what == "labels":
        rows = [flipped(config, seed, options) for seed in seeds]
        summary = _found(rows)
    elif options.what == "pseudo":
        rows = [pseudo(config, settings, seed, options) for seed in seeds]
        summary = _found(rows)
    else:
        rows = [grown(config, settings, seed, options) for seed in seeds]
        summary = _gained(rows)
    described = environment.describe(torch.device("cpu"))
    about = {key: described[key] for key in ("dmt", "python", "torch", "numpy", "hardware", "command")}
    about |= {"n": len(seeds), "settings": settings}
    place = options.out / f"{options.what}-{options.preset}-{options.labels}.json"
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
    parser.add_argument("--set", action="append", metavar="KEY=VALUE")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=Path("runs/audit"))
    parser.add_argument("--device", default="cpu")
    return parser.parse_args()


# -- wrong labels


def flipped(config: Config, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """One seed: precision and recall of the audit and of cleanlab on the same probabilities."""
    opened = opening.read(config.data, options.data, print, lambda done, of: None)
    task, _ = opened.split(seed)
    assert isinstance(task, Classification)
    task, wrong = flip(task, seed)
    execution = environment.pick_execution(options.device).for_net(config.net, False)
    recipe = CrossFit(config, starting.find({}, config, "random", None), seed, 5, options.out / "work")
    with (
        progress.default() as watcher,
        environment.threads(environment.fitting_threads(task.shape)),
        execution.active(),
    ):
        checks = given_labels.train(task, recipe, AuditContext(execution, Stop(None), watcher))
    found = given_labels.examine(task, checks).found
    given, probabilities = task.labeled.labels.numpy(), np.zeros((len(task.labeled), len(task.classes)))
    for check in checks:
        for view, said in check.ensemble.predictions(check.images):
            probabilities[check.places[view.positions]] = said.mean(0).cpu().numpy()
    ours = np.zeros(len(given), dtype=bool)
    ours[[each.position for each in found if each.suspicious]] = True
    right = probabilities.argmax(1) == np.where(wrong, -1, given)
    result: dict[str, Any] = {"seed": seed, "flipped": int(wrong.sum())}
    result |= {"accuracy on held-out right labels": 100 * float(right[~wrong].mean()), "dmt audit": _score(ours, wrong)}
    others = _cleanlab(given, probabilities)
    return result | {f"cleanlab {name}": _score(flags, wrong) for name, flags in others.items()}


def flip(task: Classification, seed: int, share: float = 0.1) -> tuple[Classification, np.ndarray]:
    """The task with a share of its labels wrong, and which."""
    chance, count = streams.stream(seed, "flip"), len(task.labeled)
    chosen = np.sort(chance.permutation(count)[: round(share * count)])
    labels = task.labeled.labels.clone()
    shift = torch.from_numpy(chance.integers(1, len(task.classes), len(chosen)))
    labels[chosen] = (labels[chosen] + shift) % len(task.classes)
    wrong = np.zeros(count, dtype=bool)
    wrong[chosen] = True
    return replace(task, labeled=LabeledSet(task.labeled.ids, task.labeled.images, labels)), wrong


def _cleanlab(given: np.ndarray, probabilities: np.ndarray) -> dict[str, np.ndarray]:
    """Its default, and its other ways to choose."""
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
    """One seed: precision and recall over the pseudo labels that were kept."""
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
    """A run whose seeds begin with more labels than their split gives them."""

    more: Mapping[int, np.ndarray] = {}

    def open(self, seeds: Sequence[int]) -> None:
        super().open(seeds)
        for seed in seeds:
            task, audit = self._tasks[seed]
            assert isinstance(task, Classification)
            assert isinstance(audit, ImageAudit)
            self._tasks[seed] = grow(task, audit, self.more[seed])


def grow(task: Classification, audit: ImageAudit, positions: np.ndarray) -> tuple[Classification, ImageAudit]:
    """The unlabeled images at these positions get their true labels."""
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
    """(N,) what these training images really are."""
    assert isinstance(audit, ImageAudit)
    known = dict(zip(audit.everything.ids, audit.everything.labels.tolist(), strict=True))
    return torch.tensor([known[each] for each in ids])


def _start(seed: int, options: argparse.Namespace) -> Path:
    place: Path = options.out / f"next-{options.preset}-{options.labels}" / f"seed-{seed}" / "start"
    return place


def _begun(
    config: Config, settings: Mapping[str, Any], seed: int, options: argparse.Namespace
) -> tuple[Ensemble, Report]:
    """Baseline and DMT with the labels there are, and the nets of DMT that an audit would ask."""
    place, where = _start(seed, options), {"data_folder": options.data, "device": options.device}
    begun = dmt.fit(options.preset, out=place, method=["baseline", "dmt"], seed=seed, settings=settings, **where)
    execution = environment.pick_execution(options.device)
    task = Finished(place, options.data, execution.device, print).task(seed)
    return auditor.ensemble(Folder(place), auditor.chosen_job(place, "dmt", seed), task, config, execution), begun


def grown(config: Config, settings: Mapping[str, Any], seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """One seed: scores at the start, with suggested labels and with random ones."""
    ensemble, begun = _begun(config, settings, seed, options)
    suggested = np.array([each.position for each in label_next.choose(ensemble, MORE)])
    drawn = streams.stream(seed, "random labels").permutation(len(ensemble.task.unlabeled))[:MORE]
    result: dict[str, Any] = {"seed": seed, "start": _scores(begun)}
    for name, positions in (("suggested", suggested), ("random", drawn)):
        result[name] = _scores(_fit(config, _start(seed, options).with_name(name), seed, positions, options))
        print(f"seed {seed}, {name}: {result[name]}", flush=True)
    return result


def _fit(config: Config, out: Path, seed: int, positions: np.ndarray, options: argparse.Namespace) -> Report:
    """Baseline and DMT on a split that has grown."""
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
            runner.run(["baseline", "dmt"], [seed])
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
