"""Names that a spreadsheet program would run are text in every CSV, and our reader gets the names back."""

import csv
import io
from pathlib import Path

import pytest

from dmt import csv_tables
from dmt.auditing import audit_tables
from dmt.auditing.label_next import Candidate
from dmt.auditing.suspects import Suspect
from dmt.data.folders import photos
from dmt.use import predict
from dmt.use.predict import Prediction
from tests.data.folders import photo_layout

FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "\rx", "\nx", "=", "'=1", "''@x", "-"]
TEXTS = ["", "cat", "a=b", "'quoted'", "'", "d, e", 'x"y', " =1"]
NUMBERS = ["-1", "+5", "-0.25", "1e-3", "-1.5E+7", "-.5", "7"]


@pytest.mark.parametrize("text", [*FORMULAS, *TEXTS, *NUMBERS])
def test_a_cell_comes_back(text: str) -> None:
    assert csv_tables.plain(csv_tables.cell(text)) == text


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_begins_as_a_formula_does(text: str) -> None:
    assert csv_tables.cell(text) == f"'{text}"


@pytest.mark.parametrize("text", [*TEXTS, *NUMBERS])
def test_other_cells_stay_as_they_are(text: str) -> None:
    assert csv_tables.cell(text) == text
    assert csv_tables.plain(text) == text


def rows(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode(), newline="")))[1:]


def test_every_table_of_ours(tmp_path: Path) -> None:
    classes, name = ["=a()", "-b"], "@photo.png"
    suspect = Suspect(0, name, 0, 1, True, -0.5, 1.0, ((0.1, 0.6),))
    candidate = Candidate(0, name, 1, 0.5, 0.25, ((0, 0.5),), 0.5)
    assert rows(audit_tables.suspects([suspect], classes))[0][:5] == ["'@photo.png", "'=a()", "'-b", "yes", "-0.5000"]
    assert rows(audit_tables.candidates([candidate], classes))[0][:3] == ["1", "'@photo.png", "'-b"]
    predict.write_csv([Prediction("-x.png", "=a()", 0.5, 0.25)], tmp_path / "pred.csv")
    assert rows((tmp_path / "pred.csv").read_bytes()) == [["'-x.png", "'=a()", "0.500000", "0.250000"]]


def test_predictions_can_be_labels(tmp_path: Path) -> None:
    """What `dmt predict` wrote is read as labels of the same files and classes."""
    names = ["=1+1.png", "-x.png", "'+y.png", "plain.png"]
    for number, name in enumerate(names):
        photo_layout.save(photo_layout.scene("disk", number)[0], tmp_path / name)
    labels = ["@home", "-1", "@home", "-1"]
    found = [Prediction(name, label, 0.5, 0.5) for name, label in zip(names, labels, strict=True)]
    predict.write_csv(found, tmp_path / "labels.csv")
    contents = photos.open_folder(tmp_path)
    read = {photo.id: contents.classes[photo.label] for photo in contents.labeled if photo.label is not None}
    assert read == dict(zip(names, labels, strict=True))


def test_names_that_are_no_text_are_escaped() -> None:
    assert csv_tables.table(("file",), [("0.tar/b\udcff.png",)]) == b"file\n0.tar/b\\udcff.png\n"
