from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dmt
from dmt import run_files
from dmt.errors import ConfigError
from dmt.fitting import request
from dmt.runs.progress import Silent
from tests.conftest import TINY


@pytest.mark.parametrize(
    ("seed", "seeds"),
    [(3, (3,)), ([2, 1, 2], (2, 1)), (range(1, 4), (1, 2, 3)), (np.int64(5), (5,)), (np.array([1, 2]), (1, 2))],
)
def test_one_seed_or_several(seed: int | Iterable[int], seeds: tuple[int, ...]) -> None:
    assert request.several(seed) == seeds
    assert all(type(each) is int for each in request.several(seed))


@pytest.mark.parametrize("seed", ["12", b"12", 1.5, [1.0], ["1"], True, None])
def test_what_is_no_seed_is_refused(seed: object) -> None:
    """Text is a row of letters to Python: "12" would be trained as seeds 1 and 2."""
    with pytest.raises(ConfigError, match="a seed must be a whole number") as caught:
        request.several(seed)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_donors_are_run_folders(tmp_path: Path) -> None:
    (tmp_path / run_files.MANIFEST).touch()
    assert request.donors(str(tmp_path)) == request.donors(tmp_path) == request.donors([str(tmp_path)]) == (tmp_path,)
    assert request.donors(()) == ()
    with pytest.raises(ConfigError, match=r"there is no run in .*nowhere; give run folders that dmt fit has made"):
        request.donors([tmp_path, tmp_path / "nowhere"])


@pytest.mark.parametrize("start", ["a.pth", Path("a.pth"), {"A": "a.pth", "B": Path("a.pth")}])
def test_starts_are_text_or_paths_for_all_lines_or_each(start: str | Path | dict[str, str | Path]) -> None:
    assert request.by_line(start) == {"A": "a.pth", "B": "a.pth"}
    assert request.by_line({"A": Path("a.pth")}) == request.by_line("A=a.pth") == {"A": "a.pth"}
    assert request.by_line(None) == {}


def test_a_start_from_a_path_trains_what_text_does(tmp_path: Path) -> None:
    how: dict[str, Any] = {"method": "baseline", "settings": TINY | {"epochs": 2}, "watcher": Silent()}
    dmt.fit("digits", out=tmp_path / "first", device=torch.device("cpu"), **how)
    net = next((tmp_path / "first").glob("stages/*/step-*/A-raw.safetensors"))
    places = []
    starts: tuple[Any, ...] = (net, str(net), {"A": net})
    for number, start in enumerate(starts):
        dmt.fit("digits", out=str(tmp_path / str(number)), start=start, device="cpu", **how)
        places.append([place.name for place in (tmp_path / str(number) / "stages").iterdir()])
    assert places[0] == places[1] == places[2]
    dmt.tune("digits", out=tmp_path / "tune", start={"A": net}, device=torch.device("cpu"), **how, grid={"rate": [0.2]})


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("fit", {"data": 3}, "data must be a folder, as text or as a Path, not 3"),
    ("fit", {"data": ""}, "data must be a folder"),
    ("tune", {"data": b"digits"}, "data must be a folder"),
    ("fit", {"out": None}, "out must be a folder"),
    ("tune", {"out": ["a"]}, "out must be a folder"),
    ("tune", {"data_folder": None}, "data_folder must be a folder"),
    ("fit", {"donors": 3}, "each of donors must be a folder"),
    ("fit", {"donors": [None]}, "each of donors must be a folder"),
    ("fit", {"start": ["random"]}, "start must be random, timm, wheel or a file, or these by line"),
    ("tune", {"start": {"A": 3}}, "start must be random"),
    ("fit", {"method": 3}, "method must be the name of a method, or a list of names"),
    ("fit", {"method": ["dmt", 3]}, "method must be the name of a method"),
    ("tune", {"method": 3}, "one method is tuned at a time"),
    ("fit", {"device": None}, "device must be auto, cpu, cuda"),
    ("tune", {"device": b"cpu"}, "device must be auto, cpu, cuda"),
    ("fit", {"budget": float("nan")}, "budget must be a number of seconds"),
    ("tune", {"budget": True}, "budget must be a number of seconds"),
    ("fit", {"budget": -1}, "budget must be a number of seconds"),
    ("fit", {"on": 3}, "on takes ray or ray:ADDRESS, not 3"),
    ("fit", {"baseline": "no"}, "baseline must be True or False, not 'no'"),
    ("fit", {"folds": 0}, "folds must be True or False"),
    ("fit", {"fast": "no"}, "fast must be True or False"),
    ("tune", {"anyway": "no"}, "anyway must be True or False"),
]


@pytest.mark.parametrize(("verb", "argument", "words"), WRONG)
def test_arguments_of_a_wrong_type_say_what_is_accepted(
    verb: str, argument: dict[str, Any], words: str, tmp_path: Path
) -> None:
    how = {"data": "digits", "out": tmp_path / "run", "device": "cpu", "settings": TINY, "watcher": Silent()} | argument
    with pytest.raises(ConfigError, match=words) as caught:
        getattr(dmt, verb)(how.pop("data"), **how)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "option", [{"jobs": "2"}, {"jobs": True}, {"checkpoint_every": "a"}, {"budget": "9m"}, {"settings": [("gamma", 1)]}]
)
def test_a_wrong_type_is_one_line(option: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"takes|must be|settings are") as caught:
        dmt.fit("digits", out=tmp_path / "run", device="cpu", **option)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()
