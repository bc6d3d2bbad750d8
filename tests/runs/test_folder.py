"""What a run is bound to, also if another release made it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dmt
from dmt import files
from dmt.errors import RunError
from dmt.results import reading
from dmt.runs.folder import Folder
from dmt.runs.progress import Silent
from tests.conftest import TINY

SETTINGS = TINY | {"epochs": 1}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    dmt.fit("digits", out=tmp_path / "run", method="baseline", settings=SETTINGS, watcher=Silent())
    return tmp_path / "run"


def again(run: Path, **settings: object) -> dmt.Report:
    return dmt.fit("digits", out=run, method="baseline", settings=SETTINGS | settings, watcher=Silent())


def rewrite(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    manifest = files.read_json(run / "run.json")
    change(manifest)
    (run / "run.json").write_text(json.dumps(manifest))


def test_an_option_added_since_had_its_default(run: Path) -> None:
    rewrite(run, lambda manifest: (manifest["config"].pop("pseudo_noise"), manifest["config"].pop("online.epochs")))
    assert again(run).jobs[0].finished
    with pytest.raises(RunError, match=r"was made with online.epochs=20, not online.epochs=3; give another --out"):
        again(run, **{"online.epochs": 3})


def test_a_default_is_that_of_the_preset(run: Path) -> None:
    rewrite(run, lambda manifest: manifest["config"].pop("epochs_oracle"))  # 20 on digits, 300 elsewhere
    assert again(run, epochs_oracle=20).jobs[0].finished
    with pytest.raises(RunError, match="made with epochs_oracle=20, not epochs_oracle=300"):
        again(run, epochs_oracle=300)


def test_an_option_by_its_old_name(run: Path) -> None:
    def old(manifest: dict[str, Any]) -> None:
        manifest["config"]["threshold"] = manifest["config"].pop("online.threshold")

    rewrite(run, old)
    assert again(run).jobs[0].changes == reading.read(Folder(run))[0].changes
    with pytest.raises(RunError, match=r"made with online.threshold=0.9, not"):
        again(run, **{"online.threshold": 0.5})


def test_an_option_that_is_gone_is_refused_in_one_line(run: Path) -> None:
    rewrite(run, lambda manifest: manifest["config"].update(sharpness=2))
    with pytest.raises(
        RunError, match="sharpness=2, an option that this release does not have; resume it with"
    ) as caught:
        again(run)
    assert "\n" not in str(caught.value)
    assert reading.read(Folder(run))[0].finished  # what came out can still be told


def test_stages_of_a_release_that_trains_otherwise_are_refused_in_one_line(run: Path) -> None:
    def other(manifest: dict[str, Any]) -> None:
        manifest["jobs"][0]["stages"][0]["identity"] = "0" * 64

    rewrite(run, other)
    before = (run / "run.json").read_bytes()
    with pytest.raises(RunError, match=f"holds A0 of baseline as dmt {dmt.__version__} trained it, and") as caught:
        again(run)
    assert "\n" not in str(caught.value)
    assert (run / "run.json").read_bytes() == before


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """What is left of a fit that was interrupted while it prepared itself."""
    with Folder(tmp_path / "begun").reserved():
        features = tmp_path / "begun" / ".cache" / "features-1.bin"
        features.parent.mkdir()
        features.write_bytes(b"1")
    return tmp_path / "begun"


def test_a_fit_that_has_only_begun_is_told_from_other_folders(begun: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"the fit in .*begun has not reached its first net; .* repeat the dmt fit"):
        Folder(begun).manifest()
    with pytest.raises(RunError, match="repeat the dmt fit command"):
        reading.read(Folder(begun))
    (begun / "holiday.txt").touch()
    with pytest.raises(RunError, match=r"run\.json is missing"):
        Folder(begun).manifest()
    with pytest.raises(RunError, match=r"run\.json is missing"):
        Folder(tmp_path).manifest()


def test_repeating_the_fit_works_where_it_had_only_begun(begun: Path) -> None:
    dmt.fit("digits", out=begun, method="baseline", settings=SETTINGS, watcher=Silent())
    assert Folder(begun).begun
