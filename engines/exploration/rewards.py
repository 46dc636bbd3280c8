"""The rewards of a program's states and choices.

Source: `explicit.rewards.ConstructRewards` of PRISM; a chain's transitions earn expected rewards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engines.arrays import FloatArray, IndexArray, MaskArray, extremes
from engines.errors import InvalidModelError
from engines.host.compiled.rows import add_in_rows
from engines.host.exploring.explorer import evaluate_in
from engines.model.explicit import ExplicitModel, ModelKind
from engines.program.expressions import Conditional, Literal
from engines.program.faults import expression_fault, values_text
from engines.program.packing import Packing, Words
from engines.program.program import ModelKind as ProgramKind
from engines.program.program import Program, RewardStructure, StateReward, TransitionReward
from engines.program.ranges import range_of


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


def greatest_rewards(structure: RewardStructure, program: Program) -> tuple[float, float]:
    """Return what no state can earn more of, by the variables' ranges alone.

    Parameters
    ----------
    structure
        The rewards.
    program
        Its model.

    Returns
    -------
    Of `EarnedRewards.expected` and `EarnedRewards.of_choices` together, and of
    `EarnedRewards.of_states`; infinity where the ranges do not bound them.
    """

    def greatest(items: Sequence[StateReward | TransitionReward]) -> float:
        ranges = [range_of(item.value, program.variables) for item in items]
        return sum((np.inf if x.can_be_nan else max(x.high, 0.0) for x in ranges), 0.0)

    of_states = greatest(structure.states)
    if program.kind is ProgramKind.CTMC and structure.transitions:
        # Nothing bounds how often a transition is taken in a unit of time.
        return np.inf, of_states
    return of_states + greatest(structure.transitions), of_states


def _same_everywhere(items: Sequence[StateReward | TransitionReward]) -> float | None:
    """Return what items add up to in every state; None where it may differ, or be no reward."""
    total = 0.0
    for item in items:
        value = item.value.value if isinstance(item.value, Literal) else np.nan
        if item.guard != Literal(True) or not 0.0 <= value < np.inf:
            return None
        total += value
    return total


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
        self._known_moves: dict[int, IndexArray | slice] = {}

    def structure(self, structure: RewardStructure) -> EarnedRewards:
        """Return the rewards of a structure."""
        of_states = self._sums(structure.states, None)
        if not structure.transitions:
            return EarnedRewards(structure.name, of_states, of_states, None)
        places, rewards = self._of_moves(structure)
        if self._model.kind is ModelKind.MDP:
            of_choices = np.zeros(self._num_moves)
            of_choices[places] = rewards
            return EarnedRewards(structure.name, of_states, of_states, of_choices)
        expected = of_states.copy()
        # One after the other, as PRISM adds them.
        earned = self._model.matrix.values[places] * rewards
        add_in_rows(self._model.matrix, places, earned, expected)
        return EarnedRewards(structure.name, of_states, expected, None)

    @property
    def _num_moves(self) -> int:
        """How many choices there are, of a chain entries."""
        matrix = self._model.matrix
        return matrix.num_rows if self._model.kind is ModelKind.MDP else matrix.num_entries

    @cached_property
    def _origins(self) -> IndexArray:
        """The state that each choice belongs to, of a chain each entry."""
        model = self._model
        is_mdp = model.kind is ModelKind.MDP
        return model.states_of_rows() if is_mdp else model.matrix.row_of_entry()

    def _of_moves(self, structure: RewardStructure) -> tuple[IndexArray, FloatArray]:
        """Return the choices, or entries of a chain, with rewards, in order; and these."""
        by_action: dict[int, list[TransitionReward]] = {}
        for item in structure.transitions:
            by_action.setdefault(-1 if item.action is None else item.action, []).append(item)
        found, rewards = [], []
        for action, items in by_action.items():
            moves = self._moves(action)
            everywhere = _same_everywhere(items)
            if everywhere is not None:
                places = np.arange(self._num_moves)[moves] if isinstance(moves, slice) else moves
                found.append(places if everywhere else places[:0])
                rewards.append(np.full(len(found[-1]), everywhere))
                continue
            origins = self._origins[moves]
            moving = np.zeros(len(self._states), dtype=bool)
            moving[origins] = True
            which = np.flatnonzero(moving)
            of_states = np.zeros(len(self._states))
            of_states[which] = self._sums(items, which)
            of_moves = of_states[origins]
            earning = np.flatnonzero(of_moves)
            found.append(earning if isinstance(moves, slice) else moves[earning])
            rewards.append(of_moves[earning])
        if len(found) == 1:
            return found[0], rewards[0]
        of_all = np.zeros(self._num_moves)
        for places, values in zip(found, rewards, strict=True):
            of_all[places] = values
        earning = np.flatnonzero(of_all)
        return earning, of_all[earning]

    def _moves(self, action: int) -> IndexArray | slice:
        """Return the choices or entries under an action, -1 for none; deadlocks have none."""
        if action not in self._known_moves:
            real = ~self._deadlocks[self._origins] if self._deadlocks.any() else None
            if self._actions is not None:
                under = self._actions == action
                self._known_moves[action] = np.flatnonzero(under if real is None else under & real)
            elif action < 0:
                self._known_moves[action] = slice(None) if real is None else np.flatnonzero(real)
            else:
                self._known_moves[action] = slice(0)
        return self._known_moves[action]

    def _sums(
        self, items: Sequence[StateReward | TransitionReward], which: IndexArray | None
    ) -> FloatArray:
        """Return what items add up to in some states, None for all, one after the other."""
        states = self._states if which is None else self._states[which]
        total: FloatArray | None = None
        for item in items if len(states) else ():
            # The value counts, and has to be one, only where the guard holds.
            wanted = Conditional(item.guard, item.value, Literal(0.0))
            found = evaluate_in(wanted, self._packing, states)
            values: FloatArray = found.values.astype(np.float64, copy=False)
            # The greatest and the least are not numbers where there is one that is not.
            least, greatest = extremes(values)
            if found.failing is not None or not 0.0 <= least <= greatest < np.inf:
                wrong = ~(np.isfinite(values) & (values >= 0.0))
                if found.failing is not None:
                    wrong[found.failing] = True
                place = int(np.argmax(wrong))
                number = place if which is None else int(which[place])
                raise self._fault(item, number, float(values[place]))
            total = values if total is None else np.add(total, values, out=total)
        return np.zeros(len(states)) if total is None else total

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
