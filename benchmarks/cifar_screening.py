"""Which options help a round of DMT on CIFAR-10? One round is repeated for each of them and judged on held-out images.

    python -m benchmarks.cifar_screening --data DIR --runs RUNS --minutes 9 --out benchmarks/results
    python -m benchmarks.cifar_screening --tiny --runs RUNS           a rehearsal on a CPU, with digits for images

5,000 images are held out of *training* to judge trials; test images are not used. First, teachers are prepared: a
Baseline and short rounds. The last of them labels for the round that is repeated with other options each time. Trials
that change the labeler or the way of labeling have other labels. All trials of a repetition have the same random
numbers. Repeating the command resumes; after every trial, the record is written to OUT/NAME.json and OUT/NAME.md.

With ``--teacher best:RUNS/NAME.json``, the best trial of an earlier screening labels for this one, so that a schedule
can be built round by round. ``--labelings`` also counts the errors of each way of labeling, which takes seconds.
"""

import argparse
import hashlib
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks import provenance
from dmt import config as configuration
from dmt import files, options, presets, run_files
from dmt.config import Config
from dmt.core import batchnorm, evidence, streams
from dmt.core.evidence import Evidence
from dmt.core.execution import Execution
from dmt.data.audits import Audit
from dmt.data.images import embedded
from dmt.data.images.datasets import DATASETS
from dmt.data.sets import LabeledSet, PseudoLabels
from dmt.errors import ConfigError
from dmt.fitting import assessment
from dmt.methods import catalogue
from dmt.methods.plan import Stage
from dmt.models import build
from dmt.pseudo import labeler
from dmt.pseudo.image_store import ImageStore
from dmt.pseudo.labeler import Teacher, Wish
from dmt.results import reading
from dmt.runs import environment
from dmt.runs.folder import Folder
from dmt.runs.stopping import Stop, Stopped
from dmt.tasks import opening
from dmt.tasks.base import Task
from dmt.tasks.opening import Opened
from dmt.training import evidence_files, loop
from dmt.training.checkpoint import Checkpoint, finished_net
from dmt.training.journal import Journal
from dmt.training.trainer import Trainer, Training

PLAIN = "round"
TRIALS: dict[str, dict[str, Any]] = {
    PLAIN: {},
    "sane": {"augment": "sane"},
    "batchnorm": {"batchnorm": "reestimate"},
    "flips": {"labeling_views": ("flip",)},
    "mean": {"labeler": "mean"},
    "flips-mean": {"labeling_views": ("flip",), "labeler": "mean"},
    "sane-2": {"augment": "sane-2"},
    "strong": {"strong_pseudo": True},
    "strong-asked-weak": {"strong_pseudo": True, "weight_view": "weak"},
    "weight-every-4": {"weight_every": 4},
    "no-mixup": {"mixup_round": None},
    "rate": {"rate_round": 0.2},
    "no-mixup-rate": {"mixup_round": None, "rate_round": 0.2},
    "uniform": {"method": "cl"},
    "soft": {"soft_labels": True},
    "continued": {"start_round": "teacher"},
    "fixmatch": {"method": "fixmatch"},
    "fixmatch-continued": {"method": "fixmatch", "start_round": "teacher"},
    "per-class": {"per_class": True},  # differs only if the round keeps some of the labels, with --fraction
}
PREPARED = "0.5:12500,1:20000"
"""Fractions and steps of the rounds that prepare the teacher, with the options of `cifar10-4k-fast`."""

