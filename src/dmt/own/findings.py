"""Results of cross-validation on the labels, as text for the user and as a record for the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dmt.config import Config
from dmt.core import evidence
from dmt.core.evidence import Evidence
from dmt.methods import catalogue
from dmt.methods.method import Method
from dmt.own import trial_rounds
from dmt.own.trial_rounds import TrialRounds
from dmt.own.trials import Trials, Tried


@dataclass(frozen=True)
class Found:
    """Result of a search by cross-validation.

    Attributes:
        settings: chosen options that differ from the proposed ones, by key.
        lines: text for the user.
        record: all trials, for the run's manifest.
        config: the configuration that ``settings`` apply to, if it is not the one that the search started from.
        method: the method to train instead of the default one, if any.
        said: predictions on held-out images by nets with these options.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    lines: tuple[str, ...] = ()
    record: Mapping[str, Any] = field(default_factory=dict)
    config: Config | None = None
    method: str | None = None
    said: Evidence | None = None


def of_trials(at: Trials, tried: TrialRounds, told: list[str], methods: Sequence[str]) -> Found:
    """Summarize trials on folds.

    Args:
        at: all trials so far.
        tried: the chosen options, and the evidence from rounds with them.
        told: one text about each choice.
        methods: the methods that the run will train.
    """
    chosen, rounds = tried.chosen, tried.said
    count, images = len(at.folds.parts), len(at.folds.task.labeled)
    lines = [f"{_prefix(at)}: {text}" for text in told]
    record: dict[str, Any] = {"folds": count, "images": images, "chosen": dict(chosen.settings)}
    record["tried"] = [_described(each) for each in at.tried]
    title = catalogue.get(trial_rounds.method_of(methods) or catalogue.default().name).title
    if rounds:
        gain = evidence.difference([rounds[-1]], [rounds[0]])
        reach = f"{gain.low:+.1f} to {gain.high:+.1f}, 90 % interval over these {images} images"
        scores = f"{rounds[0].score():.1f} for the Baseline and {rounds[-1].score():.1f} for {title}"
        lines.append(f"{PREDICTS} {scores}: {gain.value:+.1f} ({reach})")
        record["gain"] = [gain.value, gain.low, gain.high]
        record["rounds"] = [each.score() for each in rounds]
        record["helps"] = True
    return Found(dict(chosen.settings), tuple(lines), record, said=rounds[-1] if rounds else chosen.said)


PREDICTS = "cross-validation predicts"


def asked_again(so_far: Found, again: Tried) -> Found:
    """Return the findings with the evidence of another trial of the same options."""
    record = {**so_far.record, "tried": [*so_far.record["tried"], _described(again)]}
    return replace(so_far, said=again.said, record=record)


def with_other(at: Trials, so_far: Found, other: Method, better: bool) -> Found:
    """Return the findings with the last trial, that of another method, added to text and record."""
    assert so_far.said is not None
    usual, tried = catalogue.default(), at.tried[-1]
    against = usual.title if "rounds" in so_far.record else "Baseline"  # no rounds are tried with fine-tuned nets
    beside = "" if so_far.config is not None else ", with a fine-tuned Baseline"
    chosen = f"training {other.title}{beside}; --method {usual.name} overrides this" if better else usual.title
    scores = f"{other.title}, fine-tuned, {tried.score:.1f}, {against} {so_far.said.score():.1f}"
    line = f"{_prefix(at)}: {scores}: {chosen if better else f'training {chosen}'}"
    record = {**so_far.record, "tried": [*so_far.record["tried"], _described(tried)]}
    return replace(so_far, lines=(*so_far.lines, line), record=record)


def replaced(so_far: Found, other: Method, chosen: Mapping[str, Any], config: Config) -> Found:
    """Return the findings with another method, with these options, as the choice.

    The gain that was predicted for the default method is removed.
    """
    kept = {key: value for key, value in so_far.record.items() if key not in ("gain", "rounds", "helps")}
    record = {**kept, "method": other.name, "chosen": dict(chosen)}
    lines = tuple(line for line in so_far.lines if not line.startswith(PREDICTS))
    return replace(so_far, settings={}, lines=lines, record=record, config=config, method=other.name)


def _prefix(at: Trials) -> str:
    """Return the beginning of a line about cross-validation."""
    return f"cross-validation ({len(at.folds.parts)} folds, {len(at.folds.task.labeled)} labels)"


def _described(trial: Tried) -> dict[str, Any]:
    """Return a trial as an entry of the run's manifest."""
    return {"method": trial.method, "settings": dict(trial.settings), "score": trial.score}
