"""A short part of `make torture`, by its own command: the record is written, and nothing fails."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.torture.parts import Outcome, Part, Place
from tests.torture.schedule import conduct

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="it looks into /proc")
def test_a_few_cases_go_well(tmp_path: Path) -> None:
    out = tmp_path / "torture.json"
    words = [
        "--out",
        out,
        "--seed",
        "3",
        "--minutes",
        "0.1",
        "--only",
        "folders,two-writers",
        "--jobs",
        "1",
        "--work",
        tmp_path,
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tests.torture", *map(str, words)],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(out.read_text())
    assert found["failures"] == []
    assert all(part["cases"] and sum(part["counts"].values()) for part in found["parts"].values())
    assert "**0 failures.**" in out.with_suffix(".md").read_text()


class Failing(Part):
    name, about = "failing", ""

    def cases(self, scale: float) -> list[str]:
        return ["one"]

    def run(self, case: str, at: Place) -> Outcome:
        raise AssertionError(f"{case} {at.rng.random()}")


def test_a_failure_is_the_same_whenever_it_is_repeated(tmp_path: Path) -> None:
    first, second, other = (
        conduct(Failing(), "one", tmp_path, tmp_path / f"room-{number}", seed) for number, seed in enumerate((1, 1, 2))
    )
    assert first.failure is not None
    assert first.failure == second.failure != other.failure
    assert list(tmp_path.iterdir()) == []