BEST = "best:"
QUICK: dict[str, Any] = {"rate_round": 0.2, "mixup_round": None, "online_stage": "none"}
HELD_OUT = 5000
TINY: dict[str, Any] = {
    "net": "wrn-10-1", "labels": 100, "validation": 200, "epochs": 25, "batch": 32, "batch_pseudo": 28,
    "batch_labeled": 4, "ema": 0.9, "rate": 0.05,
}  # fmt: skip
LABELINGS: dict[str, dict[str, Any]] = {
    name: {"labeler": labeler, "labeling_views": views, "batchnorm": batchnorm}
    for name, labeler, views, batchnorm in (
        ("raw", "raw", (), "running"),
        ("ema", "ema", (), "running"),
        ("mean of both", "mean", (), "running"),
        ("flip", "raw", ("flip",), "running"),
        ("flip, ema", "ema", ("flip",), "running"),
        ("flip, mean of both", "mean", ("flip",), "running"),
        ("BatchNorm re-estimated", "raw", (), "reestimate"),
        ("BatchNorm re-estimated, flip", "raw", ("flip",), "reestimate"),
    )
}
"""Ways in which one teacher may label. Each sets all options of labeling, so the base configuration does not matter."""

COPIES = ("raw", "ema")
AUDITED = ("error_kept", "error_kept_weighted", "weight_right", "weight_wrong")


@dataclass(frozen=True)
class Bench:
    """Settings shared by all trainings.

    Attributes:
        opened: the data.
        base: the configuration that trials change.
        execution: the device, and how steps run on it.
        runs: folder of the trainings.
        stop: when to stop.
        seed: seed of the split and of all random numbers.
        prepared: fractions and steps of the rounds before the one that is repeated.
        fraction, steps: fraction and steps of the round that is repeated.
        trials: options of the trials by name.
        began: time at which the program began, for messages.
    """

    opened: Opened
    base: Config
    execution: Execution
    runs: Path
    stop: Stop
    seed: int
    prepared: tuple[tuple[float, int], ...]
    fraction: float
    steps: int
    trials: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: TRIALS)
    began: float = field(default_factory=time.monotonic)

    def split(self, config: Config) -> tuple[Task, Audit[Any]]:
        return replace(self.opened, options=config.data).split(self.seed)

    def note(self, text: str) -> None:
        print(f"{time.monotonic() - self.began:6.1f} {text}", flush=True)


@dataclass(frozen=True)
class Job:
    """One training: a stage with a configuration and a number of steps, on labels by the nets in a teacher's folder."""

    name: str
    config: Config
    stage: Stage
    steps: int
    seed: int
    teacher: Path | None = None

    def place(self, runs: Path) -> Path:
        """Return the folder, whose name contains a hash of everything that determines the nets."""
        content = {
            "stage": options.content(self.stage),
            "objective": type(self.stage.objective).__name__,
            "data": options.content(self.config.data),
            "net": self.config.net,
            "steps": self.steps,
            "seed": self.seed,
            "teacher": None if self.teacher is None else self.teacher.name,
        }
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        return runs / f"{self.name}-{digest[:12]}"


def train(bench: Bench, job: Job) -> Path:
    """Train a job unless it is finished, score it on the held-out images, and return its folder."""
    place, device = job.place(bench.runs), bench.execution.device
    if (place / "outcome.json").exists():
        return place
    if bench.stop():
        raise bench.stop.error()
    task, audit = bench.split(job.config)
    stage, spec = job.stage, task.net_spec(job.config.net)
    pseudo = None if stage.labels is None else labels(job, task, place, bench.execution)
    batches = task.batches(task.labeled, pseudo, stage.batch_plan(job.seed), bench.execution)
    nets: dict[str, nn.Module] = {"A": build.build(spec, streams.seed_of(job.seed, "net"))}
    if stage.start is not None:
        assert job.teacher is not None
        nets = {"A": finished_net(job.teacher, spec, "A", "raw")}
    memory, clean = stage.objective.memory(task.sizes(0), len(task.classes)), partial(task.clean_images, job.seed)
    training = Training(stage.objective, stage.schedule, job.steps, job.seed, memory=memory, clean=clean)
    trainer = Trainer(nets, training, batches, bench.execution)
    checkpoint, journal = Checkpoint(place), Journal(place / run_files.JOURNAL)
    bench.note(f"{job.name}: from step {(checkpoint.state() or {'step': 0})['step']} of {job.steps}")
    try:
        if not loop.fit(trainer, checkpoint, journal, loop.Pace(120.0, bench.stop, lambda step: None)):
            raise bench.stop.error()
        trainer.close()
        found = assessment.scores(trainer, task, ("validation",), place)["validation"]["A"]
        audited = {} if pseudo is None else assessment.pseudo_labels(trainer, task, audit, pseudo, {})
    finally:
        trainer.close()
    rates = [line["images_per_s"] for line in journal.read() if line["kind"] == "interval"]
    outcome = {
        "accuracy": {copy: found[copy]["accuracy"] for copy in found},
        "fine_grained": {copy: found[copy]["fine_grained"] for copy in found},
        "held_out": len(task.validation),
        "steps": job.steps,
        "seconds": (checkpoint.state() or {})["seconds"],
        "images_per_s": statistics.median(rates),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
    }
    outcome |= {key: audited[key] for key in AUDITED if key in audited}
    files.write_json(place / "outcome.json", outcome)
    bench.note(f"{job.name}: " + ", ".join(f"{copy} {score:.2f}" for copy, score in outcome["accuracy"].items()))
    return place


