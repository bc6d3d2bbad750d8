import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dmt.data.folders import doctor, doctor_rules, photos, survey
from dmt.data.folders.contents import FolderContents, Photo
from dmt.data.folders.doctor import Diagnosis
from dmt.data.folders.survey import Look, Survey
from tests.data.folders import photo_layout


@pytest.fixture(autouse=True)
def judges(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """These folders are small: that they have few test images is not what is asked."""
    if "what_few_tests" not in request.node.name:
        monkeypatch.setattr(doctor_rules, "JUDGES", 0)


def examined(root: Path) -> Diagnosis:
    contents = photos.open_folder(root)
    return doctor.examine(contents, survey.survey(contents))


def sole(diagnosis: Diagnosis, severity: str, *words: str) -> str:
    """The one issue that has these words; it must be so severe."""
    found = [each for each in diagnosis.issues if all(word in each.text for word in words)]
    assert len(found) == 1, diagnosis.text
    assert found[0].severity == severity
    assert f"  {severity}: {found[0].text}\n" in diagnosis.text
    return found[0].text


@pytest.fixture
def classes(tmp_path: Path) -> Path:
    """Nothing is wrong with it."""
    return photo_layout.write_classes(tmp_path / "photos", labeled=6, unlabeled=8, test=2)


@pytest.fixture
def masks(tmp_path: Path) -> Path:
    """Nothing is wrong with it."""
    root = photo_layout.write_masks(tmp_path / "photos", labeled=15, unlabeled=4, test=3)
    photo_layout.write_names(root / "classes.txt")
    return root


def test_what_is_there_and_what_would_be_done(classes: Path) -> None:
    contents = photos.open_folder(classes)
    diagnosis = doctor.examine(contents, survey.survey(contents), "about 2 minutes", ["size=48: small", "net=[bold]x"])
    assert not diagnosis.fatal
    assert diagnosis.issues == ()
    for line in ("18 labeled, 8 unlabeled, 6 test", "height 48; width 64", "no problems found", contents.layout):
        assert line in diagnosis.text
    assert "│ disk     │       6 │    2 │" in diagnosis.text
    assert diagnosis.text.endswith("what it would do\n  size=48: small\n  net=[bold]x\n  about 2 minutes\n")


def test_masks_are_counted_by_images_and_pixels(masks: Path) -> None:
    diagnosis = examined(masks)
    assert diagnosis.issues == ()
    assert "│ ground   │      15 │" in diagnosis.text
    assert "labeled pixels" in diagnosis.text


def spoil_labeled(root: Path) -> None:
    (root / "labeled/disk/0000.jpg").write_bytes(b"")


def spoil_test(root: Path) -> None:
    (root / "test/disk/0500.jpg").write_text("text")


def one_class(root: Path) -> None:
    for place in ("labeled/square", "labeled/triangle", "test"):
        shutil.rmtree(root / place)


def one_usable_class(root: Path) -> None:
    for path in [*(root / "labeled/square").iterdir(), *(root / "labeled/triangle").iterdir()]:
        path.write_text("text")


def all_unlabeled_unreadable(root: Path) -> None:
    for path in (root / "unlabeled").iterdir():
        path.write_text("text")


def two_labels(root: Path) -> None:
    shutil.copy(root / "labeled/disk/0001.jpg", root / "labeled/square/other.jpg")


def leak(root: Path) -> None:
    shutil.copy(root / "labeled/disk/0001.jpg", root / "test/disk/leak.jpg")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (spoil_labeled, ("1 of 18 labeled images cannot be used",)),
        (spoil_test, ("1 of 6 test images cannot be used",)),
        (one_class, ("fewer than 2 classes", "'disk'")),
        (one_usable_class, ("the usable labels hold 'disk' and no other class",)),
        (one_usable_class, ("test holds 'square', 'triangle', of which no image is labeled",)),
        (all_unlabeled_unreadable, ("no unlabeled image can be read",)),
        (two_labels, ("1 picture has different labels: 'labeled/disk/0001.jpg' = 'labeled/square/other.jpg'",)),
        (leak, ("1 test picture is also in labeled: 'test/disk/leak.jpg' = 'labeled/disk/0001.jpg'",)),
    ],
)
def test_what_makes_a_run_meaningless(classes: Path, spoil: Callable[[Path], None], words: tuple[str, ...]) -> None:
    spoil(classes)
    diagnosis = examined(classes)
    sole(diagnosis, "error", *words)
    assert diagnosis.fatal
    assert "fix the errors first" in diagnosis.text


