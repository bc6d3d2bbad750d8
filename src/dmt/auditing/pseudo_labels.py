"""Pseudo labels that are probably wrong: those of the round whose nets are used, where these nets contradict them.

They do so although one of them, or each of a pair, was trained on these labels.
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
from dmt.results.job_results import JobResult
from dmt.runs.folder import Folder
from dmt.tasks.base import Task, View
from dmt.types import ProgressCallback


def checks(ensemble: Ensemble, folder: Folder, job: JobResult) -> list[LabelCheck]:
    """Return the pseudo labels that the kept nets were trained on, net by net; empty if there were none."""
    found = []
    for stage in job.kept():
        place = folder.stage(stage.place)
        if Store.exists(place):
            labels = _labels(labeler.load(ensemble.task, place))
            places = torch.arange(len(ensemble.task.unlabeled))
            found.append(LabelCheck(ensemble, ensemble.task.unlabeled, labels, places, source=stage.name))
    return found


def examine(task: Task, every: list[LabelCheck], on_progress: ProgressCallback | None = None) -> Judged:
    """Return the suspicious labels, the worst first, each image at most once."""
    # no threshold: if nets prefer another class although they were trained on the label, that is reason enough
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
    """Return a function that looks up stored labels; those that were not kept taught no net, so they count as none."""
    return lambda view, positions: store.kept_labels(positions, view.images)