def labels(job: Job, task: Task, place: Path, execution: Execution) -> PseudoLabels[Tensor]:
    """Return the teacher's pseudo labels for a job's stage; they are computed once and stored."""
    if not (place / run_files.PSEUDO).exists():
        made(job, task, execution).save(place)
    return ImageStore.load(place).open(task.unlabeled)


def made(job: Job, task: Task, execution: Execution) -> ImageStore:
    """Compute the teacher's pseudo labels for a job's stage."""
    wanted = job.stage.labels
    assert wanted is not None
    assert job.teacher is not None
    nets = []
    for copy in wanted.copies:
        net = finished_net(job.teacher, task.net_spec(job.config.net), "A", copy)
        net = net.to(execution.device, memory_format=execution.layout)  # type: ignore[call-overload]
        if job.stage.schedule.batchnorm == "reestimate":  # as if the teacher had been trained with this option
            batchnorm.reestimate(net, task.clean_images(job.seed, execution.device))
        nets.append(net)
    teacher = Teacher(tuple(nets), task, execution.device, wanted.seen, whole=wanted.whole)
    wish = Wish(wanted.fraction, wanted.per_class, provenance={"teacher": job.teacher.name}, soft=wanted.soft)
    return labeler.label(teacher, wish)


def labelings(bench: Bench, teacher: Path) -> dict[str, dict[str, float]]:
    """Return the error in % of the most confident labels, by way of labeling and by share; nothing is trained."""
    found: dict[str, dict[str, float]] = {}
    for name, settings in LABELINGS.items():
        counted = replace(bench, fraction=1.0, trials={name: settings})
        job = trial(counted, name, 0, teacher)
        task, audit = bench.split(job.config)
        pseudo = made(job, task, bench.execution).open(task.unlabeled)
        counts = audit.pseudo_labels(pseudo, None, bench.execution.device, {})
        found[name] = counts["error_top"]
        bench.note(f"labels by {name}: {counts['error_top']}")
    return found


def prepare(bench: Bench) -> Path:
    """Train the nets that label for all trials, and return their folder."""
    config = configuration.override(bench.base, QUICK | {"fractions": (*(share for share, _ in bench.prepared), 1.0)})
    first, *rounds = catalogue.plan("dmt", config.recipe).stages
    task, _ = bench.split(config)
    seed = partial(streams.seed_of, bench.seed, "prepared")
    teacher = train(bench, Job(f"prepared-{first.name}", config, first, first.steps(task.sizes(0)), seed(first.name)))
    for stage, (_, steps) in zip(rounds, bench.prepared, strict=False):
        teacher = train(bench, Job(f"prepared-{stage.name}", config, stage, steps, seed(stage.name), teacher))
    return teacher


