"""An entry dictionary: distinct pairs of a distance and a value, and a code for each entry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.errors import UnsupportedError
from engines.formats import values
from engines.formats.choice import MOST_CODES
from engines.formats.csr import CsrMatrix, FloatArray, IndexArray


@dataclass(frozen=True)
class EntryCoded:
    """A matrix with codes for entries.

    Parameters
    ----------
    row_offsets, num_columns
        As in `engines.formats.csr.CsrMatrix`.
    codes
        Shape (entries,), uint8 or uint16.
    distances, numbers
        The distinct pairs, shape (codes,): column less the row's state, and value. They are in the
        order of the distance as an unsigned number of 32 bits, then of the value's bits.
    states
        The state of each row, shape (rows,).
    """

    row_offsets: IndexArray
    codes: IndexArray
    distances: IndexArray
    numbers: FloatArray
    states: IndexArray
    num_columns: int

    def decode(self) -> CsrMatrix:
        """Return the matrix, entry by entry as it was."""
        state = np.repeat(self.states, np.diff(self.row_offsets))
        columns = (state + self.distances[self.codes]).astype(np.int32)
        return CsrMatrix(self.row_offsets, columns, self.numbers[self.codes], self.num_columns)


def encode(matrix: CsrMatrix, states: IndexArray | None = None) -> EntryCoded:
    """Give each distinct pair a code.

    Parameters
    ----------
    matrix
        Any matrix with columns of 32 bits.
    states
        The state that each row belongs to, shape (rows,); None where row i is state i's.

    Raises
    ------
    UnsupportedError
        When there are more pairs than codes of 16 bits.
    """
    states = np.arange(matrix.num_rows) if states is None else states
    coded = values.encode(matrix)
    distances = matrix.columns.astype(np.int64) - np.repeat(states, matrix.row_lengths())
    keys = (distances.astype(np.uint32).astype(np.uint64) << np.uint64(32)) | coded.codes
    distinct, codes = np.unique(keys, return_inverse=True)
    if len(distinct) > MOST_CODES:
        raise UnsupportedError(
            f"there are more than {MOST_CODES} distinct pairs of a distance and a value"
        )
    return EntryCoded(
        matrix.row_offsets,
        values.narrow_codes(codes, len(distinct)),
        (distinct >> np.uint64(32)).astype(np.uint32).view(np.int32),
        coded.numbers[(distinct & np.uint64(0xFFFFFFFF)).astype(np.int64)],
        states,
        matrix.num_columns,
    )
