"""A model that properties can be checked on without PRISM, wherever it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from bridge.language.ast import Expression, Value
from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.model.explicit import ExplicitModel, RewardStructure

StateVector = MaskArray | IndexArray | FloatArray


@dataclass(frozen=True)
class RewardFault:
    """A reward that no engine takes: negative, infinite, or no number.

    Parameters
    ----------
    value
        The reward.
    state
        The state that earns it, or where the choice or transition starts that does.
    words
        PRISM's error about it, where the model's text is known; else empty.
    """

    value: float
    state: int
    words: str = ""


def first_fault(rewards: FloatArray | None, states: IndexArray | None = None) -> RewardFault | None:
    """Return the first reward that no engine takes, or None.

    Parameters
    ----------
    rewards
        Any rewards; None for none.
    states
        The state of each; by default rewards are those of the states.
    """
    if rewards is None:
        return None
    wrong = ~((rewards >= 0.0) & (rewards < np.inf))
    if not wrong.any():
        return None
    place = int(np.argmax(wrong))
    return RewardFault(float(rewards[place]), place if states is None else int(states[place]))


@dataclass(frozen=True)
class NamedRewards:
    """A reward structure, by the name that properties use.

    Parameters
    ----------
    name
        Its name, empty where it has none.
    expected
        What the engines take: the rewards of transitions are in there as expected values.
    instantaneous
        Shape (states,): the rewards of the states alone, which ``R [ I=t ]`` is about.
    fault
        Why no property can use the structure, or None.
    most, most_instantaneous
        What no state can earn more of than that, explored or not: of a CTMC in a unit of time, else
        in a step; and of what `instantaneous` has.
    """

    name: str
    expected: RewardStructure
    instantaneous: FloatArray
    fault: RewardFault | None = None
    most: float = np.inf
    most_instantaneous: float = np.inf


@dataclass(frozen=True)
class UnexploredStates:
    """States of which it is not known where they lead, and how they count.

    Parameters
    ----------
    states
        Shape (states,): which.
    won
        Whether what comes after them counts as won, with the greatest rewards there may be; else
        as lost, without rewards.
    """

    states: MaskArray
    won: bool

    def targets(self, targets: MaskArray, won: bool) -> MaskArray:
        """Return targets with the unexplored states among them where they are won, else without.

        Parameters
        ----------
        targets
            Shape (states,).
        won
            Whether reaching a target is.
        """
        return targets | self.states if won else targets & ~self.states

    def earning(self, structure: RewardStructure, reward: float) -> RewardStructure:
        """Return rewards where unexplored states earn one of their own.

        Parameters
        ----------
        structure
            The rewards; those of choices of unexplored states are 0.
        reward
            In a step, or a unit of time.
        """
        of_states = np.where(self.states, reward, structure.state_rewards)
        return replace(structure, state_rewards=of_states)


def deadlocks_note(fixed: int) -> tuple[str, ...]:
    """Return what a front end says of states that it gave a loop, in PRISM's words; () for none.

    Parameters
    ----------
    fixed
        How many there are.
    """
    return (f"Deadlocks detected and fixed in {fixed} states",) if fixed else ()


@dataclass(frozen=True)
class CheckableModel:
    """A built model with the names that properties refer to.

    Parameters
    ----------
    model
        Matrix, initial states and labels; "init" and "deadlock" are always among the labels.
    rewards
        The reward structures in the model's order.
    variables
        The variables' values in every state, in the model's order: shape (states,), bool, int64 or
        float64.
    constants
        The model's constants.
    formulas, labels
        The model's formulas, and its labels that are not in `model.labels`, as expressions.
    source
        What the report calls the model: a file name.
    modules
        Names of the modules.
    notes
        What the front end has to say: warnings for the log.
    action_names, actions
        As in `bridge.files.reader.FileModel`: the action of each choice (MDP) or transition.
    unexplored
        Shape (states,): states of which it is not known where they lead; None where all are
        explored.
    """

    model: ExplicitModel
    rewards: tuple[NamedRewards, ...] = ()
    variables: Mapping[str, StateVector] = field(default_factory=dict)
    constants: Mapping[str, Value] = field(default_factory=dict)
    formulas: Mapping[str, Expression] = field(default_factory=dict)
    labels: Mapping[str, Expression] = field(default_factory=dict)
    source: str = ""
    modules: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ("",)
    actions: IndexArray | None = None
    unexplored: MaskArray | None = None

    @cached_property
    def initial_states(self) -> MaskArray:
        """The initial states, shape (states,)."""
        initial = self.model.initial_states
        return np.zeros(self.model.num_states, dtype=bool) if initial is None else initial

    def state_line(self, state: int) -> str:
        """Return a state as PRISM lists it: ``7:(0,true,3)``, or its number without variables.

        Parameters
        ----------
        state
            Its number.
        """
        if not self.variables:
            return str(state)
        values = ",".join(_value_text(column[state]) for column in self.variables.values())
        return f"{state}:({values})"


def _value_text(value: object) -> str:
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return str(value)