def last_nets(bench: Bench, run: Path) -> Path:
    """Return the folder of the last finished stage of a DMT run with the same split, or of a record's best trial."""
    if str(run).startswith(BEST):
        return best_trial(bench, Path(str(run).removeprefix(BEST)))
    _require_same_split(bench, Folder(run).manifest()["config"], bench.seed, str(run))
    jobs = [job for job in reading.read(Folder(run)) if job.method == "dmt" and job.seed == bench.seed]
    finished = [stage for job in jobs for stage in job.stages if stage.outcome is not None]
    if not finished:
        raise ConfigError(f"{run} has no finished stage of DMT with seed {bench.seed}")
    return finished[-1].path


def _require_same_split(bench: Bench, held: Mapping[str, Any], seed: int, name: str) -> None:
    """Refuse teachers that may have been trained on the images that are held out here."""
    wanted = configuration.flat(bench.base) | {"seed": bench.seed}
    held = {**held, "seed": seed}
    for key in ("dataset", "labels", "validation", "net", "seed"):
        if held[key] != wanted[key]:
            raise ConfigError(f"{name} was trained with {key}={held[key]}; this needs {key}={wanted[key]}")


def best_trial(bench: Bench, record: Path) -> Path:
    """Return the folder of the first repetition of the trial whose raw nets are best on the held-out images."""
    known = files.read_json(record)
    _require_same_split(bench, known["base"], known["seed"], str(record))
    rows: dict[str, dict[str, Any]] = known["trials"]
    name, row = max(rows.items(), key=lambda each: float(each[1]["raw"]))
    place = bench.runs / str(row["folders"][0])
    if not place.exists():
        raise ConfigError(f"{place}, the best trial of {record}, is missing; give the --runs it was made with")
    bench.note(f"taught by {name}: {row['raw']:.2f}")
    return place


def trial(bench: Bench, name: str, repetition: int, teacher: Path) -> Job:
    """Return the repeated round with the options of a trial."""
    settings = {"method": "dmt", "fractions": (bench.fraction,)} | dict(bench.trials[name])
    method = settings.pop("method")
    config = configuration.override(bench.base, settings)
    stage = catalogue.plan(method, config.recipe).stages[-1]
    if config.recipe.start_round == "teacher" and stage.start is None:  # a method of one stage
        stage = replace(stage, start=PLAIN)
    return Job(name, config, stage, bench.steps, streams.seed_of(bench.seed, "trial", repetition), teacher)


def compared(trials: Mapping[str, Any], rows: dict[str, list[Path]]) -> dict[str, dict[str, Any]]:
    """Return the results of each trial, and its gain over the plain round on the same images and repetitions."""
    found: dict[str, dict[str, Any]] = {}
    for name, places in rows.items():
        outcomes = [files.read_json(place / "outcome.json") for place in places]
        row: dict[str, Any] = {"settings": trials[name], "n": len(places), "repetitions": outcomes}
        row["folders"] = [place.name for place in places]
        for copy in COPIES:
            row[copy] = round(statistics.fmean(outcome["accuracy"][copy] for outcome in outcomes), 3)
            pairs = list(zip(_said(places, copy), _said(rows.get(PLAIN, []), copy), strict=False))
            if name != PLAIN and pairs:
                gain = evidence.difference([pair[0] for pair in pairs], [pair[1] for pair in pairs])
                row[f"{copy}_gain"] = [round(each, 3) for each in (gain.value, gain.low, gain.high)]
        found[name] = row
    return found


def _said(places: Sequence[Path], copy: str) -> list[Evidence]:
    every = (evidence_files.read(place, "validation", "A", copy) for place in places)
    return [each for each in every if each is not None]


def record(bench: Bench, rows: dict[str, list[Path]], teacher: Path, before: Sequence[Any]) -> dict[str, Any]:
    """Return the whole record, with everything that is needed to verify it."""
    outcome, described = teacher / "outcome.json", environment.describe(bench.execution.device)
    described |= {"command": provenance.command(described["command"])}
    return {
        "base": configuration.flat(bench.base) | {"fractions": (bench.fraction,)},
        "seed": bench.seed,
        "steps": bench.steps,
        "prepared": bench.prepared,
        "teacher": files.read_json(outcome) if outcome.exists() else teacher.name,
        "sessions": [*before, described],
        "trials": compared(bench.trials, rows),
    }


