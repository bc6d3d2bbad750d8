"""Names of the files in a run folder.

```
runs/a/
  run.json                configuration, jobs (method, seed) and their stages
  sessions.jsonl          versions, hardware, git state and command of every session that worked on it
  splits/seed-1.json      ids of labeled, unlabeled and validation images
  skipped.txt             with a user's own images: unlabeled files that could not be read
  samples/seed-1/         in segmentation: eight unlabeled images, for the report
  stages/A1-<identity>/   state.json, step-…/{A-raw,A-ema,optimizer}.safetensors, journal.jsonl, pseudo.json with
                          pseudo.safetensors or, in segmentation, pseudo/, audit.json and samples/;
                          evidence-<split>-<line>-<copy>.npz: a net's predictions for every image with ground truth
  pairs/<nets>/           of the ensemble of a pair's two nets: scores.json, and evidence as in a stage
  .cache/                 decoded images and masks that are too many for memory; claims/: lock files of stages
```
"""

from pathlib import Path

# in a run folder
MANIFEST = "run.json"
SESSIONS = "sessions.jsonl"
SKIPPED = "skipped.txt"
STAGES = "stages"
PAIRS = "pairs"
SPLITS = "splits"
LOCK = ".lock"
CACHE = ".cache"
"""Folder of files that can be recreated at any time."""

# in a stage folder
STATE = "state.json"
JOURNAL = "journal.jsonl"
PSEUDO = "pseudo.json"
"""Written last: if it exists, the pseudo labels are complete."""
PSEUDO_IMAGES = "pseudo.safetensors"
PSEUDO_PIXELS = "pseudo"
PSEUDO_UNFINISHED = "pseudo-unfinished"
AUDIT = "audit.json"
"""Counts of the audit from when the pixels were labeled."""

# in the folder of a pair's ensemble
PAIR_SCORES = "scores.json"
"""Written last: if it exists, the evidence of the ensemble is complete."""

SAMPLES = "samples"
"""Folder of sample pictures: in a run folder, one subfolder per seed; in a stage folder, the pictures themselves."""


def only_begun(run: Path) -> str | None:
    """Return a message if the folder holds a fit that has not trained anything yet, or None if it does not."""
    if not (run / LOCK).is_file() or any(not path.name.startswith(".") for path in run.iterdir()):
        return None
    return f"the fit in {run} has not reached its first net; if it was interrupted, repeat the dmt fit command"


def claim(run: Path, place: str) -> Path:
    """Return the lock file that a process holds while it works on a stage.

    Args:
        run: the run folder.
        place: name of the stage's folder.
    """
    return run / CACHE / "claims" / f"{place}.lock"


def split(run: Path, seed: int) -> Path:
    """Return the file that lists the labeled, unlabeled and validation images of a seed."""
    return run / SPLITS / f"seed-{seed}.json"


def samples(run: Path, seed: int) -> Path:
    """Return the folder of the images that the samples of every stage show."""
    return run / SAMPLES / f"seed-{seed}"
