"""Reading pickles of plain data without trusting them.

A pickle is a program: loading a stranger's file with `pickle.load` runs whatever it names. CIFAR-10 is
published as pickles, so they are read here by an unpickler in which every name is a stand-in of our own.
Plain containers, numbers, strings, bytes and arrays of numbers come through; any other name is refused,
uncalled.
"""

import math
import pickle
import re
from collections.abc import Callable
from typing import Any, BinaryIO, Never

import numpy as np

from dmt.errors import DataError

_NUMBER = re.compile(r"[biufc][0-9]{1,2}")  # the codes of numeric dtypes: u1, i8, f4, ...; "O" for objects is not one


class _RefusedError(Exception):
    """What this pickle asked for and may not have."""


class _StandIn:
    """What a pickle gets for one of the few admitted names.

    An object without attributes rather than a function: a pickle may also set attributes of what it was given
    (opcode BUILD), and a function would let it replace its defaults for the whole process.
    """

    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., object]) -> None:
        self._call = call

    def __call__(self, *args: object) -> object:
        return self._call(*args)

    def __setstate__(self, state: object) -> Never:
        raise _RefusedError("to change a function")


class _Dtype:
    """A numeric dtype under construction: the pickle first names its code, then its byte order."""

    __slots__ = ("plain",)

    def __init__(self, code: object, *_options: object) -> None:
        text = code.decode("latin-1") if isinstance(code, bytes) else str(code)
        if not _NUMBER.fullmatch(text):
            raise _RefusedError(f"an array of {_short(text)}")
        self.plain: np.dtype[Any] = np.dtype(text)

    def __setstate__(self, state: object) -> None:
        # (version, byte order, subarray, names, fields, size, alignment, flags); only the order is new
        if not isinstance(state, tuple) or len(state) < 5 or any(part is not None for part in state[2:5]):
            raise _RefusedError("an array of records")
        order = state[1].decode("latin-1") if isinstance(state[1], bytes) else state[1]
        if order not in ("|", "<", ">", "="):
            raise _RefusedError("an array of unknown byte order")
        self.plain = np.dtype(order + self.plain.str[1:])


class _Array(np.ndarray[Any, np.dtype[Any]]):
    """An array that checks its state before numpy sees it."""

    def __setstate__(self, state: object) -> None:
        match state:
            case (int(), tuple(shape), _Dtype(plain=dtype), int(fortran), bytes(raw)):
                pass
            case _:
                raise _RefusedError("an array with a state that is not its shape, dtype and bytes")
        if not all(isinstance(size, int) and size >= 0 for size in shape):
            raise _RefusedError("an array with an impossible shape")
        if math.prod(shape) * dtype.itemsize != len(raw):
            raise _RefusedError("an array whose bytes do not fill its shape")
        super().__setstate__((1, shape, dtype, bool(fortran), raw))  # type: ignore[arg-type]  # a plain bool it is


def _short(text: str) -> str:
    """Text from the file, made fit for one line of an error."""
    return repr(text if len(text) <= 60 else text[:60] + "...")


def _ndarray(*_args: object) -> Never:
    raise _RefusedError("to build an array other than through its state")


def _reconstruct(kind: object, _shape: object, _code: object) -> _Array:
    """The empty array that the pickle fills by its state in the next step; shape and code do not matter."""
    if kind is not _NDARRAY:
        raise _RefusedError("a subclass of an array")
    return _Array((0,), np.uint8)


def _encode(text: object, encoding: object) -> bytes:
    """How protocol 2 writes bytes: as the str of the same code points, and the wish to encode it."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise _RefusedError("an encoding other than latin-1")
    return text.encode("latin-1")


def _empty_bytes() -> bytes:
    """How protocol 2 writes b"": as a call of bytes without arguments. With any, this fails."""
    return b""


_NDARRAY = _StandIn(_ndarray)
_ADMITTED = {
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _StandIn(_Dtype),
    ("numpy.core.multiarray", "_reconstruct"): _StandIn(_reconstruct),
    ("numpy._core.multiarray", "_reconstruct"): _StandIn(_reconstruct),
    ("_codecs", "encode"): _StandIn(_encode),
    ("__builtin__", "bytes"): _StandIn(_empty_bytes),
}


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> _StandIn:
        try:
            return _ADMITTED[module, name]
        except KeyError:
            raise _RefusedError(_short(f"{module}.{name}")) from None


def load(stream: BinaryIO, name: str = "pickle") -> object:
    """The plain data in a pickle; strings of Python 2 come as bytes. `name` is what errors call the file.

    Arrays are instances of a subclass of numpy.ndarray: `numpy.asarray` gives the plain view.
    """
    try:
        return _PlainUnpickler(stream, encoding="bytes").load()
    except _RefusedError as refusal:
        raise DataError(
            f"{name}: the reader refuses {refusal}, since only plain data may be in it; get the original file"
        ) from None
    except Exception as error:  # a damaged pickle can fail in any way: EOFError, KeyError, ValueError, MemoryError, ...
        raise DataError(
            f"{name}: not a readable pickle ({type(error).__name__}); get the original file again"
        ) from error
