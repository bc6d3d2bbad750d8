"""Folders whose files are damaged, and the verbs that read them."""

import functools
import os
import re
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import dmt
from dmt import files
from dmt.data import buffers
from dmt.errors import DmtError
from dmt.models import build, starts, torchvision_pair
from dmt.models.build import NetSpec
from dmt.runs import stopping
from dmt.runs.progress import Silent
from dmt.types import Normalization
from dmt.use import exporting
from tests import command
from tests.data.folders import photo_layout
from tests.torture import remains, subjects

SPEC = NetSpec("resnet8-4", 10, (1, 8, 8), Normalization((0.5,), (0.5,)), False)
ENCODER = "tf_efficientnet_lite0"
FEATURES = f"net=frozen:{ENCODER} size=32"
LONG = f"{subjects.OWN} epochs=2 epochs_round=3"
"""With steps enough to stop between two of them."""
TOOK = re.compile(r"in \d+\.\d s|\d+:\d\d(:\d\d)?")


@dataclass(frozen=True)
class Seen:
    """What a verb did.

    Attributes:
        refused: whether it ended in one line.
        notes: what it said of something that is not as it should be.
        result: what it printed and wrote.
    """

    refused: bool
    notes: tuple[str, ...]
    result: dict[str, Any]


@dataclass(frozen=True)
class Verb:
    """Something that reads a folder.

    Attributes:
        act: returns exit code, standard output and standard error.
        written: places where its results are; they are removed before.
        kept: a folder that it may change, and that belongs to the result.
    """

    name: str
    act: Callable[[], tuple[int, str, str]]
    written: tuple[Path, ...] = ()
    kept: Path | None = None

    def outcome(self) -> Seen:
        for path in self.written:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        code, printed, said = self.act()
        result: dict[str, Any] = {"printed": TOOK.sub("", printed), "code": code}
        for path in (*self.written, *(() if self.kept is None else (self.kept,))):
            if code != 2 and path.is_dir():
                result |= {f"{path.name}/{name}": content for name, content in remains.of(path).items()}
            elif code != 2 and path.is_file():
                result[path.name] = remains.content(path, path.parent)
        notes = tuple(line for line in said.splitlines() if line.startswith("note: "))
        return Seen(code == 2, notes, result)


@dataclass
class Base:
    """A folder that is damaged and mended again."""

    folder: Path
    verbs: dict[str, Verb]
    _whole: dict[str, bytes] = field(default_factory=dict)
    _known: dict[str, Seen] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._whole = command.held(self.folder)

    def outcome(self, verb: Verb) -> Seen:
        """Of a verb, if nothing is damaged."""
        if verb.name not in self._known:
            self._known[verb.name] = verb.outcome()
            assert not self._known[verb.name].refused, self._known[verb.name]
            self.restore()
        return self._known[verb.name]

    def restore(self) -> None:
        """As it was."""
        found = command.held(self.folder)
        for name in found.keys() - self._whole.keys():
            (self.folder / name).unlink()
        for name, content in self._whole.items():
            if found.get(name) != content:
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / name).write_bytes(content)


class _StopAt(Silent):
    """Stops a run in a stage of it, as Ctrl-C would."""

    def __init__(self, stage: int) -> None:
        self._at, self._stages = stage, 0

    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        self._stages += 1

    def step(self, done: int) -> None:
        if self._stages == self._at:
            signal.raise_signal(signal.SIGINT)


# --- how they are made: room is a folder for what belongs to a base, which is "it" in there ---


def make(room: Path, name: str) -> None:
    """In a process of its own: it may train."""
    room.mkdir(parents=True)
    BASES[name].make(room)


def opened(room: Path, name: str) -> Base:
    """One of these, of this process alone: a copy, made once."""
    return _opened(room, name, os.getpid())


@functools.cache
def _opened(room: Path, name: str, process: int) -> Base:
    mine = room.with_name(f"{name}-{process}")
    shutil.copytree(room, mine)
    return Base(mine / BASES[name].folder, {verb.name: verb for verb in BASES[name].verbs(mine)})


@dataclass(frozen=True)
class Kind:
    """How a base is made, and what reads it; ``folder`` is the part of its room that is damaged."""

    make: Callable[[Path], object]
    verbs: Callable[[Path], list[Verb]]
    folder: str = "it"


def _command(name: str, words: list[object], *written: Path, kept: Path | None = None, check: bool = False) -> Verb:
    codes = (0, 1, 2) if check else (0, 2)
    return Verb(name, lambda: command.run(*words, codes=codes), written, kept)


