"""SciPy's compiled loops over rows of sparse matrices, without the rest of SciPy.

Importing `scipy.sparse` takes 0.1 s, longer than most solves whose matrix it would multiply. The
loops lie in one extension module of it, which needs NumPy alone and is loaded in some milliseconds.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import numpy as np

from engines.formats.csr import CsrMatrix, FloatArray, IndexArray

LOOPS = "scipy.sparse._sparsetools"


class CsrProduct:
    """A matrix that multiplies vectors; the sums are SciPy's to the last bit.

    Parameters
    ----------
    matrix
        The matrix; its arrays are shared.
    """

    def __init__(self, matrix: CsrMatrix) -> None:
        self._shape = (matrix.num_rows, matrix.num_columns)
        self._arrays = (*_indices(matrix), np.ascontiguousarray(matrix.values, dtype=np.float64))

    def __matmul__(self, vectors: FloatArray) -> FloatArray:
        """Return the product with one vector, shape (columns,), or with several, (columns, k)."""
        product = np.empty((self._shape[0], *vectors.shape[1:]))
        return self.into(vectors, product)

    def into(self, vectors: FloatArray, product: FloatArray) -> FloatArray:
        """Write the product over an array, which is returned.

        Parameters
        ----------
        vectors
            Shape (columns,) or (columns, k).
        product
            Shape (rows,) or (rows, k), contiguous.
        """
        product.fill(0.0)
        flat = np.ascontiguousarray(vectors).reshape(-1)
        if vectors.ndim == 1:
            _loops().csr_matvec(*self._shape, *self._arrays, flat, product)
        else:
            together = (*self._shape, vectors.shape[1])
            _loops().csr_matvecs(*together, *self._arrays, flat, product.reshape(-1))
        return product


def transposed(matrix: CsrMatrix, values: FloatArray) -> CsrMatrix:
    """Return the transpose of a matrix with other values, columns ascending in each row.

    Parameters
    ----------
    matrix
        Where the entries lie.
    values
        Shape (entries,).
    """
    offsets, columns = _indices(matrix)
    turned = np.empty(matrix.num_columns + 1, dtype=offsets.dtype)
    rows, moved = np.empty_like(columns), np.empty(len(columns))
    given = (offsets, columns, np.ascontiguousarray(values, dtype=np.float64))
    _loops().csr_tocsc(matrix.num_rows, matrix.num_columns, *given, turned, rows, moved)
    return CsrMatrix(turned, rows, moved, matrix.num_rows)


def row_sums(matrix: CsrMatrix) -> FloatArray:
    """Return the sum of each row, shape (rows,), its entries added one after the other.

    Parameters
    ----------
    matrix
        The matrix.
    """
    return CsrProduct(matrix) @ np.ones(matrix.num_columns)


def diagonal(matrix: CsrMatrix) -> FloatArray:
    """Return the sum of the entries of each row in its own column, shape (rows,).

    Parameters
    ----------
    matrix
        A square matrix.
    """
    found = np.zeros(matrix.num_rows)
    values = np.ascontiguousarray(matrix.values, dtype=np.float64)
    shape = (matrix.num_rows, matrix.num_columns)
    _loops().csr_diagonal(0, *shape, *_indices(matrix), values, found)
    return found


def _indices(matrix: CsrMatrix) -> tuple[IndexArray, IndexArray]:
    """Return offsets and columns in one signed type, as the loops take them."""
    offsets, columns = matrix.row_offsets, matrix.columns
    wide = offsets.dtype.itemsize > 4 or columns.dtype.itemsize > 4
    kind = np.int64 if wide else np.int32
    return np.ascontiguousarray(offsets, dtype=kind), np.ascontiguousarray(columns, dtype=kind)


@cache
def _loops() -> Any:
    """Load the extension module by its file, or with its package where it lies elsewhere."""
    package = importlib.util.find_spec("scipy")
    folders = package.submodule_search_locations if package is not None else None
    if LOOPS in sys.modules or not folders:
        return importlib.import_module(LOOPS)
    files = (Path(folders[0], "sparse", f"_sparsetools{end}") for end in EXTENSION_SUFFIXES)
    file = next(filter(Path.is_file, files), None)
    # A name of our own: SciPy, imported later, is to find its package as it expects it.
    spec = None if file is None else importlib.util.spec_from_file_location("_sparsetools", file)
    if spec is None or spec.loader is None:
        return importlib.import_module(LOOPS)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
