"""What does tuning choose, what does it cost, and is the choice right? The paper's grid of γ on digits.

The tuner sees only validation images; this benchmark reads the test scores afterwards. With --null, the settings of the
grid do not differ in anything that matters (γ differs in its fourth digit): whatever is chosen there is noise.

    python benchmarks/tune.py --seeds 1-3 --out runs/tune
    python benchmarks/tune.py --seeds 1-3 --out runs/null --null
"""

import argparse
import itertools
import json
from pathlib import Path

import torch

import dmt
from dmt import config
from dmt.core import evidence
from dmt.core.evidence import Evidence
from dmt.results.report import Report
from dmt.results.tables import spread
from dmt.runs import environment
from dmt.tuning import judging
from dmt.tuning.outcome import Trial, Tuning

NULL = [4.001, 4.002, 4.003, 4.004, 4.005]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1-3")
    parser.add_argument("--out", type=Path, default=Path("runs/tune"))
    parser.add_argument("--null", action="store_true", help="settings that do not matter")
    options = parser.parse_args()
    tuning = dmt.tune(
        "digits",
        out=options.out,
        seed=config.seeds(options.seeds),
        grid={"gamma": NULL} if options.null else None,
        device="cpu",
    )
    described = environment.describe(torch.device("cpu"))
    print(json.dumps({key: described[key] for key in ("dmt", "python", "torch", "hardware", "command")}))
    print(f"n = {tuning.seeds} seeds\n\n{tuning}\n")
    print(noise(tuning) if options.null else afterwards(tuning))


def nets(trial: Trial, split: str) -> list[Evidence]:
    """Return the predictions of each seed's final model for the images of a split."""
    found = [job.shipped().evidence(split) for job in Report.read([trial.folder]).jobs]
    return [each for each in found if each is not None]


def afterwards(tuning: Tuning) -> str:
    """Return the test accuracy of every trial, and the gains of the chosen and the best one over the default."""
    lines = [f"test accuracy, {nets(tuning.default, 'test')[0].images} images, mean ± standard deviation over seeds:"]
    lines += [f"  {each.name:<10} {spread([net.score() for net in nets(each, 'test')])}" for each in tuning.trials]
    for what, trial in (("chosen", tuning.chosen), ("best on validation", tuning.best)):
        over = evidence.difference(nets(trial, "test"), nets(tuning.default, "test"))
        lines.append(f"{what}, {trial.name}: {over.value:+.2f} ({over.low:+.2f} to {over.high:+.2f}) over the default")
    return "\n".join(lines)


def noise(tuning: Tuning) -> str:
    """Return how often a setting is chosen over an equally good default, with each setting in turn as the default."""
    trials = [nets(trial, "validation") for trial in tuning.trials]
    lines = [f"noise chosen over a default that is as good ({len(trials)} settings, each in turn called the default):"]
    for size in (2, 4):  # number of settings in a grid, including the default
        groups = [
            (first, *others)
            for first in range(len(trials))
            for others in itertools.combinations([number for number in range(len(trials)) if number != first], size - 1)
        ]
        one = [[[trials[number][seed]] for number in group] for group in groups for seed in range(tuning.seeds)]
        for cases, seeds in ((one, 1), ([[trials[number] for number in group] for group in groups], tuning.seeds)):
            wrong = sum(judging.judge(case, fine=True).chosen != 0 for case in cases)
            naive = sum(any(_better(each, case[0]) for each in case[1:]) for case in cases)
            lines.append(
                f"  grid of {size}, seeds {seeds}: in {wrong} of {len(cases)} tunings; "
                f"if every trial had an interval of its own, over the images alone: in {naive}"
            )
    return "\n".join(lines)


def _better(after: list[Evidence], before: list[Evidence]) -> bool:
    return evidence.difference(after, before, fine=True).low > 0


if __name__ == "__main__":
    main()
