"""What holds DMT back on PASCAL VOC small, and which options help?

    python benchmarks/voc_diagnosis.py --data DIR --start R152.pth#unit --runs RUNS --prepare
    python benchmarks/voc_diagnosis.py --data DIR --start R152.pth#unit --runs RUNS --budget 560
    python benchmarks/voc_diagnosis.py --data DIR --runs RUNS --tiny      a rehearsal on a CPU, with few images

Trials on one seed, compared on validation images: T0 to T7 with one round each (geometry, γ, batch, length of a round),
U1 to U10 with two rounds at an output stride of 16 (shares, colors, sampling by class, labels from flips, two kinds of
head, long rounds, a long Baseline, the Oracle). U trials are not scored on test images. Repeating the command resumes.
Decoded images and first nets are shared by all trials. After every trial, all results are written to OUT/NAME.json.
"""

import argparse
import dataclasses
import functools
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

import dmt
from dmt import files
from dmt.core import execution
from dmt.data.pixels.segment_sets import SEGMENT_SETS, Notify, Parts
from dmt.data.ragged import Ragged
from dmt.data.sets import LabeledSet
from dmt.results import reading, stage_results
from dmt.runs import environment, progress, trial
from dmt.runs.folder import Folder
from dmt.runs.stopping import Stop, Stopped

PRESET, SET = "voc-small-1of50", "voc-small"
COMMON: dict[str, Any] = {"net": "deeplab2:resnet152", "validation": 500, "rate": 2e-3, "rate_round": 2e-3}
TINY: dict[str, Any] = {
    "net": "deeplab2:resnet10t",
    "fractions": (0.2, 0.4),
    "labels": "20",
    "validation": 12,
    "crop": (64, 64),
    "epochs": 12,
}
ONE_NET: dict[str, Any] = {"shape": "chain", "share": None}
ROUND: dict[str, Any] = {"share": 0.8, "fractions": (0.2,), "gamma": 5.0}
TRIALS: dict[str, tuple[str, dict[str, Any]]] = {
    "T0": ("baseline", ONE_NET),  # with the code before the geometry was fixed
    "T1": ("baseline", ONE_NET),
    "T2": ("dmt", ROUND),
    "T3": ("dmt", ROUND | {"gamma": 2.0}),
    "T4": ("dmt", ROUND | {"gamma": 3.0}),
    "T5": ("dmt", ROUND | {"batch_pseudo": 12, "batch_labeled": 4}),
    "T6": ("dmt", ROUND | {"gamma": None, "epochs_round": 4}),  # γ: the best of the trials before, by validation
    "T7": ("dmt", ROUND | {"gamma": None, "share": None}),
}
PAIR: dict[str, Any] = {"output_stride": 16, "share": None}
ROUNDS = PAIR | {"fractions": (0.2, 0.4), "gamma": 2.0}
TRIALS |= {
    "U1": ("baseline", PAIR),
    "U2": ("dmt", ROUNDS | {"share": 0.8}),
    "U3": ("dmt", ROUNDS),
    "U4": ("dmt", {"strong_pseudo": True}),
    "U5": ("dmt", {"by_class": True}),
    "U6": ("oracle", PAIR),
    "U7": ("dmt", {"epochs_round": 4}),
    "U8": ("dmt", {"labeling_views": ("flip",)}),
    "U9": ("dmt", {"net_b": "fpn:resnet152"}),
    "U10": ("baseline", ONE_NET | {"output_stride": 16, "epochs": 400}),
}
ON: dict[str, tuple[str, ...]] = {
    "U4": ("U2", "U3"),
    **dict.fromkeys(("U5", "U7", "U8", "U9"), ("U2", "U3", "U4")),
}
"""Trials that change one option of the best of some earlier trials, by validation."""

GAMMAS = ("T2", "T3", "T4")
"""Trials that differ only in γ."""


class Notes(progress.Silent):
    """A watcher that prints a line for every stage, with the seconds since the command began."""

    def __init__(self, name: str, began: float) -> None:
        self._name, self._began, self._said = name, began, ""

    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        self.note(f"{title}: from step {done} of {steps}")

    def note(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:6.1f} {self._name} {text[:160]}", flush=True)


def keep_planes(path: Path, planes: Ragged) -> None:
    """Write the pixels to one file, and what is needed to read them to another."""
    planes.pixels.contiguous().numpy().tofile(path.with_suffix(".raw"))
    parts = {key: getattr(planes, key) for key in ("starts", "heights", "widths")}
    shape, kind = tuple(planes.pixels.shape), planes.pixels.dtype
    torch.save({**parts, "digests": list(planes.digests), "shape": shape, "dtype": kind}, path.with_suffix(".pt"))


