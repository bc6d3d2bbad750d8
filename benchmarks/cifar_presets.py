"""Our CIFAR-10 presets and their controls with one seed: how much of their accuracy do DMT's weights bring?

    python -m benchmarks.cifar_presets best controls --data DIR --runs RUNS --seed 2 --minutes 9

``best`` is `cifar10-4k-best`. ``controls`` is `cifar10-4k-fast` by DMT and by CL, which weights all labels equally,
from the same Baseline and FixMatch stage; stages of ``best`` are taken over, so that only CL's rounds are trained.
``fixmatch`` is FixMatch alone, for about as many seconds as `cifar10-4k-fast`. ``more`` adds a second fresh round of
49,440 steps to ``best``, on labels by the nets of two rounds. ``best-1k`` is `cifar10-1k-best` by both methods.

Everything stops after ``--minutes`` at a checkpoint; repeating the command resumes. Names of runs are those of the
parts and the seed; `python -m benchmarks.voc_record RUN …` writes their record.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dmt
from dmt import run_files
from dmt.runs.stopping import Stop, Stopped


@dataclass(frozen=True)
class Part:
    """One run.

    Attributes:
        preset: its preset.
        methods: its methods.
        settings: what it changes in the preset.
        donors: parts whose finished stages it takes over.
    """

    preset: str
    methods: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    donors: tuple[str, ...] = ()


PARTS = {
    "best": Part("cifar10-4k-best", ("dmt",)),
    "controls": Part("cifar10-4k-fast", ("dmt", "cl"), donors=("best",)),
    "fixmatch": Part("cifar10-4k-fast", ("fixmatch",), {"fixmatch.epochs": 480}),
    "more": Part(
        "cifar10-4k-best",
        ("dmt",),
        {
            "fractions": "1,1,1,1",
            "epochs_round": "116,280,480,480",
            "start_round": "teacher,teacher,fresh,fresh",
            "teachers": "1,1,1,2",
        },
        donors=("best",),
    ),
    "best-1k": Part("cifar10-1k-best", ("dmt", "cl")),
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=PARTS, help="what to run, in this order")
    parser.add_argument("--data", type=Path, required=True, help="where CIFAR-10 is")
    parser.add_argument("--runs", type=Path, required=True, help="for the runs' folders")
    parser.add_argument("--seed", type=int, default=2, help="split and random numbers (default: %(default)s)")
    parser.add_argument("--minutes", type=float, required=True, help="stop after so many")
    given = parser.parse_args(arguments)
    stop = Stop(60 * given.minutes)
    for name in given.parts:
        part, runs = PARTS[name], {each: given.runs / f"{each}-{given.seed}" for each in PARTS}
        try:
            report = dmt.fit(
                part.preset,
                method=part.methods,
                baseline=name != "fixmatch",
                seed=given.seed,
                settings=part.settings,
                data_folder=given.data,
                out=runs[name],
                stop=stop,
                donors=[runs[donor] for donor in part.donors if (runs[donor] / run_files.MANIFEST).is_file()],
            )
        except Stopped as stopped:
            print(stopped, file=sys.stderr)
            return stopped.code
        print(report, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
