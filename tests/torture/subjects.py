"""Commands that write files: tiny ones of every kind."""

import dataclasses
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from dmt import presets
from dmt.data.pixels import scenes, segment_sets
from tests.conftest import TINY_PIXELS
from tests.data.folders import photo_layout

DIGITS = "net=resnet8-4 labels=40 epochs=1 epochs_round=1 fractions=1 shape=pair batch_pseudo=512 batch_labeled=32"
OWN = "shape=chain share=none epochs=1 epochs_round=1 fractions=1 batch=8 batch_pseudo=6 batch_labeled=2"
PHOTOS, MASKS = "net=resnet8-4 size=16", "net=fcn-4 crop=32,32 size=64"
SCENES = " ".join(f"{key}={value}" for key, value in TINY_PIXELS.items())

LAZY = (
    "torch._dynamo",
    *(
        f"dmt.{name}"
        for name in (
            "fitting.run", "auditing.auditor", "tuning.tuner", "reporting.report_file", "use.packing",
            "use.predict_masks", "use.exporting", "own.rehearsal", "data.folders.doctor", "data.folders.doctor_rules",
        )
    ),
)  # fmt: skip
"""Modules that are imported when they are needed first."""

RUN = "run"
"""A finished run in the base, for commands that read one."""


@dataclass(frozen=True)
class Subject:
    """A command that writes to one place.

    Attributes:
        words: of the command, by the base's folder and the place to write to.
    """

    name: str
    words: Callable[[Path, Path], list[object]]


def settings(*lines: str) -> list[object]:
    return [word for line in lines for pair in line.split() for word in ("--set", pair)]


def fit(data: object, out: Path, *lines: str) -> list[object]:
    return ["fit", data, "--out", out, "--device", "cpu", "--no-folds", "--checkpoint-every", 0, *settings(*lines)]


def audit(run: Path, out: Path) -> list[object]:
    return ["audit", run, "--out", out, "--folds", 2, "--count", 3, "--device", "cpu"]


SUBJECTS = (
    Subject("digits", lambda base, out: fit("digits", out, DIGITS)),
    Subject("scenes", lambda base, out: fit("scenes", out, SCENES, "shape=chain share=none fractions=1 epochs=1")),
    Subject("photos", lambda base, out: fit(base / "photos", out, OWN, PHOTOS)),
    Subject("masks", lambda base, out: fit(base / "masks", out, OWN, MASKS)),
    Subject("audit", lambda base, out: audit(base / RUN, out)),
    Subject(
        "tune",
        lambda base, out: ["tune", "digits", "--out", out, "--grid", "gamma=1,4", "--device", "cpu", *settings(DIGITS)],
    ),
    Subject("pack", lambda base, out: ["pack", base / RUN, "--out", out, "--part-size", "20KB"]),
    Subject("report", lambda base, out: ["report", base / RUN, "--out", out / "report.html"]),
)  # fmt: skip

READING = frozenset({"audit", "pack", "report"})
"""Subjects that need a finished run."""

BY_NAME = {subject.name: subject for subject in SUBJECTS}


def make_inputs(base: Path) -> None:
    """Folders of images; those who need a run train it."""
    photo_layout.write_classes(base / "photos", labeled=5, unlabeled=6, test=2)
    photo_layout.write_masks(base / "masks", labeled=8, unlabeled=4, test=2)


def warm_up() -> None:
    """Import what commands import when they begin."""
    for name in LAZY:
        importlib.import_module(name)
    Image.init()


def fewer_scenes() -> None:
    """For the rest of this process "scenes" are 40 and 12 of them, made once."""
    presets.get("scenes")  # it knows how many there are
    parts = scenes.scenes(train=40, test=12)
    few = dataclasses.replace(
        segment_sets.SEGMENT_SETS["scenes"], train=40, test=12, read=lambda folder, notify, tell: parts
    )
    segment_sets.SEGMENT_SETS["scenes"] = few
