"""What all trials of a tuning have in common, and the folder that holds the trials.

```
runs/tune/
  tune.json            what is tuned, and every trial with its score
  trials/default/      run folders as dmt fit makes them; equal stages are linked, not trained again
  trials/gamma=3/
```
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dmt import config as configuration
from dmt import files, presets, run_files, schemas
from dmt.config import Config
from dmt.errors import RunError
from dmt.fitting import folder_policy
from dmt.methods import catalogue
from dmt.runs.folder import Folder, plain, require_same_options
from dmt.tuning.search_space import Values

INDEX = "tune.json"


@dataclass(frozen=True)
class Frame:
    """What all trials have in common."""

    data: str | Path
    out: Path
    method: str
    seeds: tuple[int, ...]
    settings: Values
    start: dict[str, str]
    data_folder: str
    device: str
    anyway: bool = False

    def head(self, config: Config) -> dict[str, Any]:
        """Return what a tuning is bound to: only trials for which it is the same can be compared."""
        own = folder_policy.own_folder(self.data)
        data = str(self.data) if own is None else str(own.resolve())
        options = plain(configuration.flat(config))
        return {"data": data, "method": self.method, "start": self.start, "config": options}

    @contextmanager
    def claimed(self, config: Config) -> Iterator[None]:
        """Lock the folder for this process, and refuse one that was tuned with another configuration."""
        index, head = self.out / INDEX, self.head(config)
        self._require_ours(head)
        folder = Folder(self.out)
        with folder.locked():
            self._require_ours(head)  # another process may have begun here in between
            folder.sweep()
            if not index.is_file():
                files.write_json(index, head | {"trials": []})
            yield

    def _require_ours(self, head: dict[str, Any]) -> None:
        """Refuse a folder that holds something other than a tuning, or a tuning of something else."""
        if not (self.out / INDEX).is_file():
            try:
                Folder(self.out).require_ours()
            except RunError:
                if not (self.out / INDEX).is_file():  # otherwise another process has just begun here
                    raise
        if (self.out / INDEX).is_file():
            _require_same(self.out, files.read_json(self.out / INDEX, schemas.TUNING), head)
            return
        if (self.out / run_files.MANIFEST).is_file():
            raise RunError(f"{self.out} is the folder of a run; give another --out")

    def place(self, name: str) -> Path:
        """Return the run folder of a trial: its name without spaces, shortened if it is long."""
        short = name.replace(" ", "+")
        if len(short) > 80:
            short = f"{short[:60]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
        return self.out / "trials" / short

    def command(self) -> tuple[str, ...]:
        """Return the words of a ``dmt fit`` command that trains a trial, without its settings."""
        own = folder_policy.own_folder(self.data) is not None
        data = f"./{self.data}" if own and str(self.data) in presets.PRESETS else str(self.data)
        words = ["dmt", "fit", data, "--out", f"{self.out}-fit"]
        words += [] if self.method == catalogue.default().name else ["--method", self.method]
        words += ["--no-folds"] if own else []  # cross-validation would choose other settings than the trials had
        words += ["--seeds", ",".join(map(str, self.seeds))] if self.seeds != (1,) else []
        words += ["--anyway"] if self.anyway else []
        words += [word for line, start in self.start.items() for word in ("--start", f"{line}={start}")]
        words += ["--device", self.device] if self.device != "auto" else []
        return (*words, *([] if self.data_folder == "data" else ["--data", self.data_folder]))


def _require_same(out: Path, known: Any, head: dict[str, Any]) -> None:
    for key in ("data", "method", "start"):
        if known[key] != head[key]:
            raise RunError(f"{out} was tuned with {key} {known[key]}, not {head[key]}; give another --out")
    preset = head["data"] if head["data"] in presets.PRESETS else head["config"]["dataset"]  # of a user's own images
    require_same_options(f"{out} was tuned", presets.get(preset).config, known["config"], head["config"])
