"""Rules of the guard about unlabeled images: some show something else, or their class proportions differ."""

from collections.abc import Iterator

import numpy as np

from dmt import presets
from dmt.results.guard_rules import ENOUGH, Finding, names, shares_of_labels
from dmt.results.job_results import JobResult
from dmt.results.stage_results import StageResult

SKEWED = 0.125
"""Share of the pseudo labels that would have to change class to match the labels; up to 0.1 in matching pools."""


def of_pool(job: JobResult) -> Iterator[Finding]:
    """Yield a finding if a user's unlabeled photos show something else; known before any net is trained."""
    if job.pool is not None and job.pool.told and any(stage.labels is not None for stage in job.stages):
        remedy = "removing them if they show something else, or labeling some of them"
        yield Finding("foreign", "", str(job.pool), remedy)


def of_shares(job: JobResult, stage: StageResult) -> Iterator[Finding]:
    """Yield a finding if first nets predict other class proportions for the unlabeled images than the labels have."""
    preset = presets.PRESETS.get(job.data)
    if not _first_labels(job, stage) or stage.labels is None or preset is None or preset.config.data.sizes.pixels:
        return
    due = shares_of_labels(job, stage)
    counts = np.array(stage.labels["coverage"]["predicted"], dtype=float)
    # with fewer pseudo labels, the difference could be chance
    if due is None or len(due) != len(counts) or counts.sum() < ENOUGH * len(counts) ** 2:
        return
    shares = counts / counts.sum()
    if np.abs(shares - due).sum() / 2 < SKEWED:
        return
    most, least = int((shares - due).argmax()), int((shares - due).argmin())
    text = (
        f"the class proportions of the unlabeled images seem to differ from those of the labels: {shares[most]:.0%} "
        f"are predicted as {names(job, [most])} ({due[most]:.0%} of the labels), {shares[least]:.0%} as "
        f"{names(job, [least])} ({due[least]:.0%} of the labels)"
    )
    remedy = f"more labels of {names(job, [least])}, or nothing if you expect this"
    yield Finding("skewed", stage.title, text, remedy, names(job, [most, least]))


def _first_labels(job: JobResult, stage: StageResult) -> bool:
    """Whether no earlier round has pseudo labels."""
    return stage.round == min((each.round for each in job.stages if each.labels is not None), default=0)
