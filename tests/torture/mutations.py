"""Files of every kind, damaged: noticed or harmless, proven by what the verbs that read them then print and write."""

import random
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from dmt import files
from tests import damage
from tests.torture import mutation_bases, remains
from tests.torture.mutation_bases import Base, Verb
from tests.torture.parts import Failure, Outcome, Part, Place, some

LIMIT = 60
"""Seconds after which a verb hangs."""

Change = Callable[[bytes, random.Random], bytes]


def of_json(content: bytes, rng: random.Random) -> bytes:
    return damage.of_json(content.decode(), rng).encode()


@dataclass(frozen=True)
class Target:
    """Files that are damaged.

    Attributes:
        base: what they belong to.
        pattern: where they are in it.
        verbs: which read them.
        count: mutations, each read by one verb.
        ways: of damage, in turn.
        mine: whether users write them: a change is theirs then, and must only be one line or go through.
    """

    base: str
    pattern: str
    verbs: tuple[str, ...]
    count: int
    ways: tuple[Change, ...] = (damage.of_bytes,)
    mine: bool = False

    @property
    def title(self) -> str:
        return f"{self.base}: {self.pattern}"


JSON = (of_json, damage.of_bytes)
READING = ("report", "page", "predict", "export", "score", "fit")
TARGETS = (
    Target("digits", "run.json", READING, 240, JSON),
    Target("digits", "stages/*/journal.jsonl", READING, 300, JSON),
    Target("digits", "stages/*/state.json", ("predict", "export", "score", "fit"), 200, JSON),
    Target("digits", "stages/*/pseudo.json", ("report", "page", "fit"), 60, JSON),
    Target("digits", "pairs/*/scores.json", READING, 180, JSON),
    Target("digits", "splits/*.json", ("report", "page", "fit", "export"), 90, JSON),
    Target("digits", "sessions.jsonl", ("report", "page", "fit"), 60, JSON),
    Target("digits", "stages/*/evidence-*.npz", ("report", "page"), 240),
    Target("digits", "pairs/*/evidence-*.npz", ("report", "page"), 80),
    Target("digits", "stages/*/step-*/*.safetensors", ("predict", "export", "score", "fit"), 300),
    Target("stopped", "stages/*/state.json", ("fit",), 80, JSON),
    Target("stopped", "stages/*/journal.jsonl", ("fit",), 60, JSON),
    Target("stopped", "stages/*/pseudo.json", ("fit",), 40, JSON),
    Target("stopped", "stages/*/pseudo.safetensors", ("fit",), 40),
    Target("stopped", "stages/*/step-*/*.safetensors", ("fit",), 80),
    Target("stopped", "run.json", ("fit",), 60, JSON),
    Target("pixels", "stages/*/pseudo/*.png", ("fit",), 60),
    Target("pixels", "stages/*/pseudo.json", ("fit",), 40, JSON),
    Target("pixels", "stages/*/audit.json", ("fit",), 20, JSON),
    Target("masks", "stages/*/journal.jsonl", ("report", "page"), 80, JSON),
    Target("masks", "samples/*/*.png", ("page",), 40, mine=True),
    Target("masks", "stages/*/step-*/*.safetensors", ("predict", "export"), 80),
    Target("features", ".cache/features-*", ("fit",), 60, mine=False),
    Target("squares", ".cache/squares-*", ("fit",), 60),
    Target("pack", "part-*", ("unpack",), 120),
    Target("pack", "pack.json", ("unpack",), 80, JSON),
    Target("tune", "tune.json", ("tune",), 40, JSON),
    Target("tune", "trials/*/pairs/*/*", ("tune",), 40),
    Target("audit", "work/*/journal.jsonl", ("audit",), 16, JSON),
    Target("audit", "work/*/state.json", ("audit",), 24, JSON),
    Target("audit", "work/*/step-*/*.safetensors", ("audit",), 24),
    Target("audit", "audit.json", ("audit",), 20, JSON),
    Target("export", "net.safetensors", ("load",), 80),
    Target("export", "net.json", ("load",), 80, JSON),
    Target("starts", "net.pth", ("start",), 120, mine=True),
    Target("starts", "old.pth", ("start",), 120, mine=True),
    Target("starts", "net.safetensors", ("start",), 80, mine=True),
    Target("settings", "settings.toml", ("plan",), 80, mine=True),
    Target("photos", "labels.csv", ("check", "fit-photos"), 80, mine=True),
    Target("photos", "*.jpg", ("check", "fit-photos", "predict-photos"), 80, mine=True),
    Target("pairs", "labeled/masks/*.png", ("check", "fit-masks"), 60, mine=True),
    Target("pairs", "labeled/images/*.jpg", ("check", "fit-masks"), 40, mine=True),
)
BY_TITLE = {target.title: target for target in TARGETS}


