"""Stages trained at once by real processes: the same result, whoever is killed on the way."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import dmt
from dmt import config as configuration
from dmt import presets
from dmt.core.execution import Execution
from dmt.errors import ConfigError, RunError
from dmt.fitting.conditions import Conditions
from dmt.fitting.runner import Runner
from dmt.fitting.session import Session
from dmt.fitting.stage_orders import Site
from dmt.fitting.stages_at_once import StageAgenda
from dmt.models import registered
from dmt.runs import folder as run_folder
from dmt.runs import starting
from dmt.runs.folder import Folder
from dmt.runs.progress import Silent
from dmt.runs.stopping import Stop, Stopped
from dmt.workers import crew
from dmt.workers.pool import Inbox
from dmt.workers.process import Process
from tests import command
from tests.conftest import TINY
from tests.torture import remains

PAIR = TINY | {"shape": "pair", "epochs": 40, "epochs_round": 2, "fractions": "1"}
"""A few tenths of a second for each stage."""


def fit(out: Path, **options: Any) -> None:
    usual: dict[str, Any] = {"settings": PAIR, "watcher": Silent()}
    dmt.fit("digits", out=out, device="cpu", checkpoint_every=0.1, **usual | options)


class Killing(Silent):
    """Kills the worker that takes a step of a stage, and asks the run to stop in another one."""

    def __init__(self, kill_in: str, stop_in: str) -> None:
        self.workers: dict[int, Process] = {}
        self.notes: list[str] = []
        self.worker, self.kill, self._stop = 0, True, True
        self._kill_in, self._stop_in, self._title = kill_in, stop_in, ""

    def start(self, number: int, inbox: Inbox) -> Process:
        self.workers[number] = Process(number, inbox)
        return self.workers[number]

    def turn(self, worker: int) -> None:
        self.worker = worker

    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        self._title = title

    def step(self, done: int) -> None:
        if self.kill and f" {self._kill_in}," in self._title:
            self.kill = False
            self.workers[self.worker].process.kill()
        if self._stop and f" {self._stop_in}," in self._title:
            self._stop = False
            os.kill(os.getpid(), signal.SIGINT)

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.mark.slow
def test_two_at_once_one_killed_end_as_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit(tmp_path / "one")
    watcher = Killing(kill_in="A0", stop_in="B1")
    monkeypatch.setattr(crew, "Process", watcher.start)
    with pytest.raises(Stopped, match="SIGINT"):
        fit(tmp_path / "two", jobs=2, watcher=watcher)
    assert any(each.startswith("note: the process that worked on") for each in watcher.notes)
    assert all(worker.process.poll() is not None for worker in watcher.workers.values())
    fit(tmp_path / "two")  # whatever is left, by one
    remains.require_same(remains.of(tmp_path / "two"), remains.of(tmp_path / "one"))


def session(out: Path, **settings: object) -> Session:
    config = configuration.override(presets.get("digits").config, TINY | settings)
    here = Conditions(Path("data"), Execution(torch.device("cpu")), 30.0, Stop(), Silent())
    runner = Runner(config, Folder(out), starting.find({}, config, "random", None), here)
    runner.open([1])
    head = {"data": "digits", "config": {}, "images": "", "starts": starting.RANDOM, "threads": 1}
    with runner.folder.claimed(head):
        return Session(runner, ("baseline", "dmt"), (1,))


def agenda_of(session: Session) -> StageAgenda:
    options, here = (session.methods, session.seeds, session.keep), ("cpu", None, 30.0)
    site = Site(session.runner.config, session.runner.starts, Path(), Path(), *options, 1, *here, steps=0)
    return StageAgenda(session, session.begin(), site)


def handed_out(session: Session) -> list[set[str]]:
    """Names of stages in waves: all that is ready is begun and done."""
    agenda, waves = agenda_of(session), []
    while ready := agenda.ready():
        waves.append({order.title.rpartition(",")[0].split()[-1] for order in ready})
        for order in ready:
            agenda.begin(order)
        assert not agenda.ready()
        for order in ready:
            agenda.done(order, frozenset())
    return waves


def test_both_nets_of_a_round_are_ready_at_once(tmp_path: Path) -> None:
    assert handed_out(session(tmp_path, shape="pair")) == [{"A0", "B0"}, {"A1", "B1"}, {"A2", "B2"}]


def test_a_chain_waits_for_each_net(tmp_path: Path) -> None:
    assert handed_out(session(tmp_path)) == [{"A0"}, {"A1"}, {"A2"}]


def test_what_was_put_back_is_ready_again(tmp_path: Path) -> None:
    agenda = agenda_of(session(tmp_path))
    (first,) = agenda.ready()
    agenda.begin(first)
    agenda.put_back(first)
    assert [order.title for order in agenda.ready()] == [first.title]


def test_a_stage_is_claimed_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_folder, "STAGE_WAIT", 0.1)
    folder = Folder(tmp_path)
    refused = pytest.raises(RunError, match=r"A0-1 in .* is in use by another process")
    with folder.stage_claimed("A0-1"), folder.stage_claimed("B0-1"), refused, folder.stage_claimed("A0-1"):
        pass
    with folder.stage_claimed("A0-1"):
        pass


def test_refusals_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*words: str) -> str:
        return command.refused("fit", "digits", "--out", tmp_path / "run", *words)

    monkeypatch.setitem(sys.modules, "ray", None)
    assert "workers on Ray need the package ray: pip install 'dmt-vision[ray]'" in refused("--on", "ray")
    assert "on takes ray or ray:ADDRESS, not 'spark'" in refused("--on", "spark")
    assert "jobs takes a whole number of 1 or more, not 0" in refused("--jobs", "0")


def test_a_net_of_this_process_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registered.OWN, "mine", lambda classes, channels: torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(64 * channels, classes)
    ))  # fmt: skip
    with pytest.raises(ConfigError, match="net 'mine' is known to this process only; train it with jobs=1"):
        fit(tmp_path, settings=PAIR | {"net": "mine"}, jobs=2)


@pytest.mark.slow
@pytest.mark.timeout(900)  # a cluster takes minutes to start where much else runs
def test_a_ray_cluster_one_of_whose_workers_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    from dmt.workers import ray_cluster

    actors: list[Any] = []

    class Kept(ray_cluster.Actor):
        def __init__(self, number: int, inbox: Inbox, *, needs: dict[str, float]) -> None:
            super().__init__(number, inbox, needs=needs)
            actors.append(self._actor)

    class KillingFirst(Killing):
        def step(self, done: int) -> None:
            if self.kill:
                self.kill = False
                ray.kill(actors[self.worker])

    monkeypatch.setattr(ray_cluster, "Actor", Kept)
    fit(tmp_path / "one")
    watcher, handler = KillingFirst("", ""), signal.getsignal(signal.SIGTERM)
    with ray_cluster.joined("local"):
        fit(tmp_path / "ray", on="ray", jobs=2, watcher=watcher)
        assert signal.getsignal(signal.SIGTERM) == handler  # not Ray's
    assert len(actors) == 3
    assert any(each.startswith("note: the process that worked on") for each in watcher.notes)
    remains.require_same(remains.of(tmp_path / "ray"), remains.of(tmp_path / "one"))
