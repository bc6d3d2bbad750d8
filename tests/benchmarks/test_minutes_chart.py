from pathlib import Path

import pytest

from benchmarks import minutes_chart
from dmt import files


def record(path: Path) -> None:
    def stage(seconds: float, ema: float) -> dict[str, object]:
        return {"seconds": seconds, "scores": {"test": {"raw": {"score": 0.0}, "ema": {"score": ema}}}}

    job = {"run": "one", "method": "dmt", "stages": [stage(60, 80.5), stage(120, 90.25)]}
    files.write_json(path, {"jobs": [job, {"run": "one", "method": "cl", "stages": []}]})


def test_seconds_of_stages_add_up_to_minutes(tmp_path: Path) -> None:
    record(tmp_path / "r.json")
    assert minutes_chart.read(f"{tmp_path / 'r.json'}:one:dmt") == [(1.0, 80.5), (3.0, 90.25)]


def test_the_chart_names_lines_and_levels_with_their_last_scores(tmp_path: Path) -> None:
    record(tmp_path / "r.json")
    out = tmp_path / "chart.svg"
    minutes_chart.main([f"a & b={tmp_path / 'r.json'}:one:dmt", "--level", "paper=91.1", "--out", str(out)])
    drawn = out.read_text()
    assert "90.25 a &amp; b" in drawn
    assert "91.10 paper" in drawn
    assert drawn.count("<circle") == 2


def test_more_lines_than_colors_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        minutes_chart.main(["a=b:c:d"] * 7 + ["--out", str(tmp_path / "chart.svg")])
