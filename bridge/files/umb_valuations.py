"""State valuations of UMB files: the variables' values of a state, packed bit by bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.files.umb_archive import Bytes
from bridge.files.umb_index import ValuationLayout, Variable
from engines.arrays import MaskArray
from engines.errors import InvalidModelError


@dataclass(frozen=True)
class StateValuations:
    """The values of the model's variables in every state.

    Parameters
    ----------
    layout
        Which bits of a record hold which variable.
    records
        Shape (states, bytes of a record), uint8: little-endian, bit 0 first.
    """

    layout: ValuationLayout
    records: Bytes

    @property
    def names(self) -> tuple[str, ...]:
        """The variables' names, in the model's order."""
        return tuple(variable.name for variable in self.layout.variables)

    def values(self, name: str) -> NDArray[Any]:
        """Return a variable's value in every state.

        Parameters
        ----------
        name
            The variable.

        Returns
        -------
        array
            Shape (states,): bool, float64, int64, or uint64 for an unsigned variable of 64 bits.
        """
        for variable in self.layout.variables:
            if variable.name == name:
                return self._decode(variable)
        raise InvalidModelError(f"no variable {name!r}; there are {', '.join(self.names)}")

    def _decode(self, variable: Variable) -> NDArray[Any]:
        bits = np.zeros(len(self.records), np.uint64)
        end = variable.offset + variable.size
        for byte in range(variable.offset // 8, (end + 7) // 8):
            part = self.records[:, byte].astype(np.uint64)
            shift = 8 * byte - variable.offset
            bits |= part << np.uint64(shift) if shift >= 0 else part >> np.uint64(-shift)
        if variable.size < 64:
            bits &= np.uint64((1 << variable.size) - 1)
        if variable.type == "bool":
            truth: MaskArray = bits != 0
            return truth
        if variable.type == "double":
            return bits.view(np.float64)
        if variable.type == "uint" and variable.size == 64:
            return bits
        whole: NDArray[np.int64] = bits.view(np.int64)
        if variable.type == "int" and 0 < variable.size < 64:
            sign = np.uint64(1 << (variable.size - 1))
            whole = (bits ^ sign).view(np.int64) - np.int64(sign)
        return whole + variable.origin if variable.origin else whole


def pack_valuations(columns: Mapping[str, NDArray[Any]]) -> StateValuations:
    """Return valuations packed as PRISM does: each variable in as many bits as its values need.

    Parameters
    ----------
    columns
        The variables by name, in the model's order; each of shape (states,), of a boolean, integer
        or floating-point type.
    """
    if not columns:
        raise InvalidModelError("state valuations need a variable at least")
    variables = []
    bits = []
    offset = 0
    for name, values in columns.items():
        kind, size, words = _words(name, np.asarray(values))
        variables.append(Variable(name, kind, offset, size))
        octets = words.astype("<u8").view(np.uint8).reshape(-1, 8)
        bits.append(np.unpackbits(octets, axis=1, count=size, bitorder="little"))
        offset += size
    if len({len(part) for part in bits}) > 1:
        raise InvalidModelError("the variables' values are of different lengths")
    records = np.packbits(np.concatenate(bits, axis=1), axis=1, bitorder="little")
    unique = len(np.unique(records, axis=0)) == len(records)
    return StateValuations(ValuationLayout(tuple(variables), records.shape[1], unique), records)


def _words(name: str, values: NDArray[Any]) -> tuple[str, int, NDArray[Any]]:
    """Return a variable's type and bits, and its values as 64-bit words."""
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise InvalidModelError(f"variable {name!r}: one boolean or number a state is needed")
    if values.dtype.kind == "b":
        return "bool", 1, values.astype(np.uint64)
    if values.dtype.kind == "f":
        return "double", 64, values.astype(np.float64).view(np.uint64)
    lowest, highest = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    if lowest >= 0:
        return "uint", max(highest.bit_length(), 1), values.astype(np.uint64)
    size = max((-lowest - 1).bit_length(), highest.bit_length()) + 1
    return "int", size, values.astype(np.int64).view(np.uint64)
