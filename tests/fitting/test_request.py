from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dmt
from dmt import run_files
from dmt.errors import ConfigError
from dmt.fitting import request


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


@pytest.mark.parametrize(
    "option", [{"jobs": "2"}, {"jobs": True}, {"checkpoint_every": "a"}, {"budget": "9m"}, {"settings": [("gamma", 1)]}]
)
def test_a_wrong_type_is_one_line(option: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"takes|must be|settings are") as caught:
        dmt.fit("digits", out=tmp_path / "run", device="cpu", **option)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()
