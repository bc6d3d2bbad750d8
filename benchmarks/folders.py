"""Real folders with default settings: Baseline, CL, DMT and FixMatch compared with what a user would do instead.

    python -m benchmarks.folders --folders DIR --choosing --out benchmarks/results
    python -m benchmarks.folders --folders DIR --only papsmear --draws 1 --budget 9m --out benchmarks/results
    python -m benchmarks.folders --folders DIR --choosing --dirty --out benchmarks/results
    python -m benchmarks.folders --folders DIR --judging --open-judging --out benchmarks/results

``DIR`` holds ``NAME.tar.gz`` and, for images, ``NAME.truth.csv``. For every draw, a folder with other labels is made
(`benchmarks.folder_draws`) and `dmt fit FOLDER --out RUN` runs as a user would type it; then CL and, on a GPU,
FixMatch are added. The alternatives are scikit-learn on the features of the run's encoders for images
(`benchmarks.folder_rivals`), and the supervised net trained for as many steps as all of DMT for masks.

Defaults are chosen on some folders and judged on the others. Test scores of the judging folders may be seen only once,
when all defaults are fixed, so they are refused without ``--open-judging``. Runs are in ``--work``; one that was
stopped, by ``--budget`` or Ctrl-C, is resumed by the same command. The record is written to ``--out`` as folders_cpu
or folders_gpu, .json and .md.
"""

import argparse
import hashlib
import json
import os
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmarks import folder_draws, folder_rivals
from dmt import files
from dmt.methods import catalogue
from dmt.own import known_nets
from dmt.results import reading
from dmt.results.report import JobResult, Report, preference
from dmt.runs import environment, stopping
from dmt.runs.folder import Folder
from dmt.training import inference
from dmt.training.checkpoint import finished_net
from dmt.use.scoring import Finished

CHOOSING = ("trashnet", "papsmear", "polyps", "magtile")
JUDGING = ("caltech40", "signdigits", "people", "wbc")
MASKS = ("polyps", "magtile", "people", "wbc")
VARIANTS = ("foreign", "skewed")
COLUMNS = {
    "baseline": "Baseline",
    "baseline_both": "Baseline, both",
    "cl": "CL",
    "cl_both": "CL, both",
    "dmt": "DMT",
    "dmt_both": "DMT, both",
    "ships": "what ships",
    "fixmatch": "FixMatch",
    "logistic": "LogisticRegression",
    "self_training": "SelfTraining",
    "label_spreading": "LabelSpreading",
    "longer": "Baseline, all steps",
}


@dataclass(frozen=True)
class Case:
    """One folder with one draw of labels, and a change to its unlabeled images, if any."""

    folder: str
    draw: int
    variant: str = ""  # one of `VARIANTS`, or empty

    @property
    def masks(self) -> bool:
        return self.folder in MASKS

    @property
    def place(self) -> str:
        return "-".join(filter(None, (self.folder, self.variant, str(self.draw))))


@dataclass(frozen=True)
class Outcome:
    """Result of a case; scores are accuracy or mean IoU on test/ in %, of the final model or of the ensemble."""

    folder: str
    draw: int
    variant: str
    options: str  # additional arguments of dmt fit
    net: str
    scores: dict[str, float]  # by keys of `COLUMNS`, without those that do not apply
    minutes: float  # duration of `dmt fit FOLDER`: Baseline and DMT
    waiting: float | None  # share of DMT's training time in which steps waited for images
    said: list[str] = field(default_factory=list)  # verdict and warnings of the guard


class Clock:
    """Runs commands until the budget is spent."""

    def __init__(self, budget: float | None) -> None:
        self._end = None if budget is None else time.monotonic() + budget

    def run(self, words: Sequence[str], seconds: Path) -> None:
        """Run a command of dmt, add the seconds it took to a file, and stop it cleanly when time is up."""
        began, left = time.monotonic(), None if self._end is None else self._end - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError("the budget is spent; repeat the command to resume")
        process = subprocess.Popen([sys.executable, "-m", "dmt.cli", *words], stdout=subprocess.DEVNULL)
        try:
            code = process.wait(left)
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as stopped:
            process.send_signal(signal.SIGINT)
            process.wait()
            raise TimeoutError("stopped; repeat the command to resume") from stopped
        finally:
            spent = json.loads(seconds.read_text()) if seconds.is_file() else 0.0
            files.write(seconds, json.dumps(spent + time.monotonic() - began).encode())
        if code:
            raise subprocess.CalledProcessError(code, [*words])


