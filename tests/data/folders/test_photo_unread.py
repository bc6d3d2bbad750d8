"""Images that no layout reads are named."""

from pathlib import Path

from PIL import Image

from dmt import run_files
from dmt.data.folders import doctor, photos, survey
from tests.data.folders import photo_layout
from tests.data.pixels import segment_layout

FOLDERS = "folders with images are not read: "


def unread(root: Path) -> list[str]:
    return [note for note in photos.open_folder(root).notes if "not read: " in note]


def image(path: Path) -> None:
    photo_layout.save(Image.new("RGB", (8, 8)), path)


def test_folders_and_images_that_are_not_read_are_named(tmp_path: Path) -> None:
    photo_layout.write_classes(tmp_path, labeled=2, unlabeled=1)
    assert unread(tmp_path) == []
    for name in ("tests/cat/1.png", "a.jpg", "b.png"):
        image(tmp_path / name)
    for name in ("unlabled/deep/000.tar", "notes/1.txt", ".hidden/1.png", "__MACOSX/1.png"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    folders, images = unread(tmp_path)
    assert folders.startswith(f"{FOLDERS}'tests', 'unlabled'; if you misspelled one, rename it to labeled, unlabeled,")
    assert images.startswith("2 images outside of all folders are not read: 'a.jpg', 'b.png'; move them")
    contents = photos.open_folder(tmp_path)
    assert f"  note: {FOLDERS}'tests'" in doctor.examine(contents, survey.survey(contents)).text


def test_all_folders_with_masks_count_as_read(tmp_path: Path) -> None:
    segment_layout.write_flat(tmp_path / "flat")
    photo_layout.write_masks(tmp_path / "pairs", test=1)
    assert unread(tmp_path / "flat") == unread(tmp_path / "pairs") == []
    image(tmp_path / "flat" / "labelled images" / "1.png")
    assert unread(tmp_path / "flat")[0].startswith("a folder with images is not read: 'labelled images'")


def test_the_folder_of_instances_of_voc_is_not_taken_for_a_misspelling(tmp_path: Path) -> None:
    photo_layout.write_masks(tmp_path, labeled=3, unlabeled=0)
    (tmp_path / "labeled/images").rename(tmp_path / "JPEGImages")
    (tmp_path / "labeled/masks").rename(tmp_path / "SegmentationClass")
    image(tmp_path / "SegmentationObject" / "0000.png")
    assert unread(tmp_path) == []


def test_what_another_note_is_about_is_not_named_again(tmp_path: Path) -> None:
    photo_layout.write_masks(tmp_path)
    image(tmp_path / "val" / "1.png")
    assert unread(tmp_path) == []


def test_a_folder_with_a_table_is_read_whole(tmp_path: Path) -> None:
    for name in ("a.jpg", "b/1.png", "test/1.png"):
        image(tmp_path / name)
    photo_layout.write_table(tmp_path, [["file", "label"], ["a.jpg", "x"]])
    assert unread(tmp_path) == []


def test_runs_are_not_data(tmp_path: Path) -> None:
    photo_layout.write_classes(tmp_path, labeled=2, unlabeled=1)
    image(tmp_path / "runs" / "a" / "1.png")
    assert unread(tmp_path)
    for name in (run_files.MANIFEST, run_files.SESSIONS):
        (tmp_path / "runs" / "a" / name).touch()
    assert unread(tmp_path) == []
