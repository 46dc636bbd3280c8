"""Loading the compiled library: 0.3 ms, on first use."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from ctypes import c_int32, c_int64, c_void_p
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import engines.host
from engines.arrays import FloatArray, IndexArray

FILE_NAME = "lib/prism_gpu_host.so"
"""In a folder of its own: beside the modules it would be taken for one."""


class LibraryMissingError(OSError):
    """The compiled library is not there, or not the one that belongs to this source."""


def _candidates() -> Iterator[Path]:
    """Yield where the library may lie: an editable installation has a second folder for it."""
    for folder in engines.host.__path__:
        yield Path(folder) / FILE_NAME


ADVICE = "build it with `python -m engines.host.build`, or install prism-gpu anew"


@functools.cache
def library() -> ctypes.CDLL:
    """Return the compiled library; of several, the one built last.

    Raises
    ------
    LibraryMissingError
        If it was not built or cannot be loaded, saying what to do.
    """
    present = [path for path in _candidates() if path.is_file()]
    path = max(present, key=lambda path: path.stat().st_mtime, default=None)
    if path is None:
        raise LibraryMissingError(f"the compiled library of prism-gpu is missing: {ADVICE}")
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise LibraryMissingError(f"{path} cannot be used ({error}): {ADVICE}") from error


class Function:
    """A function of the library, looked up when it is first called; it runs without Python's lock.

    Parameters
    ----------
    name
        Its name.
    result
        A type of ctypes, or None.
    arguments
        Types of ctypes, `Array`s and structures; None stands for no array or structure.
    """

    def __init__(self, name: str, result: Any, *arguments: Any) -> None:
        self._name, self._result, self._arguments = name, result, arguments
        self._found: Any = None
        self._of: ctypes.CDLL | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Call it.

        Raises
        ------
        LibraryMissingError
            If there is no library, or one of other sources without this function.
        ctypes.ArgumentError
            If an array has another type or is not contiguous.
        """
        loaded = library()
        if self._of is not loaded:
            self._found, self._of = self._declared(loaded), loaded
        return self._found(*arguments)

    def _declared(self, loaded: ctypes.CDLL) -> Any:
        try:
            # Not as an attribute, which all declarations of one name would share.
            found = loaded[self._name]
        except AttributeError as error:
            raise LibraryMissingError(
                f"{loaded._name} is built from other sources: {ADVICE}"
            ) from error
        found.restype, found.argtypes = self._result, self._arguments
        return found


_Address = ctypes.c_char * 0


class Array:
    """An argument that is a contiguous array of one type, or None for a null pointer.

    Parameters
    ----------
    dtypes
        The types that it may have, of the same meaning to the library.
    """

    def __init__(self, *dtypes: Any) -> None:
        self._dtypes = frozenset(map(np.dtype, dtypes))

    def from_param(self, array: NDArray[Any] | None) -> Any:
        """Return what ctypes passes; called by it for each argument."""
        if array is None:
            return c_void_p(None)
        if array.flags.writeable:
            self._check(array)
            # A quarter of the time that `array.ctypes` takes.
            return _Address.from_buffer(array.data)
        return self.pointer(array)

    def pointer(self, array: NDArray[Any] | None) -> c_void_p:
        """Return what a field of a structure takes; the array must be kept alive.

        Parameters
        ----------
        array
            The array, or None for a null pointer.

        Raises
        ------
        TypeError
            If it has another type or is not contiguous.
        """
        if array is None:
            return c_void_p(None)
        self._check(array)
        return c_void_p(array.ctypes.data)

    def _check(self, array: NDArray[Any]) -> None:
        if array.dtype not in self._dtypes or not array.flags.c_contiguous:
            wanted = " or ".join(sorted(map(str, self._dtypes)))
            raise TypeError(f"a contiguous array of {wanted} is wanted, not of {array.dtype}")


DOUBLES, SINGLES = Array(np.float64), Array(np.float32)
INDICES, NUMBERS = Array(np.int64), Array(np.int32)
"""64-bit and 32-bit integers."""
MASKS = Array(np.bool_, np.uint8)
"""Bytes that are 0 or 1."""


class Structure(ctypes.Structure):
    """A structure that keeps the arrays alive to which it points."""

    _kept: tuple[Any, ...]

    @classmethod
    def from_param(cls, given: Any) -> Any:
        """Pass its address, or null for None; called by ctypes for each argument."""
        return None if given is None else ctypes.byref(given)


class Rows(Protocol):
    """The rows of a sparse matrix; see `engines.model.csr.CsrMatrix`."""

    @property
    def row_offsets(self) -> IndexArray:
        """Where each row's entries start."""

    @property
    def columns(self) -> IndexArray:
        """Column of each entry."""

    @property
    def values(self) -> FloatArray:
        """Value of each entry."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""


class HostMatrix(Structure):
    """`PgMatrix` of src/matrix.hpp."""

    _fields_ = (
        ("rows", c_int64),
        ("offsets", c_void_p),
        ("columns", c_void_p),
        ("values", c_void_p),
        ("wide_offsets", c_int32),
        ("wide_columns", c_int32),
    )

    @classmethod
    def of(cls, matrix: Rows) -> HostMatrix:
        """Return a matrix as the library reads it; its arrays are shared where they can be.

        Parameters
        ----------
        matrix
            The matrix; it must not be changed while the library reads it.
        """
        wide_columns = matrix.columns.dtype.itemsize > 4
        wide_offsets = wide_columns or matrix.row_offsets.dtype.itemsize > 4
        offsets = of_type(matrix.row_offsets, wide_offsets)
        columns = of_type(matrix.columns, wide_columns)
        values = doubles(matrix.values)
        pointers = [array.ctypes.data for array in (offsets, columns, values)]
        made = cls(matrix.num_rows, *pointers, wide_offsets, wide_columns)
        made._kept = (offsets, columns, values)
        return made

    @property
    def column_type(self) -> type[np.signedinteger]:
        """The type of its columns."""
        return np.int64 if self.wide_columns else np.int32


def of_type(array: IndexArray, wide: bool) -> IndexArray:
    """Return indices as the library reads them beside a matrix.

    Parameters
    ----------
    array
        The indices.
    wide
        Whether they have 64 bits; else 32.
    """
    kind = np.int64 if wide else np.int32
    if array.dtype.kind == "u" and array.dtype.itemsize == np.dtype(kind).itemsize:
        return np.ascontiguousarray(array.view(kind))
    return np.ascontiguousarray(array, dtype=kind)


def of_type_or_none(array: IndexArray | None, wide: bool) -> IndexArray | None:
    """Return indices as `of_type` does, and None for None.

    Parameters
    ----------
    array, wide
        As there.
    """
    return None if array is None else of_type(array, wide)


def doubles(array: FloatArray) -> FloatArray:
    """Return the array as the library reads numbers."""
    return np.ascontiguousarray(array, dtype=np.float64)


def indices(array: IndexArray) -> IndexArray:
    """Return the array as the library reads indices of 64 bits."""
    return np.ascontiguousarray(array, dtype=np.int64)
