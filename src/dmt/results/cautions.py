"""Parts of a verdict besides the gain: the score itself, and reasons to doubt the gain."""

import statistics
from collections.abc import Iterable, Sequence

from dmt.core import evidence
from dmt.results.job_results import JobResult

FEW = 50
"""Number of images below which a score is hardly reliable."""

Pair = tuple[JobResult, JobResult]
"""A finished job and its Baseline."""


def reached(pairs: Sequence[Pair]) -> Iterable[str]:
    """Yield the final model's score with its interval or standard deviation over seeds, and the Baseline's score."""
    scores, before = ([job.test_score("shipped") for job in side] for side in zip(*pairs, strict=True))
    found = pairs[0][0].shipped().evidence(pairs[0][0].shipped().shown)
    if found is None:
        return
    around = ""
    if len(scores) > 1:
        around = f" ± {statistics.stdev(scores):.1f}"
    elif found.images:
        own = evidence.interval(scores[0], evidence.spread([found], []))
        around = f" ({own.low:.1f} to {own.high:.1f})"
    what = "mean IoU" if found.pixels else "accuracy"
    yield f"{what} {statistics.fmean(scores):.1f}{around}, Baseline {statistics.fmean(before):.1f}"


def doubts(pairs: Sequence[Pair]) -> Iterable[str]:
    """Yield reasons why the gain may be unreliable."""
    job = pairs[0][0]
    shown = job.shipped().shown
    found = job.shipped().evidence(shown)
    if found is not None and found.images < FEW:
        yield f"only {found.images} {shown} images, so another few may say something else"
    if job.shortened:
        yield f"the budget cut the Baseline short ({job.shortened}), so the gain may be far too large"
