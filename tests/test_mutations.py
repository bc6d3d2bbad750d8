"""Damaged files of a run: every verb that reads them succeeds, or says in one line what is wrong; nothing hangs."""

import contextlib
import json
import logging
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from PIL import Image

from dmt import files, json_checks
from dmt.cli import terminal_text
from dmt.errors import DmtError
from dmt.models import build, starts
from dmt.models.build import NetSpec
from dmt.training import evidence_files
from dmt.types import Normalization
from tests import command, damage
from tests.torture import mutation_bases, mutations, subjects
from tests.torture.mutation_bases import Base
from tests.torture.mutations import TARGETS, Target
from tests.torture.parts import Failure

SPEC = NetSpec("resnet8-4", 10, (1, 8, 8), Normalization((0.5,), (0.5,)), False)

Verbs = dict[str, list[object]]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    """A finished pair: it has every kind of file that a run on images has."""
    room = tmp_path_factory.mktemp("runs") / "digits"
    mutation_bases.make(room, "digits")
    return mutation_bases.opened(room, "digits")


@pytest.fixture
def trained(base: Base) -> Path:
    return base.folder


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    log = logging.getLogger("dmt")
    before = log.handlers, log.propagate
    yield
    log.handlers, log.propagate = before


@pytest.fixture
def verbs(trained: Path, tmp_path: Path) -> Verbs:
    """What reads a run, with all that it needs."""
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    return {
        "report": ["report", trained],
        "page": ["report", trained, "--out", tmp_path / "r.html"],
        "predict": ["predict", trained, tmp_path / "a.png", "--out", tmp_path / "p.csv"],
        "export": ["export", trained, "--to", "safetensors", "--out", tmp_path / "x.safetensors", "--force"],
        "score": ["score", trained],
        "fit": subjects.fit("digits", trained, subjects.DIGITS),
    }


@pytest.mark.parametrize("target", [each for each in TARGETS if each.base == "digits"], ids=lambda each: each.pattern)
def test_damage_is_noticed_or_harmless(target: Target, base: Base) -> None:
    """A few of the mutations of `make torture`: what is not refused or noted changes nothing."""
    for number in range(6):
        verb, change = target.verbs[number % len(target.verbs)], target.ways[number % len(target.ways)]
        rng = random.Random(f"{target.title} {number}")
        try:
            mutations.attack(base, target.pattern, change, base.verbs[verb], rng)
        finally:
            base.restore()


def test_a_silent_change_would_be_found(base: Base) -> None:
    """Somebody rewrote a score and its checksum: nothing but the comparison can tell."""

    def forged(content: bytes, rng: random.Random) -> bytes:
        found = json.loads(content)
        del found[files.SEAL]
        found["scores"]["test"]["accuracy"] += 1
        return json.dumps(found).encode()

    for verb, says in (("report", "printed is different"), ("page", "page.html is different")):
        try:
            with pytest.raises(Failure, match=f"{verb} is silently another one .*scores.json.*{says}"):
                mutations.attack(base, "pairs/A1*/scores.json", forged, base.verbs[verb], random.Random(0))
        finally:
            base.restore()


@pytest.mark.parametrize("verb", ["score", "export", "fit"])
def test_a_manifest_that_leads_elsewhere_is_refused(verb: str, trained: Path, verbs: Verbs) -> None:
    path, before = trained / "run.json", command.held(trained)
    manifest = files.read_json(path)
    manifest["jobs"][0]["stages"][0]["place"] = "../../elsewhere"
    path.write_text(json.dumps(manifest))
    try:
        assert "stages[0].place must be the name of a file, not a path" in command.refused(*verbs[verb])
        assert not (trained.parent / "elsewhere").exists()
    finally:
        path.write_bytes(before["run.json"])
    state = next(trained.glob("stages/A1-*/state.json"))
    content = state.read_bytes()
    state.write_text(json.dumps(files.read_json(state) | {"checkpoint": "/tmp"}))
    try:
        assert "checkpoint must be the name of a file" in command.refused(*verbs[verb])
    finally:
        state.write_bytes(content)


