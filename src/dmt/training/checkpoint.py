"""A stage's state on disk. ``state.json`` names the folder that is valid; it changes only when that is complete."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from dmt import files, run_files
from dmt.errors import RunError
from dmt.models import build
from dmt.models.build import NetSpec
from dmt.training.trainer import Trainer


class Checkpoint:
    """Parameters, slow copy and optimizer of one stage, in separate safetensors files.

    A finished stage keeps no optimizer: nothing goes on from its momentum.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def state(self) -> dict[str, Any] | None:
        """What is known of the stage; None if it never reached a checkpoint."""
        path = self.folder / run_files.STATE
        return files.read_json(path) if path.exists() else None

    @property
    def done(self) -> bool:
        state = self.state()
        return state is not None and bool(state["done"])

    def save(self, trainer: Trainer, **extra: Any) -> None:
        """Write a new folder, then point to it, then drop the one before."""
        done = trainer.step >= trainer.steps
        place = self.folder / f"step-{trainer.step:07d}{'' if done else '-unfinished'}"
        for kind, number, net in _nets(trainer):
            files.write_tensors(place / _name(kind, number), net.state_dict())
        if not done:
            files.write_tensors(place / "optimizer.safetensors", trainer.momentum())
        state = {"done": done, "step": trainer.step, "steps": trainer.steps, "device": trainer.device.type}
        files.write_json(self.folder / run_files.STATE, state | {"checkpoint": place.name} | extra)
        for old in self.folder.glob("step-*"):
            if old != place:
                shutil.rmtree(old)

    def restore(self, trainer: Trainer) -> dict[str, Any] | None:
        """Bring a trainer to where the stage stopped; returns the state, or None if there is nothing to go on from."""
        state = self.state()
        if state is None:
            return None
        place = self.folder / state["checkpoint"]
        for kind, number, net in _nets(trainer):
            _load(net, place / _name(kind, number))
        if not state["done"]:
            trainer.set_momentum(files.read_tensors(place / "optimizer.safetensors"))
        trainer.step = state["step"]
        return state

    def load_net(self, net: nn.Module, copy: str, number: int = 0) -> None:
        """Fill a net with the parameters of a finished stage: its raw ones or the slow copy's."""
        state = self.state()
        if state is None or not state["done"]:
            raise RunError(f"stage {self.folder.name} is not finished; repeat the fit command to finish it")
        path = self.folder / state["checkpoint"] / _name("net" if copy == "raw" else "ema", number)
        if not path.exists():
            raise RunError(
                f"{self.folder.name} has no parameters here (a lean pack leaves some out); unpack a full one"
            )
        _load(net, path)


def finished_net(folder: Path, spec: NetSpec, copy: str) -> nn.Module:
    """The net of a finished stage, raw or ema, in eval mode on the host."""
    net = build.build(spec, seed=0)
    Checkpoint(folder).load_net(net, copy)
    return net.eval()


def _nets(trainer: Trainer) -> Iterator[tuple[str, int, nn.Module]]:
    """Every net and every slow copy, with its kind and number."""
    for number, net in enumerate(trainer.nets):
        yield "net", number, net
    for number, slow in enumerate(trainer.slow):
        yield "ema", number, slow.net


def _name(kind: str, number: int) -> str:
    return f"{kind}.safetensors" if number == 0 else f"{kind}-{number + 1}.safetensors"


def _load(net: nn.Module, path: Path) -> None:
    tensors: dict[str, Tensor] = files.read_tensors(path)
    try:
        net.load_state_dict(tensors)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise RunError(f"{path} does not fit the net ({reason}); was it made with another --net?") from error
