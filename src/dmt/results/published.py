"""Published test scores to stand beside ours: the paper's own rows, and what others report of the methods they compare.

Sources are marked as in docs/methods: [U] UDA's table 9, which repeats MixMatch's runs, [T] TorchSSL's README and [S]
the results of USB, both of the checkpoint that does best on the test set.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dmt import presets

ELSEWHERE, OTHER_NET = "*", "†"
LEGEND = {
    ELSEWHERE: "published by others, with the same net and number of labels; draws of labels, length of training and "
    "choice of the checkpoint may differ (docs/methods)",
    OTHER_NET: "published by others, with another net (docs/methods)",
}
"""What a mark behind a published score means; the paper's have none."""


@dataclass(frozen=True)
class Published:
    """A test score, %.

    Attributes:
        mark: a key of `LEGEND`, or nothing for a row of the paper.
        source: who reports it.
    """

    score: float
    mark: str = ""
    source: str = "paper"

    def __str__(self) -> str:
        return f"{self.score:.2f}{self.mark}"


def of(data: str, method: str, changes: Collection[str] = ()) -> Published | None:
    """What is published for a preset: under changed options it would compare different things."""
    if changes or data not in presets.PRESETS:
        return None
    paper = presets.PRESETS[data].paper
    return Published(paper[method]) if method in paper else _BY_OTHERS.get(method, {}).get(data)


def legend(marks: Collection[str]) -> list[str]:
    """A line for each of these marks."""
    return [f"{mark} {words}" for mark, words in LEGEND.items() if mark in marks]


def _cifar10(source: str, **scores: float) -> dict[str, Published]:
    """By number of labels: ``n40``, ``n250``, ``n1k``, ``n4k``; of a Wide ResNet 28-2."""
    return {f"cifar10-{labels[1:]}": Published(score, ELSEWHERE, source) for labels, score in scores.items()}


_BY_OTHERS: Mapping[str, Mapping[str, Published]] = {
    "pseudo-label": _cifar10("[U]", n250=50.02, n1k=69.09, n4k=83.79),
    "pi-model": _cifar10("[U]", n250=46.98, n1k=68.47, n4k=82.59),
    "mean-teacher": _cifar10("[U]", n250=52.68, n1k=82.68, n4k=89.64) | _cifar10("[T]", n40=29.9),
    "uda": _cifar10("its own script", n250=94.57, n1k=95.25, n4k=95.68) | _cifar10("[T]", n40=89.4),
    "fixmatch": _cifar10("its paper", n40=86.19, n250=94.93, n4k=95.74),
    "flexmatch": _cifar10("[T]", n40=95.03, n250=95.02, n4k=95.81),
    "freematch": _cifar10("[S]", n40=95.03, n250=95.15, n4k=95.86),
    "softmatch": _cifar10("[S]", n40=94.94, n250=95.16, n4k=95.73),
    "mixmatch": _cifar10("[U]", n250=88.92, n1k=92.25, n4k=93.76) | _cifar10("[T]", n40=63.8),
    "remixmatch": _cifar10("its paper", n40=80.90, n250=93.73, n4k=94.86),
}
"""By method and preset."""
