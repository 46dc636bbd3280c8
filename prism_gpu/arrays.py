"""What users pass as matrices, labels and rewards, checked and in the engines' form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bridge.language.lexer import KEYWORDS
from bridge.model import StateVector
from engines.arrays import FloatArray, MaskArray, index_dtype
from engines.errors import InvalidModelError
from engines.model.csr import CsrMatrix

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
OF_EVERY_MODEL = ("init", "deadlock")


def sparse_matrix(matrix: Any, what: str) -> CsrMatrix:
    """Return a matrix in compressed rows, its columns sorted, without zeros; always a copy.

    Parameters
    ----------
    matrix
        A SciPy sparse matrix or array, or what NumPy makes a two-dimensional array of.
    what
        What messages call it.

    Raises
    ------
    InvalidModelError
        For another shape, and for entries that are negative, infinite or no numbers.
    TypeError
        For the name of a file.
    """
    from scipy.sparse import csr_array, issparse

    if isinstance(matrix, str | PathLike):
        raise TypeError(f"{what} must be a matrix; a model in a file is opened by prism_gpu.open")
    _require_one_order(matrix, what)
    plain = matrix if issparse(matrix) else real_array(matrix, what)
    if plain.ndim != 2:
        raise InvalidModelError(
            f"{what} must have two dimensions, but its shape is {tuple(plain.shape)}"
        )
    if np.dtype(plain.dtype).kind not in "biuf":
        raise InvalidModelError(f"{what} must hold real numbers, not {plain.dtype}")
    _require_sound(plain, what)
    # First of another type: duplicates are added up on the way, and small integers overflow.
    rows = csr_array(plain.astype(np.float64), copy=True)
    rows.sum_duplicates()
    _require_entries(rows, what)
    rows.eliminate_zeros()
    dtype = index_dtype(max(rows.nnz, *rows.shape))
    offsets, columns = (part.astype(dtype, copy=False) for part in (rows.indptr, rows.indices))
    return CsrMatrix(offsets, columns, rows.data, int(rows.shape[1]))


def _require_one_order(matrix: Any, what: str) -> None:
    """Refuse a table whose rows and columns have the same names in different orders."""
    if not (hasattr(matrix, "index") and hasattr(matrix, "columns")):
        return
    rows, columns = list(matrix.index), list(matrix.columns)
    if rows != columns and set(rows) == set(columns):
        place = next(place for place, name in enumerate(rows) if name != columns[place])
        raise InvalidModelError(
            f"{what}: row {place} of the table is named {rows[place]!r}, and column {place} "
            f"{columns[place]!r}; give both one order, such as by table.loc[table.columns]"
        )


def plain_array(values: Any, what: str) -> NDArray[Any]:
    """Return what NumPy makes an array of; never a masked array.

    Parameters
    ----------
    values
        The values.
    what
        What messages call them.

    Raises
    ------
    InvalidModelError
        For values that are no array, and for a masked array that hides some.
    """
    if np.ma.is_masked(values):
        raise InvalidModelError(f"{what} is a masked array: fill its hidden entries first")
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InvalidModelError(f"{what} must be an array of numbers: {error}") from None


def real_array(values: Any, what: str) -> NDArray[Any]:
    """Return numbers as an array of one of NumPy's own types.

    Parameters
    ----------
    values
        The numbers.
    what
        What messages call them.

    Raises
    ------
    InvalidModelError
        As `plain_array`, and for objects that are no numbers.
    """
    found = plain_array(values, what)
    try:
        return found.astype(np.float64) if found.dtype == object else found
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidModelError(f"{what} must be an array of numbers: {error}") from None


def _require_sound(matrix: Any, what: str) -> None:
    """Refuse a compressed matrix whose index arrays contradict each other: SciPy trusts them."""
    if getattr(matrix, "format", "") not in ("csr", "csc", "bsr"):
        return
    arrays = (matrix.data, matrix.indices, matrix.indptr)
    try:
        # The check cuts off unused space: not of the user's matrix, but of another with its arrays.
        type(matrix)(arrays, shape=matrix.shape).check_format(full_check=True)
    except ValueError as error:
        raise InvalidModelError(f"{what}: {error}") from None


def _require_entries(rows: Any, what: str) -> None:
    wrong = ~(np.isfinite(rows.data) & (rows.data >= 0.0))
    if not wrong.any():
        return
    place = int(np.argmax(wrong))
    row = int(np.searchsorted(rows.indptr, place, side="right")) - 1
    column, value = int(rows.indices[place]), float(rows.data[place])
    hint = ""
    if row == column and value < 0.0:
        hint = "; the diagonal of a generator is left out: rates are those of leaving a state"
    raise InvalidModelError(
        f"{what}[{row}, {column}] is {value}: entries must be finite and not negative{hint}"
    )


def require_square(matrix: CsrMatrix, what: str) -> None:
    """Refuse a matrix that is not square, or has no states.

    Parameters
    ----------
    matrix
        The matrix.
    what
        What messages call it.

    Raises
    ------
    InvalidModelError
        With its shape.
    """
    if matrix.num_rows != matrix.num_columns:
        raise InvalidModelError(
            f"{what} must be square, a row and a column for each state, but its shape is "
            f"({matrix.num_rows}, {matrix.num_columns})"
        )
    if matrix.num_rows == 0:
        raise InvalidModelError(f"{what} has no states")


def state_mask(states: Any, num_states: int, what: str) -> MaskArray:
    """Return a set of states as a mask, shape (states,).

    Parameters
    ----------
    states
        Shape (states,), bool: a mask; or the number of a state, or several numbers, in any order.
    num_states
        How many states there are.
    what
        What messages call the set.

    Raises
    ------
    InvalidModelError
        For a mask of another length, a number out of range, and anything else.
    """
    listed = list(states) if isinstance(states, set | frozenset | range) else states
    found = plain_array(listed, what)
    if found.dtype == bool:
        if found.shape != (num_states,):
            raise InvalidModelError(
                f"{what} has shape {found.shape}, but the model has {num_states} states"
            )
        return found.copy()
    if found.size == 0:
        return np.zeros(num_states, dtype=bool)
    if found.dtype.kind not in "iu" or found.ndim > 1:
        raise InvalidModelError(
            f"{what} must be a mask of bool, shape ({num_states},), or numbers of states"
        )
    numbers = np.atleast_1d(found)
    wrong = (numbers < 0) | (numbers >= num_states)
    if wrong.any():
        raise InvalidModelError(
            f"{what} names state {int(numbers[np.argmax(wrong)])}, but the states are 0 to "
            f"{num_states - 1}"
        )
    mask = np.zeros(num_states, dtype=bool)
    mask[numbers] = True
    return mask


def label_masks(labels: Mapping[str, Any] | None, num_states: int) -> dict[str, MaskArray]:
    """Return labels as masks by name; see `state_mask`.

    Parameters
    ----------
    labels
        Sets of states by name; None for none.
    num_states
        How many states there are.

    Raises
    ------
    InvalidModelError
        For a name that properties cannot use, or that every model has, and as `state_mask`.
    """
    for name in OF_EVERY_MODEL:
        if isinstance(labels, Mapping) and name in labels:
            raise InvalidModelError(f'every model has the label "{name}"; name yours otherwise')
    found = {}
    for name, states in _named(labels, "labels").items():
        found[name] = state_mask(states, num_states, f'label "{name}"')
    return found


def state_columns(variables: Mapping[str, Any], num_states: int) -> dict[str, StateVector]:
    """Return the values of variables, shape (states,) each: bool, int64 or float64.

    Parameters
    ----------
    variables
        Values in every state, by the names of the variables.
    num_states
        How many states there are.

    Raises
    ------
    InvalidModelError
        For a name that properties cannot use, and for values of another shape or type.
    """
    found: dict[str, StateVector] = {}
    for name, values in _named(variables, "variables").items():
        column = real_array(values, f"variable {name}")
        if column.shape != (num_states,) or column.dtype.kind not in "biuf":
            raise InvalidModelError(
                f"variable {name} must have a number or a bool for each of {num_states} states, "
                f"but it is {column.dtype} of shape {column.shape}"
            )
        if column.dtype.kind == "f" and np.isnan(column).any():
            state = int(np.isnan(column).argmax())
            raise InvalidModelError(f"variable {name} is no number in state {state}")
        if column.dtype.kind == "u" and column.max() > np.iinfo(np.int64).max:
            raise InvalidModelError(f"variable {name}: {column.max()} is beyond 64 bits")
        dtype = {"b": np.bool_, "f": np.float64}.get(column.dtype.kind, np.int64)
        found[name] = column.astype(dtype)
    return found


def reward_arrays(
    rewards: Mapping[str, ArrayLike] | None, length: int, what: str, of: str
) -> dict[str, FloatArray]:
    """Return rewards by name, shape (length,) each.

    Parameters
    ----------
    rewards
        Rewards by name, which may be empty; None for none.
    length
        How many there are to be.
    what
        What messages call the mapping: "rewards", say.
    of
        What they are the rewards of: "state" or "choice".

    Raises
    ------
    InvalidModelError
        For rewards of another length, and for those that are negative, infinite or no numbers.
    """
    found = {}
    for name, values in _named(rewards, what, may_be_empty=True).items():
        array = real_array(values, f'{what} "{name}"')
        if array.shape != (length,) or array.dtype.kind not in "biuf":
            raise InvalidModelError(
                f'{what} "{name}" must have a number for each of {length} {of}s, but it is '
                f"{array.dtype} of shape {array.shape}"
            )
        wrong = ~(np.isfinite(array) & (array >= 0))
        if wrong.any():
            place = int(np.argmax(wrong))
            raise InvalidModelError(
                f'{what} "{name}": {of} {place} has reward {array[place]}; rewards must be finite '
                "and not negative"
            )
        found[name] = array.astype(np.float64)
    return found


def _named(
    items: Mapping[str, Any] | None, what: str, *, may_be_empty: bool = False
) -> Mapping[str, Any]:
    if items is None:
        return {}
    if not isinstance(items, Mapping):
        raise InvalidModelError(f"{what} must be given by name, as in {what}={{'name': …}}")
    for name in items:
        if not isinstance(name, str) or not (NAME.fullmatch(name) or (may_be_empty and not name)):
            raise InvalidModelError(
                f"{what}: {name!r} is no name that properties can use: letters, digits and _, "
                "not beginning with a digit"
            )
        if name in KEYWORDS:
            raise InvalidModelError(f"{what}: {name} is a word of PRISM's language")
    return items
