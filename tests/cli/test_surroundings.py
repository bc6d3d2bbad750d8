"""What surrounds the command: signals, terminals, encodings, the umask, full disks, links and pipes among its files."""

import errno
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import NoReturn

import pytest
from PIL import Image

from dmt import config as configuration
from dmt import files
from dmt.errors import ConfigError, RunError
from dmt.reporting import report_file
from dmt.runs import stopping
from dmt.runs.folder import Folder
from dmt.use import packing
from tests import command
from tests.fixtures import make_run

FIT = ["fit", "digits", "--method", "baseline", "--device", "cpu", "--set", "net=resnet8-4"]
BAD = os.fsdecode(b"b\xffd")
"""A name that is not UTF-8."""


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """A run that was stopped in its second stage."""
    return Path(shutil.copytree(make_run.PLACE, tmp_path / "run"))


# --- signals and terminals ---


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork beside threads; the child does nothing but exec
def test_a_closed_terminal_is_a_clean_stop(tmp_path: Path) -> None:
    """A real one: it sends SIGHUP, and whatever is printed afterwards fails."""
    line = [sys.executable, "-m", "dmt.cli", *FIT, "--set", "epochs=5000", "--out", str(tmp_path / "run")]
    child, terminal = pty.fork()
    if child == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where the tests run under nohup
        os.execv(sys.executable, line)
    shown = b""
    while b"Baseline A0" not in shown:
        shown += os.read(terminal, 65536)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 128 + signal.SIGHUP
    (state,) = tmp_path.glob("run/stages/*/state.json")
    assert json.loads(state.read_text())["step"] > 0


