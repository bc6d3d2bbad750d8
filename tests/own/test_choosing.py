"""What is chosen for a folder, from its images and the device; and that all of it is shown."""

import importlib.util
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from dmt import config as configuration
from dmt import presets
from dmt.data.folders.photo_options import PhotoMaskOptions, PhotoOptions
from dmt.errors import DataError
from dmt.own import choosing, known_nets
from dmt.own.choosing import FolderSetup
from dmt.own.known_nets import Asked
from tests.data.folders import photo_layout

CPU, CUDA = torch.device("cpu"), torch.device("cuda")  # nothing is put there: no GPU is needed


def image_setup(root: Path, device: torch.device = CPU, **counts: int) -> tuple[FolderSetup, PhotoOptions]:
    setup = choosing.choose(photo_layout.write_classes(root, **counts), device)
    assert isinstance(setup.preset.config.data, PhotoOptions)
    return setup, setup.preset.config.data


def mask_setup(
    root: Path, device: torch.device = CPU, labeled: int = 6, test: int = 0
) -> tuple[FolderSetup, PhotoMaskOptions]:
    setup = choosing.choose(photo_layout.write_masks(root, labeled, test=test), device)
    assert isinstance(setup.preset.config.data, PhotoMaskOptions)
    return setup, setup.preset.config.data


def line(setup: FolderSetup, begin: str) -> str:
    """The one line about it."""
    found = [each for each in setup.lines if each.startswith(begin)]
    assert len(found) == 1, setup.lines
    return found[0]


def resize(root: Path, size: tuple[int, int]) -> None:
    for path in root.rglob("*.jpg"):
        with Image.open(path) as image:
            image.resize(size).save(path)


# --- sizes ---


@pytest.mark.parametrize(
    ("photo", "sizes"),
    [
        ((64, 48), (32, 32, 48, 48)),
        ((20, 16), (32, 32, 32, 32)),
        ((300, 100), (32, 96, 96, 96)),
        ((300, 200), (32, 192, 128, 192)),
        ((500, 400), (32, 224, 128, 224)),
    ],
)
def test_size_follows_the_shorter_side(
    tmp_path: Path, photo: tuple[int, int], sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = photo_layout.write_classes(tmp_path, labeled=1, unlabeled=3)
    resize(root, photo)
    machines = ((CPU, False), (CPU, True), (CUDA, False), (CUDA, True))
    for (device, installed), expected in zip(machines, sizes, strict=True):
        monkeypatch.setattr(known_nets, "_wheel", lambda installed=installed: installed)
        setup = choosing.choose(root, device)
        assert setup.preset.config.data.size == expected  # type: ignore[union-attr]
        assert f"size={expected}: the median of the photos' shorter sides is {min(photo)}" in line(setup, "size=")
        cut = device == CPU and expected < min(photo) // 16 * 16
        assert ("for speed on a CPU" in line(setup, "size=")) == cut


def test_many_photos_are_looked_at_less_often_by_a_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_nets, "_wheel", lambda: True)
    monkeypatch.setattr(choosing, "_short_side", lambda contents: 400)
    root = photo_layout.write_classes(tmp_path, labeled=1, unlabeled=3)
    (root / "unlabeled/more").mkdir()
    for number in range(901):
        (root / f"unlabeled/more/{number}.jpg").touch()
    for device, looks in ((CPU, 6), (CUDA, 8)):
        data = choosing.choose(root, device).preset.config.data
        assert isinstance(data, PhotoOptions)
        assert (data.size, data.stored_views) == (224, looks)
    monkeypatch.setattr(choosing, "LOOKS", 1900)
    setup = choosing.choose(root, CPU)
    assert (
        line(setup, "stored_views=")
        == "stored_views=2: number of views of each photo that are encoded once, before training"
    )


