"""Lossless compression of planes of confidence codes.

Confidence varies smoothly, so the differences between neighboring codes along both axes (modulo 65,536) are small:
their high bytes are mostly 0 or 255 and compress to almost nothing, while their low bytes are noise.
"""

import lzma
import zlib

import numpy as np

from dmt.core.codes import OFFSET

SMALL = 128 * 128
"""Planes with fewer pixels get a slower, better compression, since their overhead is large relative to their size."""

DAMAGE = (zlib.error, lzma.LZMAError, ValueError)
"""Exceptions that `unpack` raises for bytes that `pack` did not produce."""


def signed(codes: np.ndarray) -> np.ndarray:
    """Convert uint16 codes to int16 by subtracting 32,768, since torch supports few operations on uint16."""
    return (codes ^ np.uint16(OFFSET)).view(np.int16)


def unsigned(codes: np.ndarray) -> np.ndarray:
    """Convert int16 codes back to uint16; the inverse of `signed`."""
    return codes.view(np.uint16) ^ np.uint16(OFFSET)


def pack(codes: np.ndarray) -> bytes:
    """Compress codes (H, W) uint16."""
    steps = np.ascontiguousarray(_steps(_steps(codes.T).T))
    low, high = steps.view(np.uint8).reshape(-1, 2).T  # views; assumes little-endian, as on all platforms of torch
    if codes.size < SMALL:
        return lzma.compress(high.tobytes() + low.tobytes(), lzma.FORMAT_ALONE, preset=0)
    # compressing the low bytes too would take five times as long and save an eighth
    packer = zlib.compressobj(1, strategy=zlib.Z_RLE)
    plain = low.tobytes()
    check = zlib.crc32(plain).to_bytes(4, "little")  # zlib has its own checksum for the compressed high bytes
    return b"".join((plain, check, packer.compress(high.tobytes()), packer.flush()))


def unpack(content: bytes, size: tuple[int, int]) -> np.ndarray:
    """Return the codes (H, W) uint16 of an image of this size.

    Raises:
        Exception: one of `DAMAGE`, if `pack` did not make these bytes for an image of this size.
    """
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
    """Return the differences between horizontal neighbors; the first column stays as it is."""
    steps = np.empty_like(plane)
    steps[:, :1] = plane[:, :1]
    np.subtract(plane[:, 1:], plane[:, :-1], out=steps[:, 1:])
    return steps
