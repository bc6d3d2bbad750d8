"""An audit of a run: which labels are probably wrong, and which images to label next. The run itself is not changed.

```
runs/a-audit/
  index.html            the gallery
  labels.csv            every given label, the most suspicious first
  pseudo_labels.csv     suspicious pseudo labels of the round whose nets are used
  label_next.csv        unlabeled images, the one to label first at the top
  label_studio.json     the same images for Label Studio; label_studio.xml is its labeling interface
  images/               these images, if the data set has no image files of its own
  audit.json            what was audited
  work/                 the nets that judged the given labels: a stopped audit resumes, and a repeated one is quick
```
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from dmt import files, outputs, presets, run_files, schemas
from dmt.auditing import audit_files, given_labels, label_next, pseudo_labels
from dmt.auditing.audit_files import AuditOutput, Findings
from dmt.auditing.ensembles import Ensemble
from dmt.auditing.given_labels import AuditContext, CrossFit
from dmt.auditing.suspects import Judged
from dmt.config import Config
from dmt.core.execution import Execution
from dmt.errors import ConfigError, RunError
from dmt.fitting.features import FeatureMaker
from dmt.methods import catalogue
from dmt.results import reading
from dmt.results.job_results import JobResult
from dmt.runs import environment, progress, starting
from dmt.runs.folder import Folder
from dmt.runs.progress import Watcher
from dmt.runs.starting import Starts
from dmt.runs.stopping import Stop
from dmt.tasks.base import Task
from dmt.training.checkpoint import finished_net
from dmt.training.encoding import FeatureFolder
from dmt.types import ProgressCallback
from dmt.use import scoring
from dmt.use.scoring import Finished

ABOUT = "audit.json"


@dataclass(frozen=True)
class Audited:
    """Result of an audit.

    Attributes:
        folder: folder of its files.
        findings: the three lists.
        lines: one line of text on each list.
    """

    folder: Path
    findings: Findings
    lines: tuple[str, ...]


@dataclass(frozen=True)
class AuditOptions:
    """What is audited, and how thoroughly.

    Attributes:
        method, seed: the job to audit in a run with several; by default the one that validation prefers.
        folds: number of parts of the given labels, each of which is judged by nets trained on the others.
        count: images in each list of the gallery, and in the list of images to label next.
        start: line -> initial parameters of fresh nets, if the run's nets did not start from random ones.
        data_folder: folder of the images; by default as in fit.
    """

    method: str | None = None
    seed: int | None = None
    folds: int = 5
    count: int = 100
    start: Mapping[str, str] = field(default_factory=dict)
    data_folder: Path | None = None

    def __post_init__(self) -> None:
        if self.folds < 2 or self.count < 1:
            raise ConfigError("an audit needs --folds of 2 or more, and a --count of 1 or more")


def audit(
    run: str | Path,
    out: str | Path | None = None,
    options: AuditOptions | None = None,
    *,
    device: str = "auto",
    watcher: Watcher | None = None,
) -> Audited:
    """Find labels that are probably wrong, and images to label next. Repeating the call resumes where it stopped.

    Args:
        run: a run folder; nothing in it is changed.
        out: folder for the findings; by default RUN-audit, with method and seed in its name if they are given.
        device: "auto", "cpu", "cuda" or "cuda:N".
        watcher: receives progress; by default bars on a terminal, lines elsewhere.
    """
    options = options or AuditOptions()
    path = Path(run)
    job = chosen_job(path, options.method, options.seed)  # checked first: they become part of a folder's name
    place = _default_place(path, options) if out is None else Path(out)
    _require_ours(place)
    execution = environment.pick_execution(device)
    # before the watcher is opened: reading the data shows its own progress
    finished = Finished(path, options.data_folder, execution.device, _note, unlabeled=True)
    case = _Case(path, job, finished.task(job.seed), finished.config)
    with watcher or progress.default() as watching:
        context = AuditContext(execution.for_net(case.config.net, case.task.pixels), Stop(None), watching)
        with _claimed(place, case.manifest, context):
            findings = _findings(place, case, options, context)
    return Audited(place, findings, in_words(findings))


@dataclass(frozen=True)
class _Case:
    """A job of a run with its task and configuration, opened to be audited."""

    path: Path  # of the run
    job: JobResult
    task: Task
    config: Config

    @cached_property
    def manifest(self) -> dict[str, Any]:
        return Folder(self.path).manifest()

    def images(self, data_folder: Path | None) -> Path | None:
        """Return the folder of the images, or None if the data set has no image files of its own."""
        return Path(data_folder or self.manifest["folder"]) if self.manifest["data"] in presets.OWN else None


@contextmanager
def _claimed(place: Path, manifest: Mapping[str, Any], context: AuditContext) -> Iterator[None]:
    """Lock the audit's folder, let signals stop the audit, and compute with as many threads as the run did."""
    place.mkdir(parents=True, exist_ok=True)
    folder = Folder(place)
    with (
        folder.locked(),
        context.stop.on_signals(),
        environment.threads(manifest["threads"]),
        context.execution.active(),
    ):
        folder.sweep()
        yield


