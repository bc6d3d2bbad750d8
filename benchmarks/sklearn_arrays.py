"""The estimators of `dmt.sklearn` compared with those of scikit-learn, on digits and on features of real photos.

    python -m benchmarks.sklearn_arrays --out benchmarks/results
    python -m benchmarks.sklearn_arrays --folders DIR --only digits trashnet papsmear --out benchmarks/results

Digits: 4 labels per class and 400 test images, drawn anew for every seed. Folders: ``DIR`` holds ``NAME.tar.gz`` and
``NAME.truth.csv``; for every seed, other labels are drawn (`benchmarks.folder_draws`), and all methods are trained on
the same features of a frozen encoder, computed once. Estimators have default options. Those of scikit-learn are also
tried with options chosen by cross-validation on the labels (`benchmarks.folder_rivals`), as is the pair of logistic
regressions. The record is written to ``--out`` as sklearn.json and sklearn.md; what is in it is not measured again.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

from benchmarks import folder_draws, folder_rivals
from dmt import files
from dmt.data.folders import photo_files, photo_pools
from dmt.runs import environment
from dmt.sklearn import DMTClassifier, FrozenFeatures, MutualSelfTraining

LABELS, TEST = 4, 400
"""Numbers of labels per class and of test images for digits."""

SIZE = 224
"""Side of a photo in pixels."""

FOLDERS = ("trashnet", "papsmear")
"""Folders that defaults are chosen on, whose test scores may be seen at any time."""

COLUMNS = {
    "logistic_plain": "LogisticRegression (LR)",
    "logistic": "the same, C by folds of the labels",
    "self_training_plain": "SelfTraining (LR)",
    "self_training": "the same, C by folds of the labels",
    "label_spreading": "LabelSpreading, neighbors by folds",
    "mutual": "MutualSelfTraining (LR, LR)",
    "mutual_uniform": "the same, all labels alike",
    "mutual_over_all": "the same, ranked over all classes",
    "mutual_folds": "the same, C by folds of the labels",
    "mutual_forest": "MutualSelfTraining (LR, forest)",
    "nets_labels": "DMTClassifier, labels only",
    "nets": "DMTClassifier",
    "image_nets": "DMTClassifier on images",
}


@dataclass(frozen=True)
class Draw:
    """Labeled, unlabeled and test samples of one seed, as rows and, for nets on images, also as images."""

    known: np.ndarray
    labels: np.ndarray
    pool: np.ndarray
    test: np.ndarray
    truth: np.ndarray
    images: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # known, pool, test


@dataclass(frozen=True)
class Outcome:
    """Accuracy of every method in %, and its seconds."""

    data: str
    seed: int
    labels: int
    unlabeled: int
    test: int
    scores: dict[str, float]
    seconds: dict[str, float]


def digits(seed: int) -> Draw:
    """Draw a few labels of scikit-learn's digits."""
    data = load_digits()
    order = np.random.default_rng(seed).permutation(len(data.target))
    test, rest = order[:TEST], order[TEST:]
    first = np.concatenate([rest[data.target[rest] == digit][:LABELS] for digit in range(10)])
    pool = np.setdiff1d(rest, first)
    rows, images = data.data, data.images
    return Draw(
        rows[first], data.target[first], rows[pool], rows[test], data.target[test],
        (images[first], images[pool], images[test]),
    )  # fmt: skip


class Folder:
    """A folder of photos as features, which are computed once."""

    def __init__(self, archives: Path, name: str, work: Path) -> None:
        source = folder_draws.unpack(archives, name, work)
        self._labeled, self._unlabeled = folder_draws.classes_of(archives, source)
        self._test = {path: path.parent.name for path in sorted((source / "test").glob("*/*"))}
        self._features = dict(zip(self._paths, self._computed(work / f"{name}-{SIZE}.npy"), strict=True))
        self._classes = sorted(set(self._labeled.values()))

    @property
    def _paths(self) -> list[Path]:
        return [*self._labeled, *self._unlabeled, *self._test]

    def _computed(self, cache: Path) -> np.ndarray:
        if not cache.is_file():
            squares = [photo_pools.square(Image.fromarray(photo_files.read_photo(path)), SIZE) for path in self._paths]
            np.save(cache, FrozenFeatures().fit_transform(np.stack([np.asarray(each) for each in squares])))
        return np.asarray(np.load(cache))

    def draw(self, seed: int) -> Draw:
        """Draw other labels for as many photos of each class."""
        labeled, unlabeled = folder_draws.images(self._labeled, self._unlabeled, seed)
        known, pool, test = (
            np.stack([self._features[path] for path in part]) for part in (labeled, unlabeled, self._test)
        )
        labels, truth = (
            np.array([self._classes.index(each) for each in part.values()]) for part in (labeled, self._test)
        )
        return Draw(known, labels, pool, test, truth)