class Mutations(Part):
    name = "mutations"
    about = (
        "One file gets a flipped bit, a hole of zeros, a missing end, or another value in its JSON; then a verb reads "
        "it. It ends with one line and exit code 2 or a note, or prints and writes what it did before (harmless). "
        "Where a change is the user's to make (images, masks, tables, settings, starts) or shows in a picture only, "
        "results may differ: those are judged by tracebacks and hangs alone, and counted apart."
    )
    seconds = 0.3

    def prepare(self, base: Path) -> None:
        for name in dict.fromkeys(target.base for target in TARGETS):
            mutation_bases.make(base / name, name)

    def cases(self, scale: float) -> Sequence[str]:
        found = []
        for target in TARGETS:
            found += [f"{target.title}#{number}" for number in range(some(target.count, scale))]
        random.Random(0).shuffle(found)  # an ETA is right only if dear ones are not all at the end
        return sorted(found, key=lambda case: target_of(case).base)

    def run(self, case: str, at: Place) -> Outcome:
        target = target_of(case)
        number = int(case.rpartition("#")[2])
        verb = target.verbs[number % len(target.verbs)]
        change = target.ways[number // len(target.verbs) % len(target.ways)]
        base = mutation_bases.opened(at.base / target.base, target.base)
        try:
            said = attack(base, target.pattern, change, base.verbs[verb], at.rng, mine=target.mine)
        finally:
            base.restore()
        return Outcome(f"{target.title}, {said}")


def target_of(case: str) -> Target:
    return BY_TITLE[case.rpartition("#")[0]]


def attack(base: Base, pattern: str, change: Change, verb: Verb, rng: random.Random, *, mine: bool = False) -> str:
    """Damage one file, let a verb read it, and say what came of that.

    Raises:
        Failure: nobody noticed, and something is different.
        AssertionError: the verb failed in more than one line, or by a mistake of ours.
    """
    known = base.outcome(verb)
    path = rng.choice(sorted(base.folder.glob(pattern)))
    before = path.read_bytes()
    after = change(before, rng)
    path.write_bytes(after)
    forget()
    with alarm():
        found = verb.outcome()
    if found.refused:
        return "refused"
    if mine:
        return "went through"
    changed = remains.differences(found.result, known.result)
    if verb.kept is not None and path.exists() and path.read_bytes() == after:  # it was not needed
        changed = [each for each in changed if str(path.relative_to(verb.kept)) not in each]
    if not changed:
        return "harmless" if found.notes == known.notes else "noted, and harmless"
    nets = [each for each in changed if ".safetensors " in each]
    if found.notes != known.notes and not (verb.kept and nets):
        return "noted"
    at = next((place for place, (one, two) in enumerate(zip(before, after, strict=False)) if one != two), len(after))
    raise Failure(f"{verb.name} is silently another one after damage to {path.name} at {at}: {'; '.join(changed[:4])}")


def forget() -> None:
    """What is said once for every file is said again."""
    files.warn_once.cache_clear()


class alarm:  # noqa: N801  used as a statement
    """Within, something that hangs is a failure."""

    def __enter__(self) -> None:
        signal.signal(signal.SIGALRM, self._ring)
        signal.alarm(LIMIT)

    def __exit__(self, *_: object) -> None:
        signal.alarm(0)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        raise Failure(f"it hangs: more than {LIMIT} s")