def _findings(place: Path, case: _Case, options: AuditOptions, context: AuditContext) -> Findings:
    """Make the three lists, and write them to files."""
    job, count = case.job, options.count
    about = {"run": str(case.path), "method": job.method, "seed": job.seed, "folds": options.folds, "count": count}
    files.write_json(place / ABOUT, about | {"images": case.manifest["images"]})
    recipe = CrossFit(case.config, _starts(case, options.start), job.seed, options.folds, place / "work")
    findings, nets = _examine(case, recipe, context, count)
    title = f"{_named(case.path).name}: {job.method}, seed {job.seed}"
    images, drawing = case.images(options.data_folder), _reporting(context, "drawing")
    audit_files.write(AuditOutput(place, nets, title, count, images, drawing), findings)
    return findings


def _seen(case: _Case, recipe: CrossFit, context: AuditContext) -> Task:
    """Return the task as the nets see it: with stored features, which the run may still have, for frozen encoders."""
    folder = FeatureFolder(recipe.work, (case.path / run_files.CACHE,))
    device = context.execution.device
    return FeatureMaker(case.config, recipe.starts, folder, device, context.watcher, context.stop).of(case.task)


def _examine(case: _Case, recipe: CrossFit, context: AuditContext, count: int) -> tuple[Findings, Ensemble]:
    """Return the three lists, and the run's nets, which made two of them."""
    folder, job, task = Folder(case.path), case.job, _seen(case, recipe, context)
    labels = _labels(task, recipe, context)
    nets = replace(ensemble(folder, job, task, recipe.config, context.execution), pictures=case.task)
    checks = pseudo_labels.checks(nets, folder, job) if len(task.unlabeled) else []
    pseudo: Judged | str = f"The nets of {job.method} that are kept learned from no stored pseudo labels."
    if checks:
        pseudo = pseudo_labels.examine(task, checks, _reporting(context, "judging pseudo labels"))
    following = label_next.choose(nets, count, _reporting(context, "looking for images to label"))
    return Findings(labels, pseudo, following or "There are no unlabeled images."), nets


def _labels(task: Task, recipe: CrossFit, context: AuditContext) -> Judged | str:
    most = len(task.labeled)
    if most < recipe.folds:
        return f"{most} labeled images cannot be split into {recipe.folds} folds; give fewer --folds."
    checks = given_labels.train(task, recipe, context)
    return given_labels.examine(task, checks, _reporting(context, "judging labels"))


def _reporting(context: AuditContext, what: str) -> ProgressCallback:
    """Return a callback that shows progress, and that raises `Stopped` once the audit is to stop."""

    def on_progress(done: int, of: int) -> None:
        context.watcher.busy(what, done, of)
        if context.stop():
            raise context.stop.error()

    return on_progress


