"""The search space of a tuning: values of numeric training options, as a grid or sampled by Optuna."""

import importlib
import itertools
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from dmt import config as configuration
from dmt import option_values
from dmt.config import Config
from dmt.errors import ConfigError, unknown
from dmt.methods import catalogue
from dmt.methods.plan import Plan
from dmt.methods.recipe import BY_ROUND, Recipe

GAMMAS = {"images": (3.0, 4.0, 5.0, 6.0), "pixels": (1.0, 3.0, 5.0, 7.0, 9.0), "cityscapes": (3.0, 4.0, 5.0, 6.0)}
"""The paper's grids of γ: CIFAR-10's for all classification, PASCAL VOC's for all segmentation except Cityscapes."""

SEARCHES = ("grid", "optuna")

Values = dict[str, Any]
"""One point of the space: option -> value."""


@dataclass(frozen=True)
class Range:
    """All numbers between two, sampled uniformly or, if they span a factor of ten or more, on a log scale."""

    low: float
    high: float

    @property
    def log(self) -> bool:
        return self.low > 0 and self.high / self.low >= 10


Space = dict[str, tuple[Any, ...] | Range]


def tunable() -> dict[str, Any]:
    """Return the numeric options of the recipe and of single methods, and ``fractions``, with their types."""
    hints = typing.get_type_hints(Recipe)
    for name, group in catalogue.groups().items():
        hints |= {f"{name}.{key}": kind for key, kind in typing.get_type_hints(group).items()}
    del hints["stop_rounds"]  # it ends rounds by the very images that judge trials
    return {key: kind for key, kind in hints.items() if key == "fractions" or _number(kind) is not None}


def _number(kind: Any) -> type | None:
    """Return int or float for an option of that type, even if None, a word or a list is allowed too; else None."""
    inner = [each for each in _kinds(kind) if each is not types.NoneType and typing.get_origin(each) is None]
    return inner[0] if inner in ([int], [float]) else None


def _kinds(kind: Any) -> tuple[Any, ...]:
    return typing.get_args(kind) if typing.get_origin(kind) in (types.UnionType, typing.Union) else (kind,)


def _separator(key: str, text: str) -> str:
    """Return the character that separates choices: a slash if they may be lists of numbers, else a comma."""
    return "/" if key == "fractions" or (key in BY_ROUND and "/" in text) else ","


def default(config: Config) -> Space:
    """Return the paper's grid of γ for the task."""
    kind = "images" if not config.data.sizes.pixels else config.data.dataset
    return {"gamma": GAMMAS.get(kind, GAMMAS["pixels"])}


