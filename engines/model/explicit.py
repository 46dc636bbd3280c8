"""The model that the engines solve: a matrix, and for MDPs which rows belong to which state."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray, IndexArray, MaskArray, index_dtype
from engines.errors import InvalidModelError
from engines.model.csr import CsrMatrix

ROW_SUM_TOLERANCE = 1e-5

Item = TypeVar("Item", bound=np.generic)


class ModelKind(StrEnum):
    """The kinds of model that the engines solve."""

    DTMC = "DTMC"
    CTMC = "CTMC"
    MDP = "MDP"


@dataclass(frozen=True)
class RewardStructure:
    """Rewards of one structure.

    Parameters
    ----------
    name
        The structure's name, empty where it has none.
    state_rewards
        Shape (states,); earned a step (DTMC, MDP) or a unit of time (CTMC).
    choice_rewards
        Shape (choices,), MDPs only: earned when the choice is taken.
    """

    name: str
    state_rewards: FloatArray
    choice_rewards: FloatArray | None = None


@dataclass(frozen=True)
class ExplicitModel:
    """An explicit model.

    Parameters
    ----------
    kind
        DTMC, CTMC or MDP.
    matrix
        Transition probabilities (DTMC: a row a state; MDP: a row a choice) or rates (CTMC).
    row_group_offsets
        MDPs only, shape (states + 1,): the choices of state s are the rows
        ``row_group_offsets[s]`` to ``row_group_offsets[s + 1] - 1``.
    initial_states
        Boolean mask, shape (states,).
    labels
        Boolean masks by name, each of shape (states,).
    rewards
        Reward structures, in the model's order.
    origin
        A state that all others are reached from, where that is known.
    """

    kind: ModelKind
    matrix: CsrMatrix
    row_group_offsets: IndexArray | None = None
    initial_states: MaskArray | None = None
    labels: dict[str, MaskArray] = field(default_factory=dict)
    rewards: tuple[RewardStructure, ...] = ()
    origin: int | None = None

    @property
    def num_states(self) -> int:
        """Number of states."""
        return self.matrix.num_columns

    @property
    def exit_rates(self) -> FloatArray:
        """Row sums of the rate matrix (CTMC), shape (states,)."""
        return self.matrix.row_sums()

    def states_of_rows(self) -> IndexArray:
        """Return the state that each row of the matrix belongs to, shape (rows,)."""
        states = np.arange(self.num_states, dtype=index_dtype(self.num_states))
        return self._by_row(states)

    def rows_of(self, states: MaskArray) -> MaskArray:
        """Return which rows of the matrix belong to the given states, shape (rows,).

        Parameters
        ----------
        states
            Shape (states,).
        """
        return self._by_row(states)

    def _by_row(self, of_states: NDArray[Item]) -> NDArray[Item]:
        if self.row_group_offsets is None:
            return of_states
        return np.repeat(of_states, np.diff(self.row_group_offsets))

    def check(self) -> ExplicitModel:
        """Return the model itself if it keeps the rules of its kind.

        Raises
        ------
        InvalidModelError
            Naming the first state, choice or transition that breaks a rule.
        """
        row_name = "choice" if self.kind is ModelKind.MDP else "state"
        self.matrix.check(what=f"{self.kind} transitions", row_name=row_name)
        if self.kind is ModelKind.MDP:
            self._check_groups()
        elif self.row_group_offsets is not None:
            raise InvalidModelError(f"a {self.kind} has no choices, but row groups were given")
        elif self.matrix.num_rows != self.num_states:
            raise InvalidModelError(
                f"{self.matrix.num_rows} rows but {self.num_states} columns: the matrix of a "
                f"{self.kind} is square"
            )
        if self.kind is ModelKind.CTMC:
            self.require_finite_exit_rates()
        else:
            sums = self.matrix.row_sums()
            wrong = np.abs(sums - 1.0) > ROW_SUM_TOLERANCE
            if np.any(wrong):
                row = int(np.argmax(wrong))
                raise InvalidModelError(
                    f"the probabilities of {row_name} {row} sum to {float(sums[row])!r}, not 1"
                )
        return self

    def require_numbers(self) -> None:
        """Raise unless all probabilities or rates are finite and not negative.

        Raises
        ------
        InvalidModelError
            Naming the first state or choice with another one.
        """
        least, greatest = self.matrix.extremes
        if self.matrix.num_entries and not 0.0 <= least <= greatest < np.inf:
            self.check()

    def require_finite_exit_rates(self) -> None:
        """Raise unless the rates of each state have a sum that a double can hold.

        Raises
        ------
        InvalidModelError
            Naming the first state whose exit rate overflows.
        """
        largest = self.matrix.extremes[1]
        if largest <= np.finfo(np.float64).max / max(self.num_states, 1):
            return
        with np.errstate(over="ignore"):
            sums = self.matrix.row_sums()
        if not np.isfinite(sums).all():
            state = int(np.argmin(np.isfinite(sums)))
            raise InvalidModelError(
                f"the exit rate of state {state} overflows: its rates sum to more than the largest "
                "double; use a longer unit of time"
            )

    def _check_groups(self) -> None:
        groups = self.row_group_offsets
        if groups is None:
            raise InvalidModelError("an MDP needs row groups: which choices belong to which state")
        if len(groups) != self.num_states + 1 or groups[0] != 0:
            raise InvalidModelError(
                f"{len(groups)} row group offsets for {self.num_states} states: "
                "one more than the states is needed, the first of them 0"
            )
        if np.any(np.diff(groups) < 1):
            state = int(np.argmax(np.diff(groups) < 1))
            raise InvalidModelError(f"state {state} has no choice; give a deadlock a self-loop")
        if groups[-1] != self.matrix.num_rows:
            raise InvalidModelError(
                f"the row groups end at {int(groups[-1])}, the rows at {self.matrix.num_rows}"
            )
