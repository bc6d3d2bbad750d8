"""classes.txt: every way to number the classes, and what is refused since it could mean two things."""

from pathlib import Path

import pytest

from dmt.data.pixels import class_lists
from dmt.errors import DataError


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "classes.txt"
    path.write_text(text)
    return path


@pytest.mark.parametrize("between", [" ", ": ", ", ", "=", ":", ",", " = ", "\t", ". ", ") ", " - ", ";"])
def test_numbers_before_names_decide_the_order(tmp_path: Path, between: str) -> None:
    path = written(tmp_path, f"1{between}red thing\n255{between}no label\n0{between}ground\n")
    assert class_lists.read_classes(path) == (("ground", "red thing"), None)


@pytest.mark.parametrize("between", [": ", ","])
def test_numbers_before_names_with_colors(tmp_path: Path, between: str) -> None:
    path = written(tmp_path, f"1{between}thing 9 9 9\n255{between}edge 1 1 1\n0{between}ground 0 0 0\n")
    classes, colors = class_lists.read_classes(path)
    assert classes == ("ground", "thing")
    assert colors == {(9, 9, 9): 1, (1, 1, 1): 255, (0, 0, 0): 0}


def test_names_may_end_in_numbers_too(tmp_path: Path) -> None:
    assert class_lists.read_classes(written(tmp_path, "1 part 1\n0 ground 2\n"))[0] == ("ground 2", "part 1")


def test_lines_with_a_hash_are_comments(tmp_path: Path) -> None:
    assert class_lists.read_classes(written(tmp_path, "# mine\nground\n#thing\nother\n"))[0] == (
        "ground",
        "other",
    )
    assert class_lists.read_classes(written(tmp_path, "# name r g b\na 0 0 0\nb 1 1 1\n"))[0] == ("a", "b")


@pytest.mark.parametrize(
    "names",
    [
        ("10 cm", "20 cm"),
        ("0 cm", "10 cm", "20 cm"),
        ("1.5 mm", "0.5 mm"),
        ("class 1", "class 0"),
        ("Boeing 737", "Airbus 320"),
        ("ground", "tree", "2 wheels"),
        ("2D", "3D"),
    ],
)
def test_numbers_may_be_a_part_of_names(tmp_path: Path, names: tuple[str, ...]) -> None:
    assert class_lists.read_classes(written(tmp_path, "\n".join(names))) == (names, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("obj 1\nground 0\n", "'obj 1' ends in a number, as all lines do; write it first, as in '1 obj'"),
        ("obj,1\nground,2\n", "write it first"),
        ("obj: 1\nground: 0\nedge: 255\n", "write it first"),
        ("0 ground\ndisk\n2 square\n", "'disk' has no number before it, but others have"),
        ("ground\n1 disk\n", "'ground' has no number before it"),
        ("1 ground\n2 disk\n", "without a gap"),
        ("0 ground\n1 disk\n1 square\n", "without a gap"),
        ("0: ground\n2: disk\n", "if they are part of the names, write a number before each name"),
        ("0 ground\n1 ground\n", "must name 2 to 255 different classes"),
        ("# nothing\n", "must name 2 to 255 different classes"),
    ],
)
def test_what_could_mean_two_things_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DataError) as caught:
        class_lists.read_classes(written(tmp_path, text))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
