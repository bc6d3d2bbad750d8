"""Packed runs have the documented bits, and give back what went in."""

import numpy as np
import pytest

from dmt.core import rle


def bits(packed: bytes) -> str:
    return "".join(f"{byte:08b}" for byte in packed)


def test_the_bits_are_those_of_the_format() -> None:
    packed = rle.encode(np.array([0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255], np.uint8))
    head = f"{12:032b}" + "00111" + "0010" + "0011" + "0111" + "1111"  # count; bytes of 8; fields of 3, 4, 8, 16
    runs = "1" + "00" + "010" + "00000000" + "1" + "01" + "1000" + "11111111"  # 3 zeros; 9 times 255
    assert bits(packed) == (head + runs).ljust(len(packed) * 8, "0")


@pytest.mark.parametrize("length", [0, 1, 8, 9, 16, 17, 256, 257, 65_536, 65_537, 200_000])
def test_runs_of_every_length_come_back(length: int) -> None:
    values = np.concatenate([np.full(length, 255, np.uint8), np.zeros(3, np.uint8)])
    assert np.array_equal(rle.decode(rle.encode(values)), values)


def test_any_bytes_come_back() -> None:
    values = np.random.default_rng(0).integers(0, 256, 1000).astype(np.uint8)
    assert np.array_equal(rle.decode(rle.encode(values)), values)
    assert len(rle.decode(rle.encode(values[:0]))) == 0


def test_plain_stretches_are_read_too() -> None:
    head = f"{5:032b}" + "00111" + "0010" + "0011" + "0111" + "1111"
    body = "0" + "00" + "010" + f"{7:08b}{8:08b}{9:08b}" + "1" + "00" + "001" + f"{5:08b}"  # 7 8 9, then 5 twice
    text = (head + body).ljust(-(-len(head + body) // 8) * 8, "0")
    assert rle.decode(int(text, 2).to_bytes(len(text) // 8, "big")).tolist() == [7, 8, 9, 5, 5]