def _train(words: list[object]) -> None:
    code, _, said = command.run(*words)
    assert code == 0, said


def _start(room: Path) -> str:
    """What nets start from: random parameters, or the file of the room."""
    return str(room / "start.pth") if (room / "start.pth").exists() else "random"


def _stop(room: Path, *lines: str, stage: int = 2) -> None:
    """A run on the room's images, or on digits if it has none, that was stopped in its first round."""
    pairs = dict(pair.split("=", 1) for line in lines for pair in line.split())
    try:
        dmt.fit(
            _data(room),
            out=room / "it",
            settings=pairs,
            start=_start(room),
            device="cpu",
            watcher=_StopAt(stage),
            folds=False,
        )
    except stopping.Stopped:
        return
    raise AssertionError("it was not stopped")


def _data(room: Path) -> str | Path:
    return room / "input" if (room / "input").exists() else "digits"


def _run_verbs(room: Path, refit: list[object], image: Path) -> list[Verb]:
    """Everything that reads a finished run."""
    run, page, csv, net = room / "it", room / "page.html", room / "pred.csv", room / "net"
    return [
        _command("report", ["report", run]),
        _command("page", ["report", run, "--out", page], page),
        _command("predict", ["predict", run, image, "--out", csv], csv),
        _command("export", ["export", run, "--to", "safetensors", "--out", net / "net.safetensors"], net),
        _command("score", ["score", run, "--device", "cpu"]),
        _command("fit", refit, kept=run),
    ]


def _digits(room: Path) -> list[Verb]:
    return _run_verbs(room, subjects.fit("digits", room / "it", subjects.DIGITS), room / "image.png")


def _make_digits(room: Path) -> None:
    photo_layout.scene("disk", 1, (8, 8))[0].convert("L").save(room / "image.png")
    _train(subjects.fit("digits", room / "it", subjects.DIGITS))


def _make_masks(room: Path) -> None:
    photo_layout.write_masks(room / "input", labeled=8, unlabeled=4, test=2)
    _train(subjects.fit(room / "input", room / "it", subjects.OWN, subjects.MASKS))


def _masks(room: Path) -> list[Verb]:
    run, page, out, net = room / "it", room / "page.html", room / "pred", room / "net"
    return [
        _command("report", ["report", run]),
        _command("page", ["report", run, "--out", page], page),
        _command("predict", ["predict", run, room / "input/unlabeled", "--out", out], out),
        _command("export", ["export", run, "--to", "safetensors", "--out", net / "net.safetensors"], net),
    ]


def _resumed(*lines: str) -> Callable[[Path], list[Verb]]:
    """The command that resumes a stopped run."""

    def verbs(room: Path) -> list[Verb]:
        words = [*subjects.fit(_data(room), room / "it", *lines), "--start", _start(room)]
        return [_command("fit", words, kept=room / "it")]

    return verbs


def _make_stopped(write: Callable[[Path], object], *lines: str) -> Callable[[Path], None]:
    def make(room: Path) -> None:
        write(room / "input")
        _stop(room, *lines)

    return make


def _encoded(folder: Path) -> None:
    """Photos, and beside them the parameters of an encoder."""
    torchvision_pair.ensure()
    import timm

    _photos(folder)
    torch.save(timm.create_model(ENCODER, pretrained=False).state_dict(), folder.with_name("start.pth"))


def _in_files(kind: "Kind") -> "Kind":
    """The same where decoded images lie in files, however few they are."""

    def cramped(work: Callable[[Path], Any]) -> Callable[[Path], Any]:
        def worked(room: Path) -> Any:
            buffers.MEMORY = 0
            return work(room)

        return worked

    return Kind(cramped(kind.make), cramped(kind.verbs))


def _photos(folder: Path) -> None:
    photo_layout.write_classes(folder, labeled=5, unlabeled=6, test=2)


def _pairs(folder: Path) -> None:
    photo_layout.write_masks(folder, labeled=8, unlabeled=4, test=2)


def _make_pack(room: Path) -> None:
    _make_digits(room)
    (room / "it").rename(room / "run")
    _train(["pack", room / "run", "--out", room / "it", "--part-size", "20KB"])


def _make_audit(room: Path) -> None:
    _make_digits(room)
    (room / "it").rename(room / "run")
    _train(_audit(room))


def _audit(room: Path) -> list[object]:
    return subjects.audit(room / "run", room / "it")