def kept_planes(path: Path) -> Ragged:
    known = torch.load(path.with_suffix(".pt"), weights_only=True)
    kind = torch.empty(0, dtype=known["dtype"]).numpy().dtype
    pixels = torch.from_numpy(np.memmap(path.with_suffix(".raw"), kind, "c", shape=tuple(known["shape"])))
    return Ragged(pixels, known["starts"], known["heights"], known["widths"], tuple(known["digests"]))


def first(images: LabeledSet[Ragged], count: int | None) -> LabeledSet[Ragged]:
    return images if count is None else images.take(torch.arange(count))


def read_once(room: Path, trained: int | None, tested: int | None) -> None:
    """Make the data set keep decoded images in files and, from one trial to the next, in memory.

    Args:
        room: folder of the files.
        trained, tested: maximum numbers of training and test images; None for all.
    """
    known = SEGMENT_SETS[SET]

    @functools.cache
    def read(folder: Path) -> Parts:
        if not (room / "ids.json").exists():
            parts = known.read(folder, print, lambda done, of: None)
            room.mkdir(parents=True, exist_ok=True)
            for name, part in zip(("train", "test"), parts, strict=True):
                keep_planes(room / f"{name}-images", part.images)
                keep_planes(room / f"{name}-labels", part.labels)
            files.write_json(room / "ids.json", [list(part.ids) for part in parts])
        train, test = (
            LabeledSet(tuple(ids), kept_planes(room / f"{name}-images"), kept_planes(room / f"{name}-labels"))
            for name, ids in zip(("train", "test"), files.read_json(room / "ids.json"), strict=True)
        )
        return first(train, trained), first(test, tested)

    def cached(folder: Path, notify: Notify, tell: object) -> Parts:
        return read(folder)

    SEGMENT_SETS[SET] = dataclasses.replace(known, read=cached)


def _patch(module: ModuleType, name: str, value: object) -> None:
    setattr(module, name, value)


def check_once() -> None:
    """Check nets and starts only in the first trial: all trials have the same."""
    for name in ("fits", "fills"):
        _patch(trial, name, _once(getattr(trial, name)))


def _once(check: Callable[..., None]) -> Callable[..., None]:
    done: list[bool] = []

    def checked(*what: object) -> None:
        if not done:
            check(*what)
            done.append(True)

    return checked


