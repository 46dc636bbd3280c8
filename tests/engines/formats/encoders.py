"""What the device builds of a matrix with dictionaries, built row by row: the oracle of tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.arrays import FloatArray, IndexArray, index_dtype, ranges
from engines.errors import UnsupportedError
from engines.host.layouts import narrow_codes
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


def values_coded(matrix: CsrMatrix) -> ValueCoded:
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


@dataclass(frozen=True)
class RowCoded:
    """A matrix with codes for rows.

    Parameters
    ----------
    codes
        Shape (rows,), uint8, uint16 or uint32.
    starts
        Shape (patterns + 1,): where the pairs of each pattern start.
    distances, numbers
        Shape (pairs,): column less the row's state, and value.
    givens
        The right-hand side of each pattern, shape (patterns,), or None.
    states
        The state of each row, shape (rows,).
    num_columns
        Number of columns.
    """

    codes: IndexArray
    starts: IndexArray
    distances: IndexArray
    numbers: FloatArray
    givens: FloatArray | None
    states: IndexArray
    num_columns: int

    def decode(self) -> CsrMatrix:
        """Return the matrix, entry by entry as it was."""
        lengths = np.diff(self.starts)[self.codes]
        total = int(lengths.sum())
        offsets = np.zeros(len(self.codes) + 1, dtype=index_dtype(total))
        np.cumsum(lengths, out=offsets[1:])
        pair = ranges(self.starts[self.codes], lengths)
        columns = (np.repeat(self.states, lengths) + self.distances[pair]).astype(np.int32)
        return CsrMatrix(offsets, columns, self.numbers[pair], self.num_columns)

    def offset(self) -> FloatArray | None:
        """Return the right-hand side, shape (rows,), or None."""
        return None if self.givens is None else self.givens[self.codes]


def rows_coded(
    matrix: CsrMatrix, states: IndexArray | None = None, offset: FloatArray | None = None
) -> RowCoded:
    """Give each distinct row a code, by the first row of each kind.

    Parameters
    ----------
    matrix
        Any matrix with columns of 32 bits.
    states
        The state that each row belongs to, shape (rows,); None where row i is state i's.
    offset
        A right-hand side that rows must share, too, shape (rows,), or None.
    """
    states = np.arange(matrix.num_rows) if states is None else states
    distances = matrix.columns.astype(np.int64) - np.repeat(states, matrix.row_lengths())
    codes = np.empty(matrix.num_rows, dtype=np.int64)
    known: dict[tuple[bytes, bytes, bytes], int] = {}
    first: list[int] = []
    for row in range(matrix.num_rows):
        part = slice(int(matrix.row_offsets[row]), int(matrix.row_offsets[row + 1]))
        given = b"" if offset is None else offset[row].tobytes()
        key = (distances[part].tobytes(), matrix.values[part].tobytes(), given)
        codes[row] = known.setdefault(key, len(first))
        if codes[row] == len(first):
            first.append(row)
    chosen = np.array(first, dtype=np.int64)
    patterns = matrix.select_rows(chosen)
    return RowCoded(
        narrow_codes(codes, len(first)),
        patterns.row_offsets,
        (patterns.columns - np.repeat(states[chosen], patterns.row_lengths())).astype(np.int32),
        patterns.values,
        None if offset is None else offset[chosen],
        states,
        matrix.num_columns,
    )
