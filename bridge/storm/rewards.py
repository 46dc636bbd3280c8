"""The reward structures of a model that Storm built."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bridge.files.umb import UmbFile
from bridge.language.ast import Value
from bridge.language.evaluate import Scope, evaluate
from bridge.language.model_outline import ModelOutline, RewardOutline
from bridge.model import NamedRewards, RewardFault, StateVector, first_fault
from bridge.storm.model_text import storm_reward_names
from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.model.explicit import RewardStructure


def named_rewards(
    umb: UmbFile,
    declared: ModelOutline,
    constants: Mapping[str, Value],
    variables: Mapping[str, StateVector],
    states: IndexArray,
    rows: IndexArray,
    deadlocks: MaskArray,
) -> tuple[NamedRewards, ...]:
    """Return the reward structures in the model's order, for states and choices in a new order.

    Storm leaves out the rewards of a state whose deadlock it fixed; PRISM keeps those of the state,
    so they are computed here.

    Parameters
    ----------
    umb
        What Storm built.
    declared
        The model's text.
    constants
        The values of the constants.
    variables
        The values of the variables, in the new order of the states.
    states, rows
        The states, and the matrix's rows, in their new order.
    deadlocks
        The states that had a deadlock, in the new order.

    Raises
    ------
    InvalidModelError
        For a reward that cannot be computed.
    """
    at_deadlocks = Scope(
        num_states=int(np.count_nonzero(deadlocks)),
        variables={name: column[deadlocks] for name, column in variables.items()},
        constants=constants,
        formulas=declared.formulas,
    )
    raw = {structure.name: structure for structure in umb.rewards}
    folded = {structure.name: structure for structure in umb.model.rewards}
    found = []
    for outlined, stored in zip(declared.rewards, storm_reward_names(declared), strict=True):
        own: FloatArray = np.zeros(len(states))
        expected: FloatArray = np.zeros(len(states))
        choices: FloatArray | None = None
        fault = None
        if stored in raw:
            structure = folded[stored]
            if (fault := raw[stored].fault(umb.model)) is not None:
                fault = RewardFault(fault.value, int(np.flatnonzero(states == fault.state)[0]))
            expected = structure.state_rewards[states]
            if (alone := raw[stored].states) is not None:
                own = alone[states]
            if structure.choice_rewards is not None:
                choices = structure.choice_rewards[rows]
        if at_deadlocks.num_states:
            lost = _state_rewards(outlined, at_deadlocks)
            own[deadlocks] = lost
            expected[deadlocks] = lost
        rewards = RewardStructure(outlined.name, expected, choices)
        found.append(NamedRewards(outlined.name, rewards, own, first_fault(own) or fault))
    return tuple(found)


def _state_rewards(structure: RewardOutline, scope: Scope) -> FloatArray:
    """Return what the items for states add up to, shape (states,)."""
    total: FloatArray = np.zeros(scope.num_states)
    for item in structure.items:
        if item.action is None:
            holds = np.broadcast_to(np.asarray(evaluate(item.guard, scope)), total.shape)
            if holds.any():
                here = Scope(
                    int(np.count_nonzero(holds)),
                    {name: column[holds] for name, column in scope.variables.items()},
                    scope.constants,
                    scope.formulas,
                )
                total[holds] += np.asarray(evaluate(item.value, here), dtype=np.float64)
    return total