@dataclass(frozen=True)
class Bench:
    """Archives, folder of the runs, device, additional arguments of dmt fit, and the clock."""

    archives: Path
    work: Path
    device: torch.device
    options: tuple[str, ...]
    clock: Clock

    def outcome(self, case: Case) -> Outcome:
        """Run a case, or what is left to do of it."""
        place = self.work / case.place
        folder, run = self._folder(case, place), place / "run"
        fit = ["fit", str(folder), "--out", str(run), "--device", str(self.device), *self.options]
        self._once(place / "fit", fit)
        beside = ["cl", "fixmatch-seg"] if case.masks and self.device.type == "cuda" else ["cl"]
        self._once(place / "compare", [*fit, "--compare", ",".join(["baseline", *beside, "dmt"])])
        report = Report.read([run])
        jobs = {job.method.removesuffix("-seg"): job for job in report.jobs}
        found = {name: job.test_score("shipped") for name, job in jobs.items()}
        found |= self._both(run, [job for job in jobs.values() if len(job.kept()) > 1])
        found["ships"] = found["baseline" if jobs["dmt"].doubted else preferred_method(run)]
        if case.masks:
            found["longer"] = self._longer(folder, run, place)
        else:
            found |= folder_rivals.scores(run, jobs["dmt"], self.device)
            if self.device.type == "cuda" and "fixmatch" not in found:
                found["fixmatch"] = self._fixmatch(folder, place)
        config = reading.configuration_of(Folder(run))
        nets = " and ".join(dict.fromkeys(config.net_of(line) for line in jobs["dmt"].lines))
        minutes = json.loads((place / "fit.seconds").read_text()) / 60
        said = [*report.verdicts(), *report.warnings()]
        options = shlex.join(self.options)
        return Outcome(case.folder, case.draw, case.variant, options, nets, found, minutes, waiting(jobs["dmt"]), said)

    def _folder(self, case: Case, place: Path) -> Path:
        """Return the user's folder of a case; it is written once."""
        done, folder = place / "photos-written", place / "photos"
        if done.is_file():
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        sources = self.work / "sources"
        source = folder_draws.unpack(self.archives, case.folder, sources)
        if case.masks:
            folder_draws.write_masks(folder, source, case.draw)
        else:
            labeled, unlabeled = folder_draws.images(*folder_draws.classes_of(self.archives, source), case.draw)
            if case.variant == "skewed":
                unlabeled = folder_draws.skewed(unlabeled, case.draw)
            pool = list(unlabeled)
            if case.variant == "foreign":
                others = [each for each in (CHOOSING if case.folder in CHOOSING else JUDGING) if each != case.folder]
                there = [folder_draws.unpack(self.archives, each, sources) for each in others]
                pool += folder_draws.foreign(len(pool), there, case.draw)
            folder_draws.write_images(folder, source, labeled, pool)
        done.touch()
        return folder

    def _once(self, stamp: Path, words: Sequence[str]) -> None:
        if not stamp.with_suffix(".done").is_file():
            self.clock.run(words, stamp.with_suffix(".seconds"))
            stamp.with_suffix(".done").touch()

    def _both(self, run: Path, jobs: Sequence[JobResult]) -> dict[str, float]:
        """Return scores of the mean of both nets' probabilities, using the better copy of each on validation."""
        if not jobs:
            return {}
        finished, found = Finished(run, None, self.device, lambda text: None), {}
        for job in jobs:
            task, nets = finished.task(job.seed), []
            for stage in job.kept():
                copy = max(stage.copies, key=lambda each, stage=stage: preference(stage, each))  # type: ignore[misc]
                spec = task.net_spec(finished.config.net_of(stage.line))
                nets.append(finished_net(Folder(run).stage(stage.place), spec, stage.line, copy).to(self.device))
            meter = task.meter(self.device)
            for view, mean in inference.probabilities(nets, task, task.test, self.device):  # type: ignore[arg-type]
                assert view.truth is not None
                meter.add(mean.clamp_min(1e-12).log(), view.truth)
            name = job.method.removesuffix("-seg")
            found[f"{name}_both"] = meter.mean_iou() if task.pixels else meter.accuracy()
        return found

    def _fixmatch(self, folder: Path, place: Path) -> float:
        """Return the score of FixMatch with one net trained as a whole: stored features allow no strong views."""
        words = ["fit", str(folder), "--out", str(place / "fixmatch"), "--device", str(self.device), *self.options]
        net = ["--net", f"tuned:{known_nets.KNOWN}", "--start", "wheel", "--no-folds"]
        self._once(place / "fix", [*words, "--method", "fixmatch", "--no-baseline", *net])
        return Report.read([place / "fixmatch"]).jobs[0].test_score("shipped")

    def _longer(self, folder: Path, run: Path, place: Path) -> float:
        """Return the score of a Baseline with as many steps as all stages of one line of DMT, otherwise by default."""
        config = reading.configuration_of(Folder(run))
        stages = [stage for stage in catalogue.plan("dmt", config.recipe).stages if "A" in stage.lines]
        steps = [stage.steps(config.data.sizes) for stage in stages]
        epochs = round(config.recipe.epochs * sum(steps) / steps[0])
        words = ["fit", str(folder), "--out", str(place / "longer"), "--device", str(self.device), *self.options]
        self._once(place / "long", [*words, "--method", "baseline", "--set", f"epochs={epochs}"])
        return Report.read([place / "longer"]).jobs[0].test_score("shipped")


