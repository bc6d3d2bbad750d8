"""A stage's state on disk. ``state.json`` names the valid checkpoint folder, and is written after that is complete."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from dmt import files, run_files, schemas
from dmt.errors import RunError
from dmt.models import build
from dmt.models.build import NetSpec
from dmt.training.trainer import Trainer

OPTIMIZER, MEMORY = "optimizer.safetensors", "memory.safetensors"
BEFORE_LINES = {"raw": "net.safetensors", "ema": "ema.safetensors"}
"""File names in release 0.1, which had one net per stage."""


class Checkpoint:
    """The checkpoint of one stage in safetensors files: nets by line and copy, parts, optimizers and memory.

    A finished stage keeps neither optimizers nor memory, since nothing continues from them. The state holds the
    digests of all files and is written after them, so the files that it names are complete, and files that changed
    since are refused.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def state(self) -> dict[str, Any] | None:
        """Return the content of ``state.json``, or None if the stage never reached a checkpoint."""
        path = self.folder / run_files.STATE
        return files.read_json(path, schemas.STATE) if path.exists() else None

    @property
    def done(self) -> bool:
        state = self.state()
        return state is not None and bool(state["done"])

    @property
    def vouched(self) -> bool:
        """Whether changes to the files can be detected; up to release 0.2, no digests were stored."""
        state = self.state()
        return state is None or "digests" in state

    def save(self, trainer: Trainer, **extra: Any) -> None:
        """Write a new checkpoint folder, then the state that names it, then remove the previous folder."""
        done = trainer.step >= trainer.steps
        place = self.folder / f"step-{trainer.step:07d}{'' if done else '-unfinished'}"
        tensors = {name: module.state_dict() for name, module in _modules(trainer)}
        if not done:
            tensors[OPTIMIZER] = trainer.optimizers.state()
            if trainer.memory:
                tensors[MEMORY] = trainer.memory
        digests = {name: files.write_tensors(place / name, each) for name, each in tensors.items()}
        state: dict[str, Any] = {"done": done, "step": trainer.step, "steps": trainer.steps}
        state |= {"device": trainer.device.type} | ({} if trainer.engine is None else {"engine": trainer.engine})
        files.write_json(self.folder / run_files.STATE, state | {"checkpoint": place.name, "digests": digests} | extra)
        self._drop_others(place)

    def _drop_others(self, place: Path) -> None:
        for old in self.folder.glob("step-*"):
            if old != place:
                shutil.rmtree(old)

    def restore(self, trainer: Trainer) -> dict[str, Any] | None:
        """Restore a trainer to where the stage stopped; return the state, or None if there is nothing to resume."""
        state = self.state()
        if state is None:
            return None
        self._require_in_plan(state, trainer.steps)
        for name, module in _modules(trainer):
            self._load(module, state, name)
        if not state["done"]:
            self._restore_rest(trainer, state)
        trainer.step = state["step"]
        self._drop_others(self.folder / state["checkpoint"])  # left behind if a process was killed while saving
        return state

    def _require_in_plan(self, state: dict[str, Any], steps: int) -> None:
        """Refuse a state that is impossible for a stage with this number of steps."""
        step = state["step"]
        possible = step == steps if state["done"] else step in range(steps)
        if not possible or not state["checkpoint"].startswith(f"step-{step:07d}"):
            raise RunError(
                f"{self.folder / run_files.STATE} is damaged: step {step} in {state['checkpoint']} is not possible in "
                f"a stage of {steps} steps; {self._remedy}"
            )

    def load_net(self, net: nn.Module, line: str, copy: str) -> None:
        """Load the parameters of a finished stage into a net.

        Args:
            net: a net of the same architecture.
            line: the line whose net to load.
            copy: "raw" for the trained net, "ema" for its EMA copy.
        """
        state = self.state()
        if state is None or not state["done"]:
            raise RunError(f"stage {self.folder.name} is not finished; repeat the fit command to finish it")
        path = self._net_path(state, line, copy)
        if path is None:
            raise RunError(
                f"{self.folder.name} has no parameters here (a lean pack leaves some out); unpack a full one"
            )
        self._load(net, state, path.name)

    def has_net(self, line: str, copy: str) -> bool:
        """Return whether the stage is finished and this net's file exists; a lean pack omits some."""
        state = self.state()
        return state is not None and bool(state["done"]) and self._net_path(state, line, copy) is not None

    def _net_path(self, state: dict[str, Any], line: str, copy: str) -> Path | None:
        place = self.folder / state["checkpoint"]
        return next(
            (path for name in (net_file(line, copy), BEFORE_LINES[copy]) if (path := place / name).exists()), None
        )

    @property
    def _remedy(self) -> str:
        return f"restore it from a copy, or delete {self.folder} and repeat the command to train that stage again"

    def _read(self, state: dict[str, Any], name: str) -> dict[str, Tensor]:
        """Read the tensors of a file after verifying its digest, and refuse values that are not finite."""
        path = self.folder / state["checkpoint"] / name
        if "digests" in state:
            files.require_digest(path, state["digests"].get(name), self._remedy)
        tensors = files.read_tensors(path)
        files.require_finite(path, tensors, self._remedy)
        return tensors

    def _load(self, net: nn.Module, state: dict[str, Any], name: str) -> None:
        tensors = self._read(state, name)
        try:
            net.load_state_dict(tensors)
        except RuntimeError as error:
            path, reason = self.folder / state["checkpoint"] / name, str(error).splitlines()[0]
            raise RunError(f"{path} does not fit the net ({reason}); was it made with another --net?") from error

    def _restore_rest(self, trainer: Trainer, state: dict[str, Any]) -> None:
        """Restore the state of the optimizers and the objective's memory."""
        try:
            trainer.optimizers.load(self._read(state, OPTIMIZER))
            if trainer.memory:
                saved = self._read(state, MEMORY)
                for name, tensor in trainer.memory.items():
                    tensor.copy_(saved[name])
        except (KeyError, RuntimeError) as error:
            place = self.folder / state["checkpoint"]
            raise RunError(f"{place} does not hold what this stage remembers; {self._remedy}") from error


def net_file(line: str, copy: str) -> str:
    """Return the file name of a net within its stage's checkpoint."""
    return f"{line}-{copy}.safetensors"


def finished_net(folder: Path, spec: NetSpec, line: str, copy: str) -> nn.Module:
    """Return a net of a finished stage, "raw" or "ema", in eval mode on the host."""
    net = build.build(spec, seed=0)
    Checkpoint(folder).load_net(net, line, copy)
    return net.eval()


def _modules(trainer: Trainer) -> Iterator[tuple[str, nn.Module]]:
    """Yield every net, EMA copy and part, with its file name."""
    for line, net in trainer.nets.items():
        yield net_file(line, "raw"), net
    for line, slow in trainer.slow.items():
        yield net_file(line, "ema"), slow.net
    for name, part in trainer.parts.items():
        yield f"part-{name}.safetensors", part
