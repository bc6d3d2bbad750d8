"""Labels that an ensemble considers wrong: one finding for each image, the most suspicious first."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dmt.auditing.ensembles import Ensemble
from dmt.core import confident
from dmt.core.confident import Judgment, Summary, Thresholds
from dmt.data.set_pictures import Images
from dmt.tasks.base import View
from dmt.types import IGNORE, ProgressCallback

PART = 0.05
"""Share of labeled pixels from which on a mask counts as suspicious: nets differ a little along every edge."""

POOR = 0.7
"""Share of the labels that the judges must agree with; below it, most disagreements are their own mistakes."""


@dataclass(frozen=True)
class Suspect:
    """Judgment of an ensemble on the label, or the mask, of one image.

    Attributes:
        position: position of the image in its set.
        file: id of the image.
        given, suggested: class numbers. For masks, the pair that most suspicious pixels have; -1 if none is suspicious.
        suspicious: whether the label is probably wrong; for masks, whether `PART` of the labeled pixels are.
        score: how wrong the label looks, for ranking: the margin by which another class leads; for masks, that of
            suspicious pixels, averaged over all labeled ones.
        share: share of the labeled pixels that are suspicious; 0 or 1 for the label of an image.
        nets: each net's probabilities of the given and the suggested class; for masks, averaged over pixels with that
            pair.
        source: name of the stage that was trained on the label; empty for given labels.
        labeled: whether the image has a label at all.
    """

    position: int
    file: str
    given: int
    suggested: int
    suspicious: bool
    score: float
    share: float
    nets: tuple[tuple[float, float], ...]
    source: str = ""
    labeled: bool = True


@dataclass(frozen=True)
class LabelCheck:
    """Images whose labels an ensemble is to judge.

    Attributes:
        labels: (view, places) -> (n, *S) int64, the labels in question, IGNORE where there is none.
        places: (N,) positions of the images in the set they come from.
        known: (C,) bool, the classes that the ensemble was trained on; None for all.
        source: name of the stage that was trained on the labels; empty for given labels.
    """

    ensemble: Ensemble
    images: Images
    labels: Callable[[View, Tensor], Tensor]
    places: Tensor
    known: Tensor | None = None
    source: str = ""

    def predictions(self, on_progress: ProgressCallback | None = None) -> Iterator[tuple[View, Tensor, Tensor]]:
        """Yield each batch of images, the nets' probabilities (nets, n, C, *S), and the labels in question (n, *S)."""
        for view, probabilities in self.ensemble.predictions(self.images, on_progress):
            yield view, probabilities, self.labels(view, self.places[view.positions])

    def judge(self, probabilities: Tensor, given: Tensor, bars: Tensor) -> Judgment:
        """Judge labels by the mean probabilities of the nets, site by site."""
        return confident.judge(probabilities.mean(0), given, bars, self.known)

    def judged(self, given: Tensor) -> Tensor:
        """Return labels (n, *S) with IGNORE in place of classes that the ensemble was not trained on."""
        return given if self.known is None else given.where(self.known.to(given.device)[given.clamp(min=0)], IGNORE)

    def only(self, places: Iterable[int]) -> "LabelCheck":
        """Return the same check for only those images that are at these places."""
        wanted = torch.isin(self.places, torch.tensor(list(places), dtype=torch.int64)).nonzero().squeeze(1)
        return replace(self, images=self.images.take(wanted), places=self.places[wanted])


@dataclass(frozen=True)
class Judged:
    """Result of judging labels.

    Attributes:
        found: the findings, the worst first.
        checks, bars: the checks, and the thresholds of the classes, from which pictures can be made.
        of: number of images that have a label in question.
        share: share of these labels that is suspicious; for masks, of the labeled pixels, averaged over images.
        agreement: share of the labels that nets not trained on them predict too; None for pseudo labels.
    """

    found: list[Suspect]
    checks: list[LabelCheck]
    bars: Tensor
    of: int
    share: float
    agreement: float | None = None

    @property
    def suspicious(self) -> list[Suspect]:
        return [each for each in self.found if each.suspicious]

    @property
    def poor(self) -> bool:
        """Whether the judges agree with so few labels that they are probably not accurate enough."""
        return self.agreement is not None and self.agreement < POOR

    @property
    def counted(self) -> str:
        """How many labels are suspicious, in words; for masks, also what share of the pixels."""
        text = f"{len(self.suspicious):,} of {self.of:,}"
        pixels = self.checks[0].ensemble.task.pixels
        return f"{text} masks, and {self.share:.1%} of the pixels, mean over masks" if pixels else text

    @property
    def trust(self) -> str:
        """How far the judges can be trusted, in words; empty if unknown."""
        if self.agreement is None or math.isnan(self.agreement):
            return ""
        text = f"the nets of the audit agree with {self.agreement:.0%} of the labels"
        return f"{text}: too few; most of these suspicions may be false" if self.poor else text


def thresholds(checks: Iterable[LabelCheck], classes: int, on_progress: ProgressCallback | None = None) -> Thresholds:
    """Measure the threshold of each class, the mean probability of a given label of that class, over all checks."""
    found = Thresholds(classes)
    for check in checks:
        for _, probabilities, given in check.predictions(on_progress):
            found.add(probabilities.mean(0), check.judged(given))
    return found


def find(check: LabelCheck, bars: Tensor, on_progress: ProgressCallback | None = None) -> Iterator[Suspect]:
    """Yield a finding for every image."""
    for view, probabilities, given in check.predictions(on_progress):
        judgment = check.judge(probabilities, given, bars)
        summary = confident.summarize(judgment, given, probabilities.shape[2])
        spread = torch.stack([_said(each, given, judgment, summary) for each in probabilities], 1).tolist()
        labeled = (given != IGNORE).view(len(given), -1).any(1)
        columns = (summary.given, summary.suggested, summary.share, summary.score, labeled)
        rows = zip(view.positions.tolist(), *(column.tolist() for column in columns), spread, strict=True)
        for position, first, second, share, score, there, said in rows:
            yield Suspect(
                position=int(check.places[position]),
                file=check.images.ids[position],
                given=first,
                suggested=second,
                suspicious=share >= PART,
                score=score,
                share=share,
                nets=tuple((own, other) for own, other in said),
                source=check.source,
                labeled=there,
            )


def ranked(suspects: Iterable[Suspect]) -> list[Suspect]:
    """Sort findings, the most suspicious first, ties by position."""
    return sorted(suspects, key=lambda each: (not each.suspicious, -each.score, each.position))


def _said(probabilities: Tensor, given: Tensor, judgment: Judgment, summary: Summary) -> Tensor:
    """Return one net's probability of the given class and of the suggested one, (n, 2)."""
    pair = (confident.self_confidence(probabilities, each) for each in (given, judgment.suggested))
    return torch.stack([_mean(each, summary.sites) for each in pair], 1)


def _mean(values: Tensor, sites: Tensor) -> Tensor:
    """Return the mean of (n, *S) over the given sites, (n,); 0 for images without such sites."""
    if values.dim() == 1:
        return values
    weights = sites.flatten(1).float()
    return (values.flatten(1) * weights).sum(1) / weights.sum(1).clamp(min=1)
