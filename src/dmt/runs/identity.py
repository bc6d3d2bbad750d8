"""Identity by content: a stage is its options, its parents and its data. Equal identity means trained already."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dmt import config as configuration
from dmt import options
from dmt.config import Config
from dmt.core import streams
from dmt.data.audits import Audit
from dmt.methods.plan import Plan, Stage
from dmt.tasks.base import Task
from dmt.types import STRONG, TRAIN, WEAK

FORMAT = 3
"""Part of every identity: raise it when the same options would train differently."""


BEFORE = "before"
"""The entry of a stage's outline that says that it is a start for others."""

VIEWS = {"augment": TRAIN, "augment_weak": WEAK, "augment_strong": STRONG}
"""Options of the data that make one kind of view."""


@dataclass(frozen=True)
class Work:
    """One stage to train, with everything it depends on by identity."""

    stage: Stage
    seed: int
    identity: str
    steps: int

    @property
    def place(self) -> str:
        """Its folder's name below ``stages/``."""
        return f"{self.stage.name}-{self.identity[:12]}"

    @property
    def cost(self) -> float:
        """Work of one step, for forecasts: training passes over images."""
        return self.stage.cost().passes

    @property
    def stream_seed(self) -> int:
        """The seed of everything random in the stage: methods that share a stage's name share its start and order."""
        return streams.seed_of(self.seed, self.stage.name)

    def outline(self) -> dict[str, Any]:
        """The stage as the folder's manifest describes it."""
        stage = self.stage
        return {
            "name": stage.name,
            "lines": list(stage.lines),
            "round": stage.round,
            "place": self.place,
            "identity": self.identity,
            "steps": self.steps,
            "start": stage.start,
            "labels": None if stage.labels is None else dataclasses.asdict(stage.labels),
            "objective": _options(stage),
            "schedule": dataclasses.asdict(stage.schedule),
        } | ({BEFORE: True} if stage.before else {})


def identify(
    plan: Plan, config: Config, opened: tuple[Task, Audit[Any]], seed: int, starts: Mapping[str, str]
) -> list[Work]:
    """The plan's stages with their identities: equal options, parents and data give an equal identity.

    Args:
        starts: line -> digest of the parameters that its fresh nets start from.
    """
    task, audit = opened
    sizes = task.sizes(len(audit.everything))
    identities: dict[str, str] = {}
    works = []
    for stage in plan.stages:
        everything = stage.truth == "everything"
        unlabeled = bool(stage.objective.views) or stage.schedule.batchnorm == "reestimate"
        content = {
            "format": FORMAT,
            "stage": options.content(stage) | {"objective": _options(stage)},
            "parents": [identities[name] for name in stage.parents],
            "labeled": (audit.everything if everything else task.labeled).fingerprint,
            "unlabeled": task.unlabeled.fingerprint if unlabeled else None,
            "data": _data(config, stage),
            "classes": task.classes,
            "nets": {line: options.content(task.net_spec(config.net_of(line))) for line in stage.lines},
            "starts": {line: starts[line] for line in stage.lines} if stage.start is None else None,
            "seed": seed,
        }
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        identities[stage.name] = digest
        works.append(Work(stage, seed, digest, stage.steps(sizes)))
    return works


def _data(config: Config, stage: Stage) -> dict[str, Any]:
    """The options of the data; how views are made counts only for a stage that sees them."""
    views = {view.rstrip("0123456789") for view in (*stage.objective.views, stage.objective.labeled_view)}
    told = options.content(config.data)
    told.pop(configuration.PLACES, None)
    return {key: value for key, value in told.items() if key not in VIEWS or VIEWS[key] in views}


def _options(stage: Stage) -> dict[str, Any]:
    return {"kind": type(stage.objective).__name__} | options.content(stage.objective)
