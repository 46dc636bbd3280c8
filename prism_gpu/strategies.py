"""What becomes of an MDP under a strategy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from bridge.model import NamedRewards, StateVector
from engines.arrays import IndexArray, MaskArray
from engines.errors import InvalidModelError
from engines.methods.strategy import ANY_CHOICE
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from prism_gpu.built import BuiltHere


def induced(
    model: ExplicitModel,
    strategy: ArrayLike,
    labels: Mapping[str, MaskArray],
    variables: Mapping[str, StateVector],
) -> BuiltHere:
    """Return the DTMC that an MDP becomes under a strategy; see `Model.induced`.

    Parameters
    ----------
    model
        The MDP.
    strategy
        Shape (states,), int: the row of each state, −1 for its first.
    labels, variables
        Those of all states.
    """
    rows = _chosen_rows(model, np.asarray(strategy))
    chain = ExplicitModel(
        ModelKind.DTMC,
        model.matrix.select_rows(rows),
        initial_states=model.initial_states,
        labels=dict(labels),
    )
    rewards = []
    for item in model.rewards:
        of_choices = 0.0 if item.choice_rewards is None else item.choice_rewards[rows]
        earned = RewardStructure(item.name, item.state_rewards + of_choices)
        rewards.append(NamedRewards(item.name, earned, item.state_rewards))
    return BuiltHere.of_parts(chain, tuple(rewards), variables)


def _chosen_rows(model: ExplicitModel, rows: IndexArray) -> IndexArray:
    groups = model.row_group_offsets
    if groups is None:
        raise InvalidModelError(f"a {model.kind} has no choices, and so no strategy")
    if rows.shape != (model.num_states,) or rows.dtype.kind not in "iu":
        raise InvalidModelError(
            f"strategy must have a row of the transition matrix for each of {model.num_states} "
            f"states, but it is {rows.dtype} of shape {rows.shape}"
        )
    rows = np.where(rows == ANY_CHOICE, groups[:-1], rows)
    wrong = (rows < groups[:-1]) | (rows >= groups[1:])
    if wrong.any():
        state = int(np.argmax(wrong))
        raise InvalidModelError(
            f"strategy: row {rows[state]} is no choice of state {state}, whose rows are "
            f"{groups[state]} to {groups[state + 1] - 1}"
        )
    return rows
