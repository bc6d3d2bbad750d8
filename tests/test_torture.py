"""A short part of `make torture`, and its own house: failures repeat, and the record says what was done."""

import sys
from pathlib import Path

import pytest
import torch

from tests.torture import record, subjects
from tests.torture.fuzzed_folders import FuzzedFolders
from tests.torture.kills import Kills
from tests.torture.parts import Failure, Outcome, Part, Place
from tests.torture.schedule import Schedule, conduct

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it forks, and looks into /proc")


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="a process that knows a GPU cannot be forked")
def test_killed_commands_come_to_the_same_end(tmp_path: Path) -> None:
    subjects.warm_up()
    kills = Kills(("photos",))
    (tmp_path / "base").mkdir()
    kills.prepare(tmp_path / "base")
    for case in kills.cases(0.25):
        found = conduct(kills, case, tmp_path / "base", tmp_path / "room", seed=1)
        assert found.failure is None, found


@pytest.mark.parametrize("case", ["classes-0", "table-1", "masks-2"])
def test_fuzzed_folders_are_understood_or_one_line(case: str, tmp_path: Path) -> None:
    found = conduct(FuzzedFolders(), case, tmp_path, tmp_path / "room", seed=5)
    assert found.failure is None, found


class Drawn(Part):
    """Fails in one of its cases; what it says depends on the seed alone."""

    name, about = "drawn", "Nothing is done."

    def cases(self, scale: float) -> list[str]:
        return ["good", "bad one"]

    def run(self, case: str, at: Place) -> Outcome:
        if case == "good":
            return Outcome("fine", 2, {"figure": 1.5})
        raise Failure(f"found {at.rng.random()}")


class Unprepared(Drawn):
    name = "unprepared"

    def prepare(self, base: Path) -> None:
        raise Failure("no room")


def test_failures_repeat_and_the_record_counts_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for number, seed in enumerate((1, 1, 2)):
        work = tmp_path / str(number)
        work.mkdir()
        found.append(
            {each.case: each for each in Schedule(work, seed, 2).run({part: part.cases(1) for part in (Drawn(),)})}
        )
    assert [each["bad one"].failure for each in found[:2]] == [found[0]["bad one"].failure] * 2
    assert found[2]["bad one"].failure != found[0]["bad one"].failure
    said = capsys.readouterr().out
    assert "repeat it: python -m tests.torture --seed 2 --only drawn --case 'bad one'" in said
    assert "drawn 2/2; 1 failed, ETA 0:00" in said

    content = record.summary(list(found[0].values()), [Drawn()], "python -m tests.torture", 1, 61.0)
    assert content["parts"]["drawn"] == {
        "about": "Nothing is done.", "cases": 2, "failed": 1, "counts": {"fine": 2}, "figures": {"figure": 1.5},
    }  # fmt: skip
    record.write(tmp_path / "torture.json", content)
    written = (tmp_path / "torture.md").read_text()
    assert "**1 failures.**" in written
    assert "| fine | 2 |" in written


def test_a_part_that_cannot_be_prepared_is_one_failure(tmp_path: Path) -> None:
    (found,) = Schedule(tmp_path, 1, 1).run({(part := Unprepared()): part.cases(1)})
    assert found.case == "preparation"
    assert "no room" in str(found.failure)