def test_small_photos_with_masks_are_seen_as_they_are(tmp_path: Path) -> None:
    setup, data = mask_setup(tmp_path)
    assert (data.size, data.crop) == (128, (32 * round(48 / 32), 64))
    assert (
        line(setup, "size=") == "size=128, crop=64,64: your photos at full size, at most 64 pixels on the longer side"
    )
    assert choosing.choose(tmp_path, CUDA).preset.config.data.size == 512  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("thickness", "sizes", "why"),
    [
        (80, (192, 512), "photos are downscaled for speed; the thinnest parts of your masks would allow 80"),
        (16, (400, 512), "photos are not downscaled further, since thin parts of your masks need this resolution"),
        (4, (640, 800), "thin parts of your masks would need 800; limited for speed"),
    ],
)
def test_thin_parts_keep_their_pixels(
    tmp_path: Path, thickness: int, sizes: tuple[int, int], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_nets, "_wheel", lambda: True)
    mask = np.zeros((600, 800), np.uint8)
    mask[100 : 100 + thickness] = 1
    for number in range(3):
        photo_layout.save(Image.new("RGB", (800, 600)), tmp_path / f"labeled/images/{number}.jpg")
        photo_layout.save(Image.fromarray(mask), tmp_path / f"labeled/masks/{number}.png")
    setups = [choosing.choose(tmp_path, device) for device in (CPU, CUDA)]
    assert tuple(each.preset.config.data.size for each in setups) == sizes  # type: ignore[union-attr]
    assert line(setups[0], "size=").endswith(f": {why}")
    crops = [each.preset.config.data.crop for each in setups]  # type: ignore[union-attr]
    assert crops[0] == (min(128, 32 * round(sizes[0] * 0.75 / 32)), min(128, sizes[0]))
    assert crops[1] == (256, 256)


def test_unreadable_photos_do_not_decide(tmp_path: Path) -> None:
    setup, _ = image_setup(tmp_path)
    for path in (tmp_path / "unlabeled").iterdir():
        path.write_text("text")
    assert choosing.choose(tmp_path, CPU).lines == setup.lines
    for path in tmp_path.rglob("*.jpg"):
        path.write_text("text")
    with pytest.raises(DataError, match="can be read; see dmt check"):
        choosing.choose(tmp_path, CPU)


def test_one_class_is_refused(tmp_path: Path) -> None:
    photo_layout.write_images(tmp_path / "labeled/disk", ["disk"] * 3)
    with pytest.raises(DataError, match="only one class, 'disk'"):
        choosing.choose(tmp_path, CPU)


# --- validation ---


@pytest.mark.parametrize(("labeled", "held_out"), [(1, 0), (4, 0), (5, 1), (10, 2)])
def test_validation_of_images(tmp_path: Path, labeled: int, held_out: int) -> None:
    setup, data = image_setup(tmp_path, labeled=labeled, test=0)
    assert data.validation == held_out
    said = line(setup, f"validation={held_out} per class ({3 * held_out}):" if held_out else "validation=0:")
    assert ("nothing can warn you" in said) == (held_out == 0)
    assert data.sizes.labeled == 3 * (labeled - held_out)


def test_folds_choose_where_labels_are_too_few_to_hold_out(tmp_path: Path) -> None:
    setup, _ = image_setup(tmp_path, labeled=8, test=1)
    said = line(setup, "validation=0:")
    assert "24 labels are too few to hold any out, so all are used for training, and cross-validation chooses" in said


def test_the_rarest_class_decides(tmp_path: Path) -> None:
    root = photo_layout.write_classes(tmp_path, labeled=10)
    photo_layout.write_images(root / "labeled/rare", ["disk"] * 4, 7000)
    assert choosing.choose(root, CPU).preset.config.data.validation == 0


@pytest.mark.parametrize(("labeled", "held_out"), [(1, 0), (9, 0), (10, 1), (40, 4)])
def test_validation_of_pixels(tmp_path: Path, labeled: int, held_out: int) -> None:
    setup, data = mask_setup(tmp_path, labeled=labeled, test=0)
    assert data.validation == held_out
    assert data.sizes.labeled == labeled - held_out
    line(setup, f"validation={held_out}:")


