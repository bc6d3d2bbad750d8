"""Names of the files of a run, for all who write or read them.

```
runs/a/
  run.json                configuration, jobs (method, seed) and their stages
  sessions.jsonl          versions, hardware, git state and command of every session that worked on it
  splits/seed-1.json      ids of labeled, unlabeled and validation images
  skipped.txt             of your images: unlabeled files that could not be read
  samples/seed-1/         of pixels: eight unlabeled images, for the report
  stages/A1-<identity>/   state.json, step-…/{A-raw,A-ema,optimizer}.safetensors, journal.jsonl, pseudo.json with
                          pseudo.safetensors or, of pixels, pseudo/, audit.json and samples/;
                          evidence-<split>-<line>-<copy>.npz: what a net said of every image with truth
  pairs/<nets>/           of a pair's two nets together: scores.json, and evidence as in a stage
  .cache/                 decoded images and labels of pixels, if they are too many for memory; claims/ on stages
```
"""

from pathlib import Path

# of a run
MANIFEST = "run.json"
SESSIONS = "sessions.jsonl"
SKIPPED = "skipped.txt"
STAGES = "stages"
PAIRS = "pairs"
SPLITS = "splits"
LOCK = ".lock"
CACHE = ".cache"
"""Can be made again."""

# of a stage
STATE = "state.json"
JOURNAL = "journal.jsonl"
PSEUDO = "pseudo.json"
"""Written last: where it is, the pseudo labels are complete."""
PSEUDO_IMAGES = "pseudo.safetensors"
PSEUDO_PIXELS = "pseudo"
PSEUDO_UNFINISHED = "pseudo-unfinished"
AUDIT = "audit.json"
"""What the audit counted while pixels were labeled."""

# of two nets together
PAIR_SCORES = "scores.json"
"""Written last: where it is, their evidence is complete."""

SAMPLES = "samples"
"""Pictures: of a run below this by seed, of a stage in it."""


def only_begun(run: Path) -> str | None:
    """A line about a folder in which a fit has prepared itself and not trained yet; None of any other."""
    if not (run / LOCK).is_file() or any(not path.name.startswith(".") for path in run.iterdir()):
        return None
    return f"the fit in {run} has not reached its first net; if it was interrupted, repeat the dmt fit command"


def claim(run: Path, place: str) -> Path:
    """The file whose lock a process holds while it works on a stage."""
    return run / CACHE / "claims" / f"{place}.lock"


def split(run: Path, seed: int) -> Path:
    """Which images are labeled, unlabeled and for validation."""
    return run / SPLITS / f"seed-{seed}.json"


def samples(run: Path, seed: int) -> Path:
    """The folder of the images that every stage's samples show."""
    return run / SAMPLES / f"seed-{seed}"
