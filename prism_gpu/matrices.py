"""Models from matrices."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from bridge.files.checkable import NUMBER
from bridge.model import NamedRewards, deadlocks_note
from engines.arrays import FloatArray, IndexArray, index_dtype
from engines.errors import InvalidModelError
from engines.model.csr import CsrMatrix
from engines.model.explicit import (
    ROW_SUM_TOLERANCE,
    ExplicitModel,
    ModelKind,
    RewardStructure,
)
from engines.model.row_sums import rescaled
from prism_gpu.arrays import (
    label_masks,
    plain_array,
    require_square,
    reward_arrays,
    sparse_matrix,
    state_columns,
    state_mask,
)
from prism_gpu.built import BuiltHere
from prism_gpu.model import Model
from prism_gpu.settings import Settings


def dtmc(
    P: Any,  # noqa: N803 - the field's letter
    *,
    labels: Mapping[str, Any] | None = None,
    rewards: Mapping[str, ArrayLike] | None = None,
    initial: Any = 0,
    variables: Mapping[str, ArrayLike] | None = None,
    **settings: Unpack[Settings],
) -> Model:
    """Return a discrete-time Markov chain.

    Parameters
    ----------
    P
        Shape (states, states): the transition probabilities, a row for each state; a SciPy sparse
        array or matrix, a NumPy array or nested lists. It is copied.
    labels
        Sets of states by name: a mask (bool, shape (states,)), or the number of a state, or
        several. "init" and "deadlock" are in every model.
    rewards
        By name, shape (states,): what a step from each state earns.
    initial
        The initial state; several numbers, or a mask, for several.
    variables
        By name, shape (states,): numbers or bools that properties may speak of; by default "x",
        the number of the state.
    **settings
        Settings of all checks of this model; see `Settings`.

    Returns
    -------
    Model
        To be checked, sampled and read.

    Raises
    ------
    InvalidModelError
        For a matrix that is not square, entries that are negative or no numbers, a row that does
        not sum to 1, and labels, rewards or variables of another length.
    TypeError, ValueError
        For settings that are unknown or out of range.

    Warns
    -----
    UserWarning
        For rows that sum to 1 only roughly, within 1e-5: they are divided by their sums.

    Examples
    --------
    >>> import prism_gpu as pg
    >>> ruin = pg.dtmc([[1, 0, 0], [0.6, 0, 0.4], [0, 0, 1]], labels={"broke": 0}, initial=1)
    >>> round(ruin.check('P=? [ F "broke" ]').value, 6)
    0.6
    """
    matrix = sparse_matrix(P, "P")
    require_square(matrix, "P")
    matrix = _stochastic(matrix, lambda row: f"row {row} of P")
    parts = _Parts(labels, rewards, None, initial, variables)
    return _model(ModelKind.DTMC, matrix, None, parts, settings)


def ctmc(
    R: Any,  # noqa: N803 - the field's letter
    *,
    labels: Mapping[str, Any] | None = None,
    rewards: Mapping[str, ArrayLike] | None = None,
    initial: Any = 0,
    variables: Mapping[str, ArrayLike] | None = None,
    **settings: Unpack[Settings],
) -> Model:
    """Return a continuous-time Markov chain.

    Parameters
    ----------
    R
        Shape (states, states): the rates of the transitions, a row for each state; not the
        generator, whose diagonal is negative. A state with no rate gets a loop of rate 1, and the
        label "deadlock", as PRISM does. It is copied.
    labels, initial, variables, **settings
        As in `dtmc`.
    rewards
        By name, shape (states,): what a unit of time in each state earns.

    Returns
    -------
    Model
        To be checked, sampled and read.

    Raises
    ------
    InvalidModelError
        For a matrix that is not square, entries that are negative or no numbers, and labels,
        rewards or variables of another length.
    TypeError, ValueError
        For settings that are unknown or out of range.

    Examples
    --------
    >>> import prism_gpu as pg
    >>> switch = pg.ctmc([[0, 2.0], [1.0, 0]], labels={"on": 1})
    >>> round(switch.check('S=? [ "on" ]').value, 6)
    0.666667
    """
    matrix = sparse_matrix(R, "R")
    require_square(matrix, "R")
    deadlocks = np.flatnonzero(matrix.row_lengths() == 0)
    if len(deadlocks):
        from scipy.sparse import csr_array

        ones = np.ones(len(deadlocks))
        shape = (matrix.num_rows, matrix.num_columns)
        loops = csr_array((ones, (deadlocks, deadlocks)), shape=shape)
        arrays = (matrix.values, matrix.columns, matrix.row_offsets)
        matrix = sparse_matrix(csr_array(arrays, shape=shape) + loops, "R")
    parts = _Parts(labels, rewards, None, initial, variables, deadlocks=deadlocks)
    return _model(ModelKind.CTMC, matrix, None, parts, settings)


def mdp(
    P: Any,  # noqa: N803 - the field's letter
    state_of_choice: ArrayLike | None = None,
    *,
    labels: Mapping[str, Any] | None = None,
    rewards: Mapping[str, ArrayLike] | None = None,
    choice_rewards: Mapping[str, ArrayLike] | None = None,
    initial: Any = 0,
    variables: Mapping[str, ArrayLike] | None = None,
    actions: Sequence[str] | None = None,
    **settings: Unpack[Settings],
) -> Model:
    """Return a Markov decision process.

    Parameters
    ----------
    P
        Either shape (choices, states): the transition probabilities, a row for each choice, the
        choices of a state one after the other; SciPy sparse, NumPy or nested lists. Or a matrix
        of shape (states, states) for each action: a mapping by the actions' names, a sequence, or
        an array of three dimensions; an action whose row is empty is no choice of that state.
    state_of_choice
        With one matrix, shape (choices,), int, ascending: the state of each choice.
    labels, initial, variables, **settings
        As in `dtmc`.
    rewards
        By name, shape (states,): what a step from each state earns, whatever the choice.
    choice_rewards
        By name, shape (choices,): what taking each choice earns besides; the choices in the order
        of `Model.transition_matrix`, which for a matrix for each action is by state, then action.
    actions
        With one matrix, shape (choices,): the names of the choices.

    Returns
    -------
    Model
        To be checked and read.

    Raises
    ------
    InvalidModelError
        For matrices of wrong shapes, entries that are negative or no numbers, a choice whose
        probabilities do not sum to 1, a state without a choice, and labels, rewards, variables or
        actions of another length.
    TypeError, ValueError
        For settings that are unknown or out of range.

    Examples
    --------
    >>> import prism_gpu as pg
    >>> safe, bold = [[0, 1], [0, 1]], [[0.5, 0.5], [0, 1]]
    >>> walk = pg.mdp({"safe": safe, "bold": bold}, labels={"there": 1})
    >>> walk.check('Pmin=? [ X "there" ]').value
    0.5
    """
    matrix, state_of_row, names = _choices(P, state_of_choice, actions)
    groups = np.searchsorted(state_of_row, np.arange(matrix.num_columns + 1))
    lonely = np.flatnonzero(np.diff(groups) == 0)
    if len(lonely):
        raise InvalidModelError(
            f"state {int(lonely[0])} has no choice; give a state that stays for ever a choice that "
            "leads back to it"
        )

    def called(row: int) -> str:
        state = int(state_of_row[row])
        return f"choice {row - int(groups[state])} of state {state} (row {row})"

    matrix = _stochastic(matrix, called)
    offsets = groups.astype(index_dtype(matrix.num_rows))
    parts = _Parts(labels, rewards, choice_rewards, initial, variables, actions=names)
    return _model(ModelKind.MDP, matrix, offsets, parts, settings)


@dataclass(frozen=True)
class _Parts:
    """What there is beside the matrix, as the user gave it."""

    labels: Mapping[str, Any] | None
    rewards: Mapping[str, ArrayLike] | None
    choice_rewards: Mapping[str, ArrayLike] | None
    initial: Any
    variables: Mapping[str, ArrayLike] | None
    actions: Sequence[str] | None = None
    deadlocks: Any = ()


def _stochastic(matrix: CsrMatrix, called: Any) -> CsrMatrix:
    """Return probabilities whose rows sum to 1 but for rounding; see `dtmc`."""
    sums = matrix.row_sums()
    wrong = np.abs(sums - 1.0) > ROW_SUM_TOLERANCE
    if wrong.any():
        row = int(np.argmax(wrong))
        hint = ""
        if sums[row] == 0.0:
            hint = "; give a state that stays for ever a loop of probability 1"
        raise InvalidModelError(f"{called(row)} sums to {float(sums[row])!r}, not to 1{hint}")
    matrix, changed = rescaled(matrix)
    if changed is not None:
        first, total = int(changed.rows[0]), float(changed.totals[0])
        warnings.warn(
            f"{len(changed.rows)} rows do not sum to 1 and are divided by their sum; the first: "
            f"{called(first)}, with sum {total!r}",
            stacklevel=3,
        )
    return matrix


def _choices(
    matrices: Any, state_of_choice: ArrayLike | None, actions: Sequence[str] | None
) -> tuple[CsrMatrix, IndexArray, Sequence[str] | None]:
    """Return a row for each choice, its state, and its name."""
    named = isinstance(matrices, Mapping)
    if named:
        by_action = dict(matrices)
    elif _are_several(matrices):
        by_action = {f"P[{number}]": matrix for number, matrix in enumerate(matrices)}
    else:
        return _rows_of_choices(matrices, state_of_choice, actions)
    if state_of_choice is not None or actions is not None:
        raise InvalidModelError(
            "with a matrix for each action, state_of_choice and actions are not given: they follow "
            "from the matrices"
        )
    return _rows_by_action(by_action, named)


def _are_several(matrices: Any) -> bool:
    """Return whether there is a matrix for each action; else one has a row for each choice."""
    from scipy.sparse import issparse

    if isinstance(matrices, list | tuple):
        return any(issparse(matrix) or np.ndim(matrix) == 2 for matrix in matrices)
    return not issparse(matrices) and np.ndim(matrices) == 3


def _rows_by_action(
    by_action: Mapping[Any, Any], named: bool
) -> tuple[CsrMatrix, IndexArray, Sequence[str] | None]:
    from scipy.sparse import csr_array, vstack

    if not by_action:
        raise InvalidModelError("P has no actions")
    blocks, states, shape = [], [], None
    for name, matrix in by_action.items():
        rows = sparse_matrix(matrix, str(name))
        require_square(rows, f"{name}")
        shape = shape or (rows.num_rows, rows.num_columns)
        if rows.num_rows != shape[0]:
            raise InvalidModelError(
                f"{name} has {rows.num_rows} states, but the first action has {shape[0]}"
            )
        arrays = (rows.values, rows.columns, rows.row_offsets)
        taken = np.flatnonzero(rows.row_lengths() > 0)
        blocks.append(csr_array(arrays, shape=shape)[taken])
        states.append(taken)
    action_of_row = np.repeat(np.arange(len(blocks)), [len(taken) for taken in states])
    state_of_row = np.concatenate(states)
    order = np.lexsort((action_of_row, state_of_row))
    matrix = sparse_matrix(vstack(blocks, format="csr")[order], "P")
    keys = [str(name) for name in by_action]
    names = [keys[number] for number in action_of_row[order]] if named else None
    return matrix, state_of_row[order], names


def _rows_of_choices(
    matrix: Any, state_of_choice: ArrayLike | None, actions: Sequence[str] | None
) -> tuple[CsrMatrix, IndexArray, Sequence[str] | None]:
    rows = sparse_matrix(matrix, "P")
    if state_of_choice is None:
        raise InvalidModelError(
            f"P has {rows.num_rows} choices: say by state_of_choice which state each belongs to"
        )
    states = plain_array(state_of_choice, "state_of_choice")
    if states.shape != (rows.num_rows,) or states.dtype.kind not in "iu":
        raise InvalidModelError(
            f"state_of_choice must have the number of a state for each of {rows.num_rows} choices, "
            f"but it is {states.dtype} of shape {states.shape}"
        )
    if len(states) and (states.min() < 0 or states.max() >= rows.num_columns):
        raise InvalidModelError(
            f"state_of_choice goes from {states.min()} to {states.max()}, but the states are 0 to "
            f"{rows.num_columns - 1}"
        )
    # Differences of unsigned numbers are never negative.
    states = states.astype(np.int64)
    if (np.diff(states) < 0).any():
        row = int(np.argmax(np.diff(states) < 0)) + 1
        raise InvalidModelError(
            f"state_of_choice must not fall, but choice {row} belongs to state {states[row]} after "
            f"state {states[row - 1]}; sort the choices by their states"
        )
    if actions is not None:
        listed = isinstance(actions, Iterable) and not isinstance(actions, str)
        if not listed or not all(isinstance(name, str) for name in actions):
            raise InvalidModelError("actions must be texts, a name for each choice")
        if len(actions) != rows.num_rows:
            raise InvalidModelError(f"{len(actions)} actions for {rows.num_rows} choices")
    return rows, states, actions


def _model(
    kind: ModelKind,
    matrix: CsrMatrix,
    groups: IndexArray | None,
    parts: _Parts,
    settings: Mapping[str, Any],
) -> Model:
    num_states = matrix.num_columns
    initial = state_mask(parts.initial, num_states, "initial")
    if not initial.any():
        raise InvalidModelError("initial names no state")
    deadlocks = np.zeros(num_states, dtype=bool)
    deadlocks[np.asarray(parts.deadlocks, dtype=np.int64)] = True
    labels = label_masks(parts.labels, num_states)
    plain = ExplicitModel(
        kind,
        matrix,
        groups,
        initial_states=initial,
        labels={"init": initial, "deadlock": deadlocks, **labels},
    )
    variables = parts.variables
    if variables is None:
        variables = {NUMBER: np.arange(num_states)}
    columns = state_columns(variables, num_states)
    rewards = _rewards(parts, num_states, matrix.num_rows)
    notes = deadlocks_note(int(deadlocks.sum()))
    return Model(BuiltHere.of_parts(plain, rewards, columns, parts.actions, notes), settings)


def _rewards(parts: _Parts, num_states: int, num_rows: int) -> tuple[NamedRewards, ...]:
    of_states = reward_arrays(parts.rewards, num_states, "rewards", "state")
    of_choices = reward_arrays(parts.choice_rewards, num_rows, "choice_rewards", "choice")
    nothing: FloatArray = np.zeros(num_states)
    return tuple(
        NamedRewards(
            name,
            RewardStructure(name, of_states.get(name, nothing), of_choices.get(name)),
            of_states.get(name, nothing),
        )
        for name in dict.fromkeys((*of_states, *of_choices))
    )
