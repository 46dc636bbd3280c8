"""Arrays on their way from Java to NumPy and back, in bulk."""

from __future__ import annotations

import sys
import threading
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_T = TypeVar("_T", np.int32, np.int64, np.float64)

FEWEST_BYTES = 1 << 15
"""From so many bytes on an array crosses by way of a stage."""

STAGE_BYTES = 1 << 20
"""Memory that both sides see; it stays in a core's cache."""

VIEWS = {"i": "asIntBuffer", "q": "asLongBuffer", "l": "asLongBuffer", "d": "asDoubleBuffer"}
"""Java's view of a buffer, by NumPy's letter for its numbers."""


class _Stage(threading.local):
    """Memory that NumPy and Java both see, one piece a thread.

    What is copied through it moves at the speed of memory, five times as fast as JPype copies. The
    arrays themselves could be shown to Java, but would then live until it collects its garbage.
    """

    def __init__(self) -> None:
        self._bytes: NDArray[np.uint8] | None = None
        self._shared: Any = None
        self._views: dict[str, tuple[NDArray[Any], Any]] = {}

    def view(self, dtype: np.dtype[Any]) -> tuple[NDArray[Any], Any]:
        """Return NumPy's and Java's view of the memory as such numbers."""
        if dtype.char not in self._views:
            if self._bytes is None:
                import jpype

                self._bytes = np.empty(STAGE_BYTES, dtype=np.uint8)
                order = jpype.JClass("java.nio.ByteOrder").nativeOrder()
                self._shared = jpype.nio.convertToDirectBuffer(self._bytes).order(order)
            java = getattr(self._shared, VIEWS[dtype.char])()
            self._views[dtype.char] = self._bytes.view(dtype), java
        return self._views[dtype.char]


_STAGE = _Stage()


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
    stage, shared = _STAGE.view(copy.dtype)
    for first in range(0, len(copy), len(stage)):
        size = min(len(stage), len(copy) - first)
        shared.clear().put(array, first, size)
        copy[first : first + size] = stage[:size]
    return copy


def java_array(array: NDArray[Any]) -> Any:
    """Return a Java array of a NumPy array; the JVM must be running.

    Parameters
    ----------
    array
        Integers of 32 or 64 bits, or doubles, in one dimension. One number that is repeated in no
        memory of its own, as `numpy.broadcast_to` does, crosses once.
    """
    import jpype

    types = {"i": jpype.JInt, "d": jpype.JDouble}
    copy = jpype.JArray(types.get(array.dtype.char, jpype.JLong))(len(array))
    if array.nbytes < FEWEST_BYTES:
        copy[:] = np.ascontiguousarray(array)
        return copy
    if array.strides == (0,):
        jpype.JClass("java.util.Arrays").fill(copy, array[0].item())
        return copy
    stage, shared = _STAGE.view(array.dtype)
    for first in range(0, len(array), len(stage)):
        size = min(len(stage), len(array) - first)
        stage[:size] = array[first : first + size]
        shared.clear().get(copy, first, size)
    return copy


def held_by(holder: Any, array: NDArray[Any]) -> Any:
    """Return an array as a field of an object holds it: a Java object's as a Java array.

    Parameters
    ----------
    holder
        The object, of Java or of Python.
    array
        As for `java_array`.
    """
    jpype = sys.modules.get("jpype")
    is_java = jpype is not None and isinstance(holder, jpype.JObject)
    return java_array(array) if is_java else np.ascontiguousarray(array)


def _is_long(array: Any, dtype: np.dtype[Any]) -> bool:
    """Return whether something is a Java array of such numbers that is worth a stage."""
    jpype = sys.modules.get("jpype")
    if jpype is None or dtype.char not in VIEWS or not isinstance(array, jpype.JArray):
        return False
    kind = {"i": jpype.JInt, "d": jpype.JDouble}.get(dtype.char, jpype.JLong)
    return isinstance(array, jpype.JArray(kind)) and len(array) * dtype.itemsize >= FEWEST_BYTES
