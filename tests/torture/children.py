"""Commands in processes of their own, forked from one that has imported everything and trained nothing.

A fork costs milliseconds where a new interpreter takes seconds to import torch, so that hundreds can be killed.
"""

import builtins
import io
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tests import command
from tests.torture.parts import Failure

LIMIT = 120.0
"""Seconds after which a process hangs."""

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(frozen=True)
class Ended:
    """A process that is over.

    Attributes:
        code: its exit code; minus the signal that ended it.
        said: standard output and error.
    """

    code: int
    said: str


def start(work: Callable[[], int], log: Path) -> int:
    """Begin to work in a fork; returns its process id."""
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    return process if process else _work(work, log)


def _work(work: Callable[[], int], log: Path) -> NoReturn:
    code = 70
    try:
        signal.setitimer(signal.ITIMER_REAL, 0)
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, 1)
        os.dup2(file, 2)
        code = work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def wait(process: int, log: Path, limit: float = LIMIT) -> Ended:
    """How it ended.

    Raises:
        Failure: it hangs.
    """
    end = time.monotonic() + limit
    while True:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return Ended(os.waitstatus_to_exitcode(status), log.read_text(errors="replace") if log.exists() else "")
        if time.monotonic() > end:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            raise Failure(f"a process hangs: it takes more than {limit:.0f} s")
        time.sleep(0.005)


def call(work: Callable[[], int], log: Path) -> Ended:
    """Work in a fork, to its end."""
    return wait(start(work, log), log)


def dmt(words: list[object], prepare: Callable[[], object] = lambda: None) -> Callable[[], int]:
    """The command as work; failures must be one line."""

    def work() -> int:
        prepare()
        code, out, err = command.run(*words)
        print(out)
        print(err)
        return code

    return work


def succeeded(ended: Ended) -> Ended:
    if ended.code != 0:
        raise Failure(f"exit code {ended.code}: {ended.said[-2000:]}")
    return ended


class Operations:
    """Counts what this process does to files below a folder, and acts before one operation.

    What is flushed to the disk outlives a killed process anyway, so nothing is waited for.

    Attributes:
        done: operations so far.
    """

    def __init__(self, root: Path, at: int = 0, act: Callable[[str, Any], object] | None = None) -> None:
        self.done = 0
        self._root, self._at, self._act = f"{root}{os.sep}", at, act

    def install(self) -> None:
        """For the rest of this process."""
        for name in ("replace", "rename", "link", "mkdir", "rmdir", "unlink", "remove", "truncate"):
            setattr(os, name, self._around(name, getattr(os, name)))
        os.open = self._around("open", os.open, lambda args: bool(args[1] & WRITING))
        opening = self._around("open", io.open, _writes)
        io.open = builtins.open = opening
        os.fsync = self._fsync  # type: ignore[assignment]

    def _fsync(self, file: Any) -> None:
        self._count("fsync", file)

    def _around(self, name: str, real: Any, counts: Callable[[Any], bool] = lambda args: True) -> Any:
        def counted(*args: Any, **options: Any) -> Any:
            mode = (*args, *options.values())
            if self._ours(args, options) and counts(mode):
                self._count(name, args[0])
            return real(*args, **options)

        return counted

    def _ours(self, args: Any, options: Any) -> bool:
        if not args or isinstance(args[0], int):
            return False
        path = os.fsdecode(args[0])
        return f"{path}{os.sep}".startswith(self._root) or options.get("dir_fd") is not None

    def _count(self, name: str, subject: Any) -> None:
        self.done += 1
        if self._act is not None and self.done >= self._at:
            self._act(name, subject)


def _writes(args: Any) -> bool:
    return len(args) > 1 and isinstance(args[1], str) and any(letter in args[1] for letter in "wax+")


def die(name: str, subject: Any) -> None:
    """As if the power had failed."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_after(seconds: float) -> Callable[[str, Any], None]:
    """The same a moment later, wherever the process is by then."""
    begun: list[threading.Timer] = []

    def begin(name: str, subject: Any) -> None:
        if not begun:
            begun.append(threading.Timer(seconds, die, (name, subject)))
            begun[0].daemon = True
            begun[0].start()

    return begin


def die_torn(name: str, subject: Any) -> None:
    """The same; what was just written did not all reach the disk."""
    if name == "fsync":
        file = subject if isinstance(subject, int) else subject.fileno()
        content = Path(f"/proc/self/fd/{file}").read_bytes()
        last = content.rfind(b"\n", 0, max(0, len(content) - 1)) + 1
        os.ftruncate(file, (last + len(content)) // 2)
    die(name, subject)
