"""Every method on one data set at equal cost: as many forward-backward passes as DMT takes.

Passes are counted over every view and every net; a forward pass without gradient counts as a third and is also reported
separately. Methods with stored labels have the lengths of the preset, online methods as many epochs as fit into DMT's
passes, and in addition to the preset's Baseline, one is trained for as many passes. Repeating the command resumes.

    python -m benchmarks.methods digits --runs RUNS --out benchmarks/results/methods_digits.json
    python -m benchmarks.methods scenes --runs RUNS --out benchmarks/results/methods_scenes.json
    python -m benchmarks.voc_resized VOC SMALLER --side 128
    python -m benchmarks.methods voc-small-1of20 --data SMALLER --seeds 1 --runs RUNS --out OUT.json

To run on a CPU, nets for PASCAL VOC are decoders on frozen encoders, and its photos are made smaller; for CIFAR-10, the
net is a ResNet-8, and rounds are those of ``cifar10-4k-fast`` without its online stage, but shorter:

    python -m benchmarks.methods cifar10-4k --data DIR --seeds 1 --runs RUNS --out OUT.json --methods SOME
"""

import argparse
import dataclasses
import json
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

import dmt
from benchmarks import equal_minutes, provenance
from dmt import config as configuration
from dmt import files, presets
from dmt.config import Config
from dmt.methods import catalogue
from dmt.methods.method import Method
from dmt.methods.online import StageOptions
from dmt.own.known_nets import KNOWN, KNOWN_B
from dmt.results import reading
from dmt.results.job_results import JobResult
from dmt.runs import environment
from dmt.runs.folder import Folder

DECODERS: dict[str, Any] = {
    "net": f"frozen-fpn:{KNOWN}",
    "net_b": f"frozen-fpn:{KNOWN_B}",
    "crop": "128,128",
    "optimizer": "adamw",
    "rate": 3e-3,
    "rate_round": 1.5e-3,
    "weight_decay": 1e-2,
    "gamma": 2.0,
    "gamma_ramp": True,
    "fractions": "0.5,0.9",
    "batch_pseudo": 12,
    "batch_labeled": 4,
    "epochs_round": 1,
}
"""Options with which `dmt fit FOLDER` trains decoders on a CPU, with batches twice as large (dmt.own.schedules)."""

SMALL_CIFAR: dict[str, Any] = {
    "net": "resnet8-16",
    "batch": 128,
    "batch_pseudo": 112,
    "batch_labeled": 16,
    "epochs": 20,
    "epochs_round": "2,4",
    "start_round": "teacher",
    "rate": 0.1,
    "rate_round": 0.1,
    "ema": 0.99,
}
"""A sixtieth of the images that `cifar10-4k-fast` trains on; with so few, nets continue from their teachers."""

SMALL_ONLINE: dict[str, Any] = {"labeled": 16, "unlabeled": 112, "rate": 0.1, "ema": 0.99}
"""Options of online methods with SGD; the others keep their learning rate and batches of 64 labeled and 64 unlabeled
images."""

SEEDS = (1, 2, 3)
SETTINGS: dict[str, dict[str, Any]] = {
    "digits": {"labels": 40},
    "scenes": {"fractions": "0.3,0.6,1", "net": "fcn-8"},
    "voc-small-1of20": DECODERS | {"epochs": 15},
    "voc-small-1of50": DECODERS | {"epochs": 38},
    "cifar10-4k": equal_minutes.ours("cifar10-4k") | SMALL_CIFAR,
}
"""Changes to the presets. Digits have the labels of the demo, scenes its three rounds and a net half as wide: minutes
on a CPU."""

AS_THE_BASELINE: dict[str, Any] = {
    "optimizer": "adamw",
    "decay": "kernels",
    "rate": None,
    "weight_decay": None,
    "labeled": None,
    "unlabeled": None,
}
"""Options of online methods for decoders: their published learning rates are for SGD on whole nets."""


LONG = "baseline-long"
"""Name in --methods of the Baseline with as many passes."""

AFTER_ONLINE = {"after-online": "dmt", "cl-after-online": "cl"}
"""Names in --methods of DMT and CL after an online method."""


def passes(method: Method, config: Config) -> float:
    """Return the number of forward-backward passes over images that a method takes."""
    return sum(stage.steps(config.data.sizes) * stage.cost().passes for stage in method.plan(config.recipe).stages)


def serving(config: Config) -> list[Method]:
    kind = "pixels" if config.data.sizes.pixels else "images"
    return [method for method in catalogue.METHODS.values() if kind in method.serves and not method.ceiling]


def online(config: Config) -> Iterator[tuple[Method, type[StageOptions]]]:
    """Yield the methods that are one online stage, with their classes of options."""
    for method in serving(config):
        if method.options is not None and issubclass(method.options, StageOptions):
            yield method, method.options


def settings_for(data: str) -> dict[str, Any]:
    """Return the changes to a data set's preset, without fitted lengths."""
    settings, config = SETTINGS[data], presets.get(data).config
    for _, kind in online(config):
        settings = settings | {f"{kind.group}.{key}": value for key, value in _of_online(data, config, kind).items()}
    return settings


def _of_online(data: str, config: Config, kind: type[StageOptions]) -> dict[str, Any]:
    """Return the changes to the options of an online method for a data set."""
    if data.startswith("voc"):
        return AS_THE_BASELINE
    if not data.startswith("cifar"):
        return {}
    own = config.recipe.groups[kind].optimizer
    return SMALL_ONLINE if own in ("sgd", "nesterov") else {"ema": SMALL_ONLINE["ema"]}


