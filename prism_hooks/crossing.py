"""Arrays on their way between Java and NumPy, each in one bulk copy."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from engines.formats.csr import FloatArray, IndexArray, MaskArray

_T = TypeVar("_T", np.int32, np.int64, np.float64)

FEWEST_BYTES = 1 << 15
"""From so many bytes on a buffer that both sides see is worth its objects: Java copies through it
at the speed of memory, five times as fast as JPype does element by element."""

VIEWS = {"i": "asIntBuffer", "q": "asLongBuffer", "l": "asLongBuffer", "d": "asDoubleBuffer"}
"""Java's view of a buffer, by NumPy's letter for its numbers."""


def java_integers(array: IndexArray) -> Any:
    """Return a Java int[] of an array whose numbers are no larger.

    Parameters
    ----------
    array
        One-dimensional.
    """
    import jpype

    return _copied(np.ascontiguousarray(array, dtype=np.int32), jpype.JInt)


def java_doubles(array: FloatArray) -> Any:
    """Return a Java double[] of an array.

    Parameters
    ----------
    array
        One-dimensional.
    """
    import jpype

    return _copied(np.ascontiguousarray(array, dtype=np.float64), jpype.JDouble)


def java_flags(mask: MaskArray) -> Any:
    """Return a Java boolean[] of a mask.

    Parameters
    ----------
    mask
        One-dimensional.
    """
    import jpype

    return _copied(np.ascontiguousarray(mask, dtype=np.bool_), jpype.JBoolean)


def numpy_array(array: Any, dtype: type[_T]) -> NDArray[_T]:
    """Return a NumPy array of a Java array.

    Parameters
    ----------
    array
        A Java array of that type, or whatever NumPy makes an array of.
    dtype
        Integers of 32 or 64 bits, or doubles.
    """
    if not _is_long(array, np.dtype(dtype)):
        return np.array(array, dtype=dtype)
    copy = np.empty(len(array), dtype=dtype)
    _buffer(copy).put(array)
    return copy


def overwrite(java: Any, array: NDArray[Any]) -> None:
    """Write an array over a Java array of its length and type.

    Parameters
    ----------
    java
        The Java array.
    array
        Contiguous.
    """
    if array.flags.writeable and _is_long(java, array.dtype):
        _buffer(array).get(java)
    else:
        java[:] = array


def copy_back(java: Sequence[Any], arrays: Sequence[FloatArray]) -> None:
    """Write each Java double[] over an array of its length.

    Parameters
    ----------
    java, arrays
        As many of each.
    """
    for source, array in zip(java, arrays, strict=True):
        if array.flags.c_contiguous and _is_long(source, array.dtype):
            _buffer(array).put(source)
        else:
            np.copyto(array, np.array(source, dtype=np.float64))


def _copied(array: NDArray[Any], kind: Any) -> Any:
    import jpype

    copy = jpype.JArray(kind)(len(array))
    overwrite(copy, array)
    return copy


def _is_long(array: Any, dtype: np.dtype[Any]) -> bool:
    """Return whether something is a Java array of such numbers that is worth a buffer."""
    jpype = sys.modules.get("jpype")
    if jpype is None or dtype.char not in VIEWS or not isinstance(array, jpype.JArray):
        return False
    kind = {"i": jpype.JInt, "d": jpype.JDouble}.get(dtype.char, jpype.JLong)
    return isinstance(array, jpype.JArray(kind)) and len(array) * dtype.itemsize >= FEWEST_BYTES


def _buffer(array: NDArray[Any]) -> Any:
    """Return Java's view of a writable array, for as long as that lives."""
    import jpype

    order = jpype.JClass("java.nio.ByteOrder").nativeOrder()
    shared = jpype.nio.convertToDirectBuffer(array.data.cast("B")).order(order)
    return getattr(shared, VIEWS[array.dtype.char])()
