"""The rewards of a program's states and choices.

Source: `explicit.rewards.ConstructRewards` of PRISM; a chain's transitions earn expected rewards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.errors import InvalidModelError
from engines.host.exploring.explorer import evaluate_in
from engines.model.explicit import ExplicitModel, ModelKind
from engines.program.expressions import Conditional, Literal
from engines.program.faults import expression_fault, values_text
from engines.program.packing import Packing, Words
from engines.program.program import Program, RewardStructure, StateReward, TransitionReward


class InvalidRewardError(InvalidModelError):
    """A reward is negative, not finite, or has no value.

    Parameters
    ----------
    message
        In PRISM's words.
    value
        The reward; not a number where it has no value.
    state
        The number of the state that earns it.
    item
        What earns it there.
    """

    def __init__(
        self, message: str, value: float, state: int, item: StateReward | TransitionReward
    ) -> None:
        super().__init__(message)
        self.value, self.state, self.item = value, state, item


@dataclass(frozen=True)
class EarnedRewards:
    """The rewards of one structure.

    Parameters
    ----------
    name
        Of the structure.
    of_states
        Shape (states,): the rewards of the states alone.
    expected
        Shape (states,): of a chain, with the rewards of transitions by their probabilities or
        rates; of an MDP, as `of_states`.
    of_choices
        Shape (choices,), of an MDP with rewards of choices; else None.
    """

    name: str
    of_states: FloatArray
    expected: FloatArray
    of_choices: FloatArray | None


def earned_rewards(
    program: Program,
    packing: Packing,
    states: Words,
    model: ExplicitModel,
    actions: NDArray[np.int32] | None,
    deadlocks: MaskArray,
) -> tuple[EarnedRewards, ...]:
    """Return the rewards of each structure.

    Parameters
    ----------
    program
        The model.
    packing, states
        Its states in order.
    model
        Its matrix.
    actions
        The action of each choice or entry, -1 for none; None for none at all.
    deadlocks
        The states whose only transition is one that no command has made.

    Raises
    ------
    InvalidRewardError
        For a reward that is negative, not finite or has no value.
    """
    gatherer = _Gatherer(program, packing, states, model, actions, deadlocks)
    return tuple(gatherer.structure(structure) for structure in program.reward_structures)


class _Gatherer:
    def __init__(
        self,
        program: Program,
        packing: Packing,
        states: Words,
        model: ExplicitModel,
        actions: NDArray[np.int32] | None,
        deadlocks: MaskArray,
    ) -> None:
        self._program, self._packing, self._states = program, packing, states
        self._model, self._actions, self._deadlocks = model, actions, deadlocks

    def structure(self, structure: RewardStructure) -> EarnedRewards:
        """Return the rewards of a structure."""
        of_states = self._sums(structure.states, np.arange(len(self._states)))
        if not structure.transitions:
            return EarnedRewards(structure.name, of_states, of_states, None)
        if self._model.kind is ModelKind.MDP:
            of_choices = self._of_moves(structure, self._model.states_of_rows())
            return EarnedRewards(structure.name, of_states, of_states, of_choices)
        matrix = self._model.matrix
        origins = matrix.row_of_entry()
        rewards = self._of_moves(structure, origins)
        earning = np.flatnonzero(rewards)
        expected = of_states.copy()
        # One after the other, as PRISM adds them.
        np.add.at(expected, origins[earning], matrix.values[earning] * rewards[earning])
        return EarnedRewards(structure.name, of_states, expected, None)

    def _of_moves(self, structure: RewardStructure, origins: IndexArray) -> FloatArray:
        """Return the reward of each choice, or of each entry of a chain.

        Parameters
        ----------
        structure
            Which rewards.
        origins
            The state that each belongs to.
        """
        rewards = np.zeros(len(origins))
        real = ~self._deadlocks[origins]
        by_action: dict[int, list[TransitionReward]] = {}
        for item in structure.transitions:
            by_action.setdefault(-1 if item.action is None else item.action, []).append(item)
        for action, items in by_action.items():
            moves = np.flatnonzero(real & self._is_under(action))
            if not len(moves):
                continue
            of_moves = origins[moves]
            is_first = np.append(True, np.diff(of_moves) != 0)
            sums = self._sums(items, of_moves[is_first])
            rewards[moves] = sums[np.cumsum(is_first) - 1]
        return rewards

    def _is_under(self, action: int) -> MaskArray | np.bool_:
        """Return which choices or entries are under an action, -1 for none."""
        return np.bool_(action < 0) if self._actions is None else self._actions == action

    def _sums(
        self, items: Sequence[StateReward | TransitionReward], which: IndexArray
    ) -> FloatArray:
        """Return what items add up to in some states, one after the other."""
        total = np.zeros(len(which))
        states = self._states if len(which) == len(self._states) else self._states[which]
        for item in items:
            # The value counts, and has to be one, only where the guard holds.
            wanted = Conditional(item.guard, item.value, Literal(0.0))
            found = evaluate_in(wanted, self._packing, states)
            values: FloatArray = found.values.astype(np.float64, copy=False)
            wrong = ~(np.isfinite(values) & (values >= 0.0))
            if found.failing is not None:
                wrong[found.failing] = True
            if wrong.any():
                place = int(np.argmax(wrong))
                raise self._fault(item, int(which[place]), float(values[place]))
            total += values
        return total

    def _fault(
        self, item: StateReward | TransitionReward, number: int, value: float
    ) -> InvalidRewardError:
        state = self._packing.state(self._states[number])
        for part, what in ((item.guard, "guard of a reward"), (item.value, "reward")):
            fault = expression_fault(self._program, part, state, what)
            if fault is not None:
                return InvalidRewardError(str(fault), np.nan, number, item)
        problem = f"negative ({value})" if np.isfinite(value) else "not finite"
        where = values_text(self._program, state)
        message = f"Reward structure is {problem} at state {where}"
        return InvalidRewardError(message, value, number, item)
