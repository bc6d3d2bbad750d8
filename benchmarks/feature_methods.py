"""Folders of photos on a CPU: every kind of method, training last layers on the same features of frozen encoders.

    python -m benchmarks.feature_methods papsmear trashnet --folders DIR --work RUNS --out OUT.json

``DIR`` holds ``NAME.tar.gz`` and ``NAME.truth.csv`` of folders on which defaults are chosen. For every draw of the
labels (`benchmarks.folder_draws`), all methods are trained as by `dmt fit FOLDER --no-folds`. Online methods are
trained twice: for as many steps as one line of DMT's nets, and for the 100 epochs that are their default. Features are
computed once per draw. What is in ``--out`` is not repeated.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks import folder_draws, provenance
from benchmarks.folders import CHOOSING, MASKS
from dmt import files
from dmt.fitting import run as fitting
from dmt.methods import catalogue
from dmt.methods.online import StageOptions
from dmt.own import choosing
from dmt.results import reading
from dmt.runs import environment
from dmt.runs.folder import Folder

STORED = ("baseline", "cl", "cbst", "dst", "dmt")
ONLINE = ("pseudo-label", "fixmatch", "uda", "freematch", "softmatch", "mean-teacher", "mixmatch", "cps")
LENGTHS = ("as DMT", "100 passes")
DRAWS = (1, 2, 3)


def as_dmt(folder: Path) -> dict[str, Any]:
    """Return the epochs with which each online method takes about as many steps as one line of DMT's nets."""
    config = choosing.choose(folder, torch.device("cpu")).preset.config
    sizes = config.data.sizes
    steps = sum(each.steps(sizes) for each in catalogue.plan("dmt", config.recipe).stages if each.lines == ("A",))
    found = {}
    for method in map(catalogue.get, ONLINE):
        assert method.options is not None
        assert issubclass(method.options, StageOptions)
        stage = method.plan(config.recipe).stages[0]
        a_pass = stage.steps(sizes) / config.recipe.groups[method.options].epochs
        found[f"{method.options.group}.epochs"] = max(1, round(steps / a_pass))
    return found


def rows(folder: Path, work: Path, draw: int) -> list[dict[str, Any]]:
    """Train all methods on one draw, and return their scores."""
    found: list[dict[str, Any]] = []
    donors: list[Path] = []
    for length, methods in ((LENGTHS[0], (*STORED, *ONLINE)), (LENGTHS[1], ONLINE)):
        out = work / f"{folder.name}-{length.replace(' ', '-')}"
        settings = as_dmt(folder) if length == LENGTHS[0] else {}
        fitting.fit(folder, out=out, method=methods, seed=draw, settings=settings, folds=False, donors=donors)
        donors = [out]
        for job in reading.read(Folder(out)):
            if job.method in methods:
                steps = sum(stage.outcome["cost"]["steps"] for stage in job.stages if stage.outcome)
                row = {"method": job.method, "length": length if job.method in ONLINE else "", "steps": steps}
                found.append(row | {"single": job.test_score("raw", ("A",)), "shipped": job.test_score("shipped")})
    return found


def draw_folder(archives: Path, name: str, draw: int, work: Path) -> Path:
    """Return the folder with another draw of the labels; it is made once."""
    folder = work / f"{name}-{draw}"
    if not folder.is_dir():
        source = folder_draws.unpack(archives, name, work / "sources")
        labeled, unlabeled = folder_draws.images(*folder_draws.classes_of(archives, source), draw)
        folder_draws.write_images(folder, source, labeled, list(unlabeled))
    return folder


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=[name for name in CHOOSING if name not in MASKS])
    parser.add_argument("--folders", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--draws", type=int, nargs="+", default=list(DRAWS))
    given = parser.parse_args(arguments)
    given.work.mkdir(parents=True, exist_ok=True)
    about: Mapping[str, Any] = environment.describe(torch.device("cpu"))
    kept = ("dmt", "python", "torch", "hardware", "git", "threads")
    command = provenance.command(
        ["python", "-m", "benchmarks.feature_methods", *given.names, "--draws", *map(str, given.draws)]
    )
    record: dict[str, Any] = {"environment": {key: about[key] for key in kept if key in about} | {"command": command}}
    record["rows"] = files.read_json(given.out)["rows"] if given.out.exists() else []
    for name in given.names:
        for draw in given.draws:
            if any((row["folder"], row["draw"]) == (name, draw) for row in record["rows"]):
                continue
            folder = draw_folder(given.folders, name, draw, given.work)
            found = rows(folder, given.work / "runs", draw)
            record["rows"] += [{"folder": name, "draw": draw, **row} for row in found]
            files.write_json(given.out, record)
    print(table(record["rows"]))


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of means over draws, sorted by single nets' mean over all folders, the best first."""
    names = list(dict.fromkeys(row["folder"] for row in found))
    lines = ["| method | " + " | ".join(f"{name}: single net, final model" for name in names) + " |"]
    lines.append("|---" * (1 + len(names)) + "|")
    means = {}
    for key in dict.fromkeys((row["method"], row["length"]) for row in found):
        for name in names:
            some = [row for row in found if (row["method"], row["length"], row["folder"]) == (*key, name)]
            for what in ("single", "shipped"):
                means[key, name, what] = _spread([row[what] for row in some])
    keys = sorted({key for key, _, _ in means}, key=lambda key: -sum(means[key, name, "single"][0] for name in names))
    for method, length in keys:
        cells = []
        for name in names:
            single, shipped = (means[(method, length), name, what] for what in ("single", "shipped"))
            cells.append(f"{single[0]:.1f} ± {single[1]:.1f}, {shipped[0]:.1f} ± {shipped[1]:.1f}")
        title = catalogue.get(method).title + (f", {length}" if length else "")
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _spread(scores: Sequence[float]) -> tuple[float, float]:
    values = torch.tensor(scores, dtype=torch.float64)
    return float(values.mean()), float(values.std()) if len(values) > 1 else 0.0


if __name__ == "__main__":
    main()
