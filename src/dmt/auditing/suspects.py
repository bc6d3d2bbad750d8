"""Labels that an ensemble thinks are wrong: one finding for each image, the most suspicious first."""

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
"""Share of a mask's labeled pixels that must be suspicious for it to be so: nets differ a little along every edge."""

POOR = 0.7
"""Where judges agree with less than this share of the labels, most of what they contradict is their own mistake."""


@dataclass(frozen=True)
class Suspect:
    """What an ensemble thinks of the label of one image, or of its mask.

    Attributes:
        position: of the image in its set.
        file: its id.
        given, suggested: numbers of classes, -1 where nothing is suspicious in a mask. Of masks, the pair that most
            suspicious pixels have.
        suspicious: whether the label is probably wrong; of masks, whether enough of it is.
        score: how wrong it looks, to rank by: the mean margin.
        share: of the labeled pixels those that are suspicious; 0 or 1 for an image with one label.
        nets: what each net gives the given class and the suggested one; of masks, in the mean over their pixels.
        source: whose label it is, where there are several.
        labeled: whether there is a label at all.
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
    """Images whose labels an ensemble shall judge.

    Attributes:
        labels: (view, places) -> (n, *S) int64, the labels in question, IGNORE where there is none.
        places: (N,) positions of the images in the set they come from.
        known: (C,) bool, the classes that the ensemble has seen.
        source: whose labels these are.
    """

    ensemble: Ensemble
    images: Images
    labels: Callable[[View, Tensor], Tensor]
    places: Tensor
    known: Tensor | None = None
    source: str = ""

    def predictions(self, on_progress: ProgressCallback | None = None) -> Iterator[tuple[View, Tensor, Tensor]]:
        """Batch by batch: the images, what the nets say (nets, n, C, *S), and the labels in question (n, *S)."""
        for view, probabilities in self.ensemble.predictions(self.images, on_progress):
            yield view, probabilities, self.labels(view, self.places[view.positions])

    def judge(self, probabilities: Tensor, given: Tensor, bars: Tensor) -> Judgment:
        """What the ensemble thinks in the mean, site by site."""
        return confident.judge(probabilities.mean(0), given, bars, self.known)

    def judged(self, given: Tensor) -> Tensor:
        """Labels (n, *S) without those of classes that the ensemble has never seen."""
        return given if self.known is None else given.where(self.known.to(given.device)[given.clamp(min=0)], IGNORE)

    def only(self, places: Iterable[int]) -> "LabelCheck":
        """The same for those of its images that are at these places."""
        wanted = torch.isin(self.places, torch.tensor(list(places), dtype=torch.int64)).nonzero().squeeze(1)
        return replace(self, images=self.images.take(wanted), places=self.places[wanted])


@dataclass(frozen=True)
class Judged:
    """Labels that were judged.

    Attributes:
        found: the findings, worst first.
        checks, bars: by whom and by which thresholds, to make pictures of it.
        of: how many images have a label in question.
        share: of their labels those that are suspicious; of masks, of the labeled pixels in the mean over images.
        agreement: the share of the labels that judges who did not learn from them would give too.
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
        """Whether the judges know too little."""
        return self.agreement is not None and self.agreement < POOR

    @property
    def counted(self) -> str:
        """How many labels are suspicious; of masks, also which part of the pixels."""
        text = f"{len(self.suspicious):,} of {self.of:,}"
        pixels = self.checks[0].ensemble.task.pixels
        return f"{text} masks, and {self.share:.1%} of the pixels, mean over masks" if pixels else text

    @property
    def trust(self) -> str:
        """How far the judges can be believed; nothing where nothing is known of it."""
        if self.agreement is None or math.isnan(self.agreement):
            return ""
        text = f"the nets of the audit agree with {self.agreement:.0%} of the labels"
        return f"{text}: too few; most of these suspicions may be false" if self.poor else text


def thresholds(checks: Iterable[LabelCheck], classes: int, on_progress: ProgressCallback | None = None) -> Thresholds:
    """What counts as sure of each class, over all checks."""
    found = Thresholds(classes)
    for check in checks:
        for _, probabilities, given in check.predictions(on_progress):
            found.add(probabilities.mean(0), check.judged(given))
    return found


def find(check: LabelCheck, bars: Tensor, on_progress: ProgressCallback | None = None) -> Iterator[Suspect]:
    """A finding for every image."""
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
    """The most suspicious first; of equals in the order of their positions."""
    return sorted(suspects, key=lambda each: (not each.suspicious, -each.score, each.position))


def _said(probabilities: Tensor, given: Tensor, judgment: Judgment, summary: Summary) -> Tensor:
    """(n, 2) what one net gives the given class and the suggested one."""
    pair = (confident.self_confidence(probabilities, each) for each in (given, judgment.suggested))
    return torch.stack([_mean(each, summary.sites) for each in pair], 1)


def _mean(values: Tensor, sites: Tensor) -> Tensor:
    """(n,) mean of (n, *S) over the sites that count; 0 where none does."""
    if values.dim() == 1:
        return values
    weights = sites.flatten(1).float()
    return (values.flatten(1) * weights).sum(1) / weights.sum(1).clamp(min=1)
