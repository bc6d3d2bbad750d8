"""The jobs of a run that a stage serves."""

from collections.abc import Sequence

from dmt.methods import catalogue
from dmt.runs.folder import Job
from dmt.runs.identity import Work

Jobs = Sequence[tuple[Job, list[Work]]]
"""All of a run, each with its stages."""


def titles(work: Work, jobs: Jobs) -> str:
    """'CL, DMT A0, seed 1': all methods that a stage serves."""
    methods = [catalogue.METHODS[job.method].title for job, works in jobs if work in works]
    return f"{', '.join(methods)} {work.stage.name}, seed {work.seed}"


def family(work: Work, jobs: Jobs) -> list[Work]:
    """All stages of a plan that holds this one, among them its parents."""
    return next(works for _, works in jobs if work in works)
