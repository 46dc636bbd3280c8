"""Loading the compiled library: 0.3 ms, on first use."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from ctypes import POINTER, c_double, c_int32, c_int64, c_void_p
from pathlib import Path

import numpy as np

import engines.host
from engines.formats.csr import FloatArray, IndexArray

FILE_NAME = "lib/prism_gpu_host.so"
"""In a folder of its own: beside the modules it would be taken for one."""

_DOUBLES, _INDICES = POINTER(c_double), POINTER(c_int64)

_FUNCTIONS = {
    "pg_eliminate": (
        c_int32,
        [
            *(c_int64, _INDICES, _INDICES, _DOUBLES, _DOUBLES),
            *(c_int32, c_double, c_double, POINTER(c_void_p)),
        ],
    ),
    "pg_advance": (c_int32, [c_void_p, c_double]),
    "pg_numbers": (None, [c_void_p, _DOUBLES]),
    "pg_values": (c_int32, [c_void_p, _DOUBLES, _DOUBLES, _DOUBLES, _DOUBLES]),
    "pg_visits": (c_int32, [c_void_p, _DOUBLES, _DOUBLES]),
    "pg_shares": (c_int32, [c_void_p, _DOUBLES, _INDICES, c_int64, _DOUBLES, _DOUBLES]),
    "pg_earned": (
        None,
        [
            *(c_int64, _INDICES, _INDICES, _DOUBLES, _DOUBLES, _DOUBLES),
            *(_DOUBLES, _DOUBLES),
        ],
    ),
    "pg_gains": (
        None,
        [
            *(c_int64, _INDICES, _INDICES, _DOUBLES, _INDICES, _DOUBLES, _DOUBLES, _DOUBLES),
            *(c_double, _DOUBLES, _DOUBLES),
        ],
    ),
    "pg_release": (None, [c_void_p]),
}
"""Result and arguments of each function of the library."""


class LibraryMissingError(OSError):
    """The compiled library is not there, or not the one that belongs to this source."""


def _candidates() -> Iterator[Path]:
    """Yield where the library may lie: an editable installation has a second folder for it."""
    for folder in engines.host.__path__:
        yield Path(folder) / FILE_NAME


@functools.cache
def library() -> ctypes.CDLL:
    """Return the compiled library, its functions declared; of several, the one built last.

    Raises
    ------
    LibraryMissingError
        If it was not built, or lacks a function, saying what to do.
    """
    present = [path for path in _candidates() if path.is_file()]
    path = max(present, key=lambda path: path.stat().st_mtime, default=None)
    advice = "build it with `python -m engines.host.build`, or install prism-gpu anew"
    if path is None:
        raise LibraryMissingError(f"the compiled library of prism-gpu is missing: {advice}")
    try:
        loaded = ctypes.CDLL(str(path))
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise LibraryMissingError(f"{path} cannot be used ({error}): {advice}") from error
    return loaded


def doubles(array: FloatArray) -> FloatArray:
    """Return the array as the library reads numbers."""
    return np.ascontiguousarray(array, dtype=np.float64)


def indices(array: IndexArray) -> IndexArray:
    """Return the array as the library reads indices."""
    return np.ascontiguousarray(array, dtype=np.int64)


def pointer(array: FloatArray | IndexArray) -> object:
    """Return what the library is given for an array, which it keeps alive.

    Parameters
    ----------
    array
        Contiguous, of doubles or of 64-bit indices.
    """
    kind = c_double if array.dtype == np.float64 else c_int64
    return array.ctypes.data_as(POINTER(kind))
