"""Pseudo labels that are probably wrong: of the round whose nets are kept, those that these nets contradict.

They do so although one of them, or each of a pair, learned from these labels.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dmt.auditing import suspects
from dmt.auditing.ensembles import Ensemble
from dmt.auditing.suspects import Judged, LabelCheck, Suspect
from dmt.pseudo import labeler
from dmt.pseudo.store import Store
from dmt.results.reading import JobResult
from dmt.runs.folder import Folder
from dmt.tasks.base import Task, View
from dmt.types import ProgressCallback


def checks(ensemble: Ensemble, folder: Folder, job: JobResult) -> list[LabelCheck]:
    """The labels that the kept nets learned from; none if they had no pseudo labels."""
    found = []
    for stage in job.kept():
        place = folder.stage(stage.place)
        if Store.exists(place):
            labels = _labels(labeler.load(ensemble.task, place))
            places = torch.arange(len(ensemble.task.unlabeled))
            found.append(LabelCheck(ensemble, ensemble.task.unlabeled, labels, places, source=stage.name))
    return found


def examine(task: Task, every: list[LabelCheck], on_progress: ProgressCallback | None = None) -> Judged:
    """The suspicious labels, worst first, an image at most once."""
    # these nets learned from the labels: that they prefer another class at all says enough, so there is no threshold
    bars = torch.zeros(len(task.classes))
    worst: dict[int, Suspect] = {}
    for check in every:
        for each in suspects.find(check, bars, on_progress):
            if each.labeled and (each.position not in worst or worst[each.position].score < each.score):
                worst[each.position] = each
    found = suspects.ranked(each for each in worst.values() if each.suspicious)
    share = sum(each.share for each in worst.values()) / max(1, len(worst))
    return Judged(found, every, bars, len(worst), share)


def _labels(store: Store[Any]) -> Callable[[View, Tensor], Tensor]:
    """How to get at stored labels; those that were not kept taught nothing, and are no labels here."""
    return lambda view, positions: store.kept_labels(positions, view.images)
