"""PRISM's measure of a sweep, of vectors that are there."""

from __future__ import annotations

from ctypes import c_double, c_int32, c_int64

from engines.arrays import FloatArray
from engines.host.compiled.library import DOUBLES, Function, doubles

_LARGEST_CHANGE = Function("pg_largest_change", c_double, *(DOUBLES, DOUBLES, c_int64, c_int32))


def largest_change(before: FloatArray, after: FloatArray, absolute: bool) -> float:
    """Return PRISM's measure of a sweep: the largest absolute or relative change.

    Parameters
    ----------
    before, after
        Values before and after the sweep, of one shape.
    absolute
        Whether the change is absolute; else it is divided by the value before, 0/0 counting as
        no change and a rise from 0 as an infinite one.

    Raises
    ------
    ValueError
        If the shapes differ.
    """
    if before.shape != after.shape:
        raise ValueError(f"values before and after differ in shape: {before.shape}, {after.shape}")
    return float(_LARGEST_CHANGE(doubles(before), doubles(after), before.size, absolute))