def test_nothing_labeled(tmp_path: Path) -> None:
    path = photo_layout.save(photo_layout.scene("disk", 0)[0], tmp_path / "a.png")
    contents = FolderContents(tmp_path, "made by hand", False, (), (), (Photo("a.png", path),))
    diagnosis = doctor.examine(contents, survey.survey(contents))
    sole(diagnosis, "error", "there are no labeled images")
    assert diagnosis.fatal


def skip(root: Path) -> None:
    for number in range(7):
        (root / f"unlabeled/bad{number}.png").write_bytes(b"")


def none_unlabeled(root: Path) -> None:
    shutil.rmtree(root / "unlabeled")


def near_leak(root: Path) -> None:
    with Image.open(root / "labeled/disk/0001.jpg") as image:
        image.save(root / "test/disk/again.jpg", quality=95)


def seen_test(root: Path) -> None:
    shutil.copy(root / "test/disk/0500.jpg", root / "unlabeled/seen.jpg")


def seen_validation(root: Path) -> None:
    photo_layout.write_images(root / "val/disk", ["disk"] * 2, 400)
    shutil.copy(root / "labeled/disk/0001.jpg", root / "val/disk/again.jpg")


def few_labels(root: Path) -> None:
    for number in (0, 1):
        (root / f"labeled/disk/{number:04d}.jpg").unlink()


def unbalanced(root: Path) -> None:
    photo_layout.write_images(root / "labeled/square", ["square"] * 130, 3000)


def tiny(root: Path) -> None:
    photo_layout.save(photo_layout.scene("disk", 3, size=(15, 40))[0], root / "unlabeled/tiny.png")


def misspelled(root: Path) -> None:
    photo_layout.write_images(root / "labeled/Disk", ["disk"] * 6, 4000)
    photo_layout.write_images(root / "test/Disk", ["disk"], 4500)


def spaced(root: Path) -> None:
    photo_layout.write_images(root / "labeled/square ", ["square"] * 6, 4000)
    photo_layout.write_images(root / "test/square ", ["square"], 4500)


def slim(root: Path) -> None:
    photo_layout.save(photo_layout.scene("disk", 3, size=(20, 170))[0], root / "unlabeled/slim.png")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (skip, ("7 of 15 unlabeled images cannot be read and will be skipped",)),
        (none_unlabeled, ("there are no unlabeled images",)),
        (near_leak, ("1 test picture looks like one in labeled: 'test/disk/again.jpg' ≈ 'labeled/disk/0001.jpg'",)),
        (near_leak, ("; look at them before you remove any; if they are the same photos, scores would",)),
        (seen_test, ("1 test picture is also in unlabeled", "'test/disk/0500.jpg'", "transductive")),
        (seen_validation, ("1 validation picture is also in labeled",)),
        (few_labels, ("fewer than 5 labels for 'disk' (4)", "no round is checked and the last net is used")),
        (unbalanced, ("more than 20:1", "'square' has 136 labeled images, 'disk' only 6")),
        (tiny, ("1 image is smaller than 16 pixels: 'unlabeled/tiny.png'",)),
        (misspelled, ("the classes 'Disk' and 'disk' differ only in capitals", "probably a typo")),
        (spaced, ("the classes 'square' and 'square ' differ only", "give them one name")),
        (slim, ("1 image is more than 8 times as long as wide: 'unlabeled/slim.png'",)),
    ],
)
def test_what_makes_a_run_worse(classes: Path, spoil: Callable[[Path], None], words: tuple[str, ...]) -> None:
    spoil(classes)
    diagnosis = examined(classes)
    sole(diagnosis, "warning", *words)
    assert not diagnosis.fatal


def test_files_that_cannot_be_read_are_listed_with_reasons(classes: Path) -> None:
    skip(classes)
    text = examined(classes).text
    for number in range(5):
        assert f"\n      unlabeled/bad{number}.png is empty (0 bytes); " in text
    assert "\n      and 2 more\n" in text
    assert "bad5" not in text


def test_validation_put_aside_makes_up_for_few_labels(classes: Path) -> None:
    few_labels(classes)
    photo_layout.write_images(classes / "val/disk", ["disk"] * 2, 400)
    assert examined(classes).issues == ()


def test_what_few_tests_of_masks_can_tell_is_said(masks: Path) -> None:
    assert sole(examined(masks), "note", "only 3 test images", "hard to tell")


def test_classes_that_no_test_image_shows_are_named(classes: Path) -> None:
    shutil.rmtree(classes / "test/square")
    said = sole(examined(classes), "note", "not tested at all")
    assert said == "no test image shows 'square', so it is not tested at all; put some into test/"
    shutil.rmtree(classes / "test/disk")
    assert "'disk', 'square', so they are" in sole(examined(classes), "note", "not tested at all")
    shutil.rmtree(classes / "test")
    assert all("not tested" not in issue.text for issue in examined(classes).issues)


