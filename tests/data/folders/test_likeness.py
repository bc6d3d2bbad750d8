import random
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from dmt.data.folders import likeness
from tests.data.folders import photo_layout


def distance(first: Image.Image, second: Image.Image) -> int:
    hashes = [likeness.dhash(np.asarray(each.convert("RGB"))) for each in (first, second)]
    return (hashes[0] ^ hashes[1]).bit_count()


def recompressed(image: Image.Image, quality: int) -> Image.Image:
    file = BytesIO()
    image.save(file, "JPEG", quality=quality)
    return Image.open(file)


def landscape(seed: int) -> Image.Image:
    """Large soft forms and fine noise, as photos have."""
    draw = np.random.default_rng(seed)
    forms = Image.fromarray(draw.integers(0, 256, (6, 8, 3), dtype=np.uint8)).resize((256, 192))
    noise = draw.integers(-10, 11, (192, 256, 3))
    return Image.fromarray((np.asarray(forms) + noise).clip(0, 255).astype(np.uint8))


@pytest.mark.parametrize("seed", range(10))
def test_a_hash_survives_resizing_and_recompression(seed: int) -> None:
    image = landscape(seed)
    smaller = image.resize((128, 96), Image.Resampling.LANCZOS)
    assert distance(image, smaller) <= 3
    assert distance(image, recompressed(image, 60)) <= 3
    assert distance(image, recompressed(smaller, 80)) <= 3


def test_different_pictures_have_distant_hashes() -> None:
    pictures = [*(landscape(seed) for seed in range(40)), *(photo_layout.scene("disk", seed)[0] for seed in range(40))]
    hashes = [likeness.dhash(np.asarray(image)) for image in pictures]
    assert all(likeness.telling(value) for value in hashes)
    assert likeness.near_pairs(hashes) == []


def test_a_hash_says_which_cells_are_brighter_than_their_right_neighbors() -> None:
    cells = np.zeros((8, 9), np.uint8)
    cells[0, 0] = cells[7, 7] = 200
    image = np.repeat(np.repeat(cells, 5, axis=0), 3, axis=1)[..., None].repeat(3, axis=2)
    assert likeness.dhash(image) == 1 << 63 | 1


@pytest.mark.parametrize("size", [(1, 1), (3, 2000), (40, 40)])
def test_plain_pictures_tell_nothing(size: tuple[int, int]) -> None:
    plain = np.full((*size, 3), 77, np.uint8)
    assert likeness.dhash(plain) == 0
    noisy = plain + np.random.default_rng(0).integers(0, 2, plain.shape, dtype=np.uint8)
    assert not likeness.telling(likeness.dhash(noisy))
    assert not likeness.telling(0)
    assert not likeness.telling(2**64 - 1)


def by_comparing_all(hashes: list[int], distance: int) -> list[tuple[int, int]]:
    return [
        (first, second)
        for second in range(len(hashes))
        for first in range(second)
        if (hashes[first] ^ hashes[second]).bit_count() <= distance
    ]


@pytest.mark.parametrize("distance", [0, 1, 3, 5])
def test_no_pair_is_missed_or_wrong(distance: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likeness, "_SMALL", 8)  # so that buckets are cut again, down to the last bits
    draw = random.Random(distance)
    center = 0x0F1E2D3C4B5A6978
    dense = [center ^ draw.getrandbits(9) for _ in range(100)]
    sparse = [center ^ (draw.getrandbits(64) & draw.getrandbits(64) & draw.getrandbits(64)) for _ in range(200)]
    hashes = [value for value in dict.fromkeys(dense + sparse) if likeness.telling(value)]
    assert likeness.near_pairs(hashes, distance) == sorted(by_comparing_all(hashes, distance))


def test_planted_pairs_are_found_among_many() -> None:
    draw = random.Random(0)
    hashes = [draw.getrandbits(64) for _ in range(20_000)]
    planted = []
    for number in range(60):
        bits = draw.sample(range(64), number % 6)  # five bits are one too many
        hashes.append(hashes[number * 7] ^ sum(1 << bit for bit in bits))
        if len(bits) <= 4:
            planted.append((number * 7, len(hashes) - 1))
    assert likeness.near_pairs(hashes) == sorted(planted)


def test_equal_hashes_make_a_chain_not_a_square() -> None:
    telling = 0x00FF00FF00FF00FF
    pairs = likeness.near_pairs([telling] * 1000 + [0] * 1000 + [telling ^ 1])
    assert len(pairs) == 1000
    assert likeness.groups(pairs) == [[*range(1000), 2000]]
    assert likeness.near_pairs([]) == []
    assert likeness.near_pairs([0] * 5) == []
    assert likeness.near_pairs([telling]) == []


def test_groups_join_what_is_connected() -> None:
    assert likeness.groups([(4, 5), (1, 2), (5, 9), (2, 3), (9, 4)]) == [[1, 2, 3], [4, 5, 9]]
    assert likeness.groups([(number, number + 1) for number in reversed(range(5000))]) == [list(range(5001))]
    assert likeness.groups([]) == []
