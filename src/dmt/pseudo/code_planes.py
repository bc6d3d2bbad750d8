"""Planes of confidence codes as bytes.

Confidence is smooth, so the steps from code to code along both axes (modulo 65,536) are small: their high bytes are
mostly 0 or 255 and pack to almost nothing, while their low bytes are noise.
"""

import lzma
import zlib

import numpy as np

from dmt.core.codes import OFFSET

SMALL = 128 * 128
"""Below so many pixels a slower, better compression is worth it: there everything else in a file weighs much."""

DAMAGE = (zlib.error, lzma.LZMAError, ValueError)
"""What `unpack` raises for bytes that `pack` did not make."""


def signed(codes: np.ndarray) -> np.ndarray:
    """uint16 as int16, less 32,768, as torch can hold them: uint16 has few functions there."""
    return (codes ^ np.uint16(OFFSET)).view(np.int16)


def unsigned(codes: np.ndarray) -> np.ndarray:
    """And back."""
    return codes.view(np.uint16) ^ np.uint16(OFFSET)


def pack(codes: np.ndarray) -> bytes:
    """Codes (H, W) uint16 as bytes."""
    steps = np.ascontiguousarray(_steps(_steps(codes.T).T))
    low, high = steps.view(np.uint8).reshape(-1, 2).T  # views: little-endian, as everything that torch runs on
    if codes.size < SMALL:
        return lzma.compress(high.tobytes() + low.tobytes(), lzma.FORMAT_ALONE, preset=0)
    # packing the low bytes too would take five times as long and save an eighth
    packer = zlib.compressobj(1, strategy=zlib.Z_RLE)
    plain = low.tobytes()
    check = zlib.crc32(plain).to_bytes(4, "little")  # of the packed ones zlib itself takes care
    return b"".join((plain, check, packer.compress(high.tobytes()), packer.flush()))


def unpack(content: bytes, size: tuple[int, int]) -> np.ndarray:
    """The codes of an image of this size."""
    pixels = size[0] * size[1]
    if pixels < SMALL:
        high, low = np.frombuffer(lzma.decompress(content), np.uint8).reshape(2, *size)
    else:
        plain, check, packed = (memoryview(content)[part] for part in _parts(pixels))
        if zlib.crc32(plain) != int.from_bytes(check, "little"):
            raise ValueError("wrong checksum")
        low = np.frombuffer(plain, np.uint8).reshape(size)
        high = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(size)
    steps = high.astype(np.uint16) << 8 | low
    return steps.cumsum(1, dtype=np.uint16).cumsum(0, dtype=np.uint16)


def _parts(pixels: int) -> tuple[slice, slice, slice]:
    return slice(pixels), slice(pixels, pixels + 4), slice(pixels + 4, None)


def _steps(plane: np.ndarray) -> np.ndarray:
    """Differences along rows, from 0."""
    steps = np.empty_like(plane)
    steps[:, :1] = plane[:, :1]
    np.subtract(plane[:, 1:], plane[:, :-1], out=steps[:, 1:])
    return steps
