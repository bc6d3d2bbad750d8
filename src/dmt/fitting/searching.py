"""Cross-validation on a user's labels, before a run is bound to its options."""

import time
from dataclasses import replace

from dmt import config as configuration
from dmt.fitting.conditions import Conditions
from dmt.fitting.request import Prepared, Request
from dmt.fitting.runner import Runner
from dmt.methods import catalogue
from dmt.own import fine_tuning
from dmt.own.search import Search
from dmt.runs import environment
from dmt.runs.starting import Starts
from dmt.tasks import pool

SHARE = 0.25
"""Share of the remaining budget that cross-validation may take, so that repeated sessions get to train."""


def settle(asked: Request, prepared: Prepared, starts: Starts, runner: Runner, conditions: Conditions) -> Prepared:
    """Return the prepared run with the options that cross-validation prefers, if it is new and on a user's folder.

    Options set by the user stay. The result is recorded with the run, and the search is not repeated.
    """
    folder, execution = runner.folder, conditions.execution
    if prepared.images is None or folder.begun or not asked.folds or not prepared.methods:
        return prepared
    stop = conditions.stop

    def tell(done: int, of: int) -> None:
        conditions.watcher.busy("steps of cross-validation", done, of)
        if stop():
            raise stop.error()

    threads = environment.fitting_threads(runner.threads_for)
    with stop.on_signals(), folder.reserved(), environment.threads(threads), execution.active():
        task = runner.seen(asked.seeds[0])
        began, patience = time.monotonic(), SHARE * stop.left
        fitting = execution.for_net(prepared.config.net, task.pixels)
        tuning = fine_tuning.of(prepared.config, runner.images(asked.seeds[0]), asked.settings, execution.on_cuda)
        # a schedule that fits a budget is valid only for the method that it was made for
        alone = prepared.config.recipe.online_stage == "none"  # else the user already combines DMT with another method
        open_to_others = asked.methods is None and asked.budget is None and alone
        others = [each.name for each in catalogue.alternatives("images")] if open_to_others else []
        search = Search(
            prepared.config, task, starts, fitting, prepared.methods, asked.settings, tell, patience, tuning, others
        )
        found = search.run()
        around = pool.look(task)
    seconds = time.monotonic() - began
    for line in found.lines:
        conditions.watcher.note(line)
    if around is not None:
        prepared = replace(prepared, pool=around.record())
        if around.told:
            conditions.watcher.note(f"warning: {around}; if they show something else, take them out")
    if not found.record:
        return prepared
    config = configuration.override(found.config or prepared.config, found.settings)
    runner.adopt(config)
    record = {**found.record, "lines": list(found.lines), "seconds": round(seconds, 1)}
    usual = catalogue.default().name
    methods = tuple(found.method or name if name == usual else name for name in prepared.methods)
    return replace(prepared, config=config, methods=methods, search=record)
