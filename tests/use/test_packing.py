import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dmt
from dmt import files
from dmt.cli import app
from dmt.errors import ConfigError, RunError
from dmt.runs import stopping
from dmt.runs.progress import Silent
from dmt.use import packing
from tests.fitting.test_run import StopAt, fit, journal, nets


@pytest.mark.parametrize(
    ("text", "expected"), [("12MB", 12_000_000), ("16 MiB", 16 * 2**20), ("100", 100), ("0.5kB", 500)]
)
def test_sizes(text: str, expected: int) -> None:
    assert packing.size(text) == expected


@pytest.mark.parametrize("text", ["", "12 apples", "MB", "0MB"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError):
        packing.size(text)


def test_an_unfinished_run_goes_on_where_it_is_unpacked(tiny: dict[str, object], tmp_path: Path) -> None:
    fit(tmp_path / "whole", tiny)
    with pytest.raises(stopping.Stopped):
        dmt.fit("digits", out=tmp_path / "here", settings=tiny, watcher=StopAt(45))
    for lean in (False, True):
        packed, there = tmp_path / f"packed-{lean}", tmp_path / f"there-{lean}"
        parts = packing.pack(tmp_path / "here", packed, 20_000, lean=lean).paths
        assert len(parts) > 3
        assert max(path.stat().st_size for path in parts[:-1]) <= 20_000
        packing.unpack(packed, there)
        report = dmt.fit("digits", out=there, settings=tiny, watcher=Silent())
        assert report.jobs[0].finished
        assert journal(there) == journal(tmp_path / "whole")
        assert nets(there).items() <= nets(tmp_path / "whole").items()
        last = report.jobs[0].stages[-1].place
        assert f"{last}/A-raw.safetensors" in nets(there)


def test_a_pack_that_was_killed_is_made_again(
    tiny: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit(tmp_path / "run", tiny, "baseline")
    whole = [path.name for path in packing.pack(tmp_path / "run", tmp_path / "whole", 20_000).paths]
    real = files.write_json

    def killed(path: Path, value: dict[str, object]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "write_json", killed)
    with pytest.raises(KeyboardInterrupt):
        packing.pack(tmp_path / "run", tmp_path / "packed", 20_000)
    monkeypatch.setattr(files, "write_json", real)
    packed = packing.pack(tmp_path / "run", tmp_path / "packed", 20_000).paths
    assert [path.name for path in packed] == whole
    assert {path.name for path in (tmp_path / "packed").iterdir()} == set(whole)
    with pytest.raises(RunError, match="not empty"):  # this one is complete
        packing.pack(tmp_path / "run", tmp_path / "packed", 20_000)


def test_lean_leaves_out_what_nobody_needs(tiny: dict[str, object], tmp_path: Path) -> None:
    fit(tmp_path / "run", tiny, baseline=False)
    sizes = {}
    for lean in (False, True):
        parts = packing.pack(tmp_path / "run", tmp_path / f"packed-{lean}", 10**9, lean=lean).paths
        sizes[lean] = parts[0].stat().st_size
    assert sizes[True] < sizes[False]
    packing.unpack(tmp_path / "packed-True", tmp_path / "again")
    report = fit(tmp_path / "again", tiny, baseline=False)  # trains nothing
    assert set(nets(tmp_path / "again")) == {
        f"{report.jobs[0].stages[-1].place}/{n}.safetensors" for n in ("A-ema", "A-raw")
    }


def test_the_command_has_names_of_its_own(tiny: dict[str, object], tmp_path: Path) -> None:
    fit(tmp_path / "run", tiny, "baseline")

    def command(*words: object) -> None:
        done = CliRunner().invoke(app.app, [str(word) for word in words])
        assert done.exit_code == 0, done.output

    command("pack", tmp_path / "run", "--part-size", "50KB")
    (tmp_path / "elsewhere").mkdir()
    shutil.move(tmp_path / "run-packed", tmp_path / "elsewhere" / "run-packed")
    command("unpack", tmp_path / "elsewhere" / "run-packed")
    assert nets(tmp_path / "elsewhere" / "run") == nets(tmp_path / "run")


def test_the_command_to_restore_works_from_the_same_folder(
    tiny: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit(tmp_path / "r/my run", tiny, "baseline")
    for place, words, packed in (
        (".", ["r/my run"], "r/my run-packed"),
        (".", ["r/my run", "--out", "carry on"], "carry on"),
        ("r/my run", ["."], f"{tmp_path}/r/my run-packed"),
    ):
        monkeypatch.chdir(tmp_path / place)
        done = CliRunner().invoke(app.app, ["pack", *words])
        assert done.exit_code == 0, done.output
        command = shlex.split(done.output.partition("to restore: dmt ")[2])
        assert command == ["unpack", packed]
        assert CliRunner().invoke(app.app, [*command, "--out", str(tmp_path / "back")]).exit_code == 0
        shutil.rmtree(tmp_path / "back")
        shutil.rmtree(packed)


def test_more_parts_than_digits(tiny: dict[str, object], tmp_path: Path) -> None:
    fit(tmp_path / "run", tiny, "baseline")
    total = sum(path.stat().st_size for path in (tmp_path / "run").rglob("*") if path.is_file())
    parts = packing.pack(tmp_path / "run", tmp_path / "packed", total // 1100).paths
    assert len(parts) > 1000
    packing.unpack(tmp_path / "packed", tmp_path / "again")
    assert nets(tmp_path / "again") == nets(tmp_path / "run")


def test_lean_keeps_what_an_unscored_stage_needs(tiny: dict[str, object], tmp_path: Path) -> None:
    """Killed between the last checkpoint and the score: the stage is not finished, and its parent is still needed."""
    fit(tmp_path / "run", tiny, "dst")
    journal = next(tmp_path.glob("run/stages/A2-*/journal.jsonl"))
    journal.write_text("".join(line for line in journal.read_text().splitlines(True) if '"round"' not in line))
    packing.pack(tmp_path / "run", tmp_path / "packed", 10**9, lean=True)
    packing.unpack(tmp_path / "packed", tmp_path / "again")
    assert dmt.fit("digits", out=tmp_path / "again", method="dst", settings=tiny, watcher=Silent()).jobs[0].finished


def test_a_lean_run_does_not_grow(tiny: dict[str, object], tmp_path: Path) -> None:
    fit(tmp_path / "run", tiny, "cl", baseline=False)  # whose first net is a result, and stays
    packing.pack(tmp_path / "run", tmp_path / "packed", 10**9, lean=True)
    packing.unpack(tmp_path / "packed", tmp_path / "again")
    with pytest.raises(RunError, match="lean pack"):
        dmt.fit("digits", out=tmp_path / "again", method="dmt", settings=tiny, watcher=Silent())


def test_what_is_no_run_is_not_packed(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no run folder"):
        packing.pack(tmp_path / "nowhere", tmp_path / "packed", 100)
    (tmp_path / "packed").mkdir()
    for content in ("[]", "{}", '{"run": "../x", "sha256": "", "parts": {}}'):
        (tmp_path / "packed" / "pack.json").write_text(content)
        with pytest.raises(RunError, match="damaged"):
            packing.unpack(tmp_path / "packed")
    assert [path.name for path in tmp_path.iterdir()] == ["packed"]


def test_damage_is_named_and_leaves_nothing(tiny: dict[str, object], tmp_path: Path) -> None:
    fit(tmp_path / "run", tiny, "baseline")
    packing.pack(tmp_path / "run", tmp_path / "packed", 50_000)
    part = tmp_path / "packed" / "part-001"
    good = part.read_bytes()
    part.write_bytes(good[:-1] + b"x")
    with pytest.raises(RunError, match=r"part-001 is damaged"):
        packing.unpack(tmp_path / "packed", tmp_path / "out")
    part.unlink()
    with pytest.raises(RunError, match=r"part-001 is missing"):
        packing.unpack(tmp_path / "packed", tmp_path / "out")
    part.write_bytes(good)
    packing.unpack(tmp_path / "packed", tmp_path / "out")
    with pytest.raises(RunError, match="already exists"):
        packing.unpack(tmp_path / "packed", tmp_path / "out")
    with pytest.raises(RunError, match="not empty"):
        packing.pack(tmp_path / "run", tmp_path / "packed", 50_000)
    assert {path.name for path in tmp_path.iterdir()} == {"run", "packed", "out"}
