"""What ``--out`` of dmt predict names: a table, a folder, or the mask of one image."""

from pathlib import Path

import pytest

from dmt.errors import ConfigError
from dmt.use import predict_places
from dmt.use.predict_inputs import Inputs

ONE = Inputs((Path("a.jpg"),))


@pytest.mark.parametrize(
    ("out", "table"),
    [
        ("pred.csv", "pred.csv"),
        ("res/scores.txt", "res/scores.txt"),
        ("res", "res/pred.csv"),
        ("res/run-1.0/", "res/run-1.0/pred.csv"),
        ("there-1.0", "there-1.0/pred.csv"),
        ("there-1.0/", "there-1.0/pred.csv"),
    ],
)
def test_a_folder_is_never_taken_for_a_table(
    out: str, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there-1.0").mkdir()
    assert predict_places.table(out) == Path(table)


def test_a_mask_is_a_png_of_one_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.png").mkdir()
    assert predict_places.mask("one.PNG", ONE) == Path("one.PNG")
    for folder in ("one.png/", "there.png", "run-1.0", "masks", "masks/"):
        assert predict_places.mask(folder, ONE) is None
    for name in ("one.jpg", "one.csv"):
        with pytest.raises(ConfigError, match=f"masks are PNG files.*; give a folder, {name}/ for example"):
            predict_places.mask(name, ONE)
    for several in (
        Inputs((Path("a.jpg"), Path("b.jpg"))),
        Inputs((Path("a.jpg"),), ("0.tar",)),
        Inputs((Path("in/a.jpg"),), folders=(Path("in"),)),
        Inputs((), ("0.tar",)),
    ):
        with pytest.raises(ConfigError, match="is a file for the mask of one image"):
            predict_places.mask("one.png", several)