def _tune(room: Path) -> list[object]:
    return subjects.BY_NAME["tune"].words(room, room / "it")


def _make_export(room: Path) -> None:
    _make_digits(room)
    (room / "it").rename(room / "run")
    _train(["export", room / "run", "--to", "safetensors", "--out", room / "it/net.safetensors"])


def _loaded(path: Path) -> str:
    """What an exported net says of an image."""
    shipped = exporting.load(path)
    with torch.no_grad():
        logits = shipped.net(torch.linspace(0, 1, 64).view(1, 1, 8, 8))
    return f"{shipped.classes} {shipped.palette} {shipped.name} {shipped.spec} {logits.tolist()}"


def _make_starts(room: Path) -> None:
    tensors = build.build(SPEC, seed=0).body.state_dict()
    (room / "it").mkdir()
    torch.save({"state_dict": tensors}, room / "it/net.pth")
    torch.save(tensors, room / "it/old.pth", _use_new_zipfile_serialization=False)
    files.write_tensors(room / "it/net.safetensors", tensors)


def _started(folder: Path) -> str:
    """All starts of a folder, one after the other."""
    for path in sorted(folder.iterdir()):
        starts.load(build.build(SPEC, seed=1), SPEC, starts.resolve(str(path), SPEC.name))
    return ""


def _called(name: str, work: Callable[[], str]) -> Verb:
    """A function of the library as a verb."""

    def act() -> tuple[int, str, str]:
        try:
            return 0, work(), ""
        except DmtError as error:
            return 2, "", str(error)

    return Verb(name, act)


def _make_settings(room: Path) -> None:
    (room / "it").mkdir()
    text = (
        'net = "resnet8-4"\nepochs = 2\nfractions = [0.5, 1.0]\ngamma = 4.0\n\n[online]\nepochs = 3\nthreshold = 0.9\n'
    )
    (room / "it/settings.toml").write_text(text)


def _make_photos(room: Path) -> None:
    shapes = [photo_layout.SHAPES[number % 3] for number in range(20)]
    photo_layout.write_images(room / "it", shapes)
    rows = [(f"{number:04d}.jpg", shapes[number]) for number in range(15)]
    photo_layout.write_table(room / "it", [("file", "label"), *rows])
    _train(_fit_photos(room, room / "run"))


def _fit_photos(room: Path, out: Path) -> list[object]:
    return subjects.fit(room / "it", out, subjects.OWN, subjects.PHOTOS)


def _own(room: Path) -> list[Verb]:
    out, csv = room / "out", room / "pred.csv"
    return [
        _command("check", ["check", room / "it", "--no-time", "--device", "cpu"], check=True),
        _command("fit-photos", _fit_photos(room, out), out),
        _command("fit-masks", subjects.fit(room / "it", out, subjects.OWN, subjects.MASKS), out),
        _command("predict-photos", ["predict", room / "run", room / "it", "--out", csv, "--device", "cpu"], csv),
    ]


BASES = {
    "digits": Kind(_make_digits, _digits),
    "stopped": Kind(lambda room: _stop(room, subjects.DIGITS, stage=3), _resumed(subjects.DIGITS)),
    "masks": Kind(_make_masks, _masks),
    "pixels": Kind(_make_stopped(_pairs, LONG, subjects.MASKS), _resumed(LONG, subjects.MASKS)),
    "features": Kind(_make_stopped(_encoded, LONG, FEATURES), _resumed(LONG, FEATURES)),
    "squares": _in_files(Kind(_make_stopped(_photos, LONG, subjects.PHOTOS), _resumed(LONG, subjects.PHOTOS))),
    "pack": Kind(
        _make_pack, lambda room: [_command("unpack", ["unpack", room / "it", "--out", room / "un"], room / "un")]
    ),
    "tune": Kind(lambda room: _train(_tune(room)), lambda room: [_command("tune", _tune(room), kept=room / "it")]),
    "audit": Kind(_make_audit, lambda room: [_command("audit", _audit(room), kept=room / "it")]),
    "export": Kind(_make_export, lambda room: [_called("load", lambda: _loaded(room / "it/net"))]),
    "starts": Kind(_make_starts, lambda room: [_called("start", lambda: _started(room / "it"))]),
    "settings": Kind(
        _make_settings,
        lambda room: [_command("plan", ["plan", "digits", "--no-time", "--config", room / "it/settings.toml"])],
    ),
    "photos": Kind(_make_photos, _own),
    "pairs": Kind(lambda room: _pairs(room / "it"), _own),
}  # fmt: skip
