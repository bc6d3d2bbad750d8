"""Folders as people have them, through the command: one clear line each, the right exit code, and nothing lost."""

import os
import shutil
import struct
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dmt.cli import app
from tests.data.folders import photo_layout
from tests.data.pixels import segment_layout

TINY = "shape=chain share=none epochs=1 epochs_round=1 fractions=1 batch=8 batch_pseudo=6 batch_labeled=2"
LABELED, UNLABELED, MASK = "labeled/disk/0000.jpg", "unlabeled/9000.jpg", "labeled/masks/0001.png"
JPEG = Image.new("RGB", (40, 30), (90, 120, 60))
ORIGINAL = "put the original file there or leave it out"


@dataclass(frozen=True)
class Case:
    """What is done to a good folder, and what the command says.

    Attributes:
        spoil: changes the folder at this path.
        code: exit code of ``dmt check``: 0 fine, 1 a run would be meaningless, 2 not to be understood.
        words: all of them stand in one line of what it prints.
        fit: exit code of ``dmt fit``; by default 0 for 0, else 2.
        fit_words: in one line of it; by default the same as those of ``dmt check``.
    """

    name: str
    spoil: Callable[[Path], object]
    code: int
    words: tuple[str, ...]
    fit: int | None = None
    fit_words: tuple[str, ...] | None = None
    base: str = "classes"


def held(folder: Path) -> dict[str, bytes | str | None]:
    """Names and bytes of all that lies in a folder; of links where they lead."""
    if not folder.is_dir():
        return {"": folder.read_bytes() if folder.exists() else None}
    content: dict[str, bytes | str | None] = {}
    for place, folders, names in os.walk(folder):
        for name in [*folders, *names]:
            path = Path(place, name)
            content[str(path.relative_to(folder))] = (
                str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None
            )
    return content


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders with which nothing is wrong, to be copied and spoiled."""
    root = tmp_path_factory.mktemp("bases")
    photo_layout.write_classes(root / "classes", labeled=5, unlabeled=6, test=1)
    photo_layout.write_masks(root / "masks", labeled=10, unlabeled=4, test=3)
    photo_layout.write_names(root / "masks/classes.txt")
    photo_layout.write_images(root / "table", [photo_layout.SHAPES[number % 3] for number in range(18)])
    rows = [(f"{number:04d}.jpg", photo_layout.SHAPES[number % 3]) for number in range(15)]
    photo_layout.write_table(root / "table", [("file", "label"), *rows])
    (root / "nothing").mkdir()
    return {path.name: path for path in root.iterdir()}


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def dmt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process: exit code, standard output, standard error."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["dmt", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            app.main()
        said = capsys.readouterr()
        for text in (said.out, said.err):
            assert "Traceback" not in text
            assert "\x1b" not in text
        if ended.value.code == 2:
            assert said.err.count("dmt: error: ") == 1, said.err
            assert said.err.splitlines()[-1].startswith("dmt: error: ")
        return int(ended.value.code or 0), said.out, said.err

    return run


def says(text: str, words: tuple[str, ...]) -> bool:
    """Whether one line has all the words."""
    return any(all(word in line for word in words) for line in text.splitlines())


def fit(dmt: Command, folder: Path, out: Path) -> tuple[int, str, str]:
    masks = any((folder / name).is_dir() for name in ("labeled/masks", "masks", "VOCdevkit", "gtFine"))
    sizes = "net=fcn-4 crop=32,32 size=64" if masks else "net=resnet8-4 size=16"
    settings = [word for pair in f"{TINY} {sizes}".split() for word in ("--set", pair)]
    return dmt("fit", folder, "--out", out, "--device", "cpu", *settings)


# --- ways to spoil a folder ---


def write(name: str, content: bytes = b"") -> Callable[[Path], object]:
    def spoil(root: Path) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)

    return spoil


def save(name: str, make: Callable[[], Image.Image], **options: object) -> Callable[[Path], object]:
    def spoil(root: Path) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        make().save(root / name, **options)  # type: ignore[arg-type]

    return spoil


def remove(*names: str) -> Callable[[Path], object]:
    def spoil(root: Path) -> None:
        for name in names:
            shutil.rmtree(root / name) if (root / name).is_dir() else (root / name).unlink()

    return spoil


def copy(source: str, target: str) -> Callable[[Path], object]:
    return lambda root: shutil.copy(root / source, root / target)


def link(name: str, target: str) -> Callable[[Path], object]:
    return lambda root: (root / name).symlink_to(target)


def cut(name: str) -> Callable[[Path], object]:
    return lambda root: (root / name).write_bytes((root / name).read_bytes()[:-200])


def table(*lines: str, encoding: str = "utf-8") -> Callable[[Path], object]:
    """Another labels.csv: these lines behind or instead of its own."""

    def spoil(root: Path) -> None:
        text = (root / "labels.csv").read_text()
        (root / "labels.csv").write_bytes((text + "".join(f"{line}\n" for line in lines)).encode(encoding))

    return spoil


def rewritten(change: Callable[[str], str], name: str = "labels.csv") -> Callable[[Path], object]:
    return lambda root: (root / name).write_text(change((root / name).read_text()))


def masks(kind: str) -> Callable[[Path], object]:
    """All masks drawn another way, and no classes.txt."""

    def spoil(root: Path) -> None:
        shutil.rmtree(root)
        photo_layout.write_masks(root, labeled=10, unlabeled=4, kind=kind)

    return spoil


def spoil_all(folder: str) -> Callable[[Path], object]:
    def spoil(root: Path) -> None:
        for path in (root / folder).iterdir():
            path.write_text("text")

    return spoil


def emptied(*names: str) -> Callable[[Path], object]:
    def spoil(root: Path) -> None:
        for name in names:
            shutil.rmtree(root / name)
            (root / name).mkdir()

    return spoil


def instead(root: Path) -> None:
    """A file where the folder was."""
    root.rmdir()
    root.write_text("x")


def bomb(name: str) -> Callable[[Path], object]:
    """A few bytes that promise 900 million pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(bytes(1000))), chunk(b"IEND", b""))
    return write(name, b"\x89PNG\r\n\x1a\n" + b"".join(parts))


