"""What is printed on a terminal of 80 columns, and in a file."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import dmt
from dmt.cli import terminal_text
from dmt.results import tables
from dmt.runs.progress import Silent
from tests.conftest import TINY

fcntl, pty, termios = map(pytest.importorskip, ("fcntl", "pty", "termios"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Finished, of two seeds, so that every score has a spread; with enough options to fill a line."""
    out = tmp_path_factory.mktemp("runs") / "run"
    dmt.fit("digits", out=out, method=["baseline", "dmt"], seed=[1, 2], settings=TINY, watcher=Silent())
    return out


def on_terminal(columns: int, *words: object) -> str:
    """What the command shows on a terminal of that width."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    surroundings = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-m", "dmt.cli", *map(str, words)],
        stdin=follower, stdout=follower, stderr=follower, env=surroundings | {"TERM": "xterm"},
    )  # fmt: skip
    os.close(follower)
    parts = []
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # as Linux says that nobody writes any more
            break
        if not part:
            break
        parts.append(part)
    os.close(leader)
    assert process.wait() == 0
    return b"".join(parts).decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [80, 120])
def test_a_report_fits_the_terminal_it_is_shown_on(run: Path, columns: int) -> None:
    text = on_terminal(columns, "report", run)
    assert max(map(len, text.split("\n"))) <= columns
    for word in ("DMT", "final", "gain", "Baseline with the same labels", "weight"):
        assert word in " ".join(text.split())


def test_scores_fit_too(run: Path) -> None:
    text = on_terminal(60, "score", run, "--method", "dmt", "--seed", 1)
    lines = [line for line in text.split("\n") if "\x1b" not in line]
    assert "fine-grained" in text
    assert max(map(len, lines)) <= 60


def test_notes_wrap_between_words(run: Path, tmp_path: Path) -> None:
    text = on_terminal(40, "report", run, tmp_path)
    said = text[: text.index("test accuracy")]
    assert all(len(line) <= 40 or " " not in line for line in said.split("\n"))
    assert "not a run folder; skipped" in " ".join(said.split())


def test_a_file_gets_wide_tables(run: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "dmt.cli", "report", str(run)], capture_output=True, check=True,
                          text=True, env=dict(os.environ) | {"COLUMNS": "60"})  # fmt: skip
    assert "│" in done.stdout
    assert max(map(len, done.stdout.split("\n"))) > 100
    assert done.stdout == f"{dmt.Report.read([run])}\n"


def test_markup_and_emoji_codes_in_names_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    name = "[bold]x :smile: [/]"
    table = tables.table(name, name)
    table.add_row(name)
    terminal_text.show(name)
    terminal_text.show_table(table, None)
    printed = capsys.readouterr().out
    assert printed.count(name) == 4
    assert tables.text(table).count(name) == 3
