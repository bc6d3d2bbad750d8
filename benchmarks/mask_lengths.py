"""How long must first nets train on a folder of many masks? Baselines of several lengths, and DMT after some of them.

    python -m benchmarks.mask_lengths --voc DIR --runs RUNS --masks 200 --epochs 16 64 128 --out benchmarks/results

PASCAL VOC as somebody's folder: of the images of ``train_aug``, shuffled with seed 1, the first ones are labeled, the
next 1,000 are unlabeled, and the last 400 are ``test/``; images of ``val`` are not used. Every fit is `dmt fit FOLDER
--no-folds --set epochs=N` with the defaults of a CPU. ``DIR`` has the flat layout: images, masks, splits, classes.txt.
Repeating the command resumes, and adds to the record.
"""

import argparse
import math
import random
from pathlib import Path
from typing import Any

import torch

import dmt
from benchmarks import provenance
from dmt import files
from dmt.results import reading
from dmt.runs import environment
from dmt.runs.folder import Folder

UNLABELED, TEST = 1000, 400


def write_folder(voc: Path, root: Path, masks: int) -> Path:
    """Link images and masks into ``labeled``, ``unlabeled`` and ``test``, unless they are there."""
    if root.exists():
        return root
    unfinished = root.with_name(f"{root.name}-unfinished")
    ids = (voc / "splits" / "train_aug.txt").read_text().split()
    random.Random(1).shuffle(ids)
    for part, names in (("labeled", ids[:masks]), ("test", ids[-TEST:])):
        for kind, ending in (("images", "webp"), ("masks", "png")):
            _link(voc, kind, [f"{name}.{ending}" for name in names], unfinished / part / kind)
    _link(voc, "images", [f"{name}.webp" for name in ids[masks : masks + UNLABELED]], unfinished / "unlabeled")
    names = (voc / "classes.txt").read_text().splitlines()
    (unfinished / "classes.txt").write_text("\n".join(name for name in names if not name.startswith("255")) + "\n")
    return unfinished.rename(root)


def _link(voc: Path, kind: str, names: list[str], place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    for name in names:
        (place / name).symlink_to((voc / kind / name).resolve())


def row(out: Path, method: str) -> dict[str, Any]:
    """Test scores of both nets and of their ensemble, and what the run cost."""
    (job,) = (job for job in reading.read(Folder(out)) if job.method == method)
    last = job.stages[-2:]
    outcomes = [stage.outcome for stage in job.stages if stage.outcome is not None]
    return {
        **{stage.line: round(stage.score("test", "raw") or math.nan, 2) for stage in last},
        "both": round(job.test_score("both"), 2),
        "steps": sum(outcome["cost"]["steps"] for outcome in outcomes),
        "seconds": round(sum(outcome["cost"]["seconds"] for outcome in outcomes)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voc", type=Path, required=True, help="PASCAL VOC in the flat layout")
    parser.add_argument("--runs", type=Path, required=True, help="for folders and runs; kept between calls")
    parser.add_argument("--masks", type=int, nargs="+", default=[200, 500], help="labeled images of a folder")
    parser.add_argument("--epochs", type=int, nargs="+", required=True, help="passes of the Baseline over the masks")
    parser.add_argument("--dmt", action="store_true", help="train DMT after each of them, too")
    parser.add_argument("--out", type=Path, required=True, help="for mask_lengths.json")
    given = parser.parse_args()
    record = given.out / "mask_lengths.json"
    known = files.read_json(record)["rows"] if record.exists() else {}
    for masks in given.masks:
        folder = write_folder(given.voc, given.runs / f"voc{masks}", masks)
        for epochs in given.epochs:
            for method in ("baseline", "dmt") if given.dmt else ("baseline",):
                out = given.runs / f"voc{masks}-{epochs}"
                dmt.fit(folder, method=method, folds=False, settings={"epochs": epochs}, out=out)
                name = f"{masks} masks, {epochs} epochs, {method}"
                known[name] = row(out, method)
                print(name, known[name], flush=True)
                described = environment.describe(torch.device("cpu"))
                kept = {
                    key: described[key] for key in ("dmt", "python", "torch", "hardware", "git") if key in described
                } | {"command": provenance.command(described["command"])}
                files.write_json(record, {"environment": kept, "rows": known})


if __name__ == "__main__":
    main()
