"""Result of a tuning: a table, a verdict in words, and the command to use. Test scores are never part of it."""

import math
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from dmt import config as configuration
from dmt.core.evidence import Interval
from dmt.results import narrow_tables, tables
from dmt.runs import progress
from dmt.tuning import search_space
from dmt.tuning.judging import COARSE, Verdict
from dmt.tuning.search_space import Values

DEFAULT = "default"
FINE, MEAN_IOU = "fine-grained accuracy", "mean IoU"
"""Scores by which trials are judged: the first for classification, the second for segmentation."""

OPTIONAL = (("stages trained", "shared"), ("time",), ("accuracy",))
"""Columns that a narrow terminal can do without, the least important first."""


@dataclass(frozen=True)
class Trial:
    """One setting, trained with every seed in a run folder of its own.

    Attributes:
        name: the setting as text, or "default".
        values: values of the options that are tuned.
        folder: its run folder, a finished run like any other.
        score: score on the validation images, averaged over seeds; None if it could not be trained.
        trained, shared: number of stages that were trained for it, and of those that an earlier trial had trained.
        seconds, saved: seconds of training, and those that the shared stages would have taken.
        failed: why it could not be trained, or None.
    """

    name: str
    values: Values
    folder: Path
    score: float | None
    trained: int = 0
    shared: int = 0
    seconds: float = 0.0
    saved: float = 0.0
    failed: str | None = None