def test_a_hangup_that_is_ignored_stays_so() -> None:
    """As nohup has it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stop = stopping.Stop()
        with stop.on_signals():
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_watcher_notices_that_its_run_died(stopped: Path, tmp_path: Path) -> None:
    said: list[str] = []
    with Folder(stopped).locked():
        watching = threading.Thread(target=report_file.watch, args=([stopped], tmp_path / "r.html", said.append, 0.05))
        watching.start()
        watching.join(0.5)
        assert watching.is_alive()
    watching.join(20)
    assert not watching.is_alive()
    assert "no process is training" in said[-1]
    assert "repeat the fit command" in said[-1]
    with Folder(stopped).locked():  # and looking at it left nothing behind
        assert Folder(stopped).in_use
    assert not Folder(stopped).in_use


# --- encodings and names ---


def test_a_terminal_without_unicode_costs_no_result(stopped: Path) -> None:
    line = [sys.executable, "-m", "dmt.cli", "report", str(stopped)]
    done = subprocess.run(line, capture_output=True, check=False, env=os.environ | {"PYTHONIOENCODING": "latin-1"})
    assert done.returncode == 0, done.stderr
    assert b"accuracy" in done.stdout


def test_a_folder_whose_name_is_not_utf8(tmp_path: Path) -> None:
    place = tmp_path / BAD
    place.mkdir()
    assert command.run(*FIT, "--set", "epochs=1", "--out", place / "run")[0] == 0
    assert BAD in json.loads((place / "run/sessions.jsonl").read_text())["command"][-1]  # as it was
    assert command.run("report", place / "run", "--out", place / "r.html")[0] == 0
    assert command.run("score", place / "run")[0] == 0
    Image.new("L", (8, 8)).save(place / "a.png")
    assert "not UTF-8 text; rename" in command.refused("predict", place / "run", place / "a.png", "--out", place / "p")
    assert command.run("pack", place / "run")[0] == 0
    assert command.run("unpack", place / "run-packed", "--out", place / "back")[0] == 0
    assert command.held(place / "back").items() <= command.held(place / "run").items()


# --- numbers that nobody means ---


def test_more_seeds_than_anyone_means() -> None:
    for text in ("1-99999999999", "1-600,700-1300"):
        with pytest.raises(ConfigError, match="more than 1,000 seeds"):
            configuration.seeds(text)
    assert len(configuration.seeds("1-1000")) == 1000
    with pytest.raises(ConfigError, match="counts down; write 3-5"):
        configuration.seeds("5-3,1")
    assert configuration.seeds("1-3,2,5") == [1, 2, 3, 5]  # each once


# --- the disk ---


def test_a_full_disk_is_named_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    line = command.refused(*FIT, "--set", "epochs=1", "--out", tmp_path / "run")
    assert str(tmp_path / "run" / "run.json") in line
    assert "disk is full" in line
    assert "free some space, then repeat the command" in line
    assert not list(tmp_path.rglob(f"{files.TEMPORARY}*"))


@pytest.mark.parametrize("reason", [errno.EACCES, errno.EROFS])
def test_a_folder_that_may_not_be_written_to_is_named_with_a_remedy(
    reason: int, stopped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, mkdir = os.open, Path.mkdir

    def forbidden(path: object) -> NoReturn:
        raise OSError(reason, os.strerror(reason), str(path))

    def opened(path: str, flags: int, *more: int) -> int:
        return forbidden(path) if flags & os.O_CREAT and "closed" in str(path) else really(path, flags, *more)

    def made(path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        return forbidden(path) if "closed" in str(path) and not path.exists() else mkdir(path, mode, parents, exist_ok)

    (tmp_path / "closed").mkdir()
    image = tmp_path / "a.png"
    Image.new("L", (8, 8)).save(image)
    monkeypatch.setattr("os.open", opened)
    monkeypatch.setattr(Path, "mkdir", made)
    net = ("--to", "safetensors", "--method", "baseline")
    for words, out in (
        (("predict", stopped, image, "-m", "baseline"), "closed/p.csv"),
        (("predict", stopped, image, "-m", "baseline"), "closed/new/p.csv"),
        (("export", stopped, *net), "closed/r.safetensors"),
        (("pack", stopped), "closed/packed"),
        (("audit", stopped, "--method", "baseline"), "closed/audit"),
        (("report", stopped), "closed/r.html"),
    ):
        line = command.refused(*words, "--out", tmp_path / out)
        assert f"error: {tmp_path / 'closed'}" in line
        assert files.TEMPORARY not in line
        assert f"cannot be written ({os.strerror(reason)}); allow it, or give another --out" in line


def test_a_file_that_may_not_be_read_is_not_said_to_be_written(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(path: Path, **_: object) -> NoReturn:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "read_text", forbidden)
    monkeypatch.setattr("os.access", lambda path, *_, **__: not str(path).endswith("run.json"))
    assert "run.json cannot be read (Permission denied); allow reading it" in command.refused("score", stopped)


def test_the_umask_is_honored(stopped: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        assert command.run(*FIT, "--set", "epochs=1", "--out", tmp_path / "new")[0] == 0
        packing.unpack(packing.pack(stopped, tmp_path / "packed", 10**9).paths[0].parent, tmp_path / "back")
    finally:
        os.umask(before)
    for folder in ("new", "packed", "back"):
        for path in (tmp_path / folder, *(tmp_path / folder).rglob("*")):
            assert path.stat().st_mode & 0o077 == 0, path


# --- what is no file ---


def test_pipes_are_not_waited_for(stopped: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in command.refused(*FIT, "--config", tmp_path / "pipe", "--out", tmp_path / "new")
    packing.pack(stopped, tmp_path / "packed", 20_000)
    (tmp_path / "packed" / "part-001").unlink()
    os.mkfifo(tmp_path / "packed" / "part-001")
    assert "part-001 is not a regular file" in command.refused("unpack", tmp_path / "packed", "--out", tmp_path / "b")
    for name in ("run.json", "stages/A0-d6f71ffab5bd/journal.jsonl"):
        content = (stopped / name).read_bytes()
        (stopped / name).unlink()
        os.mkfifo(stopped / name)
        assert f"{name} is not a regular file" in command.refused("score", stopped)
        assert "is not a regular file" in command.refused("pack", stopped, "--out", tmp_path / "c")
        (stopped / name).unlink()
        (stopped / name).write_bytes(content)


def test_links_in_a_run_are_not_followed(stopped: Path, tmp_path: Path) -> None:
    """Neither for reading nor for writing: they could lead anywhere."""
    stage = next(stopped.glob("stages/A1-*"))
    shutil.move(stage, tmp_path / "elsewhere")
    stage.symlink_to(tmp_path / "elsewhere")
    before = command.held(tmp_path / "elsewhere")
    settings = [word for key, value in make_run.SETTINGS.items() for word in ("--set", f"{key}={value}")]
    for words in (
        ["fit", "digits", "--method", "dmt", "--out", stopped, "--device", "cpu", *settings],
        ["report", stopped],
        ["pack", stopped, "--out", tmp_path / "packed"],
    ):
        assert f"{stage} is a link" in command.refused(*words)
    assert command.held(tmp_path / "elsewhere") == before
    assert not (tmp_path / "packed").exists()


# --- packing ---


def test_a_pack_lists_what_is_in_it(stopped: Path, tmp_path: Path) -> None:
    _, printed, _ = command.run("pack", stopped, "--out", tmp_path / "packed")
    inside = json.loads((tmp_path / "packed" / "pack.json").read_text())["files"]
    assert sorted(inside) == sorted(name for name in command.held(stopped) if not name.startswith("."))
    assert f"all {len(inside)} files of the run" in printed
    assert "checked after writing" in printed


def test_a_pack_is_read_back_before_it_counts(stopped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = files.write

    def unsound(path: Path, content: bytes) -> None:
        write(path, content[:-1] if path.name == "part-002" else content)

    monkeypatch.setattr(files, "write", unsound)
    assert "part-002 is damaged" in command.refused("pack", stopped, "--part-size", "20KB", "--out", tmp_path / "p")


def test_a_run_that_may_not_be_written_to_is_packed(
    stopped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    before = command.held(stopped)
    packing.pack(stopped, tmp_path / "packed", 10**9)
    assert command.held(stopped) == before  # without a lock
    packing.unpack(tmp_path / "packed", tmp_path / "back")
    assert command.held(tmp_path / "back") == before

    def changing(*_: object) -> bytes:
        (stopped / "sessions.jsonl").write_text("")
        return b""

    monkeypatch.setattr(packing, "_archive", changing)
    with pytest.raises(RunError, match="changed while it was packed"):
        packing.pack(stopped, tmp_path / "again", 10**9)


# --- strangers ---


def test_names_in_a_run_do_not_steer_the_terminal(stopped: Path) -> None:
    path = stopped / "run.json"
    path.write_text(json.dumps(files.read_json(path) | {"warnings": ["\x1b]0;owned\x07"]}))
    code, printed, said = command.run("report", stopped)
    assert code == 0
    assert "owned" in printed
    assert "\x1b" not in printed + said