def stage_row(stage: stage_results.StageResult) -> dict[str, Any]:
    """Return the results of a finished stage."""
    assert stage.outcome is not None
    scores: dict[str, dict[str, Any]] = {split: each["raw"] for split, each in stage.outcome["scores"].items()}
    lines = stage.journal("interval")
    last = lines[-max(1, len(lines) // 4) :]
    row: dict[str, Any] = {"stage": stage.name, "place": stage.place, **stage.outcome["cost"]}
    row["images_per_s"] = round(statistics.median(line["images_per_s"] for line in lines), 1)
    for split, score in scores.items():
        row[split] = {"mean_iou": _round(score["mean_iou"]), "iou": [_round(each) for each in score["iou"]]}
        row[split] |= {"accuracy": _round(score["accuracy"]), "calibration_error": _round(score["calibration_error"])}
    row["audit"] = stage.outcome["audit"]
    if stage.labels is not None:
        row["kept"], row["of"], row["coverage"] = (stage.labels[key] for key in ("kept", "of", "coverage"))
    names = [key for key in ("loss", "pseudo", "labeled", "weight", "agree", "negative", "positive") if key in last[0]]
    for title, part in (("mean", lines), ("last_quarter", last)):
        row[title] = {key: round(statistics.fmean(line[key] for line in part), 4) for key in names}
    return row


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def outcome(name: str, method: str, settings: dict[str, Any], out: Path) -> dict[str, Any]:
    """Return the results of a trial and of all its finished stages."""
    job = next(job for job in reading.read(Folder(out)) if job.method == method)
    stages = [stage_row(stage) for stage in job.stages if stage.outcome is not None]
    row: dict[str, Any] = {"trial": name, "method": method, "settings": settings, "finished": job.finished}
    for split in ("validation", "test") if job.finished else ():
        if split not in stages[-1]:
            continue  # the Oracle is trained on the validation images, too
        ends = [each[split]["mean_iou"] for each in stages if each["stage"] in job.results]
        row[split] = round(statistics.fmean(ends), 3)
    return row | {"stages": stages}


def best(found: dict[str, dict[str, Any]], names: Iterable[str]) -> dict[str, Any]:
    """Return the settings of the finished trial with the best validation score."""
    rows = [found[name] for name in names if found.get(name, {}).get("finished")]
    settings: dict[str, Any] = max(rows, key=lambda row: float(row["validation"]))["settings"]
    return settings


def best_gamma(found: Iterable[dict[str, Any]]) -> float:
    """Return the γ of the trial with the best validation score; 5 if no other was tried."""
    rows = [row for row in found if row["trial"] in GAMMAS and row["finished"]]
    best = max(rows, key=lambda row: float(row["validation"]), default=None)
    return 5.0 if best is None else float(best["settings"]["gamma"])


def show(found: dict[str, dict[str, Any]]) -> None:
    for name, row in found.items():
        for each in row["stages"]:
            audit = each["audit"] or {}
            print(
                f"{name} {each['stage']} val {each.get('validation', {}).get('mean_iou')} "
                f"test {each['test']['mean_iou']:.2f} "
                f"steps {each['steps']} {each['seconds']:.0f} s {each['images_per_s']:.0f}/s "
                f"kept error {audit.get('error_kept')} weighted {audit.get('error_kept_weighted')} "
                f"{each['last_quarter']}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--start", default="random")
    parser.add_argument("--runs", type=Path, required=True, help="kept between calls")
    parser.add_argument("--out", type=Path, help="for the results; RUNS by default")
    parser.add_argument("--name", default="voc_diagnosis", help="of the file of results")
    parser.add_argument("--trials", default=",".join(TRIALS))
    parser.add_argument("--budget", type=float, default=3600.0, help="seconds after which to stop at a checkpoint")
    parser.add_argument("--prepare", action="store_true", help="only decode the images")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    began, stop = time.monotonic(), Stop(options.budget)
    wanted = options.trials.split(",")
    tested = 16 if all(name.startswith("U") for name in wanted) and "U6" not in wanted else None
    read_once(options.runs / "decoded", 120 if options.tiny else None, tested)
    check_once()
    execution.WORTH_COMPILING = 0  # compiled code is shared by all trials, so it always pays off
    if options.prepare:
        parts = SEGMENT_SETS[SET].read(options.data, print, lambda done, of: None)
        print(f"{len(parts[0])} + {len(parts[1])} images decoded in {time.monotonic() - began:.0f} s")
        return
    path, copy = options.runs / f"{options.name}.json", (options.out or options.runs) / f"{options.name}.json"
    found: dict[str, dict[str, Any]] = files.read_json(path)["trials"] if path.exists() else {}
    device = environment.pick_device("auto")
    about = {"preset": PRESET, "seed": 1, "common": COMMON, "environment": environment.describe(device)}
    wanted = [name for name in wanted if not found.get(name, {}).get("finished")]
    donors = [options.runs / name for name in TRIALS if name != "T0"]

    def note(name: str, method: str, settings: dict[str, Any]) -> None:
        found[name] = outcome(name, method, settings, options.runs / name)
        for target in (path, copy):
            files.write_json(target, about | {"trials": found})

    try:
        for name in wanted:
            if stop():
                raise stop.error()
            method, settings = TRIALS[name]
            settings = (best(found, ON[name]) if name in ON else COMMON) | settings | (TINY if options.tiny else {})
            if options.tiny and "net_b" in settings:
                settings["net_b"] = "fpn:resnet10t"
            if settings.get("gamma", 0) is None:
                settings["gamma"] = best_gamma(found.values())
            out = options.runs / name
            others = [each for each in donors if each != out and (each / "run.json").exists() and name != "T0"]
            try:
                dmt.fit(
                    PRESET,
                    out=out,
                    method=method,
                    baseline=False,
                    seed=1,
                    settings=settings,
                    start=options.start,
                    data_folder=options.data,
                    checkpoint_every=600.0,
                    watcher=Notes(name, began),
                    stop=stop,
                    donors=others,
                )
            except Stopped:
                note(name, method, settings)
                raise
            except (dmt.DmtError, RuntimeError) as error:  # other trials may succeed
                print(f"{name} failed: {error}")
                continue
            note(name, method, settings)
    except Stopped as error:
        print(error)
    finally:
        if path.exists():
            copy.write_bytes(path.read_bytes())
        show(found)
        print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
