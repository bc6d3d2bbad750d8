"""Identity of stages: a hash of options, parents and data. Stages of equal identity are trained only once."""

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
"""Version number in every identity; increase it when the same options start to train differently."""


BEFORE = "before"
"""Key in the outline of a stage that only provides a start for others (`Stage.before`)."""

VIEWS = {"augment": TRAIN, "augment_weak": WEAK, "augment_strong": STRONG}
"""Data options that affect only one kind of view."""


@dataclass(frozen=True)
class Work:
    """A stage to train with one seed, and the identity that covers everything it depends on."""

    stage: Stage
    seed: int
    identity: str
    steps: int

    @property
    def place(self) -> str:
        """Name of the stage's folder below ``stages/``."""
        return f"{self.stage.name}-{self.identity[:12]}"

    @property
    def cost(self) -> float:
        """Cost of one step for forecasts, in training passes over images."""
        return self.stage.cost().passes

    @property
    def stream_seed(self) -> int:
        """Seed of all random numbers of the stage. Methods with a stage of the same name share its start and order."""
        return streams.seed_of(self.seed, self.stage.name)

    def outline(self) -> dict[str, Any]:
        """Return the description of the stage for the run's manifest."""
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
    """Return the plan's stages with their identities: equal options, parents and data give equal identities.

    Args:
        plan: the stages in training order.
        config: data options and nets.
        opened: the data, and its audit, which holds the labels that only the Oracle sees.
        seed: the job's seed.
        starts: digest of the parameters that fresh nets start from, by line.
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
    """Return the data options that affect a stage; augmentations count only if the stage uses their views."""
    views = {view.rstrip("0123456789") for view in (*stage.objective.views, stage.objective.labeled_view)}
    told = options.content(config.data)
    told.pop(configuration.PLACES, None)
    return {key: value for key, value in told.items() if key not in VIEWS or VIEWS[key] in views}


def _options(stage: Stage) -> dict[str, Any]:
    revision = {"revision": stage.objective.revision} if stage.objective.revision else {}
    return {"kind": type(stage.objective).__name__} | revision | options.content(stage.objective)
