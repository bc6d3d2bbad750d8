"""Self-supervised pretraining: one stage per line, from which all fresh nets of that line start."""

from dataclasses import replace

from dmt.core.schedule import Descent, Schedule
from dmt.errors import ConfigError
from dmt.methods.plan import Line, Plan, Stage
from dmt.methods.recipe import Recipe
from dmt.objectives.self_supervised import Rotation, SelfSupervised, SimSiam

KINDS: dict[str, SelfSupervised] = {"rotation": Rotation(), "simsiam": SimSiam()}


def begun(plan: Plan, recipe: Recipe) -> Plan:
    """Return the plan with a pretraining stage before all stages that would start with fresh nets, if asked for."""
    if recipe.pretrain == "none":
        return plan
    fresh = [stage for stage in plan.stages if stage.start is None]
    if any(len(stage.lines) > 1 for stage in fresh):
        raise ConfigError(
            "pretrain must be none for a method that trains two nets in one stage: it starts one at a time"
        )
    lines = dict.fromkeys(line for stage in fresh for line in stage.lines)
    starts = {line: _start(line, recipe) for line in lines}
    stages = (
        replace(stage, start=starts[stage.lines[0]].name) if stage.start is None else stage for stage in plan.stages
    )
    return Plan((*starts.values(), *stages), plan.results)


def _start(line: Line, recipe: Recipe) -> Stage:
    descent = Descent(
        recipe.rate, recipe.optimizer, recipe.momentum, recipe.weight_decay, decay=recipe.decay, encoder=recipe.encoder
    )
    schedule = Schedule(recipe.epochs_pretrain, descent, recipe.rate_ramp, labeled=1, unlabeled=recipe.batch, ema=None)
    return Stage(f"{line}-start", (line,), 0, KINDS[recipe.pretrain], schedule, before=True)