def gray16() -> Image.Image:
    return Image.fromarray(np.arange(0, 40_000, 33, dtype=np.uint16)[:1200].reshape(30, 40))


def exif() -> Image.Exif:
    turned = Image.Exif()
    turned[0x0112] = 6
    return turned


def crowded() -> Image.Image:
    return Image.fromarray(np.arange(48 * 64, dtype=np.uint8).reshape(48, 64) % 200)


def unnamed(spoil: Callable[[Path], object]) -> Callable[[Path], object]:
    """Without classes.txt, too."""

    def both(root: Path) -> None:
        (root / "classes.txt").unlink()
        spoil(root)

    return both


def changed(name: str, change: Callable[[Image.Image], Image.Image]) -> Callable[[Path], object]:
    def spoil(root: Path) -> None:
        with Image.open(root / name) as image:
            change(image).save(root / name)

    return spoil


def readable(name: str, make: Callable[[], Image.Image], **options: object) -> Case:
    """An unusual image that is fine: it counts as a labeled one, and nothing is said about it."""
    return Case(name, save(f"labeled/disk/{name}", make, **options), 0, ("16 labeled, 6 unlabeled",), 0, ())


LONG = "n" * 251
IN_CLASSES = [
    Case("nothing wrong", lambda root: None, 0, ("found: 1 note",), 0, ()),
    Case("one class", remove("labeled/disk", "labeled/square", "test"), 1, ("fewer than 2 classes", "'triangle'"),
         2, ("only one class", "'triangle'")),
    Case("empty class folder", lambda root: (root / "labeled/empty").mkdir(), 0,
         ("labeled/empty holds no images and is not a class",)),
    Case("every class folder empty", emptied("labeled/disk", "labeled/square", "labeled/triangle"), 2,
         ("labeled holds no images",)),
    Case("zero bytes, labeled", write(LABELED), 1, (LABELED, "is empty (0 bytes)")),
    Case("zero bytes, unlabeled", write(UNLABELED), 0, (UNLABELED, "is empty (0 bytes)"), 0,
         ("skipped", UNLABELED, "is empty (0 bytes)")),
    Case("text, labeled", write(LABELED, b"hello"), 1, (LABELED, "is not an image", ORIGINAL)),
    Case("text, unlabeled", write(UNLABELED, b"hello"), 0, (UNLABELED, "is not an image"), 0, ("skipped", UNLABELED)),
    Case("cut off, labeled", cut(LABELED), 1, (LABELED, "is truncated")),
    Case("cut off, unlabeled", cut(UNLABELED), 0, (UNLABELED, "is truncated"), 0, ("skipped", UNLABELED)),
    Case("1×1", save("unlabeled/dot.png", lambda: Image.new("RGB", (1, 1))), 0,
         ("1 image is smaller than 16 pixels", "'unlabeled/dot.png'"), 0, ()),
    Case("20,000×20", save("unlabeled/tape.png", lambda: Image.new("RGB", (20_000, 20))), 0,
         ("more than 8 times as long as wide", "'unlabeled/tape.png'"), 0, ()),
    readable("cmyk.jpg", lambda: JPEG.convert("CMYK")),
    readable("deep.png", gray16),
    readable("palette.png", lambda: JPEG.quantize(8), transparency=bytes([0, 128, 255])),
    readable("rgba.png", lambda: JPEG.convert("RGBA")),
    readable("la.png", lambda: JPEG.convert("LA")),
    readable("bits.png", lambda: JPEG.convert("1")),
    readable("moving.gif", lambda: JPEG, save_all=True, append_images=[Image.new("RGB", (40, 30), (9, 9, 9))]),
    readable("turned.jpg", lambda: JPEG, exif=exif()),
    readable("plain.bmp", lambda: JPEG),
    readable("plain.tiff", lambda: JPEG),
    readable("plain.webp", lambda: JPEG),
    readable("CAPITALS.JPG", lambda: JPEG),
    readable("ünï 照片 🎈.png", lambda: JPEG),
    readable("[red]x[!].png", lambda: JPEG),
    readable(f"{LONG}.png", lambda: JPEG),
    Case("same stem, two endings", copy(LABELED, "labeled/disk/0000.png"), 0, ("is a copy of others", "0000.png"),
         0, ()),
    Case("newline in a name, fine", save("unlabeled/two\nlines.png", lambda: JPEG), 0, ("15 labeled, 7 unlabeled",),
         0, ()),
    Case("newline in a broken name", write("unlabeled/two\nlines.jpg"), 0, ("two\\nlines.jpg is empty",), 0,
         ("skipped", "two\\nlines.jpg is empty")),
    Case("newline in a broken labeled name", write("labeled/disk/two\nlines.jpg"), 1, ("two\\nlines.jpg is empty",)),
    Case("control characters in a class", save("labeled/a\x1b[31m\x07b/1.png", lambda: JPEG), 0, ("a\\x1b[31m\\x07b",),
         0, ()),
    Case("markup in a class", save("labeled/[bold]x[red]/1.png", lambda: JPEG), 0, ("│ [bold]x[red]",), 0, ()),
    Case("not UTF-8", lambda root: Path(os.fsdecode(os.fsencode(root / "unlabeled") + b"/\xff.jpg")).touch(), 2,
         ("is not UTF-8 text; rename the file",)),
    Case("link in a circle", link("labeled/disk/loop", ".."), 0, ("links to folders were not entered (1)",)),
    Case("link to itself", link("unlabeled/self.jpg", "self.jpg"), 0, ("unlabeled/self.jpg", "is a link to itself"), 0,
         ("skipped", "self.jpg")),
    Case("link to nothing", link("labeled/disk/gone.jpg", "nowhere.jpg"), 1,
         ("labeled/disk/gone.jpg", "is a broken link")),
    Case("link to nothing, unlabeled", link("unlabeled/gone.jpg", "nowhere.jpg"), 0,
         ("unlabeled/gone.jpg", "is a broken link"), 0, ("skipped", "gone.jpg")),
    Case("a folder called like an image", lambda root: (root / "unlabeled/x.jpg").mkdir(), 0, ("found: 1 note",),
         0, ()),
    Case("a pipe", lambda root: os.mkfifo(root / "unlabeled/pipe.jpg"), 0, ("pipe.jpg", "is no regular file"), 0,
         ("skipped", "pipe.jpg")),
    Case("bomb, unlabeled", bomb("unlabeled/bomb.png"), 0, ("unlabeled/bomb.png", "is too large"), 0,
         ("skipped", "bomb.png")),
    Case("bomb, labeled", bomb("labeled/disk/bomb.png"), 1, ("labeled/disk/bomb.png", "is too large")),
    Case("hidden files", write("labeled/disk/._0000.jpg", b"x"), 0, ("found: 1 note",), 0, ()),
    Case("files of other kinds", write("unlabeled/notes.heic", b"x"), 0, ("left out: 1 .heic",)),
    Case("nothing unlabeled", remove("unlabeled"), 0, ("no unlabeled images", "training uses the labels only"), 0,
         ("training uses the labels only",)),
    Case("everything unlabeled broken", spoil_all("unlabeled"), 1, ("no unlabeled image can be read",), 2,
         ("none of the 6 unlabeled images can be read",)),
    Case("one picture, two labels", copy(LABELED, "labeled/square/again.jpg"), 1,
         ("1 picture has different labels", "'labeled/disk/0000.jpg' = 'labeled/square/again.jpg'")),
    Case("test picture is labeled", copy(LABELED, "test/disk/leak.jpg"), 1, ("1 test picture is also in labeled",)),
    Case("unknown class in test", save("test/moon/1.png", lambda: JPEG), 2, ("moon is a class that has no labeled",)),
    Case("images beside class folders", save("labeled/1.png", lambda: JPEG), 2, ("1 images are in no class folder",)),
    Case("labeled twice", save("train/disk/1.png", lambda: JPEG), 2, ("has both labeled/ and train/",)),
    Case("only unlabeled", remove("labeled", "test"), 2, ("found 6 images", "no labeled/ and no CSV")),
    Case("one folder too high", lambda root: (shutil.copytree(root, root / "inner"), remove("labeled")(root)), 2,
         ("did you mean", "inner?")),
]  # fmt: skip