def preferred_method(run: Path) -> str:
    """Return the method a run trains if none is given: the default, unless cross-validation preferred another."""
    search: dict[str, Any] = Folder(run).manifest().get("search", {})
    return str(search.get("method", catalogue.default().name))


def waiting(job: JobResult) -> float | None:
    """Return the share of the training time in which steps waited for their images; None if not recorded."""
    lines = [line for stage in job.stages for line in stage.journal("interval") if line.get("waiting") is not None]
    total = sum(line["seconds"] for line in lines)
    return sum(line["seconds"] * line["waiting"] for line in lines) / total if total else None


def table(outcomes: Sequence[Outcome]) -> str:
    """Return tables for images and for masks: mean ± standard deviation over draws by folder, and mean over folders."""
    parts = []
    for task, masks in (("Images, accuracy", False), ("Masks, mean IoU", True)):
        own = [each for each in outcomes if (each.folder in MASKS) == masks]
        columns = [key for key in COLUMNS if any(key in each.scores for each in own)]
        if not own:
            continue
        head = ["folder", "n", *(COLUMNS[key] for key in columns), "minutes", "waiting"]
        rows = [head, ["---"] * len(head)]
        kinds = dict.fromkeys((each.folder, each.variant) for each in own)
        for folder, variant in kinds:
            some = [each for each in own if (each.folder, each.variant) == (folder, variant)]
            cells = [_spread([each.scores[key] for each in some if key in each.scores]) for key in columns]
            waited = [each.waiting for each in some if each.waiting is not None]
            minutes = f"{statistics.fmean(each.minutes for each in some):.1f}"
            share = f"{statistics.fmean(waited):.1%}" if waited else "–"
            rows.append([f"{folder}, {variant}" if variant else folder, str(len(some)), *cells, minutes, share])
        clean = [kind for kind in kinds if not kind[1]]
        if len(clean) > 1:
            rows.append(["**mean**", "", *(_overall(own, clean, key) for key in columns), "", ""])
        parts.append(f"## {task}\n\n" + "\n".join("| " + " | ".join(row) + " |" for row in rows))
    return "\n\n".join(parts) + "\n"


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "–"
    return f"{statistics.fmean(values):.1f}" + (f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else "")


def _overall(outcomes: Sequence[Outcome], kinds: Sequence[tuple[str, str]], key: str) -> str:
    """Return the mean over folders, or a dash unless all folders have this score."""
    means = []
    for kind in kinds:
        values = [each.scores[key] for each in outcomes if (each.folder, each.variant) == kind and key in each.scores]
        if not values:
            return "–"
        means.append(statistics.fmean(values))
    return f"{statistics.fmean(means):.1f}"