def test_classes_that_no_test_mask_shows_are_named(masks: Path) -> None:
    for part in ("images", "masks"):
        next((masks / "test" / part).glob("*2.*")).unlink()
    assert "shows 'square', so it" in sole(examined(masks), "note", "not tested at all")


def test_what_few_tests_can_tell_is_said(classes: Path) -> None:
    said = "only 6 test images: a gain of less than about 30 points will be indistinguishable from chance"
    assert said in sole(examined(classes), "note", "put more labeled images into test/")
    shutil.rmtree(classes / "test")
    assert all("test image" not in issue.text for issue in examined(classes).issues)


def test_without_tests_it_says_before_training_what_will_not_be_known(classes: Path) -> None:
    shutil.rmtree(classes / "test")
    sole(examined(classes), "note", "there is no test/", "held out", "put 50 labeled images or more into test/")
    few_labels(classes)
    sole(
        examined(classes),
        "warning",
        "fewer than 5 labels",
        "nothing measures whether unlabeled images help",
        "50 labeled images or more",
    )


def test_pages_that_are_not_read_are_named(classes: Path) -> None:
    planes = [Image.fromarray(np.full((40, 40), 40 * number, np.uint8)) for number in range(4)]
    planes[0].save(classes / "unlabeled/stack.tif", save_all=True, append_images=planes[1:])
    said = sole(examined(classes), "warning", "1 file has several pages: 'unlabeled/stack.tif'")
    assert "only the first of each is read, 3 are not" in said


def test_thumbnails_and_frames_of_animations_are_no_pages(classes: Path) -> None:
    large, small = photo_layout.scene("disk", 0)[0], photo_layout.scene("disk", 0, size=(20, 20))[0]
    images = [Image.fromarray(plane) if not isinstance(plane, Image.Image) else plane for plane in (large, small)]
    images[0].save(classes / "unlabeled/thumbnail.tif", save_all=True, append_images=images[1:])
    images[0].save(classes / "unlabeled/moving.gif", save_all=True, append_images=[images[0].rotate(90)])
    assert all("pages" not in issue.text for issue in examined(classes).issues)


def test_what_is_only_worth_a_note(classes: Path) -> None:
    shutil.copy(classes / "labeled/disk/0001.jpg", classes / "labeled/disk/copy.jpg")
    shutil.copy(classes / "labeled/disk/0002.jpg", classes / "unlabeled/copy.jpg")
    shutil.copy(classes / "unlabeled/9000.jpg", classes / "unlabeled/twice.jpg")
    with Image.open(classes / "labeled/disk/0003.jpg") as image:
        image.save(classes / "labeled/disk/again.jpg", quality=95)
    (classes / "labeled/empty").mkdir()
    diagnosis = examined(classes)
    sole(diagnosis, "note", "1 labeled picture is a copy of others", "'labeled/disk/copy.jpg'")
    sole(diagnosis, "note", "1 unlabeled picture is also in labeled", "harmless")
    sole(diagnosis, "note", "1 unlabeled picture is a copy of others")
    sole(diagnosis, "note", "1 group of labeled pictures looks alike", "≈", "score too high")
    sole(diagnosis, "note", "labeled/empty holds no images")
    assert len(diagnosis.issues) == 5
    assert not diagnosis.fatal


def test_masks_of_one_value(masks: Path) -> None:
    for path in (masks / "labeled/masks").iterdir():
        photo_layout.save(Image.fromarray(np.zeros((48, 64), np.uint8)), path)
    diagnosis = examined(masks)
    sole(diagnosis, "error", "the labeled masks hold 'ground' and no other class")
    sole(diagnosis, "error", "test holds 'disk', 'square', 'triangle', of which no image is labeled")


def test_masks_that_do_not_fit(masks: Path) -> None:
    folder = masks / "labeled/masks"
    photo_layout.save(Image.fromarray(np.zeros((48, 60), np.uint8)), folder / "0000.png")
    photo_layout.save(Image.fromarray(np.full((48, 64), 7, np.uint8)), folder / "0001.png")
    diagnosis = examined(masks)
    sole(diagnosis, "error", "2 of 15 labeled images cannot be used")
    assert "\n      labeled/masks/0000.png has 48×60 pixels but its image 48×64; " in diagnosis.text
    assert "\n      labeled/masks/0001.png has the class 7, " in diagnosis.text
    assert diagnosis.fatal


