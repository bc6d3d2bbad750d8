"""The gallery of masks in a real browser, with names that try to become markup."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dmt.auditing import gallery
from dmt.auditing.gallery import Names, PictureList
from dmt.auditing.label_next import Candidate
from dmt.auditing.mask_pictures import MaskPictures
from dmt.auditing.suspects import Suspect
from tests.browser.conftest import HOSTILE, Seen

Opener = Callable[..., Seen]
COUNT = 8


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two lists of masks and one of images."""
    chance = np.random.default_rng(0)
    names = Names(HOSTILE, ((0, 0, 0), (200, 0, 0), (0, 0, 200)))

    def pictures(given: bool) -> MaskPictures:
        smooth = np.kron(chance.random((8, 10)), np.ones((40, 40)))
        labels = (smooth * 3).astype(np.uint8)
        image = np.stack([smooth * 200] * 3, 2) + chance.random((320, 400, 3)) * 55
        return MaskPictures(image.astype(np.uint8), labels, smooth.astype(np.float32), labels[::-1] if given else None)

    suspects = [
        Suspect(at, f"{HOSTILE[at % 3]}{at}.png", at % 3, (at + 1) % 3, True, 0.5, 0.25, ((0.1, 0.9), (0.2, 0.7)), "A2")
        for at in range(COUNT)
    ]
    candidates = [
        Candidate(at, f"{HOSTILE[at % 3]}{at}.png", at % 3, 0.9, 0.3, ((0, 0.5), (1, 0.6)), 0.5) for at in range(COUNT)
    ]
    nets = (HOSTILE[1], "B2")
    masks = PictureList(lambda at: np.zeros((8, 8), np.uint8), {at: pictures(given=True) for at in range(COUNT)}, nets)
    doubts = PictureList(masks.image_at, {at: pictures(given=False) for at in range(COUNT)}, nets)
    plain = Names(HOSTILE, ())
    page = gallery.page(
        HOSTILE[0],
        HOSTILE[1],
        gallery.suspects("masks", HOSTILE[2], suspects, masks, names),
        gallery.candidates("to label", HOSTILE[0], candidates, doubts, names),
        gallery.suspects("images", "", suspects, PictureList(masks.image_at, {}, nets), plain),
        gallery.missing(HOSTILE[1], HOSTILE[0]),
    )
    path = tmp_path_factory.mktemp("gallery") / "index.html"
    path.write_bytes(page)
    return path


def test_a_gallery_of_masks_shows_four_pictures_each_and_no_name_is_executed(open_page: Opener, file: Path) -> None:
    seen = open_page(file)
    seen.require_peace(file)
    sections = seen.page.locator("section")
    assert sections.nth(0).locator("article").first.locator("img").count() == 4
    assert sections.nth(1).locator("article").first.locator("img").count() == 3
    assert sections.nth(2).locator("article").first.locator("img").count() == 1
    card = sections.nth(0).locator("article").nth(1).inner_text()
    assert f"{HOSTILE[1]}1.png" in card
    assert f"{HOSTILE[1]} → {HOSTILE[2]}" in card
    assert f"{HOSTILE[1]}: 10% → 90%" in card
    for image in sections.nth(0).locator("article").first.locator("img").all():
        image.scroll_into_view_if_needed()
        assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") == gallery.LONGEST
    for width in (360, 1200):
        seen.require_width(width)


def test_its_escaping_does_not_lean_on_the_policy(open_page: Opener, file: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.html"
    bare.write_text(file.read_text(encoding="utf-8").replace("Content-Security-Policy", "x"), encoding="utf-8")
    open_page(bare).require_peace(bare)


def test_lists_of_a_hundred_stay_below_5_mb(file: Path) -> None:
    assert file.stat().st_size * 100 / COUNT < 5_000_000
