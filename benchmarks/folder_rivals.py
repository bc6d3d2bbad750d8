"""Alternatives without this package: scikit-learn on features of the run's encoders.

They are trained on all given labels, including those that the run holds out for validation. Their options are chosen by
cross-validation on the labels.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from torch import Tensor, nn

from dmt.data.sets import LabeledSet, UnlabeledSet
from dmt.errors import ConfigError
from dmt.models import build, names, starts
from dmt.models.build import Normalized
from dmt.own import known_nets
from dmt.results.job_results import JobResult
from dmt.runs.folder import Folder
from dmt.tasks.base import Task
from dmt.training.checkpoint import finished_net
from dmt.use.scoring import Finished

FOLDS = 5
UNKNOWN = -1
"""The label of unlabeled samples in scikit-learn."""

Features = np.ndarray


def scores(run: Path, job: JobResult, device: torch.device) -> dict[str, float]:
    """Return the accuracy on the test images in % by method; empty if no pretrained encoder is available."""
    finished = Finished(run, None, device, lambda text: None, unlabeled=True)
    task = finished.task(job.seed)
    nets = _encoders(run, finished, task, job)
    if not nets:
        return {}
    given = [task.labeled, task.validation]
    known = np.concatenate([features(nets, task, part, device) for part in given])
    labels = np.concatenate([part.labels.numpy() for part in given])
    pool, test = (features(nets, task, part, device) for part in (task.unlabeled, task.test))
    said = rivals(known, labels, pool, test)
    return {name: 100 * float((answer == task.test.labels.numpy()).mean()) for name, answer in said.items()}


def _encoders(run: Path, finished: Finished, task: Task, job: JobResult) -> list[Normalized]:
    """Return the distinct frozen encoders of a run, or the installed one if the run trained whole nets."""
    found: dict[str, Normalized] = {}
    for stage in job.kept():
        name = finished.config.net_of(stage.line)
        if names.is_frozen(name):
            place = Folder(run).stage(stage.place)
            net = finished_net(place, task.net_spec(name), stage.line, stage.copies[0])
            assert isinstance(net, Normalized)
            found[name] = net
    if found:
        return list(found.values())
    spec = task.net_spec(f"frozen:{known_nets.KNOWN}")
    net = build.build(spec, seed=0)
    try:
        starts.load(net, spec, starts.resolve("wheel", spec.name))
    except ConfigError:
        return []
    return [net]


@torch.no_grad()
def features(
    nets: list[Normalized], task: Task, images: UnlabeledSet[Any] | LabeledSet[Any], device: torch.device
) -> Features:
    """Return (N, F) the concatenated features of all encoders."""
    parts = []
    for net in nets:
        encoder = net.to(device).eval().body.encoder
        assert isinstance(encoder, nn.Module)
        seen: list[Tensor] = [encoder((view.images - net.mean) / net.std) for view in task.views(images, device)]
        parts.append(torch.cat(seen) if seen else torch.zeros(0, encoder.num_features))  # type: ignore[call-overload]
    return torch.cat(parts, 1).float().cpu().numpy()


def rivals(known: Features, labels: np.ndarray, pool: Features, test: Features) -> dict[str, np.ndarray]:
    """Return the test predictions of each method, by name."""
    scaler = StandardScaler().fit(np.concatenate([known, pool]))
    known, pool, test = (scaler.transform(each) if len(each) else each for each in (known, pool, test))
    least = int(np.bincount(labels)[np.unique(labels)].min())
    folds = StratifiedKFold(max(2, min(FOLDS, least)), shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        strength = best_strength(known, labels, folds) if least > 1 else 1.0
        plain = LogisticRegression(C=strength, max_iter=500)
        said = {"logistic": plain.fit(known, labels).predict(test)}
        if len(pool):
            every = np.concatenate([known, pool])
            partly = np.concatenate([labels, np.full(len(pool), UNKNOWN)])
            training = SelfTrainingClassifier(LogisticRegression(C=strength, max_iter=500))
            said["self_training"] = training.fit(every, partly).predict(test)
            spreading = _spreading(every, partly, folds) if least > 1 else _spread(10)
            said["label_spreading"] = spreading.fit(every, partly).predict(test)
    return said


def best_strength(known: Features, labels: np.ndarray, folds: StratifiedKFold) -> float:
    """Return the best C by cross-validation on the labels."""
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    search = GridSearchCV(pipeline, {"logisticregression__C": np.logspace(-5, 2, 8)}, cv=folds)
    return float(search.fit(known, labels).best_params_["logisticregression__C"])


def _spread(neighbors: int) -> Any:
    return make_pipeline(Normalizer(), LabelSpreading(kernel="knn", n_neighbors=neighbors, max_iter=100))


def _spreading(every: Features, partly: np.ndarray, folds: StratifiedKFold) -> Any:
    """Return label spreading with the best number of neighbors by cross-validation on the labels."""
    labeled = np.flatnonzero(partly != UNKNOWN)

    def right(make: Callable[[], Any]) -> float:
        count = 0
        for _, hidden in folds.split(labeled, partly[labeled]):
            held = labeled[hidden]
            hiding = partly.copy()
            hiding[held] = UNKNOWN
            count += int((make().fit(every, hiding).predict(every[held]) == partly[held]).sum())
        return count / len(labeled)

    return _spread(max((5, 10, 20), key=lambda neighbors: right(lambda: _spread(neighbors))))