def test_masks_without_the_second_class(tmp_path: Path) -> None:
    """Where other masks hold 1, 255 is what it always is; where none does, it cannot be."""
    photo_layout.write_masks(tmp_path, labeled=12, unlabeled=3)
    photo_layout.write_names(tmp_path / "classes.txt", {"ground": (9, 9, 9), "thing": (8, 8, 8)})
    plane = np.zeros((48, 64), np.uint8)
    plane[:5] = 255
    folder = tmp_path / "labeled/masks"
    for path in folder.iterdir():
        photo_layout.save(Image.fromarray(plane), path)
    diagnosis = examined(tmp_path)
    sole(diagnosis, "error", "12 masks hold only 0 and 255", "no mask holds 1; write 1 for 'thing'")
    plane[30:] = 1
    for path in folder.iterdir():
        if path.name != "0000.png":
            photo_layout.save(Image.fromarray(plane), path)
    diagnosis = examined(tmp_path)
    sole(diagnosis, "warning", "1 mask holds only 0 and 255: 'labeled/images/0000.jpg'", "is read as 'no label'")
    assert not diagnosis.fatal


@pytest.mark.parametrize("ending", ["jpg", "tif"])
def test_masks_of_photos_that_are_rotated_by_exif(masks: Path, ending: str) -> None:
    """A mask that was drawn on the file as it is stored has the other orientation, or is upside down."""
    for number, orientation in enumerate((6, 3)):
        exif = Image.Exif()
        exif[0x0112] = orientation
        path = masks / f"labeled/images/{number:04d}.jpg"
        with Image.open(path) as photo:
            photo.load()
        path.unlink()
        photo.save(path.with_suffix(f".{ending}"), exif=exif)
    diagnosis = examined(masks)
    sole(diagnosis, "error", "1 of 15 labeled images cannot be used")
    said = (
        "has 48×64 pixels but its image 64×48; the photo is rotated by its EXIF orientation, and masks must be drawn on"
    )
    assert f"0000.png {said} the upright photo: rotate the mask likewise" in diagnosis.text
    names = f"'labeled/images/0000.{ending}', 'labeled/images/0001.{ending}'"
    sole(
        diagnosis, "note", f"2 photos with masks are rotated by EXIF data: {names}; masks must be drawn on the upright"
    )


def test_masks_that_were_resized_smoothly(tmp_path: Path) -> None:
    photo_layout.write_masks(tmp_path, labeled=12, unlabeled=3, kind="binary")
    for path in (tmp_path / "labeled/masks").iterdir():
        with Image.open(path) as mask:
            smooth = mask.resize((32, 24), Image.Resampling.NEAREST).resize(mask.size, Image.Resampling.BILINEAR)
        smooth.save(path)
    words = ("grays between black and white are rare and probably no class: 'color #", "resize masks by nearest")
    assert not examined(tmp_path).fatal
    sole(examined(tmp_path), "warning", *words)
    for path in (tmp_path / "labeled/masks").iterdir():
        with Image.open(path) as mask:
            few = mask.point(lambda value: 255 if value > 200 else 128 if value > 90 else 0)
        few.save(path)
    contents = photos.open_folder(tmp_path)
    photo_layout.write_names(tmp_path / "classes.txt", {f"shade {each[0]}": each for each in contents.palette})
    assert all("grays" not in issue.text for issue in examined(tmp_path).issues)


def test_suspicious_masks(masks: Path) -> None:
    for number in range(1, 15, 3):  # all squares but one
        plane = np.zeros((48, 64), np.uint8)
        plane[:, : 2 if number == 1 else 0] = 2
        photo_layout.save(Image.fromarray(plane), masks / f"labeled/masks/{number:04d}.png")
    blank = np.full((48, 64), 255, np.uint8)
    blank[:2] = 1
    photo_layout.save(Image.fromarray(blank), masks / "labeled/masks/0000.png")
    diagnosis = examined(masks)
    sole(diagnosis, "warning", "1 mask has no label on more than 90% of the pixels: 'labeled/images/0000.jpg'")
    sole(diagnosis, "warning", "only one labeled image shows", "'square' in 'labeled/images/0001.jpg'")
    assert not diagnosis.fatal


def test_one_picture_with_two_masks(masks: Path) -> None:
    shutil.copy(masks / "labeled/images/0000.jpg", masks / "labeled/images/9999.jpg")
    shutil.copy(masks / "labeled/masks/0001.png", masks / "labeled/masks/9999.png")
    diagnosis = examined(masks)
    sole(diagnosis, "warning", "1 picture has different masks")
    assert not diagnosis.fatal