def ensemble(folder: Folder, job: JobResult, task: Task, config: Config, execution: Execution) -> Ensemble:
    """Return the kept nets of a pair or, for a chain, the kept net and the one before it."""
    stages = job.kept()
    if len(job.lines) == 1:
        at = job.stages.index(stages[0])
        stages = list(job.stages[max(0, at - 1) : at + 1])
    nets = []
    for stage in stages:
        spec = task.net_spec(config.net_of(stage.line))
        nets.append(finished_net(folder.stage(stage.place), spec, stage.line, "raw").to(execution.device))
    return Ensemble(task, tuple(nets), tuple(stage.title for stage in stages), execution.device)


def chosen_job(path: Path, method: str | None, seed: int | None) -> JobResult:
    """Return the job that validation prefers among those asked for; one with pseudo labels, if there is any."""
    top = catalogue.ceiling()
    if method == top.name:
        raise ConfigError(f"the {top.title} learned from the labels of all images; audit another method")
    chosen = scoring.choose(reading.read(Folder(path)), method, seed)
    jobs = [job for job in chosen if job.finished and not catalogue.get(job.method).ceiling]
    if not jobs:
        raise RunError(f"nothing to audit in {path} is finished; repeat the fit command to finish it")

    def liked(job: JobResult) -> float:
        score = job.shipped().score("validation")
        return float("-inf") if score is None else score

    return max([job for job in jobs if job.stages[-1].labels is not None] or jobs, key=liked)


def _starts(case: _Case, given: Mapping[str, str]) -> Starts:
    """Return the initial parameters of the run's nets; refuse others than those the run recorded."""
    recorded = Folder(case.path).starts()
    found = starting.find(given, case.config, "random", recorded)
    for line, known in (recorded or {}).items():
        if found.digests[line] != known["digest"]:
            raise ConfigError(
                f"line {line} of the run started from {known['name']}; give the same: --start {line}=FILE"
            )
    return found


def _named(run: Path) -> Path:
    """Return the folder by a path that ends in its name: "." and ".." are resolved."""
    return run if run.name not in ("", "..") else run.resolve()


def _default_place(run: Path, options: AuditOptions) -> Path:
    """Return a folder beside the run, with method and seed in its name, so that audits of other jobs go elsewhere."""
    asked = [] if options.method is None else [options.method]
    asked += [] if options.seed is None else [f"seed-{options.seed}"]
    named = _named(run)
    return named.with_name("-".join([named.name, "audit", *asked]))


def _require_ours(place: Path) -> None:
    """Refuse a folder that holds something other than an audit, before anything is written there."""
    outputs.require_outside_runs(place)
    if place.is_file():
        raise RunError(f"{place} is a file; give another --out")
    if (place / run_files.MANIFEST).exists() or (
        place.is_dir() and not (place / ABOUT).exists() and not all(map(_hidden, place.iterdir()))
    ):
        raise RunError(f"{place} contains other files but no audit; give an empty or new --out")
    if (place / ABOUT).exists():
        try:
            files.read_json(place / ABOUT, schemas.AUDITED)
        except RunError as error:
            raise RunError(f"{error}; or give an empty or new --out") from error


def _hidden(path: Path) -> bool:
    """Return whether a file is a lock, or a temporary file that a killed audit left."""
    return path.name == run_files.LOCK or path.name.startswith(files.TEMPORARY)


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def in_words(findings: Findings) -> tuple[str, ...]:
    """Return one line of text on each list."""
    lines = []
    for what, each in (("given labels", findings.labels), ("pseudo labels", findings.pseudo)):
        if isinstance(each, str):
            lines.append(f"{what}: {each}")
        else:
            text = f"{'suspicious' if each.poor else 'probably wrong'} {what}: {each.counted}"
            lines.append(f"{text}; {each.trust}" if each.trust else text)
    found = findings.following
    lines.append(found if isinstance(found, str) else f"to label next: {len(found):,} images")
    return tuple(lines)