def from_pairs(pairs: Sequence[str]) -> dict[str, str]:
    """Convert ``["gamma=1,3"]`` to ``{"gamma": "1,3"}``; values of an option that is given twice are joined."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, text = (part.strip() for part in pair.partition("="))
        if not equals or not key or not text:
            raise ConfigError(f"--grid takes option=value,value,…, not '{pair}'; e.g. --grid gamma=1,3,5")
        found[key] = _joined(key, found[key], text) if key in found else text
    return found


def _joined(key: str, one: str, other: str) -> str:
    """Return the choices of both texts as one; if some are lists, those of the other text are split by slashes too."""
    between = _separator(key, one + other)
    return between.join(each.replace(_separator(key, each), between) for each in (one, other))


def parse(grid: Mapping[str, Any]) -> Space:
    """Return a space from values, or from text: ``1,3,5``, ``0.01..0.3``, or ``0.5,1/1`` where choices are lists."""
    if not isinstance(grid, Mapping):
        raise ConfigError(f"a grid is lists of values by option, such as {{'gamma': [1, 3]}}, not {grid!r}")
    kinds = tunable()
    space: Space = {}
    for key, given in grid.items():
        if key not in kinds:
            raise unknown("option to tune", key, kinds, "dmt list options")
        if isinstance(given, Range) or (isinstance(given, str) and ".." in given):
            space[key] = given if isinstance(given, Range) else _range(key, given, kinds[key])
            continue
        texts = given.split(_separator(key, given)) if isinstance(given, str) else option_values.plain(given)
        if not isinstance(texts, Iterable):
            raise ConfigError(f"a grid takes several values of {key}, such as [1, 3], not {given!r}")
        values = [option_values.parse(key, each.strip() if isinstance(each, str) else each, kinds[key])
                  for each in texts]  # fmt: skip
        if not values:
            raise ConfigError(f"a grid takes several values of {key}, such as [1, 3], not {given!r}")
        space[key] = tuple(dict.fromkeys(values))
    return space


def _range(key: str, text: str, kind: Any) -> Range:
    number = _number(kind)
    if number is None:
        raise ConfigError(f"{key} has no range; separate its choices by '/', e.g. --grid {key}=0.5,1/0.2,0.6,1")
    low, high = (option_values.parse(key, end.strip(), number) for end in text.split("..", 1))
    if not low < high:
        raise ConfigError(f"a range goes up, such as {key}=0.01..0.3, not {key}={text}")
    return Range(low, high)


def require_search(search: str, trials: int | None) -> None:
    """Refuse a search that does not exist or is not installed, and a number of trials that does not go with it."""
    if search not in SEARCHES:
        raise ConfigError(f"search takes {' or '.join(SEARCHES)}, not {search!r}")
    if search == "grid" and trials is not None:
        raise ConfigError("trials is for search=optuna; a grid tries all of its values")
    if search == "optuna":
        if not isinstance(trials, Integral) or isinstance(trials, bool) or trials < 1:
            raise ConfigError("search=optuna needs the number of trials, such as 20")
        sampler(seed=0)  # it may not be installed


def require_sense(space: Space, config: Config, method: str) -> None:
    """Refuse, before training, invalid values, options without effect, and comparing nets with and without mixup."""
    plain = catalogue.plan(method, config.recipe)
    for key, values in space.items():
        some = (values.low, values.high) if isinstance(values, Range) else values
        plans = [catalogue.plan(method, configuration.override(config, {key: value}).recipe) for value in some]
        if all(plan == plain for plan in plans):
            raise ConfigError(
                f"{key}={configuration.shown(some)} changes nothing that {method} trains; give other values"
            )
        mixed = {_mixes(plan) for plan in (plain, *plans)}
        if key in ("mixup", "mixup_round") and len(mixed) > 1 and not config.data.sizes.pixels:
            raise ConfigError(
                "nets trained with and without mixup cannot be compared by fine-grained accuracy, since mixup makes "
                f"them less confident; tune them separately, with --set {key}=none or a number, each into its own --out"
            )


def _mixes(plan: Plan) -> bool:
    """Return whether the final nets of a plan are trained with mixup."""
    return any(getattr(plan[name].objective, "mixup", None) is not None for name in plan.results)


def grid(space: Space) -> Iterator[Values]:
    """Yield every combination; the last option varies fastest."""
    for key, values in space.items():
        if isinstance(values, Range):
            raise ConfigError(f"a grid needs the values of {key}, not a range; or use --search optuna")
    for point in itertools.product(*space.values()):  # type: ignore[arg-type]
        yield dict(zip(space, point, strict=True))


def sampler(seed: int) -> tuple[Any, Any, Any]:
    """Return a study of Optuna, and its states for a trial that is complete and for one that failed."""
    try:
        tool = importlib.import_module("optuna")
    except ImportError:
        raise ConfigError(
            "--search optuna needs Optuna: pip install 'dmt-vision[tune]'; or use --search grid"
        ) from None
    tool.logging.set_verbosity(tool.logging.WARNING)
    drawing = tool.samplers.TPESampler(seed=seed, n_startup_trials=5)
    states = tool.trial.TrialState
    return tool.create_study(direction="maximize", sampler=drawing), states.COMPLETE, states.FAIL


def optuna(space: Space, trials: int, judge: Callable[[Values], float | None], seed: int) -> None:
    """Judge different points, each sampled in view of the scores of those before.

    Nothing is stored: sampler and judge are deterministic, so a repeated search takes the same path, and quickly
    passes the points that were judged before.

    Args:
        space: the search space.
        trials: number of different points.
        judge: returns a point's score; None if it could not be trained.
        seed: seed of the sampler.
    """
    study, complete, fail = sampler(seed)
    seen: set[str] = set()
    for _ in range(10 * trials):  # bounded, since a small space is soon exhausted
        if len(seen) == trials:
            return
        asked = study.ask()
        values = {key: _drawn(asked, key, choices) for key, choices in space.items()}
        score = judge(values)
        seen.add(name(values))
        study.tell(asked, score, state=fail if score is None else complete)


def _drawn(asked: Any, key: str, choices: tuple[Any, ...] | Range) -> Any:
    if not isinstance(choices, Range):
        return choices[asked.suggest_categorical(key, list(range(len(choices))))]
    if _number(tunable()[key]) is int:
        return asked.suggest_int(key, int(choices.low), int(choices.high), log=choices.log)
    return float(f"{asked.suggest_float(key, choices.low, choices.high, log=choices.log):.3g}")  # short to type


def name(values: Values) -> str:
    """Return a point as text, for people and for the name of its folder."""
    return " ".join(f"{key}={configuration.shown(value)}" for key, value in values.items())