IN_MASKS = [
    Case("masks, nothing wrong", lambda root: None, 0, ("found: 1 note",), 0, ()),
    Case("mask of another size", changed(MASK, lambda image: image.resize((30, 20))), 1,
         (MASK, "has 20×30 pixels but its image 48×64")),
    Case("class out of range", changed(MASK, lambda image: Image.fromarray(np.asarray(image) + 40)), 1,
         (MASK, "has the class 40, outside 0..3 and 255")),
    Case("0 and 255", masks("binary"), 0, ("masks hold only 0 and 255", "255 = object")),
    Case("0 and 255 among numbers", rewritten(lambda text: "ground\nthing\n", "classes.txt"), 1,
         ("outside 0..1 and 255",)),
    Case("colors without classes.txt", masks("rgb"), 0, ("the colors of the masks make 4 classes",)),
    Case("colors, classes.txt without colors", changed(MASK, lambda image: image.convert("RGB")), 2,
         (MASK, "is drawn in colors", "classes.txt gives no colors")),
    Case("too many values", unnamed(save(MASK, crowded)), 2, (MASK, "has more than 64 values")),
    Case("JPEG mask", lambda root: (remove(MASK)(root), save(MASK.replace("png", "jpg"), crowded)(root)), 1,
         ("0001.jpg", "is a JPEG file, which blurs class numbers")),
    Case("mask without image", remove("labeled/images/0001.jpg"), 2, ("have no image of the same name", MASK)),
    Case("image without mask", remove(MASK), 2, ("have no mask of the same name", "labeled/images/0001.jpg")),
    Case("image twice", save("labeled/images/0001.png", lambda: JPEG), 2, ("0001", "differ only in their ending")),
    Case("no masks folder", remove("labeled/masks"), 2, ("needs both images/ and masks/",)),
    Case("empty mask file", write(MASK), 1, (MASK, "is empty (0 bytes)")),
    Case("cut off image", cut("labeled/images/0001.jpg"), 1, ("labeled/images/0001.jpg", "is truncated")),
    Case("cut off, unlabeled image", cut(UNLABELED), 0, (UNLABELED, "is truncated"), 0, ("skipped", UNLABELED)),
    Case("nothing unlabeled, masks", remove("unlabeled"), 0, ("no unlabeled images",), 0,
         ("training uses the labels only",)),
    Case("everything unlabeled broken, masks", spoil_all("unlabeled"), 1, ("no unlabeled image can be read",), 2,
         ("none of the 4 unlabeled images can be read",)),
    Case("one class listed", rewritten(lambda text: "ground\n", "classes.txt"), 2, ("must name 2 to 255",)),
]  # fmt: skip

