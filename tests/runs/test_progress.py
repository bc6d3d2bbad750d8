import errno
import io

import pytest
from rich.console import Console

from dmt.runs import progress


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (61.4, "1:01"), (3723, "1:02:03")])
def test_durations(seconds: float, text: str) -> None:
    assert progress.duration(seconds) == text


def test_lines_say_where_the_run_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    stream = io.StringIO()
    with progress.Lines(stream, every=10) as lines:
        lines.begin(total=1000.0, done=200.0)
        lines.stage("DMT A1, seed 1", steps=400, done=0, work=2.0)
        for step in range(1, 101):
            clock[0] += 0.25
            lines.step(step)
        lines.note("done")
    said = stream.getvalue().splitlines()
    # after 10 s, 40 steps of work 2: 80 of the 800 that were left; 90 s remain
    assert said[0] == "DMT A1, seed 1: step 40/400, whole run 28%, ETA 1:30"
    assert len(said) == 3
    assert said[-1] == "done"


def test_more_steps_than_planned_are_no_negative_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    stream = io.StringIO()
    lines = progress.Lines(stream, every=10)
    lines.begin(total=10.0, done=0.0)
    lines.stage("DMT A5, seed 1", steps=12, done=0, work=1.0)
    for step in range(1, 13):
        clock[0] += 10.0
        lines.step(step)
    assert stream.getvalue().splitlines()[-1] == "DMT A5, seed 1: step 12/12, whole run 100%, ETA 0:00"


def test_work_that_is_spared_shortens_the_run() -> None:
    stream = io.StringIO()
    lines = progress.Lines(stream, every=0)
    lines.begin(total=100.0, done=0.0)
    lines.stage("DMT A1, seed 1", steps=50, done=0, work=1.0)
    lines.spared(50.0)
    lines.step(50)
    assert stream.getvalue().startswith("DMT A1, seed 1: step 50/50, whole run 100%")


def test_the_first_step_says_nothing_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    stream = io.StringIO()
    with progress.Lines(stream, every=10) as lines:
        lines.begin(total=100.0, done=0.0)
        lines.stage("DMT A0, seed 1", steps=100, done=0, work=1.0)
        for step, clock[0] in enumerate((30.0, 35.0, 40.0), start=1):  # the first one compiled
            lines.step(step)
    assert stream.getvalue().splitlines() == [
        "DMT A0, seed 1: step 1/100, whole run 1%",
        "DMT A0, seed 1: step 3/100, whole run 3%, ETA 8:05",  # 5 s a step
    ]


def test_labeling_counts_as_work(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    stream = io.StringIO()
    with progress.Lines(stream, every=10) as lines:
        lines.begin(total=400.0, done=0.0)
        clock[0] = 8.0
        lines.worked(80.0)
        lines.stage("DMT A1, seed 1", steps=20, done=0, work=1.0)
        clock[0] = 10.0
        lines.step(20)
    # 100 of 400 in 10 s
    assert stream.getvalue().splitlines() == ["DMT A1, seed 1: step 20/20, whole run 25%, ETA 0:30"]


def test_bars_show_stage_whole_and_eta() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with progress.Bars(console) as bars:
        bars.begin(total=100.0, done=10.0)
        bars.stage("CL A2, seed 3", steps=9, done=0, work=10.0)
        bars.worked(5.0)
        bars.step(8)
        bars.note("a note")
        assert isinstance(bars, progress.Bars)
        assert bars._bars.tasks[bars._whole].completed == 95.0
        bars.step(9)
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    for text in ("whole run", "CL A2, seed 3", "ETA", "100 %", "a note"):
        assert text in shown


def test_what_is_done_twice_is_forecast_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    stream = io.StringIO()
    with progress.Lines(stream, every=10) as lines:
        for done, clock[0] in ((32, 0.0), (64, 50.0), (32, 100.0), (48, 110.0)):
            lines.busy("judging", done, 64)
    assert stream.getvalue().splitlines()[-1] == "judging: 48 of 64, ETA 0:10"  # 16 in 10 s since it began again


def test_what_was_there_before_does_not_count_as_fast_work(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    stream = io.StringIO()
    with progress.Lines(stream, every=10) as lines:
        for done, clock[0] in ((500, 10.0), (510, 20.0)):  # 500 of an earlier session
            lines.busy("features of the photos", done, 1010)
    assert stream.getvalue().splitlines() == [
        "features of the photos: 500 of 1,010",
        "features of the photos: 510 of 1,010, ETA 8:20",
    ]


def test_the_whole_run_is_shown_once_it_moves() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with progress.Bars(console) as bars:
        assert isinstance(bars, progress.Bars)
        whole = bars._bars.tasks[bars._whole]
        bars.busy("features of the photos", 10, 40)
        assert (whole.visible, bars._bars.tasks[bars._part].percentage) == (False, 25.0)
        bars.begin(total=100.0, done=10.0)
        bars.busy("features of the photos", 20, 40)
        assert not whole.visible
        bars.stage("DMT A0, seed 1", steps=9, done=0, work=10.0)
        assert whole.visible
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "features of the photos" in shown


def test_labels_move_the_whole_run_too() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with progress.Bars(console) as bars:
        assert isinstance(bars, progress.Bars)
        bars.begin(total=100.0, done=0.0)
        bars.worked(5.0)
        assert bars._bars.tasks[bars._whole].visible


def test_a_closed_terminal_stops_no_bar() -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.EIO, "Input/output error")

    with progress.Bars(Console(file=Closed(), force_terminal=True)) as bars:
        bars.begin(total=10, done=0)
        bars.busy("reading images", 1, 2)
        bars.turn(1)
        bars.stage("A0", 5, 0, 1.0)
        bars.step(5)
        bars.note("a note")