@pytest.mark.parametrize("kind", ["images", "masks"])
def test_few_labels_all_teach_where_there_is_a_test(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup_of, labeled = (image_setup, 10) if kind == "images" else (mask_setup, 40)
    setup, data = setup_of(tmp_path, labeled=labeled, test=2)
    assert data.validation == 0
    assert "all are used for training" in line(setup, "validation=0:")
    monkeypatch.setattr(choosing, "JUDGES", 4)
    enough = choosing.choose(setup.contents.root, CPU).preset.config.data
    assert enough.validation == (2 if kind == "images" else 4)


def test_validation_of_the_user_is_used(tmp_path: Path) -> None:
    photo_layout.write_images(tmp_path / "val/disk", ["disk"] * 2, 400)
    setup, data = image_setup(tmp_path, labeled=10)
    assert data.validation == 0
    assert line(setup, "validation: ") == "validation: the images in val/"


# --- schedule ---


def test_few_unlabeled_images_get_two_rounds(tmp_path: Path) -> None:
    few, _ = image_setup(tmp_path / "few", unlabeled=49)
    many, _ = image_setup(tmp_path / "many", unlabeled=50)
    assert len(few.preset.config.recipe.fractions) == 2
    assert len(many.preset.config.recipe.fractions) == 5
    assert "then 2 rounds" in line(few, "schedule: ")
    assert "then 5 rounds" in line(many, "schedule: ")
    assert "over 49 images" in line(few, "schedule: ")


def test_steps_hardly_depend_on_the_number_of_images(tmp_path: Path) -> None:
    """A few labels are seen in more epochs, so that a Baseline has as many steps."""
    for labeled in (1, 10, 30):
        setup, data = image_setup(tmp_path / str(labeled), labeled=labeled, unlabeled=5)
        recipe = setup.preset.config.recipe
        assert 1500 <= recipe.epochs * -(-data.sizes.labeled // recipe.batch) <= 1520


def test_nothing_unlabeled(tmp_path: Path) -> None:
    setup, data = image_setup(tmp_path, unlabeled=0)
    assert data.sizes.unlabeled == 0
    assert "training uses the labels only" in line(setup, "schedule: ")


# --- nets and devices ---


@pytest.mark.parametrize("wheel", [True, False])
def test_photos_get_a_net_that_knows_them(tmp_path: Path, wheel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if wheel else None)
    root = photo_layout.write_classes(tmp_path, labeled=5, unlabeled=3)
    assert "pip install" not in line(choosing.choose(root, CPU), "net=")  # they are too small for that
    resize(root, (200, 150))
    for device, other in ((CPU, "resnet8-16"), (CUDA, "wrn-28-2")):
        setup = choosing.choose(root, device)
        chosen = setup.preset.config
        assert (chosen.net, setup.preset.start) == (
            ("frozen:tf_efficientnet_lite0", "wheel") if wheel else (other, "random")
        )
        assert (known_nets.INSTALL in line(setup, "net=")) != wheel
        if wheel:
            assert (chosen.recipe.shape, chosen.recipe.share, chosen.recipe.mixup) == ("pair", None, None)
            assert chosen.net_b == "frozen:tf_efficientnet_lite2"  # nets that see differently need no shares
            assert chosen.data.augment == "crop-flip"  # type: ignore[union-attr]


@pytest.mark.parametrize("device", [CPU, CUDA], ids=str)
def test_all_of_a_net_learns_slowly_and_after_its_head(device: torch.device, tmp_path: Path) -> None:
    root = photo_layout.write_classes(tmp_path, labeled=5, unlabeled=60)
    asked = Asked("tuned:tf_efficientnet_lite0", "tuned:tf_efficientnet_lite2", start="wheel")
    chosen = choosing.choose(root, device, asked).preset.config
    recipe = chosen.recipe
    assert (recipe.optimizer, recipe.mixup, recipe.ema, recipe.shape) == ("adamw", None, None, "pair")
    assert recipe.encoder < 1
    assert 0 < recipe.head_first < 1
    assert chosen.data.augment == "photo"  # type: ignore[union-attr]
    assert chosen.data.stored_views == 0  # type: ignore[union-attr]


def test_the_rest_goes_with_a_net_that_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = photo_layout.write_classes(tmp_path, labeled=5, unlabeled=3)
    resize(root, (500, 400))
    monkeypatch.setattr(known_nets, "_wheel", lambda: False)
    plain = choosing.choose(root, CPU).preset
    frozen = choosing.choose(root, CPU, Asked("frozen:resnet18", start="x.pth"))
    assert line(frozen, "net=") == "net=frozen:resnet18, start x.pth: as requested"
    assert frozen.preset.start == "random"  # of a line that is given none
    monkeypatch.setattr(known_nets, "_wheel", lambda: True)
    known = choosing.choose(root, CPU).preset
    assert known.config.data == frozen.preset.config.data
    alike = choosing.choose(root, CPU, Asked(known.config.net)).preset
    assert alike.config.recipe == frozen.preset.config.recipe
    assert (alike.config.net_b, alike.config.recipe.share) == (None, 0.8)
    for asked, expected in (
        (Asked("resnet8-16"), plain),
        (Asked(start="random"), plain),
        (Asked(net_b="resnet8-32"), plain),  # one start serves both lines, and this net has no published parameters
        (Asked(start="resnet8.pth"), plain),
        (Asked(start="wheel"), known),
        (Asked.of({"net_b": "none"}, {}), alike),
        (Asked.of({"epochs": 3}, {"B": "x.pth"}), known),
    ):
        assert choosing.choose(root, CPU, asked).preset == expected, asked


def test_two_encoders_that_are_named_start_from_their_published_parameters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = photo_layout.write_classes(tmp_path, labeled=5, unlabeled=3)
    resize(root, (500, 400))
    monkeypatch.setattr(known_nets, "_wheel", lambda: True)
    lite0, lite2 = (f"tuned:{name}" for name in (known_nets.KNOWN, known_nets.KNOWN_B))
    for asked in (Asked(lite0, lite2), Asked(lite0, start="wheel")):
        chosen = choosing.choose(root, CPU, asked)
        assert chosen.preset.start == "wheel"
        assert chosen.preset.config.data.size == 160  # type: ignore[union-attr]
    assert choosing.choose(root, CPU, Asked(lite0, "resnet8-16")).preset.start == "random"


@pytest.mark.parametrize(
    ("asked", "start", "size", "rate", "share"),
    [
        (Asked("timm:resnet18"), "random", (32, 128), (0.05, 0.1), None),
        (Asked("timm:resnet18", start="timm"), "random", (160, 224), (0.01, 0.01), 0.8),
        (Asked("timm:tf_efficientnet_lite0"), "wheel", (160, 224), (0.01, 0.01), 0.8),
        (Asked("frozen:tf_efficientnet_lite0"), "wheel", (224, 224), (0.003, 0.003), 0.8),
        (Asked("wrn-16-2"), "random", (32, 128), (0.05, 0.1), None),
    ],
)
def test_a_start_decides_on_size_and_rate(
    tmp_path: Path, asked: Asked, start: str, size: tuple[int, int], rate: tuple[float, float], share: float | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(known_nets, "_wheel", lambda: True)
    root = photo_layout.write_classes(tmp_path, labeled=5, unlabeled=3)
    resize(root, (500, 400))
    for place, device in enumerate((CPU, CUDA)):
        preset = choosing.choose(root, device, asked).preset
        assert (preset.start, preset.config.data.size) == (start, size[place])  # type: ignore[union-attr]
        assert (preset.config.recipe.rate, preset.config.recipe.share) == (rate[place], share)


@pytest.mark.parametrize(
    ("asked", "size"),
    [
        (Asked("frozen:vit_small_patch14_dinov2", start="timm"), (224, 224)),
        (Asked("frozen:vit_base_patch32_224", start="timm"), (224, 224)),
        (Asked("timm:vit_base_patch16_siglip_224", start="timm"), (160, 224)),
        (Asked("timm:vit_small_patch14_dinov2", net_b="timm:convnext_tiny", start="timm"), (112, 224)),
        (Asked("timm:vit_small_patch14_dinov2"), (42, 126)),
    ],
)
def test_sizes_come_in_whole_patches(tmp_path: Path, asked: Asked, size: tuple[int, int]) -> None:
    root = photo_layout.write_classes(tmp_path, labeled=5, unlabeled=3)
    resize(root, (500, 400))
    assert tuple(choosing.choose(root, device, asked).preset.config.data.size for device in (CPU, CUDA)) == size  # type: ignore[union-attr]


def test_a_start_that_is_asked_for_gets_a_net_that_can_take_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_nets, "_wheel", lambda: False)
    root = photo_layout.write_classes(tmp_path, labeled=5, unlabeled=3)  # small photos
    for start in ("wheel", "timm"):
        assert choosing.choose(root, CPU, Asked(start=start)).preset.config.net == "frozen:tf_efficientnet_lite0"


def large_masks(root: Path) -> Path:
    """Photos with masks that nets pretrained on photos are chosen for."""
    for path in photo_layout.write_masks(root, 12).rglob("*.*"):
        if path.suffix in (".jpg", ".png"):
            with Image.open(path) as image:
                image.resize((200, 150), Image.Resampling.NEAREST).save(path)
    return root


@pytest.mark.parametrize(("device", "kind"), [(CPU, "frozen-fpn"), (CUDA, "fpn")])
def test_masks_get_two_nets_that_know_photos(
    tmp_path: Path, device: torch.device, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_nets, "_wheel", lambda: True)
    setup = choosing.choose(large_masks(tmp_path), device)
    config = setup.preset.config
    assert (config.net, config.net_b) == (f"{kind}:tf_efficientnet_lite0", f"{kind}:tf_efficientnet_lite2")
    assert (setup.preset.start, config.recipe.shape, config.recipe.share) == ("wheel", "pair", None)
    assert config.recipe.optimizer == "adamw"
    assert config.recipe.encoder < 1
    assert "two different nets learn" in line(setup, "net_b=")
    assert config.data.by_class  # type: ignore[union-attr]
    assert line(setup, "by_class=true")
    alike = choosing.choose(tmp_path, device, Asked.of({"net_b": "none"}, {})).preset.config
    assert (alike.net, alike.net_b, alike.recipe.share) == (config.net, None, 0.8)
    assert replace(alike.recipe, share=None) == config.recipe
    monkeypatch.setattr(known_nets, "_wheel", lambda: False)
    without = choosing.choose(tmp_path, device)
    assert without.preset.start == "random"
    assert known_nets.INSTALL in line(without, "net=")


def test_a_net_for_pixels_brings_its_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_nets, "_wheel", lambda: True)
    root = large_masks(tmp_path)
    usual = choosing.choose(root, CUDA).preset
    given = choosing.choose(root, CUDA, Asked("deeplab2:resnet50", start="timm"))
    assert line(given, "net=") == "net=deeplab2:resnet50, start timm: as requested"
    assert given.preset.config.recipe == replace(usual.config.recipe, share=0.8)
    for asked in (Asked("smp:unet/resnet34"), Asked("fcn-8")):
        preset = choosing.choose(root, CUDA, asked).preset
        assert (preset.start, preset.config.recipe.share) == ("random", None)
        assert preset.config.recipe.rate > usual.config.recipe.rate


@pytest.mark.parametrize("wheel", [True, False])
def test_a_gpu_gets_larger_nets(tmp_path: Path, wheel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if wheel else None)
    images, masks = tmp_path / "images", tmp_path / "masks"
    slow, fast = image_setup(images, labeled=5)[0].preset, choosing.choose(images, CUDA).preset
    assert (slow.config.net, slow.start) == ("resnet8-16", "random")
    assert (fast.config.net, fast.start) == (
        "wrn-28-2",
        "random",
    )  # these images are too small for what the wheel knows
    assert (fast.config.recipe.shape, fast.config.recipe.share) == ("chain", None)
    assert fast.config.recipe.batch_pseudo > slow.config.recipe.batch_pseudo
    slow, fast = mask_setup(masks, labeled=10)[0].preset, choosing.choose(masks, CUDA).preset
    assert (slow.config.net, slow.start) == ("fcn-16", "random")
    assert (fast.config.net, fast.start) == ("smp:unet/resnet34" if wheel else "fcn-32", "random")


@pytest.mark.parametrize("device", [CPU, CUDA])
@pytest.mark.parametrize("wheel", [True, False])
def test_every_choice_is_told_and_can_be_overridden(
    tmp_path: Path, device: torch.device, wheel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_nets, "_wheel", lambda: wheel)
    photos = photo_layout.write_classes(tmp_path / "photos", labeled=5)
    resize(photos, (200, 150))
    made = (
        image_setup(tmp_path / "images", device, labeled=5)[0],
        choosing.choose(photos, device),
        mask_setup(tmp_path / "masks", device, labeled=10)[0],
        choosing.choose(large_masks(tmp_path / "large"), device),
    )
    for setup in made:
        config = setup.preset.config
        printed = dict(re.findall(r"(\w+)=([\w:/,.-]+?)(?=[:,;]? |$)", "\n".join(setup.lines)))
        assert {"size", "net", "validation", "epochs", "epochs_round"} <= printed.keys()
        assert configuration.override(config, printed) == config  # the very values that are used
        assert all("\n" not in each for each in setup.lines)
        assert setup.preset.name in presets.PRESETS
        again = configuration.override(config, {"net": "resnet8-4", "epochs": 3, "size": 40})
        assert (again.net, again.recipe.epochs, again.data.size) == ("resnet8-4", 3, 40)  # type: ignore[union-attr]
