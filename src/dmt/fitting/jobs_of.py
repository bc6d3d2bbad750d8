"""The jobs of a run that a stage belongs to."""

from collections.abc import Sequence

from dmt.methods import catalogue
from dmt.runs.folder import Job
from dmt.runs.identity import Work

Jobs = Sequence[tuple[Job, list[Work]]]
"""The jobs of a run, each with its stages."""


def titles(work: Work, jobs: Jobs) -> str:
    """Return the title of a stage with all its methods, such as 'CL, DMT A0, seed 1'."""
    methods = [catalogue.METHODS[job.method].title for job, works in jobs if work in works]
    return f"{', '.join(methods)} {work.stage.name}, seed {work.seed}"


def family(work: Work, jobs: Jobs) -> list[Work]:
    """Return all stages of one plan that contains this stage, including its parents."""
    return next(works for _, works in jobs if work in works)
