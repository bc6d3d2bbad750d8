"""The processes other than the first of several: they help to label and to train, and write only their own cache."""

from dataclasses import dataclass, replace

from torch import nn

from dmt.core.execution import Execution
from dmt.core.processes import Processes
from dmt.fitting import orders
from dmt.fitting.conditions import Conditions
from dmt.fitting.orders import Label, Open, Train
from dmt.fitting.runner import Runner
from dmt.pseudo import labeler
from dmt.pseudo.labeler import Teacher
from dmt.runs import environment
from dmt.runs.folder import Folder
from dmt.runs.progress import Silent
from dmt.runs.stopping import Stop
from dmt.training import loop


def help_out(processes: Processes, execution: Execution) -> None:
    """Carry out orders of the first process until it dismisses this one."""
    stop = Stop()
    with stop.on_signals():  # a first signal makes all processes stop after a step
        order = processes.said()
        if not isinstance(order, Open):
            return
        conditions = Conditions(order.data_folder, execution, 0.0, stop, Silent(), processes=processes)
        runner = Runner(order.config, Folder(order.run), order.starts, conditions)
        runner.open(order.seeds)
        helper = Helper(runner, conditions, processes)
        with environment.threads(order.threads), execution.active():
            while (order := processes.said()) is not None:
                helper.carry_out(order)


@dataclass(frozen=True)
class Helper:
    """A helping process with its data."""

    runner: Runner
    conditions: Conditions
    processes: Processes

    def carry_out(self, order: Label | Train) -> None:
        """Carry out one order of the first process."""
        if isinstance(order, Label):
            self._label(order)
        else:
            self._train(order)

    def _label(self, order: Label) -> None:
        wanted, task = order.work.stage.labels, self.runner.seen(order.work.seed)
        assert wanted is not None
        count = len(wanted.teachers) * len(wanted.copies)
        nets = tuple(self.runner.nets.empty(wanted.line, task) for _ in range(count))
        orders.align_nets(self.processes, nets)
        device = self.conditions.execution.device
        labeler.help_label(Teacher(nets, task, device, wanted.seen, self.processes, wanted.whole))

    def _train(self, order: Train) -> None:
        self.runner.use(replace(order.execution, device=self.conditions.execution.device))
        opened = self.runner.opened(order.work.seed)
        pseudo = orders.handed_out(self.processes, opened[0], self.runner.cache)
        nets: dict[str, nn.Module] = {line: self.runner.nets.empty(line, opened[0]) for line in order.work.stage.lines}
        trainer = self.runner.nets.trainer(order.work, order.steps, opened, pseudo, nets)
        try:
            loop.follow(trainer, self.conditions.stops)
        finally:
            trainer.close()