def read(path: Path) -> list[Outcome]:
    return [Outcome(**each) for each in files.read_json(path)["outcomes"]] if path.is_file() else []


def write(path: Path, outcomes: Sequence[Outcome], about: Mapping[str, Any]) -> None:
    """Write the record and its tables, which show only runs with default settings."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(path, {"about": about, "outcomes": [asdict(each) for each in outcomes]})
    hardware = about["hardware"]
    where = f"{hardware['device']}, {hardware['cores']} cores, torch {about['torch']}, dmt {about['dmt']}"
    text = (
        f"# Real folders with default settings\n\n`python -m benchmarks.folders`: {where}. Scores on `test/`, %, mean "
        "± standard deviation over n draws of the labels; of the final model (*what ships*), or of the ensemble of "
        "both nets (*both*). Minutes: wall-clock time of "
        f"`dmt fit FOLDER`, Baseline and DMT.\n\n{table([each for each in outcomes if not each.options])}"
    )
    files.write(path.with_suffix(".md"), text.encode())


def chosen(given: argparse.Namespace) -> list[Case]:
    """Return the cases to run; refuse judging folders without ``--open-judging``."""
    wanted = (CHOOSING if given.choosing else ()) + (JUDGING if given.judging else ())
    folders = tuple(given.only) or wanted or CHOOSING
    judges = [name for name in folders if name in JUDGING]
    if judges and not given.open_judging:
        raise SystemExit(
            f"{', '.join(judges)} judge the defaults, and their test scores may be looked at once: when all defaults "
            "are fixed, give --open-judging"
        )
    if not given.dirty:
        return [Case(name, draw) for name in folders for draw in given.draws]
    pools = [name for name in folders if name not in MASKS]
    return [Case(name, draw, variant) for name in pools for variant in VARIANTS for draw in given.draws]


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folders", type=Path, required=True, help="where the archives lie")
    parser.add_argument("--only", nargs="+", choices=[*CHOOSING, *JUDGING], default=[], help="these folders")
    parser.add_argument("--choosing", action="store_true", help=f"{', '.join(CHOOSING)}; the default")
    parser.add_argument("--judging", action="store_true", help=", ".join(JUDGING))
    parser.add_argument("--open-judging", action="store_true", help="all defaults are fixed: look at their test scores")
    parser.add_argument("--dirty", action="store_true", help="folders of images with foreign images, or skewed classes")
    parser.add_argument("--draws", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--budget", help="stop cleanly after this time, e.g. 9m; repeat to resume")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--fit", default="", help="more words for dmt fit; such outcomes are in no table")
    parser.add_argument("--work", type=Path, default=Path("runs/folders"), help="where runs lie")
    parser.add_argument("--out", type=Path, required=True, help="folder for folders_cpu or folders_gpu, .json and .md")
    return parser


def main() -> None:
    given = arguments().parse_args()
    cases = chosen(given)
    device = environment.pick_device(given.device)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    kind = "gpu" if device.type == "cuda" else "cpu"
    options = tuple(shlex.split(given.fit))
    clock = Clock(None if given.budget is None else stopping.seconds(given.budget))
    work = given.work / (kind if not options else f"{kind}-{hashlib.sha256(given.fit.encode()).hexdigest()[:8]}")
    bench = Bench(given.folders, work.resolve(), device, options, clock)
    path = given.out / f"folders_{kind}.json"
    for case in cases:
        key = (case.folder, case.draw, case.variant, shlex.join(options))
        outcomes = read(path)
        if key in {(each.folder, each.draw, each.variant, each.options) for each in outcomes}:
            continue
        try:
            outcomes.append(bench.outcome(case))
        except TimeoutError as stopped:
            raise SystemExit(f"{case.place}: {stopped}") from stopped
        print(outcomes[-1], flush=True)
        write(path, outcomes, {**environment.describe(device), "command": "python -m benchmarks.folders"})
    print(table(read(path)))


if __name__ == "__main__":
    main()