@dataclass(frozen=True, repr=False)
class Tuning:
    """All trials, the default first, and how they compare on the validation images. ``print`` it for a table.

    Attributes:
        verdict: comparison of the trials that could be trained, in their order.
        judged_by: name of the score.
        images: number of validation images of each seed.
        seeds: number of seeds.
        given: settings that all trials have in common.
        command: words of the ``dmt fit`` command that trains a trial, without its settings.
        warnings: errors in the images, in spite of which the trials were trained.
    """

    trials: tuple[Trial, ...]
    verdict: Verdict
    judged_by: str
    images: int
    seeds: int
    given: Values
    command: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    @property
    def default(self) -> Trial:
        """The first trial, with the settings that all have in common and nothing else changed."""
        return self.trials[0]

    @property
    def judged(self) -> list[Trial]:
        """The trials that could be trained."""
        return [trial for trial in self.trials if trial.failed is None]

    @property
    def fine(self) -> bool:
        """Whether the score depends on the nets' confidence too, so that plain accuracy is shown beside it."""
        return self.judged_by == FINE

    @property
    def best(self) -> Trial:
        """The trial with the highest score, be it by chance."""
        return self.judged[self.verdict.best]

    @property
    def chosen(self) -> Trial:
        """The trial whose setting to use: the default, unless another is clearly better."""
        return self.judged[self.verdict.chosen]

    @property
    def settings(self) -> Values:
        """Settings with which ``dmt.fit`` trains the chosen trial: those given to the tuning, and the chosen ones.

        On a folder of your own, give it ``folds=False`` too, as ``line`` does.
        """
        changed = self.chosen.values.items()
        return self.given | {key: value for key, value in changed if value != self.default.values[key]}

    @property
    def line(self) -> str:
        """The command that trains with the chosen setting."""
        words = [
            word for key, value in self.settings.items() for word in ("--set", f"{key}={configuration.shown(value)}")
        ]
        return shlex.join([*self.command, *words])

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Tuning of {len(self.trials)} trials on {self.images:,} validation images: use {self.chosen.name}>"

    def text(self, width: int | None = None) -> str:
        """Return table and sentences, for a terminal of ``width`` columns or a file; the command stays on one line."""
        said = [narrow_tables.sentences(line, width) for line in (self.words(), *self.cautions(), self.cost())]
        return "\n".join([self.table(width) + said[0], f"  {self.line}", *said[1:]])

    def table(self, width: int | None = None) -> str:
        """Return a table with a row for each trial."""
        title = (
            f"{self.judged_by} on {self.images:,} validation images, %, "
            f"mean over {self.seeds} seed{'s' if self.seeds > 1 else ''}"
        )
        right = ("accuracy",) if self.fine else ()
        columns = ("trial", "score", *right, "over the default", "", "stages trained", "shared", "time")
        rows = tables.table(title, *columns)
        standing = iter(range(len(self.judged)))
        for trial in self.trials:
            name = f"{DEFAULT}: {search_space.name(trial.values)}" if trial is self.default else trial.name
            cost = (str(trial.trained), str(trial.shared), progress.duration(trial.seconds))
            if trial.failed is not None:
                rows.add_row(Text(name), "–", *("–" for _ in right), "–", "failed", *cost)
                continue
            number = next(standing)
            over = "" if trial is self.default else _shown(self.verdict.over_default[number])
            scores = [self.verdict.scores[number], *([self.verdict.accuracies[number]] if self.fine else [])]
            rows.add_row(Text(name), *(f"{score:.2f}" for score in scores), over, self._mark(number), *cost)
        return tables.text(narrow_tables.fit(rows, width, OPTIONAL), width)

    def _mark(self, number: int) -> str:
        if number == self.verdict.best:
            return "best"
        return "clearly worse" if self.verdict.over_best[number].high < 0 else "tied with the best"

    def words(self) -> str:
        """Return the verdict as a sentence."""
        if self.default.failed is not None:
            return (
                f"the default could not be trained ({self.default.failed}); of the others {self.chosen.name} is best:"
            )
        if self.verdict.few:
            return f"{self.images:,} validation images are too few to choose by; keep the default:"
        if self.chosen is self.default and self.verdict.surer:
            names = ", ".join(self.judged[number].name for number in self.verdict.surer)
            return f"{names}: more confident than the default, but less accurate; keep the default:"
        if self.chosen is self.default:
            return "no setting is clearly better than the default; keep it:"
        over = self.verdict.over_default[self.verdict.chosen]
        return f"{self.chosen.name} is clearly better than the default, by {_shown(over)} points; use it:"

    def cautions(self) -> list[str]:
        """Return warnings and notes that limit the verdict."""
        least = self.verdict.least
        said = [f"warning: the scores may be meaningless: {each}" for each in self.warnings]
        if not math.isnan(least):
            said.append(f"differences below about {least:.1f} points are indistinguishable from chance here")
        broken = self.default.failed is not None
        unsaid = broken or (self.chosen is self.default and not self.verdict.few)  # by words()
        if unsaid and (self.verdict.few or least > COARSE):
            remedy = "label more" if broken else "label more, or keep the default"
            said.append(f"note: {self.images:,} validation images are too few to tune on; {remedy}")
        if self.seeds == 1:
            said.append(
                "note: with one seed, the intervals do not include randomness in training; add some, e.g. --seeds 1-3"
            )
        return said

    def cost(self) -> str:
        """Return a sentence on what was trained, and on the time that shared stages saved."""
        trained, shared = sum(each.trained for each in self.trials), sum(each.shared for each in self.trials)
        spent, saved = sum(each.seconds for each in self.trials), sum(each.saved for each in self.trials)
        return (
            f"{trained} stages trained in {progress.duration(spent)}; "
            f"{shared} shared between trials, which saved {progress.duration(saved)}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the results for ``tune.json``."""
        places = {trial.name: number for number, trial in enumerate(self.judged)}

        def row(trial: Trial) -> dict[str, Any]:
            number = places.get(trial.name)
            over = None if number is None or trial is self.default else self.verdict.over_default[number]
            return plain(trial) | {
                "over_default": None if over is None or math.isnan(over.value) else asdict(over),
                "accuracy": None if number is None else self.verdict.accuracies[number],
                "told_from_best": None if number is None else self.verdict.over_best[number].clear,
            }

        return {
            "judged_by": self.judged_by,
            "validation": self.images,
            "trials": [row(trial) for trial in self.trials],
            "best": self.best.name,
            "chosen": self.chosen.name,
            "settings": self.settings,
            "use": self.line,
        }


def plain(trial: Trial) -> dict[str, Any]:
    """Return a trial for ``tune.json``, with only the name of its folder, so that the tuning can be moved."""
    return asdict(trial) | {"folder": trial.folder.name}


def _shown(interval: Interval) -> str:
    if math.isnan(interval.value):
        return "–"
    return f"{interval.value:+.2f} ({interval.low:+.2f} to {interval.high:+.2f})"