FIRST = "0000.jpg"
IN_TABLES = [
    Case("table, nothing wrong", lambda root: None, 0, ("15 labeled, 3 unlabeled",), 0, ()),
    Case("byte order mark", rewritten(lambda text: "\ufeff" + text), 0, ("15 labeled, 3 unlabeled",), 0, ()),
    Case("UTF-16", table(encoding="utf-16"), 0, ("15 labeled, 3 unlabeled",), 0, ()),
    Case("semicolons", rewritten(lambda text: text.replace(",", ";")), 0, ("15 labeled, 3 unlabeled",), 0, ()),
    Case("missing column", rewritten(lambda text: text.replace("label", "other", 1)), 2,
         ("needs a first line with the columns file and label", "file, other")),
    Case("empty table", write("labels.csv"), 2, ("columns file and label; it has none",)),
    Case("files that are not there", table("gone.jpg,disk"), 2, ("names 1 files that do not exist", "'gone.jpg'")),
    Case("two labels in the table", table(f"{FIRST},square"), 2, ("gives two labels to '0000.jpg'", "line 17")),
    Case("repeated row", table(f"{FIRST},disk"), 0, ("1 rows of labels.csv repeat earlier ones",)),
    Case("path leaves the folder", table("../0000.jpg,disk"), 2, ("'../0000.jpg' leaves the folder", "line 17")),
    Case("absolute path", table("/0000.jpg,disk"), 2, ("'/0000.jpg' leaves the folder",)),
    Case("no labels at all", rewritten(lambda text: "file,label\n0000.jpg,\n"), 2,
         ("gives no training image a label",)),
    Case("unknown split", rewritten(lambda text: "file,label,split\n0000.jpg,disk,mine\n"), 2,
         ("line 2: the split is 'mine'",)),
    Case("not a table", write("labels.csv", b"\x00\x01\x02"), 2, ("labels.csv is not a text file",)),
    Case("two tables", lambda root: ((root / "labels.csv").rename(root / "a.csv"), write("b.csv")(root)), 2,
         ("has 2 CSV files",)),
]  # fmt: skip

