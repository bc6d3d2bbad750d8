"""The loop with its checkpoints and journal: stopped anywhere, it ends where an unbroken one does."""

from pathlib import Path

import pytest
import torch

from dmt import files
from dmt.core.schedule import Descent, Schedule
from dmt.errors import DivergenceError, RunError
from dmt.objectives.truth import Supervised
from dmt.training import loop
from dmt.training.checkpoint import Checkpoint
from dmt.training.journal import Journal
from dmt.training.trainer import Trainer, Training
from dmt.types import Batch
from tests.training.test_trainer import PLAIN, Fixed, batch, flat, net

STEPS = 35
TIMING = {"seconds", "images_per_s", "waiting", "peak_memory_mb"}


def trainer(batches: Fixed | None = None) -> Trainer:
    schedule = Schedule(epochs=1, descent=Descent(0.1), rate_ramp="cosine", labeled=8)
    return Trainer({"A": net()}, Training(Supervised(0.75), schedule, STEPS, seed=1), batches or Fixed(), PLAIN)


def fit(folder: Path, stop_after: int | None = None, every: float = 1e9) -> Trainer:
    training = trainer()
    pace = loop.Pace(every, lambda: stop_after is not None and training.step >= stop_after, lambda _: None)
    finished = loop.fit(training, Checkpoint(folder), Journal(folder / "journal.jsonl"), pace)
    assert finished == (stop_after is None)
    return training


def lines(folder: Path) -> list[dict[str, object]]:
    return [
        {key: value for key, value in line.items() if key not in TIMING}
        for line in Journal(folder / "journal.jsonl").read()
    ]


@pytest.mark.parametrize("stops", [[1], [7, 7, 20], [34], [10]])
def test_resumed_equals_unbroken(stops: list[int], tmp_path: Path) -> None:
    whole = fit(tmp_path / "whole")
    for stop in stops:
        if stop > int((Checkpoint(tmp_path / "parts").state() or {"step": 0})["step"]):
            fit(tmp_path / "parts", stop_after=stop)
    parts = fit(tmp_path / "parts")
    assert torch.equal(flat(parts.nets["A"]), flat(whole.nets["A"]))
    assert torch.equal(flat(parts.slow["A"].net), flat(whole.slow["A"].net))
    assert lines(tmp_path / "parts") == lines(tmp_path / "whole")
    assert [line["step"] for line in lines(tmp_path / "whole")] == [10, 20, 30, 35]


def test_a_crash_after_the_last_checkpoint_repeats_only_what_followed(tmp_path: Path) -> None:
    """Journal lines beyond the checkpoint, and half a line, are forgotten."""
    whole = fit(tmp_path / "whole")
    fit(tmp_path / "crashed", stop_after=15)
    journal = tmp_path / "crashed" / "journal.jsonl"
    Journal(journal).write("interval", step=20, loss=9.0)
    with journal.open("a") as file:
        file.write('{"kind": "interval", "st')
    again = fit(tmp_path / "crashed")
    assert torch.equal(flat(again.nets["A"]), flat(whole.nets["A"]))
    assert lines(tmp_path / "crashed") == lines(tmp_path / "whole")


def test_a_torn_line_does_not_swallow_the_next(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.jsonl")
    coverage = {"predicted": [2], "kept": [1]}
    journal.write("labels", kept=1, of=2, coverage=coverage)
    with journal.path.open("a") as file:
        file.write('{"kind": "interval", "st' + "x" * 70_000)
    journal.write("interval", step=10)
    assert [line["kind"] for line in journal.read()] == ["labels", "interval"]
    journal.path.write_text('{"torn')
    journal.write("labels", kept=2, of=2, coverage=coverage)
    assert [line["kept"] for line in journal.read()] == [2]


def test_a_line_that_changed_is_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """In the middle it is refused; the last one may be what a loss of power left, and is left out with a note."""
    journal = Journal(tmp_path / "j.jsonl")
    for step in (10, 20, 30):
        journal.write("interval", step=step, loss=0.5)
    lines = journal.path.read_text().splitlines(keepends=True)
    for damaged in (lines[1].replace("0.5", "0.1"), "x\n"):
        journal.path.write_text(lines[0] + damaged + lines[2])
        with pytest.raises(RunError, match=r"j\.jsonl is damaged \(line 2: .*; restore it from a copy, or delete"):
            list(journal.read())
        journal.path.write_text(lines[0] + damaged)
        assert [line["step"] for line in journal.read()] == [10]
    assert [record.getMessage() for record in caplog.records] == [
        f"the last line of {journal.path} is damaged and left out"
    ]


def test_a_missing_end_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    journal = Journal(tmp_path / "j.jsonl")
    for step in (10, 20):
        journal.write("interval", step=step, loss=0.5)
    journal.path.write_bytes(journal.path.read_bytes()[:-5])
    assert [line["step"] for line in journal.read()] == [10]
    assert [record.getMessage() for record in caplog.records] == [
        f"the last line of {journal.path} is damaged and left out"
    ]


def test_a_finished_stage_drops_its_optimizer(tmp_path: Path) -> None:
    fit(tmp_path, stop_after=5)
    kept = {"A-raw.safetensors", "A-ema.safetensors"}
    assert {path.name for path in tmp_path.glob("step-*/*")} == kept | {"optimizer.safetensors"}
    fit(tmp_path, every=0.0)
    assert {path.name for path in tmp_path.glob("step-*/*")} == kept
    assert Checkpoint(tmp_path).done


def test_divergence_keeps_the_last_good_checkpoint(tmp_path: Path) -> None:
    fit(tmp_path, stop_after=12)

    def poisoned(step: int) -> Batch:
        clean = batch(step)
        return Batch(clean.images * float("inf"), clean.truth) if step == 14 else clean

    pace = loop.Pace(0.0, lambda: False, lambda _: None)
    with pytest.raises(DivergenceError, match="last good checkpoint is kept"):
        loop.fit(trainer(Fixed(poisoned)), Checkpoint(tmp_path), Journal(tmp_path / "journal.jsonl"), pace)
    state = Checkpoint(tmp_path).state()
    assert state is not None
    assert state["step"] == 14  # saved after every step: 13 and 14 were still good
    saved = [tensor for path in tmp_path.glob("**/*.safetensors") for tensor in files.read_tensors(path).values()]
    assert saved
    assert all(bool(torch.isfinite(tensor).all()) for tensor in saved)


def test_unfinished_or_damaged_checkpoints_are_one_line(tmp_path: Path) -> None:
    fit(tmp_path, stop_after=5)
    with pytest.raises(RunError, match="not finished"):
        Checkpoint(tmp_path).load_net(net(), "A", "raw")
    path = next(tmp_path.glob("step-*/A-raw.safetensors"))
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(RunError, match="damaged"):
        fit(tmp_path)


def test_a_net_of_another_shape_is_refused(tmp_path: Path) -> None:
    fit(tmp_path)
    with pytest.raises(RunError, match="another --net"):
        Checkpoint(tmp_path).load_net(torch.nn.Linear(2, 2), "A", "raw")


@pytest.mark.parametrize(("steps", "interval"), [(1, 10), (400, 10), (1000, 20), (77250, 100)])
def test_intervals(steps: int, interval: int) -> None:
    assert loop.interval_of(steps) == interval