def fitted(config: Config) -> dict[str, int]:
    """Return, by option, the epochs with which online methods take about as many passes as DMT."""
    goal, found = passes(catalogue.get("dmt"), config), {}
    for method, options in online(config):
        one = dataclasses.replace(config.recipe.groups[options], epochs=1)
        recipe = dataclasses.replace(config.recipe, groups=config.recipe.groups.replace(one))
        found[f"{options.group}.epochs"] = max(
            1, round(goal / passes(method, dataclasses.replace(config, recipe=recipe)))
        )
    return found


def after_online(config: Config) -> dict[str, Any]:
    """Return options for an online stage followed by one round on all labels, with DMT's number of passes in total.

    The Baseline is half as long as usual; online stage and round get equal parts of the rest.
    """
    goal = passes(catalogue.get("dmt"), config)
    online = "classmix" if config.data.sizes.pixels else "fixmatch"
    chosen = {"online_stage": online, "fractions": "1", "epochs": config.recipe.epochs // 2}

    def cost(epochs_online_stage: int, epochs_round: int) -> float:
        lengths = {"epochs_online_stage": epochs_online_stage, "epochs_round": epochs_round}
        return passes(catalogue.get("dmt"), configuration.override(config, chosen | lengths))

    least = cost(1, 1)
    stage, learning = cost(2, 1) - least, cost(1, 2) - least
    each = (goal - least + stage + learning) / 2
    return chosen | {"epochs_online_stage": round(each / stage), "epochs_round": round(each / learning)}


def row(jobs: list[JobResult]) -> dict[str, Any]:
    """Return the scores of all seeds and their mean costs."""
    costs = [
        stage.outcome["cost"]
        for job in jobs
        for stage in {s.name: s for s in (*job.before, *job.stages)}.values()
        if stage.outcome
    ]
    learned, looked = (sum(cost[key] for cost in costs) / len(jobs) for key in ("learned", "looked"))
    scores = {copy: [job.test_score(copy) for job in jobs] for copy in ("raw", "shipped")}
    return {
        "seeds": [job.seed for job in jobs],
        **scores,
        "mean": {copy: statistics.fmean(each) for copy, each in scores.items()},
        "deviation": {copy: statistics.stdev(each) if len(each) > 1 else 0.0 for copy, each in scores.items()},
        "learned": learned,
        "looked": looked,
        "passes": learned + looked / 3,
        "seconds": sum(cost["seconds"] for cost in costs) / len(jobs),
    }


def known_rows(record: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rows of an earlier record; refuse one with other settings."""
    if not record.exists():
        return {}
    found = files.read_json(record)
    if found["settings"] != json.loads(json.dumps(settings)):
        raise SystemExit(f"{record} is of other settings; give another --out")
    rows: dict[str, Any] = found["rows"]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=SETTINGS)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--methods", help=f"some of them, by name, {LONG}, {' and '.join(AFTER_ONLINE)} among them; all if left out"
    )
    parser.add_argument("--data", dest="images", type=Path, default=Path("data"), help="where a data set lies")
    parser.add_argument("--seeds", type=configuration.seeds, default=list(SEEDS))
    options = parser.parse_args()
    settings = settings_for(options.data)
    config = configuration.override(presets.get(options.data).config, settings)
    settings = settings | fitted(config)
    config = configuration.override(config, fitted(config))
    long = round(config.recipe.epochs * passes(catalogue.get("dmt"), config) / passes(catalogue.baseline(), config))
    some = None if options.methods is None else set(options.methods.split(","))
    plans = [(m.name, m.title, settings) for m in serving(config) if some is None or m.name in some]
    if some is None or LONG in some:
        plans.append((catalogue.baseline().name, "Baseline, as many passes", settings | {"epochs": long}))
    combined = settings | after_online(config)
    for own, name in AFTER_ONLINE.items():
        if some is None or own in some:
            title = f"{catalogue.get(combined['online_stage']).title}, then {catalogue.get(name).title}"
            plans.append((name, title, combined))
    print(f"{passes(catalogue.get('dmt'), config):,.0f} passes each", flush=True)
    rows = known_rows(options.out, settings)
    for name, title, chosen in plans:
        own = "" if chosen is settings else "-after-online" if "online_stage" in chosen else "-long"
        out = options.runs / f"{options.data}{own}"
        dmt.fit(
            options.data,
            method=name,
            baseline=False,
            seed=options.seeds,
            settings=chosen,
            start="wheel" if str(settings.get("net")).startswith("frozen") else None,
            data_folder=options.images,
            out=out,
        )
        rows[title] = row(
            [job for job in reading.read(Folder(out)) if job.method == name and job.seed in options.seeds]
        )
        found = rows[title]
        mean, deviation = (found[key]["shipped"] for key in ("mean", "deviation"))
        print(f"{title}: {mean:.2f} ± {deviation:.2f}, {found['passes']:,.0f} passes", flush=True)
        described = environment.describe(torch.device("cpu"))
        kept = {key: described[key] for key in ("dmt", "python", "torch", "hardware", "git") if key in described} | {
            "command": provenance.command(described["command"])
        }
        files.write_json(options.out, {"environment": kept, "settings": settings, "epochs_long": long, "rows": rows})


if __name__ == "__main__":
    main()