def methods(draw: Draw, seed: int) -> Iterator[tuple[str, Callable[[], np.ndarray]]]:
    """Yield (name, function that returns the test predictions) of all methods except those of `folder_rivals`."""
    scaler = StandardScaler().fit(np.concatenate([draw.known, draw.pool]))
    known, pool, test = (scaler.transform(each) for each in (draw.known, draw.pool, draw.test))
    rows = np.concatenate([known, pool])
    partly = np.concatenate([draw.labels, np.full(len(pool), folder_rivals.UNKNOWN)])
    least = int(np.bincount(draw.labels).min())
    folds = StratifiedKFold(min(folder_rivals.FOLDS, least), shuffle=True, random_state=0)
    linear = LogisticRegression(max_iter=500)

    def mutual(second: Any = None, first: Any = linear, **options: Any) -> Callable[[], np.ndarray]:
        learner = MutualSelfTraining(first, second, random_state=seed, **options)
        return lambda: learner.fit(rows, partly).predict(test)

    def with_strength_by_folds() -> np.ndarray:
        strength = folder_rivals.best_strength(known, draw.labels, folds)
        return mutual(first=LogisticRegression(C=strength, max_iter=500))()

    yield "logistic_plain", lambda: linear.fit(known, draw.labels).predict(test)
    yield "self_training_plain", lambda: SelfTrainingClassifier(linear).fit(rows, partly).predict(test)
    nets = DMTClassifier(random_state=seed)
    yield "mutual", mutual()
    yield "mutual_uniform", mutual(weighting="uniform")
    yield "mutual_over_all", mutual(per_class=False)
    yield "mutual_folds", with_strength_by_folds
    yield "mutual_forest", mutual(RandomForestClassifier())
    yield "nets_labels", lambda: nets.fit(known, draw.labels).predict(test)
    yield "nets", lambda: nets.fit(rows, partly).predict(test)
    if draw.images is not None:
        first, others, judged = draw.images
        yield "image_nets", lambda: nets.fit(np.concatenate([first, others]), partly).predict(judged)


def measure(name: str, draw: Draw, seed: int, before: Outcome | None = None) -> Outcome:
    """Measure everything on one draw that was not measured before."""

    def score(said: np.ndarray) -> float:
        return 100 * float((said == draw.truth).mean())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "y contains no unlabeled samples")
        scores, seconds = ({}, {}) if before is None else (dict(before.scores), dict(before.seconds))
        if "rivals" not in seconds:
            began = time.monotonic()
            said = folder_rivals.rivals(draw.known, draw.labels, draw.pool, draw.test)
            scores |= {key: score(each) for key, each in said.items()}
            seconds["rivals"] = time.monotonic() - began
        for key, predict in methods(draw, seed):
            if key not in scores:
                began = time.monotonic()
                scores[key] = score(predict())
                seconds[key] = time.monotonic() - began
    rounded = {key: round(each, 1) for key, each in seconds.items()}
    return Outcome(name, seed, len(draw.labels), len(draw.pool), len(draw.truth), scores, rounded)


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a table of methods by data: mean ± standard deviation over seeds."""
    names = list(dict.fromkeys(each.data for each in outcomes))
    rows = [["", *names], ["---"] * (len(names) + 1)]
    for key, title in COLUMNS.items():
        known = [each for each in outcomes if key in each.scores]
        rows.append([title, *(_spread([each.scores[key] for each in known if each.data == name]) for name in names)])
    some = [next(each for each in outcomes if each.data == name) for name in names]
    rows.append(["labels / unlabeled / test", *(f"{each.labels} / {each.unlabeled:,} / {each.test}" for each in some)])
    rows.append(["n", *(str(sum(each.data == name for each in outcomes)) for name in names)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "–"
    return f"{statistics.fmean(values):.1f}" + (f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else "")


def write(path: Path, outcomes: Sequence[Outcome], about: Mapping[str, Any]) -> None:
    """Write the record and its table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(path, {"about": about, "outcomes": [asdict(each) for each in outcomes]})
    hardware, seeds = about["hardware"], sorted({each.seed for each in outcomes})
    text = (
        f"# Estimators for arrays\n\n`{about['command']}`: {hardware['device']}, {hardware['cores']} cores, Python "
        f"{about['python']}, torch {about['torch']}, scikit-learn {about['scikit-learn']}, dmt {about['dmt']}. "
        f"Seeds {', '.join(map(str, seeds))}. Test accuracy, %, mean ± standard deviation over n seeds, each with "
        "other labels. Digits: 64 pixel values, or 8×8 images. Folders: features of EfficientNet-Lite0 at "
        f"{SIZE} pixels.\n\n{table(outcomes)}"
    )
    files.write(path.with_suffix(".md"), text.encode())


def read(path: Path) -> list[Outcome]:
    return [Outcome(**each) for each in files.read_json(path)["outcomes"]] if path.is_file() else []


def _command(given: argparse.Namespace) -> str:
    """Return the command as it was typed, without folders of this machine."""
    folders = [] if given.folders is None else ["--folders", "DIR"]
    words = [*folders, "--only", *given.only, "--seeds", *map(str, given.seeds), "--out", "OUT"]
    return " ".join(["python -m benchmarks.sklearn_arrays", *words])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folders", type=Path, help="where archives of photos lie")
    parser.add_argument("--only", nargs="+", choices=["digits", *FOLDERS], default=["digits"], help="these data")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--work", type=Path, default=Path("runs/sklearn"), help="for unpacked photos and features")
    parser.add_argument("--out", type=Path, required=True, help="folder for sklearn.json and sklearn.md")
    given = parser.parse_args()
    if given.only != ["digits"] and given.folders is None:
        parser.error("photos need --folders")
    about = environment.describe(torch.device("cpu"))
    about |= {"command": _command(given), "scikit-learn": metadata.version("scikit-learn")}
    path: Path = given.out / "sklearn.json"
    given.work.mkdir(parents=True, exist_ok=True)
    for name in given.only:
        draw = digits if name == "digits" else Folder(given.folders, name, given.work).draw
        for seed in given.seeds:
            outcomes = read(path)
            before = next((each for each in outcomes if (each.data, each.seed) == (name, seed)), None)
            found = measure(name, draw(seed), seed, before)
            print(found, flush=True)
            write(path, [*(each for each in outcomes if (each.data, each.seed) != (name, seed)), found], about)
    print(table(read(path)))


if __name__ == "__main__":
    main()
