"""Layouts of folders: recognized, or refused in one line."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dmt.data.folders import mask_files, photos
from dmt.data.folders.contents import FolderContents, Photo
from dmt.data.pixels import cityscapes
from dmt.errors import DataError
from tests.data.folders import photo_layout
from tests.data.pixels import segment_layout

SHAPES = photo_layout.SHAPES
REST = ("square", "tri")


def failure(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        photos.open_folder(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def ids(part: Sequence[Photo]) -> list[str]:
    return [photo.id for photo in part]


def noted(contents: FolderContents, words: str) -> bool:
    assert not any("\n" in note for note in contents.notes)
    return any(words in note for note in contents.notes)


def image(path: Path, size: tuple[int, int] = (8, 8)) -> Path:
    return photo_layout.save(Image.new("RGB", size), path)


# --- a folder for each class ---


def test_class_folders(tmp_path: Path) -> None:
    contents = photos.open_folder(photo_layout.write_classes(tmp_path, labeled=2, unlabeled=3, test=1))
    assert contents.layout == "labeled/<class>/, unlabeled/ and test/: images of 3 classes"
    assert contents.classes == ("disk", "square", "triangle")
    assert not contents.pixels
    assert ids(contents.labeled)[:3] == ["labeled/disk/0000.jpg", "labeled/disk/0001.jpg", "labeled/square/1000.jpg"]
    assert [photo.label for photo in contents.labeled] == [0, 0, 1, 1, 2, 2]
    assert [photo.label for photo in contents.test] == [0, 1, 2]
    assert [photo.label for photo in contents.unlabeled] == [None] * 3
    assert all(photo.path == tmp_path / photo.id for _, part in contents.parts() for photo in part)
    assert contents.notes == ()


def test_train_is_a_synonym_and_unlabeled_may_be_missing(tmp_path: Path) -> None:
    for name in ("Train/b/1.png", "Train/A/deep/er/1.png", "Train/A/1.JPG", "Train/A/1.png", "valid/b/x.gif"):
        image(tmp_path / name)
    contents = photos.open_folder(tmp_path)
    assert contents.layout == "Train/<class>/ and valid/: images of 2 classes"
    assert ids(contents.labeled) == ["Train/A/1.JPG", "Train/A/1.png", "Train/A/deep/er/1.png", "Train/b/1.png"]
    assert ids(contents.validation) == ["valid/b/x.gif"]
    assert noted(contents, "nothing to learn from besides the labels")


def test_classes_sort_as_people_sort(tmp_path: Path) -> None:
    for name in ("10", "9", "b2", "B10", "a", "Ö\n1"):
        image(tmp_path / "labeled" / name / "x y\n.png")
    assert photos.open_folder(tmp_path).classes == ("9", "10", "a", "b2", "B10", "Ö\n1")


def test_what_is_noted_of_class_folders(tmp_path: Path) -> None:
    image(tmp_path / "labeled" / "only" / "1.png")
    (tmp_path / "labeled" / "empty").mkdir()
    (tmp_path / "labeled" / ".DS_Store").touch()
    image(tmp_path / "test" / "1.png")
    image(tmp_path / "unlabeled" / "1.png")
    (tmp_path / "unlabeled" / "2.heic").touch()
    (tmp_path / "labels.csv").touch()
    contents = photos.open_folder(tmp_path)
    assert contents.classes == ("only",)
    for words in (
        "labeled/empty holds no images", "only one class, 'only'", "test/ has no class folders", "1 .heic",
        "labels.csv was not read",
    ):  # fmt: skip
        assert noted(contents, words), words
    assert contents.test == ()


def test_links_may_be_classes_but_no_loops(tmp_path: Path) -> None:
    image(tmp_path / "elsewhere" / "1.png")
    root = tmp_path / "root"
    image(root / "labeled" / "a" / "1.png")
    (root / "labeled" / "b").symlink_to(tmp_path / "elsewhere")
    (root / "labeled" / "loop").symlink_to(root)
    (root / "labeled" / "itself").symlink_to("itself")
    (root / "unlabeled").mkdir()
    (root / "unlabeled" / "loop").symlink_to(root)
    contents = photos.open_folder(root)
    assert ids(contents.labeled) == ["labeled/a/1.png", "labeled/b/1.png"]
    assert noted(contents, "links to folders were not entered (1)")


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (["labeled/a/1.png", "labeled/1.png"], "1 images are in no class folder"),
        (["labeled/a/1.txt"], "labeled holds no images"),
        (["labeled/a/1.png", "train/a/1.png"], "has both labeled/ and train/"),
        (["labeled/a/1.png", "test/b/1.png"], "b is a class that has no labeled images"),
        ([], "holds no images"),
        (["notes.txt"], "holds no images"),
        (["a/1.png", "b/2.png", "3.png"], "found 3 images in 3 folders but no labeled/ and no CSV; known layouts"),
        (["a/1.png", "a/2.png"], "found 2 images in 1 folder but no labeled/ and no CSV; known layouts"),
        (["a/1.png"], "found 1 image in 1 folder but"),
        (["cat/1.png", "dog/x/2.png"], "if its folders are classes, move the 2 class folders ('cat', 'dog') into "),
        (["cat/1.png", "dog/2.png", "unlabeled/3.png", "test/cat/4.png"], "move the 2 class folders ('cat', 'dog')"),
        (["images/1.png", "more/1.png"], "; known layouts"),
        (["unlabeled/1.png", "cat/1.png"], "; known layouts"),
        (["1.heic", "a/2.heif", "3.PDF"], "holds no images"),
        (["1.heic", "a/2.heif", "3.PDF"], "; convert .heic, .heif, .pdf to JPEG or PNG; known layouts"),
        (["labeled/a/1.HEIC"], "holds no images; convert .heic to JPEG or PNG; put some into"),
        (["photos/labeled/a/1.png"], "did you mean"),
        (["labeled/images/1.png"], "needs both images/ and masks/"),
        (["labels.csv"], "holds no images"),
        (["1.png", "a.csv", "b.csv"], "has 2 CSV files"),
    ],
)
def test_folders_that_fit_no_layout(tmp_path: Path, files: list[str], words: str) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert words in failure(tmp_path)


def test_no_folder_at_all(tmp_path: Path) -> None:
    assert "there is no folder" in failure(tmp_path / "nowhere")
    assert "is a file" in failure(image(tmp_path / "x.png"))


# --- a table ---


@pytest.fixture
def pile(tmp_path: Path) -> Path:
    for name in ("a.jpg", "b.png", "sub/c.png", "d, e.png", "é\n.png"):
        image(tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(
    "content",
    [
        b"file,label\na.jpg,cat\nb.png,dog\nsub/c.png,\n",
        b"\xef\xbb\xbffile,label\r\na.jpg,cat\r\nb.png,dog\r\n",
        b"Filename;Class\na.jpg;cat\n./b.png;dog\n\n;\n",
        b"category\textra\tpath\ncat\t1\ta.jpg\ndog\t2\tb.png\n",
        b'label,image\n"cat","a.jpg"\n dog , b.png \n',
        "file,label\na.jpg,cat\nb.png,dog\n".encode("utf-16"),
        b"file,label\ra.jpg,cat\rb.png,dog\r",
        b"file,label\na.jpg,cat\nb.png,dog\nsub\\c.png\n",
    ],
)
def test_tables_of_many_kinds(pile: Path, content: bytes) -> None:
    (pile / "any.csv").write_bytes(content)
    contents = photos.open_folder(pile)
    assert contents.layout == "a folder of images with any.csv: images of 2 classes"
    assert [(photo.id, photo.label) for photo in contents.labeled] == [("a.jpg", 0), ("b.png", 1)]
    assert ids(contents.unlabeled) == ["d, e.png", "sub/c.png", "é\n.png"]
    assert not noted(contents, "not images of a known kind")
    assert noted(contents, "are not in any.csv and count as unlabeled")


def test_names_with_commas_newlines_and_accents(pile: Path) -> None:
    content = 'file,label\n"d, e.png",1\n"e\u0301\n.png",2\na.jpg,1\na.jpg,1\n'
    (pile / "labels.csv").write_text(content, encoding="utf-8")
    contents = photos.open_folder(pile)
    assert ids(contents.labeled) == ["a.jpg", "d, e.png", "é\n.png"]
    assert noted(contents, "1 rows of labels.csv repeat earlier ones")


def test_tables_may_put_images_aside(pile: Path) -> None:
    rows = [["file", "label", "split"], ["a.jpg", "x", "train"], ["b.png", "x", "Test"], ["sub/c.png", "", "test"]]
    photo_layout.write_table(pile, rows)
    contents = photos.open_folder(pile)
    assert (ids(contents.labeled), ids(contents.test)) == (["a.jpg"], ["b.png"])
    assert "sub/c.png" not in ids(contents.unlabeled)
    assert noted(contents, "held out have no label")
    assert noted(contents, "only one class")


def test_names_may_count_from_the_folder_of_all_images(tmp_path: Path) -> None:
    image(tmp_path / "images" / "1.png")
    image(tmp_path / "images" / "2.png")
    photo_layout.write_table(tmp_path, [["file", "label"], ["1.png", "a"], ["images/2.png", "b"]])
    assert ids(photos.open_folder(tmp_path).labeled) == ["images/1.png", "images/2.png"]


def test_class_folders_beside_a_table_are_held_out(pile: Path) -> None:
    """None of their images may be unlabeled: that would be a leak."""
    for name in ("test/cat/1.png", "Val/dog/deep/1.png", "Val/cat/2.png"):
        image(pile / name)
    photo_layout.write_table(pile, [["file", "label"], ["a.jpg", "cat"], ["b.png", "dog"]])
    contents = photos.open_folder(pile)
    assert contents.layout == "a folder of images with labels.csv, Val/ and test/: images of 2 classes"
    assert [(photo.id, photo.label) for photo in contents.test] == [("test/cat/1.png", 0)]
    assert [(each.id, each.label) for each in contents.validation] == [("Val/cat/2.png", 0), ("Val/dog/deep/1.png", 1)]
    assert ids(contents.unlabeled) == ["d, e.png", "sub/c.png", "é\n.png"]
    assert noted(contents, "3 images are not in labels.csv and count as unlabeled")
    image(pile / "test" / "cow" / "1.png")
    assert "cow is a class that has no labeled images" in failure(pile)


def test_held_out_images_without_a_label_are_left_out(pile: Path) -> None:
    image(pile / "test" / "1.png")
    photo_layout.write_table(pile, [["file", "label"], ["a.jpg", "cat"]])
    contents = photos.open_folder(pile)
    assert contents.test == ()
    assert "test/1.png" not in ids(contents.unlabeled)
    assert noted(contents, "test/ has no class folders and is left out")


def test_a_table_may_label_the_images_that_are_held_out(pile: Path) -> None:
    image(pile / "test" / "1.png")
    image(pile / "test" / "2.png")
    rows = [["file", "label", "split"], ["a.jpg", "cat", "train"], ["test/1.png", "cat", ""]]
    photo_layout.write_table(pile, rows)
    contents = photos.open_folder(pile)
    assert (ids(contents.labeled), ids(contents.test)) == (["a.jpg"], ["test/1.png"])
    assert "test/2.png" not in ids(contents.unlabeled)
    assert noted(contents, "1 images in test/ are not in the table and are left out")
    photo_layout.write_table(pile, [*rows, ["test/2.png", "cat", "train"]])
    assert "line 4: 'test/2.png' lies in the folder of test images, but its split is another" in failure(pile)


def test_names_in_a_table_may_count_from_the_training_images(tmp_path: Path) -> None:
    for name in ("train/1.png", "train/2.png", "test/cat/1.png"):
        image(tmp_path / name)
    photo_layout.write_table(tmp_path, [["file", "label"], ["1.png", "cat"]])
    contents = photos.open_folder(tmp_path)
    assert (ids(contents.labeled), ids(contents.unlabeled)) == (["train/1.png"], ["train/2.png"])
    assert ids(contents.test) == ["test/cat/1.png"]


def test_absolute_paths_in_a_table_may_lead_into_the_folder(pile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (pile.parent / "link").symlink_to(pile)
    rows = [["file", "label"], [f"{pile}/a.jpg", "cat"], [f"{pile.parent}/link/sub/../b.png", "dog"]]
    photo_layout.write_table(pile, rows)
    assert ids(photos.open_folder(pile.parent / "link").labeled) == ["a.jpg", "b.png"]
    monkeypatch.chdir(pile.parent)
    assert ids(photos.open_folder(Path("link")).labeled) == ["a.jpg", "b.png"]
    photo_layout.write_table(pile, [*rows, [f"{pile}/../c.png", "dog"], [f"{pile}s/d.png", "dog"]])
    assert "leaves the folder" in failure(pile)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("file,tag\na.jpg,cat\n", "needs a first line with the columns file and label; it has file, tag"),
        ("a.jpg,cat\n", "its first line seems to be data (a.jpg, cat); add the line file,label above it"),
        ("cat;a.jpg\n", "its first line seems to be data (cat, a.jpg); add the line label;file above it"),
        ("a.jpg,3,cat\n", "its first line seems to be data (a.jpg, 3, cat); add the line file,label,column3 above"),
        ("a.jpg\nb.png\n", "it has a.jpg"),
        ("", "needs a first line"),
        ("file,label\n", "gives no training image a label"),
        ("file,label\na.jpg,\n", "gives no training image a label"),
        ("file,label\nz.jpg,cat\ny.jpg,cat\n", "files that do not exist or are not images, the first is 'z.jpg' (line"),
        ("file,label\nlabels.csv,cat\n", "do not exist or are not images"),
        (f"file,label\n{'x' * 5000}.jpg,cat\n", "do not exist or are not images"),
        ("file,label\n/etc/a.jpg,cat\n", "leaves the folder"),
        ("file,label\n../a.jpg,cat\n", "leaves the folder"),
        ("file,label\nsub/../../a.jpg,cat\n", "leaves the folder"),
        ("file,label\nC:\\a.jpg,cat\n", "leaves the folder"),
        ("file,label\na.jpg,cat\n./a.jpg,dog\n", "two labels to 'a.jpg': 'cat' in line 2 (train), 'dog' in line 3"),
        ("file,label\na.jpg,cat\na.jpg,\n", "gives two labels"),
        ("file,label\na.jpg,cat,dog\n", "line 2: 3 values for 2 columns"),
        ("file,label\n,cat\n", "line 2: the name of the file is empty"),
        ("file,label,split\na.jpg,cat,later\n", "line 2: the split is 'later'"),
        ("file,label,split\na.jpg,cat,\nb.png,dog,val\n", "line 3: no training image has the class 'dog'"),
        ("file,label\na\0.jpg,cat\n", "is not a text file"),
        ('file,label\n"a.jpg,cat\n' + "x" * 200_000, "save it as a CSV table"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_meant(pile: Path, content: str, words: str) -> None:
    (pile / "labels.csv").write_text(content)
    assert words in failure(pile)


def test_a_table_in_another_encoding(pile: Path) -> None:
    (pile / "labels.csv").write_bytes("file,label\na.jpg,Käse\n".encode("latin-1"))
    assert "save it as UTF-8" in failure(pile)


# --- images and masks ---


def read_all(contents: FolderContents) -> list[np.ndarray]:
    masks = [photo.mask for photo in contents.labeled]
    return [mask_files.read_mask(mask, contents.colors, len(contents.classes)) for mask in masks if mask is not None]


def truth(count: int) -> list[np.ndarray]:
    return [photo_layout.scene(SHAPES[number % 3], number)[1] * (1 + number % 3) for number in range(count)]


@pytest.mark.parametrize("kind", ["indexed", "gray", "gray16"])
def test_masks_of_numbers(tmp_path: Path, kind: str) -> None:
    contents = photos.open_folder(photo_layout.write_masks(tmp_path, kind=kind, test=1))
    assert contents.layout == "labeled/images, labeled/masks and unlabeled/: masks in class numbers of 4 classes"
    assert contents.pixels
    assert contents.colors is None
    assert contents.classes == ("class 0", "class 1", "class 2", "class 3")
    assert len(contents.palette) == 4
    assert (len(contents.labeled), len(contents.unlabeled), len(contents.test)) == (6, 6, 1)
    assert contents.labeled[0].mask == tmp_path / "labeled" / "masks" / "0000.png"
    assert all(np.array_equal(*pair) for pair in zip(read_all(contents), truth(6), strict=True))
    photo_layout.write_names(tmp_path / "classes.txt")
    assert photos.open_folder(tmp_path).classes == ("ground", *SHAPES)


@pytest.mark.parametrize("kind", ["rgb", "rgba"])
def test_masks_of_colors(tmp_path: Path, kind: str) -> None:
    root = photo_layout.write_masks(tmp_path / "data", kind=kind)
    contents = photos.open_folder(root)
    assert contents.classes[0] == "color #000000"
    assert set(contents.palette) == set(photo_layout.MASK_COLORS.values())
    assert contents.colors == {color: number for number, color in enumerate(contents.palette)}
    seen = read_all(contents)
    counts = [sum(int((mask == number).sum()) for mask in seen) for number in range(4)]
    assert counts == sorted(counts, reverse=True)
    photo_layout.write_names(root / "classes.txt", photo_layout.MASK_COLORS)
    named = photos.open_folder(root)
    assert named.classes == ("ground", *SHAPES)
    assert all(np.array_equal(*pair) for pair in zip(read_all(named), truth(6), strict=True))


@pytest.mark.parametrize("kind", ["binary", "bits"])
def test_black_and_white_masks(tmp_path: Path, kind: str) -> None:
    contents = photos.open_folder(photo_layout.write_masks(tmp_path, kind=kind))
    assert len(contents.classes) == 2
    if kind == "binary":
        assert contents.classes == ("background", "object")
        assert contents.colors == {(0, 0, 0): 0, (255, 255, 255): 1}
        assert noted(contents, "only 0 and 255")
    assert all(
        np.array_equal(mask, np.minimum(each, 1)) for mask, each in zip(read_all(contents), truth(6), strict=True)
    )
    (tmp_path / "classes.txt").write_text("paper\nink\n")
    named = photos.open_folder(tmp_path)
    assert named.classes == ("paper", "ink")
    assert all(np.array_equal(*pair) for pair in zip(read_all(named), read_all(contents), strict=True))
    (tmp_path / "classes.txt").write_text("paper\nink\nglue\n")  # now 255 can only mean "no label"
    assert photos.open_folder(tmp_path).colors is None


def test_masks_of_both_black_and_white_kinds(tmp_path: Path) -> None:
    photo_layout.write_pairs(tmp_path / "labeled", 2, "binary")
    photo_layout.write_pairs(tmp_path / "labeled", 2, "bits", seed=2)
    contents = photos.open_folder(tmp_path)
    assert contents.classes == ("background", "object")
    assert all(mask.max() == 1 for mask in read_all(contents))


def test_palettes_that_differ_mean_colors(tmp_path: Path) -> None:
    photo_layout.write_pairs(tmp_path / "labeled", 3, "rgb")
    for path in (tmp_path / "labeled" / "masks").iterdir():
        with Image.open(path) as mask:
            mask.convert("P", palette=Image.Palette.ADAPTIVE, colors=2).save(path)
    contents = photos.open_folder(tmp_path)
    assert contents.colors is not None
    assert len(contents.classes) == 4


def test_masks_of_nothing_but_ground(tmp_path: Path) -> None:
    image(tmp_path / "labeled" / "images" / "1.png")
    photo_layout.save(Image.new("L", (8, 8)), tmp_path / "labeled" / "masks" / "1.png")
    assert noted(photos.open_folder(tmp_path), "only one class, 'class 0'")


def test_palettes_that_agree_are_kept(tmp_path: Path) -> None:
    """Predictions then look like what was drawn; classes without a color of their own get another one."""
    for name in ("a", "b"):
        segment_layout.save(tmp_path / "labeled" / "images" / f"{name}.png", np.zeros((4, 4, 3), np.uint8))
        mask = Image.fromarray(np.array([[0, 2]], np.uint8).repeat(4, 0).repeat(2, 1))
        mask.putpalette([9, 8, 7, 0, 0, 0, 250, 128, 1])
        (tmp_path / "labeled" / "masks").mkdir(exist_ok=True, parents=True)
        mask.save(tmp_path / "labeled" / "masks" / f"{name}.png")
    palette = photos.open_folder(tmp_path).palette
    assert (palette[0], palette[2]) == ((9, 8, 7), (250, 128, 1))
    assert len(set(palette)) == 3


def test_gray_levels_far_apart_are_colors(tmp_path: Path) -> None:
    image(tmp_path / "labeled" / "images" / "1.png", (3, 1))
    levels = Image.fromarray(np.array([[0, 128, 255]], dtype=np.uint8))
    photo_layout.save(levels, tmp_path / "labeled" / "masks" / "1.png")
    assert photos.open_folder(tmp_path).classes == ("color #000000", "color #808080", "color #ffffff")


@pytest.mark.parametrize(
    ("text", "classes", "void"),
    [
        ("0 0 0 ground\n255 0 0 red disk\n0 0 255 square\n255 255 0 tri\n", ("ground", "red disk", *REST), False),
        ("ground,0,0,0\ndisk,255,0,0\nvoid,0,0,255\ntri,255,255,0\n", ("ground", "disk", "tri"), True),
        ("1 disk 255 0 0\n0 ground 0 0 0\n2 square 0 0 255\n3 tri 255 255 0\n", ("ground", "disk", *REST), False),
        ("ground:0,0,0::\ndisk:255,0,0::\nsquare:0,0,255::\ntri:255,255,0::\n", ("ground", "disk", *REST), False),
    ],
)  # fmt: skip
def test_ways_to_write_colors(tmp_path: Path, text: str, classes: tuple[str, ...], void: bool) -> None:
    photo_layout.write_masks(tmp_path, kind="rgb")
    (tmp_path / "classes.txt").write_text(text)
    contents = photos.open_folder(tmp_path)
    assert contents.classes == classes
    expected = truth(6)
    if void:
        table = np.array([0, 1, 255, 2])
        expected = [table[each] for each in expected]
    assert all(np.array_equal(*pair) for pair in zip(read_all(contents), expected, strict=True))


def test_colors_of_classes_only_show_masks_of_numbers(tmp_path: Path) -> None:
    photo_layout.write_masks(tmp_path, kind="gray")
    photo_layout.write_names(tmp_path / "classes.txt", photo_layout.MASK_COLORS)
    contents = photos.open_folder(tmp_path)
    assert contents.colors is None
    assert contents.palette == tuple(photo_layout.MASK_COLORS.values())


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("rgb", "ground\ndisk\nsquare\ntriangle\n", "classes.txt gives no colors"),
        ("rgb", "ground 0 0 0\ndisk\n", "'disk' has no color"),
        ("rgb", "ground 0 0 0\ndisk 0 0 0\n", "is there twice"),
        ("rgb", "ground 0 0 0\ndisk 0 0 300\n", "is outside 0..255"),
        ("gray", "0 ground\n2 disk\n", "without a gap"),
        ("gray", "ground\n", "must name 2 to 255"),
        ("gray", "ground\nground\n", "must name 2 to 255"),
    ],
)
def test_classes_that_cannot_be_meant(tmp_path: Path, kind: str, text: str, words: str) -> None:
    photo_layout.write_masks(tmp_path, labeled=3, unlabeled=1, kind=kind)
    (tmp_path / "classes.txt").write_text(text)
    assert words in failure(tmp_path)


def test_masks_that_look_like_photos(tmp_path: Path) -> None:
    for number in range(2):
        picture = photo_layout.scene("disk", number)[0]
        photo_layout.save(picture, tmp_path / "labeled" / "images" / f"{number}.png")
        photo_layout.save(picture, tmp_path / "labeled" / "masks" / f"{number}.png")
    assert "more than 64 values, like a photo or smooth edges" in failure(tmp_path)


def test_one_unreadable_mask_is_left_to_the_survey(tmp_path: Path) -> None:
    photo_layout.write_masks(tmp_path)
    masks = sorted((tmp_path / "labeled" / "masks").iterdir())
    masks[0].write_bytes(b"")
    assert len(photos.open_folder(tmp_path).labeled) == 6
    for mask in masks:
        mask.write_bytes(b"")
    assert "0000.png is empty" in failure(tmp_path)


def test_accents_that_are_stored_in_two_ways_match(tmp_path: Path) -> None:
    """As when images come from macOS and masks from elsewhere."""
    for place, name in (("images", "e\u0301"), ("masks", "\u00e9"), ("images", "\u00fc"), ("masks", "u\u0308")):
        image(tmp_path / "labeled" / place / f"{name}.png")
        image(tmp_path / "flat" / place / f"{name}.png")
    segment_layout.save_list(tmp_path / "flat" / "splits" / "val.txt", ["u\u0308"])
    contents = photos.open_folder(tmp_path)
    assert ids(contents.labeled) == ["labeled/images/e\u0301.png", "labeled/images/\u00fc.png"]
    assert contents.labeled[0].mask == tmp_path / "labeled" / "masks" / "\u00e9.png"
    assert ids(photos.open_folder(tmp_path / "flat").validation) == ["images/\u00fc.png"]


def test_accents_in_names_of_classes_match(tmp_path: Path) -> None:
    for name in ("labeled/e\u0301", "labeled/u", "test/\u00e9"):
        image(tmp_path / name / "1.png")
    contents = photos.open_folder(tmp_path)
    assert contents.classes == ("e\u0301", "u")
    assert [photo.label for photo in contents.test] == [0]


@pytest.mark.parametrize(
    ("added", "removed", "words"),
    [
        ("images/0001.png", None, "differ only in their ending"),
        ("masks/0001.tif", None, "differ only in their ending"),
        ("masks/9.png", None, "1 files have no image of the same name, the first is"),
        ("images/9.png", None, "1 files have no mask of the same name, the first is"),
        (None, "masks", "needs both images/ and masks/"),
    ],
)
def test_images_and_masks_must_match(tmp_path: Path, added: str | None, removed: str | None, words: str) -> None:
    photo_layout.write_masks(tmp_path, labeled=2, unlabeled=1)
    if added is not None:
        image(tmp_path / "labeled" / added)
    if removed is not None:
        (tmp_path / "labeled" / removed).rename(tmp_path / removed)
    assert words in failure(tmp_path)


def test_what_is_noted_of_mask_folders(tmp_path: Path) -> None:
    photo_layout.write_masks(tmp_path, labeled=2, unlabeled=0)
    photo_layout.write_pairs(tmp_path / "unlabeled", 1)
    image(tmp_path / "val" / "1.png")
    contents = photos.open_folder(tmp_path)
    assert ids(contents.unlabeled) == ["unlabeled/images/0000.jpg"]
    assert noted(contents, "unlabeled/masks was not read")
    assert noted(contents, "val/ is left out")


# --- known data sets ---


def test_flat(tmp_path: Path) -> None:
    segment_layout.write_flat(tmp_path)
    image(tmp_path / "images" / "new.png")
    contents = photos.open_folder(tmp_path)
    assert contents.classes == ("ground", "thing")
    assert ids(contents.labeled) == ["images/a.jpg", "images/b.webp"]
    assert ids(contents.validation) == ["images/c.png"]
    assert ids(contents.unlabeled) == ["images/new.png"]
    segment_layout.save_list(tmp_path / "splits" / "test.txt", ["c"])
    assert "'c' is listed twice" in failure(tmp_path)
    segment_layout.save_list(tmp_path / "splits" / "test.txt", ["new", "nothing"])
    assert "lists 2 without image or mask, the first is 'new'" in failure(tmp_path)
    segment_layout.save_list(tmp_path / "splits" / "test.txt", ["a.jpg", "b"])
    assert "has a mask to learn from" in failure(tmp_path)


def test_flat_beside_other_folders(tmp_path: Path) -> None:
    segment_layout.write_flat(tmp_path)
    photo_layout.write_pairs(tmp_path / "test", 2, "gray", seed=3)
    photo_layout.write_pairs(tmp_path / "val", 1, "gray", seed=6)
    image(tmp_path / "images" / "new.png")
    image(tmp_path / "unlabeled" / "deep" / "1.png")
    contents = photos.open_folder(tmp_path)
    assert contents.layout.startswith(
        "images/ with masks/ for some, unlabeled/, val/ and test/: masks in class numbers"
    )
    assert ids(contents.labeled) == ["images/a.jpg", "images/b.webp"]
    assert ids(contents.unlabeled) == ["images/new.png", "unlabeled/deep/1.png"]
    assert ids(contents.validation) == ["images/c.png", "val/images/0006.jpg"]
    assert ids(contents.test) == ["test/images/0003.jpg", "test/images/0004.jpg"]
    assert contents.test[0].mask == tmp_path / "test" / "masks" / "0003.png"
    assert not noted(contents, "no unlabeled images")
    (tmp_path / "test" / "masks").rename(tmp_path / "test" / "other")
    assert noted(photos.open_folder(tmp_path), "test/ is left out: it needs both images/ and masks/")


@pytest.mark.parametrize("inner", ["", "VOCdevkit", "VOCdevkit/VOC2012"])
def test_voc(tmp_path: Path, inner: str) -> None:
    segment_layout.write_voc(tmp_path)
    contents = photos.open_folder(tmp_path / inner)
    assert "PASCAL VOC" in contents.layout
    assert len(contents.classes) == 21
    assert [Path(photo.id).stem for photo in contents.labeled] == list(segment_layout.VOC_TRAIN)
    assert [Path(photo.id).stem for photo in contents.unlabeled] == list(segment_layout.VOC_EXTRA)
    assert [Path(photo.id).stem for photo in contents.test] == list(segment_layout.VOC_VAL)
    assert noted(contents, "voc-1of20")
    assert len(read_all(contents)) == 2


def test_cityscapes(tmp_path: Path) -> None:
    """Without a mask an image is unlabeled; numbers that are not evaluated are no label."""
    _, planes = segment_layout.write_cityscapes(tmp_path)
    lost, kept = segment_layout.CITY_TRAIN[0], segment_layout.CITY_TRAIN[1]
    (tmp_path / "gtFine" / "train" / f"{lost}_gtFine_labelIds.png").unlink()
    contents = photos.open_folder(tmp_path)
    assert "Cityscapes" in contents.layout
    assert [photo.id for photo in contents.unlabeled] == [f"leftImg8bit/train/{lost}_leftImg8bit.png"]
    assert len(contents.labeled) == len(segment_layout.CITY_TRAIN) - 1
    assert len(contents.test) == len(segment_layout.CITY_VAL)
    assert noted(contents, "cityscapes-1of8")
    assert contents.labeled[0].mask is not None
    read = mask_files.read_mask(contents.labeled[0].mask, contents.colors, len(contents.classes))
    assert contents.labeled[0].id == f"leftImg8bit/train/{kept}_leftImg8bit.png"
    assert (read == cityscapes.TABLE[planes[kept]]).all()


def test_cityscapes_without_a_mask_is_refused(tmp_path: Path) -> None:
    segment_layout.write_cityscapes(tmp_path)
    for path in (tmp_path / "gtFine" / "train").rglob("*_labelIds.png"):
        path.unlink()
    assert "has a mask in gtFine/train" in failure(tmp_path)