def test_damaged_evidence_is_as_good_as_none_and_that_is_said(trained: Path, verbs: Verbs) -> None:
    paths = list(trained.glob("*/*/evidence-test-*.npz"))
    before = {path: path.read_bytes() for path in paths}
    try:
        for path, content in before.items():
            path.write_bytes(content[:-10])
        code, printed, said = command.run(*verbs["report"])
        assert code == 0
        assert "Baseline" in printed
        lines = said.splitlines()
        assert lines
        assert len(lines) == len(set(lines))
        assert all(line.startswith("note: ") and "is damaged" in line and "left out" in line for line in lines)
    finally:
        for path, content in before.items():
            path.write_bytes(content)


def test_a_flipped_bit_of_evidence_does_not_escape(trained: Path, tmp_path: Path) -> None:
    path = next(trained.glob("stages/A1-*/evidence-validation-A-raw.npz"))
    content, rng = path.read_bytes(), random.Random(0)
    known = evidence_files.read(path.parent, "validation", "A", "raw")
    assert known is not None
    for bit in rng.sample(range(8 * len(content)), 150):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        (tmp_path / path.name).write_bytes(changed)
        found = evidence_files.read(tmp_path, "validation", "A", "raw")
        assert found is None or found.images == known.images


# --- parameter files ---


def write_start(path: Path, nested: bool = False) -> None:
    tensors = build.build(SPEC, seed=0).body.state_dict()
    torch.save({"state_dict": tensors} if nested else tensors, path, _use_new_zipfile_serialization=nested)


def load_start(path: Path) -> str:
    return starts.load(build.build(SPEC, seed=1), SPEC, starts.resolve(str(path), SPEC.name))


@pytest.mark.filterwarnings("ignore")  # torch warns of what it finds in damaged files
@pytest.mark.parametrize("nested", [False, True])
def test_damaged_starts_are_one_line_or_harmless(nested: bool, tmp_path: Path) -> None:
    path = tmp_path / "net.pth"
    write_start(path, nested)
    content = path.read_bytes()
    for seed in range(40):
        rng = random.Random(seed)
        path.write_bytes(damage.of_bytes(content[:4000], rng) + content[4000:])  # where the pickle is
        with contextlib.suppress(DmtError):
            load_start(path)


def test_a_start_that_holds_itself_comes_to_an_end(tmp_path: Path) -> None:
    endless: dict[object, object] = {7: torch.zeros(2), "sparse": torch.zeros(2, 2).to_sparse()}
    endless["state_dict"] = endless
    torch.save(endless, tmp_path / "net.pth")
    with pytest.raises(DmtError, match="holds no tensors by name"):
        load_start(tmp_path / "net.pth")


# --- the check itself ---


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"n": damage.HUGE}, "n must be a whole number of 0 or more"),
        ({"n": True}, "n must be a whole number of 0 or more"),
        ({"n": 1, "list": [0.5, None]}, "list[1] must be a number"),
        ({"n": 1, "list": [float("nan")]}, "list[0] must be a number"),
        ({"n": 1, "list": [damage.HUGE]}, "list[0] must be a number"),
        ({}, "n must be there"),
        ([], "its content must be an object"),
    ],
)
def test_a_mismatch_says_where_and_what(value: object, says: str) -> None:
    check = json_checks.record({"n": json_checks.count, "list?": json_checks.listed(json_checks.number)})
    json_checks.require({"n": 1, "list": [], "other": object()}, check)
    with pytest.raises(json_checks.Mismatch) as caught:
        json_checks.require(value, check)
    assert str(caught.value) == says


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "a\0", 3, None])
def test_names_lead_nowhere(name: object) -> None:
    with pytest.raises(json_checks.Mismatch, match="not a path"):
        json_checks.require(name, json_checks.name)


# --- the last resort ---


def test_what_nobody_foresaw_is_one_line_too() -> None:
    assert terminal_text.line(KeyError("a\nb")).startswith("unexpected KeyError: ")
    assert "\n" not in terminal_text.line(ValueError("a\nb\x1b[0m"))
    assert "\x1b" not in terminal_text.line(ValueError("\x1b[0m"))
    assert "--debug" in terminal_text.line(ZeroDivisionError())


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
     OSError(12, "Cannot allocate memory")],
)  # fmt: skip
def test_too_little_memory_of_the_host_is_said(error: Exception) -> None:
    assert terminal_text.line(error).startswith("this computer is out of memory; set batch")