ELSEWHERE = [
    Case("empty folder", lambda root: None, 2, ("holds no images",)),
    Case("no folder", lambda root: root.rmdir(), 2, ("there is no folder",)),
    Case("a file", instead, 2, ("is a file; give the folder",)),
    Case("VOC", segment_layout.write_voc, 0, ("PASCAL VOC", "21 classes")),
    Case("Cityscapes", segment_layout.write_cityscapes, 0, ("19 classes", "as Cityscapes")),
]  # fmt: skip

CASES = [
    replace(case, base=base)
    for base, cases in (("classes", IN_CLASSES), ("masks", IN_MASKS), ("table", IN_TABLES), ("nothing", ELSEWHERE))
    for case in cases
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_one_clear_line(case: Case, bases: dict[str, Path], dmt: Command, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(bases[case.base], folder)
    case.spoil(folder)
    before = held(folder)

    code, out, err = dmt("check", folder, "--no-time")
    assert code == case.code, out + err
    assert says(err if code == 2 else out, case.words), out + err
    assert not (out if code == 2 else err)
    assert held(folder) == before

    code, out, err = fit(dmt, folder, tmp_path / "run")
    assert code == ((2 if case.code else 0) if case.fit is None else case.fit), out + err
    assert says(err, case.words if case.fit_words is None else case.fit_words), out + err
    assert held(folder) == before
    assert (tmp_path / "run" / "run.json").exists() == (code == 0)


def test_at_least_forty_kinds() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 40


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(bases: dict[str, Path], dmt: Command, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(bases["classes"], tmp_path / "mine"))
    (folder / LABELED).chmod(0)
    code, out, _ = dmt("check", folder, "--no-time")
    assert (code, says(out, (LABELED, "may not be read"))) == (1, True)


@pytest.mark.parametrize("base", ["classes", "masks", "table"])
def test_a_run_among_the_images(base: str, bases: dict[str, Path], dmt: Command, tmp_path: Path) -> None:
    """Its own pictures are not taken for photos when the command is repeated."""
    folder = Path(shutil.copytree(bases[base], tmp_path / "mine"))
    before = held(folder)
    out = folder / ("unlabeled/run" if base != "table" else "run")
    checked = dmt("check", folder, "--no-time")
    for _ in range(2):
        assert fit(dmt, folder, out)[0] == 0
        assert {name: content for name, content in held(folder).items() if name in before} == before
    assert dmt("check", folder, "--no-time") == checked


def test_an_out_folder_with_other_files(bases: dict[str, Path], dmt: Command, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/thesis.txt").write_text("years of work")
    code, _, err = fit(dmt, bases["classes"], tmp_path / "out")
    assert (code, says(err, ("contains other files but no run",))) == (2, True)
    code, _, err = fit(dmt, bases["classes"], tmp_path / "out/thesis.txt")
    assert (code, says(err, ("thesis.txt is a file",))) == (2, True)
    assert held(tmp_path / "out") == {"thesis.txt": b"years of work"}


def test_a_folder_whose_name_has_two_lines(bases: dict[str, Path], dmt: Command, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(bases["classes"], tmp_path / "mi\nne"))
    assert dmt("check", folder, "--no-time")[0] == 0
    write(LABELED)(folder)
    assert says(fit(dmt, folder, tmp_path / "run")[2], ("dmt: error: ", "mi\\nne ", "labeled/disk/0000.jpg is empty"))
    for verb in (("check",), ("fit", "--out", tmp_path / "run")):
        code, _, err = dmt(*verb, tmp_path / "a\nb/")
        assert (code, says(err, ("dmt: error: there is no folder", "a\\nb"))) == (2, True)


def test_classes_in_every_table(bases: dict[str, Path], dmt: Command, tmp_path: Path) -> None:
    """Markup, emoji codes and control characters are shown, not obeyed, by the verbs that come after fit, too."""
    folder = Path(shutil.copytree(bases["classes"], tmp_path / "mine"))
    (folder / "labeled/disk").rename(folder / "labeled/[red]disk :smile:\x1b")
    (folder / "test/disk").rename(folder / "test/[red]disk :smile:\x1b")
    assert fit(dmt, folder, tmp_path / "run")[0] == 0
    for words in (("score", tmp_path / "run"), ("report", tmp_path / "run")):
        assert dmt(*words)[0] == 0
    assert says(dmt("score", tmp_path / "run")[1], ("│ class [red]disk :smile:\\x1b",))
    shutil.rmtree(folder / "labeled/square")
    shutil.rmtree(folder / "test/square")
    code, _, err = fit(dmt, folder, tmp_path / "run")
    said = (f"error: {tmp_path / 'run'}: the run was made for the classes [red]disk", "has others; give another --out")
    assert (code, says(err, said)) == (2, True)
    code, _, err = dmt("score", tmp_path / "run")
    assert (code, says(err, ("has others; give the folder of its images with --data",))) == (2, True)


def test_predicting_what_cannot_be_read(bases: dict[str, Path], dmt: Command, tmp_path: Path) -> None:
    assert fit(dmt, bases["classes"], tmp_path / "run")[0] == 0
    new = Path(shutil.copytree(bases["classes"] / "unlabeled", tmp_path / "new"))
    write("._9000.jpg")(new)  # some systems leave these everywhere
    assert says(dmt("predict", tmp_path / "run", new, "--out", tmp_path / "p.csv")[1], ("6 images classified",))
    for number in range(7):
        write(f"bad-{number}.jpg")(new)
    before = (tmp_path / "p.csv").read_bytes()
    code, out, err = dmt("predict", tmp_path / "run", new, "--out", tmp_path / "p.csv")
    assert (code, says(out, ("6 images classified", "; 7 skipped"))) == (0, True)
    assert [line.split(" is empty")[0] for line in err.splitlines() if line.startswith("skipped")] == [
        *(f"skipped: {new}/bad-{number}.jpg" for number in range(5)), "skipped: 2 more",
    ]  # fmt: skip
    assert (tmp_path / "p.csv").read_bytes() == before
    code, _, err = dmt("predict", tmp_path / "run", *new.glob("bad-*"), "--out", tmp_path / "p.csv")
    assert (code, says(err, ("none of 7 files can be read, the first: ", "is empty"))) == (2, True)
    assert err.count("\n") == 1
    assert (tmp_path / "p.csv").read_bytes() == before
    assert dmt("predict", tmp_path / "run", tmp_path / "nowhere")[0] == 2