def test_few_masks_and_a_class_nobody_drew(tmp_path: Path) -> None:
    photo_layout.write_masks(tmp_path, labeled=6, unlabeled=3)
    (tmp_path / "classes.txt").write_text("ground\ndisk\nsquare\ntriangle\nstar\n")
    diagnosis = examined(tmp_path)
    sole(diagnosis, "warning", "fewer than 10 images with masks", "without test/ nothing measures")
    sole(diagnosis, "warning", "no image is labeled 'star'")
    assert not diagnosis.fatal


def test_colors_that_were_inferred_name_the_file_to_write(tmp_path: Path) -> None:
    photo_layout.write_masks(tmp_path, labeled=12, unlabeled=3, test=3, kind="rgb")
    diagnosis = examined(tmp_path)
    sole(diagnosis, "note", f"write {tmp_path / 'classes.txt'}", "'color #000000 0 0 0'")
    assert not diagnosis.fatal
    photo_layout.write_names(tmp_path / "classes.txt", photo_layout.MASK_COLORS)
    assert examined(tmp_path).issues == ()


def test_names_of_any_kind_stay_in_their_line(tmp_path: Path) -> None:
    evil = "[bold]x\n\x1b[31m :smile: \u202e"
    photo_layout.write_images(tmp_path / "labeled" / evil, ["disk"] * 2)
    photo_layout.write_images(tmp_path / "labeled" / "b", ["square"] * 2, 100)
    photo_layout.write_images(tmp_path / "unlabeled", ["disk"], 200)
    (tmp_path / "labeled" / evil / f"{evil}.png").write_text("text")
    (tmp_path / "labeled" / "b" / f"{evil}.png").write_bytes((tmp_path / "labeled" / evil / "0000.jpg").read_bytes())
    text = examined(tmp_path).text
    assert all(each.isprintable() for each in text.replace("\n", ""))
    shown = r"[bold]x\n\x1b[31m :smile: \u202e"
    assert f"│ {shown} │" in text
    assert f"labeled/{shown}/{shown}.png is not an image" in text
    assert f"'labeled/{shown}/0000.jpg' = 'labeled/b/{shown}.png'; keep the right one" in text
    assert "keep one of each" not in text


def test_long_lists_are_cut() -> None:
    names = tuple(f"class {number}" for number in range(1000))
    looks = tuple(Look(f"{number}.png", "labeled", number % 500, (9, 9)) for number in range(500))
    labeled = tuple(Photo(look.id, Path(look.id), look.label) for look in looks)
    contents = FolderContents(Path("folder"), "made by hand", False, names, labeled, ())
    diagnosis = doctor.examine(contents, Survey(looks, len(names)))
    assert "\nand 940 more classes\n" in diagnosis.text
    assert "'0.png', '1.png', '2.png', '3.png', '4.png' and 495 more;" in diagnosis.text
    assert max(map(len, diagnosis.text.splitlines())) < 300


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf")])
def test_values_that_are_no_numbers_are_named_by_file(wrong: float, tmp_path: Path) -> None:
    photo_layout.write_classes(tmp_path, labeled=6, unlabeled=2)
    values = np.random.default_rng(0).random((40, 40), dtype=np.float32)
    photo_layout.save(Image.fromarray(values), tmp_path / "unlabeled" / "well.tif")
    values[3, 4] = wrong
    photo_layout.save(Image.fromarray(values), tmp_path / "unlabeled" / "dark.tif")
    contents = photos.open_folder(tmp_path)
    issues = doctor.examine(contents, survey.survey(contents)).issues
    (found,) = [issue for issue in issues if "NaN or infinite" in issue.text]
    assert found.severity == "warning"
    assert "'unlabeled/dark.tif'" in found.text
    assert "well.tif" not in found.text


def test_images_that_lose_their_contrast_or_scale_are_named(tmp_path: Path) -> None:
    photo_layout.write_classes(tmp_path, labeled=6, unlabeled=2)
    values = np.random.default_rng(0).random((40, 40))
    photo_layout.save(Image.fromarray((values * 4095).astype(np.uint16)), tmp_path / "unlabeled" / "twelve.png")
    photo_layout.save(Image.fromarray((values * 65535).astype(np.uint16)), tmp_path / "unlabeled" / "all.png")
    photo_layout.save(Image.fromarray((values * 900).astype(np.float32)), tmp_path / "unlabeled" / "float.tif")
    diagnosis = examined(tmp_path)
    sole(diagnosis, "warning", "1 image is read as dark", "16 bits: 'unlabeled/twelve.png'; multiply all by one factor")
    sole(diagnosis, "warning", "1 image is stretched", "'unlabeled/float.tif'; save all with one common scale")