def page(found: dict[str, Any]) -> str:
    """Return the record as Markdown."""
    last, base = found["sessions"][-1], found["base"]
    commits = sorted({(each["git"] or {}).get("commit", "not a checkout")[:12] for each in found["sessions"]})
    words = last["command"]
    teacher = found["teacher"]
    taught = f"a given run's {teacher}" if isinstance(teacher, str) else f"nets of {teacher['accuracy']['raw']:.2f} %"
    lines = [
        f"# CIFAR-10, {base['labels']:,} labels: one round, option by option",
        "",
        f"`{words}`; commit {', '.join(commits)}; {last['hardware']['device']}, Python {last['python']}, "
        f"torch {last['torch']}, dmt {last['dmt']}; {base['net']}.",
        "",
        f"A round of {found['steps']:,} steps on the surest {base['fractions'][0]:.0%} of the labels by {taught}, "
        f"split of seed {found['seed']}. Accuracy on {base['validation']:,} images held out of training, %, means over "
        "n repetitions; gains over the plain round on the same images, with the range of nine of ten draws of the "
        "images; label error, weighted or not, and images/s of the first repetition. Test images were not looked at.",
        "",
        "| trial | options | n | raw | gain | EMA | gain | label error | weighted | images/s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in found["trials"].items():
        settings = ", ".join(f"`{key}={configuration.shown(value)}`" for key, value in row["settings"].items())
        cells = [name, settings, row["n"]]
        for copy in COPIES:
            gain = row.get(f"{copy}_gain")
            cells += [f"{row[copy]:.2f}", "{:+.2f} ({:+.2f} to {:+.2f})".format(*gain) if gain else ""]
        first = row["repetitions"][0]
        cells += [f"{first[key]:.2f}" if key in first else "" for key in AUDITED[:2]]
        lines.append("| " + " | ".join(map(str, [*cells, f"{first['images_per_s']:,.0f}"])) + " |")
    return "\n".join([*lines, "", *labeling_table(found.get("labelings", {}))])


def labeling_table(ways: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return the lines of a table of errors by way of labeling, if they were counted."""
    if not ways:
        return []
    shares = list(next(iter(ways.values())))
    return [
        "Error of the teacher's labels by the way of labeling, %, among the surest so many:",
        "",
        "| labels by | " + " | ".join(shares) + " |",
        "|---" * (1 + len(shares)) + "|",
        *(
            f"| {name} | " + " | ".join(f"{errors[share]:.2f}" for share in shares) + " |"
            for name, errors in ways.items()
        ),
        "",
    ]


def digits_for_images() -> None:
    """Replace "cifar10" by handwritten digits, enlarged and in color, which can be learned on a CPU."""
    known, digits = DATASETS["cifar10"], DATASETS["digits"]

    def enlarged(part: LabeledSet[Tensor]) -> LabeledSet[Tensor]:
        large = F.interpolate(part.images.float(), size=known.shape[1:]).to(torch.uint8)
        return LabeledSet(part.ids, large.expand(-1, 3, -1, -1).contiguous(), part.labels)

    def read(folder: Path, notify: object) -> tuple[LabeledSet[Tensor], LabeledSet[Tensor]]:
        train, test = embedded.digits()
        return enlarged(train), enlarged(test)

    DATASETS["cifar10"] = replace(known, train=digits.train, test=digits.test, read=read)


def own_trial(text: str) -> tuple[str, dict[str, Any]]:
    """Parse a trial such as ``NAME:gamma=1;mixup_round=none``."""
    name, _, settings = text.partition(":")
    return name, dict(configuration.from_pairs(settings.split(";")))


def rounds_of(text: str) -> tuple[tuple[float, int], ...]:
    """Parse fractions and steps of rounds, such as ``0.5:12500,1:20000``."""
    if text == "none":
        return ()
    return tuple((float(share), int(steps)) for share, _, steps in (each.partition(":") for each in text.split(",")))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path())
    parser.add_argument("--runs", type=Path, required=True, help="kept between calls")
    parser.add_argument("--out", type=Path, help="for the record; RUNS by default")
    parser.add_argument("--name", default="cifar_screening", help="of the record")
    parser.add_argument("--preset", default="cifar10-4k", help="cifar10-4k or cifar10-1k")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for all trials")
    parser.add_argument("--trials", default=",".join(name for name in TRIALS if name != "per-class"))
    parser.add_argument(
        "--trial", action="append", default=[], metavar="NAME:KEY=VALUE;KEY=VALUE", help="one more, after those"
    )
    parser.add_argument("--repeats", type=int, default=1, help="repetitions of each trial, with other random numbers")
    parser.add_argument("--steps", type=int, default=25_000, help="of the repeated round")
    parser.add_argument("--fraction", type=float, default=1.0, help="share of the labels that it keeps")
    parser.add_argument("--prepare", default=PREPARED, help=f"rounds before it, or none; {PREPARED}")
    parser.add_argument(
        "--teacher",
        type=Path,
        help="in place of preparing: a run of DMT with validation=5000, or best:RECORD.json of trials in RUNS",
    )
    parser.add_argument("--labelings", action="store_true", help="count the errors of the teacher's ways of labeling")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=9.0, help="after which to stop at a checkpoint")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--tiny", action="store_true", help="digits and a small net")
    asked = parser.parse_args(arguments)
    stop = Stop(60 * asked.minutes)
    own = dict(map(own_trial, asked.trial))
    trials, wanted = TRIALS | own, [*filter(None, asked.trials.split(",")), *own]
    for name in wanted:
        if name not in trials:
            parser.error(f"no trial {name}; there are {', '.join(trials)}")
    if asked.tiny:
        digits_for_images()
    settings = {"validation": HELD_OUT} | (TINY if asked.tiny else {})
    settings |= configuration.from_pairs(asked.set)
    base = configuration.override(presets.get(asked.preset).config, settings)
    execution = environment.pick_execution(asked.device)
    prepared = rounds_of(asked.prepare)
    if asked.tiny:
        prepared = tuple((share, min(steps, asked.steps)) for share, steps in prepared)
    opened = opening.read(base.data, asked.data, print, lambda done, of: None)
    bench = Bench(
        opened, base, execution, asked.runs, stop, asked.seed, prepared, asked.fraction,
        asked.steps, trials,
    )  # fmt: skip
    with stop.on_signals(), execution.active():
        screen(bench, wanted, asked)


def screen(bench: Bench, wanted: Sequence[str], asked: argparse.Namespace) -> None:
    """Run all trials, repetition by repetition, as far as time allows."""
    place = asked.out or asked.runs
    path = place / f"{asked.name}.json"
    before = files.read_json(path)["sessions"] if path.exists() else []
    rows: dict[str, list[Path]] = {}

    def write(teacher: Path, ways: Mapping[str, Any]) -> None:
        found = record(bench, rows, teacher, before) | ({"labelings": ways} if ways else {})
        files.write_json(path, found)
        files.write(path.with_suffix(".md"), page(found).encode())

    try:
        teacher = prepare(bench) if asked.teacher is None else last_nets(bench, asked.teacher)
        ways = labelings(bench, teacher) if asked.labelings else {}
        write(teacher, ways)
        for repetition in range(asked.repeats):
            for name in wanted:
                rows.setdefault(name, []).append(train(bench, trial(bench, name, repetition, teacher)))
                write(teacher, ways)
    except Stopped as error:
        bench.note(str(error))
    else:
        print(path.with_suffix(".md").read_text())


if __name__ == "__main__":
    main()
