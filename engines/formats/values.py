"""A value dictionary: distinct values, and a code beside each column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.arrays import FloatArray, IndexArray
from engines.errors import UnsupportedError
from engines.model.choice import MOST_CODES
from engines.model.csr import CsrMatrix


@dataclass(frozen=True)
class ValueCoded:
    """A matrix with codes for values.

    Parameters
    ----------
    row_offsets, columns, num_columns
        As in `engines.model.csr.CsrMatrix`.
    codes
        Shape (entries,), uint8 or uint16.
    numbers
        The distinct values by the order of their bits, shape (codes,).
    """

    row_offsets: IndexArray
    columns: IndexArray
    codes: IndexArray
    numbers: FloatArray
    num_columns: int

    def decode(self) -> CsrMatrix:
        """Return the matrix, entry by entry as it was."""
        return CsrMatrix(self.row_offsets, self.columns, self.numbers[self.codes], self.num_columns)


def narrow_codes(codes: IndexArray, distinct: int) -> IndexArray:
    """Return codes in the fewest bytes that tell so many things apart.

    Parameters
    ----------
    codes
        Of any integer type.
    distinct
        How many things there are.
    """
    for dtype in (np.uint8, np.uint16):
        if distinct <= np.iinfo(dtype).max + 1:
            return codes.astype(dtype)
    return codes.astype(np.uint32)


def encode(matrix: CsrMatrix) -> ValueCoded:
    """Give each distinct value a code; values are the same if their bits are.

    Parameters
    ----------
    matrix
        Any matrix.

    Raises
    ------
    UnsupportedError
        When there are more values than codes of 16 bits.
    """
    bits = np.ascontiguousarray(matrix.values).view(np.uint64)
    distinct, codes = np.unique(bits, return_inverse=True)
    if len(distinct) > MOST_CODES:
        raise UnsupportedError(f"there are more than {MOST_CODES} distinct values")
    return ValueCoded(
        matrix.row_offsets,
        matrix.columns,
        narrow_codes(codes, len(distinct)),
        distinct.view(np.float64),
        matrix.num_columns,
    )
