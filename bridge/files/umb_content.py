"""What a UMB file holds, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.files.umb_valuations import StateValuations
from bridge.model import RewardFault, first_fault
from engines.arrays import FloatArray
from engines.model.explicit import ExplicitModel
from engines.model.row_sums import RescaledRows


@dataclass(frozen=True)
class Actions:
    """Which action each choice, or each branch, has.

    Parameters
    ----------
    names
        The actions' names; PRISM writes the unlabelled one as an empty name.
    indices
        Shape (choices,) or (branches,), uint32: the place in `names`.
    """

    names: tuple[str, ...]
    indices: NDArray[np.uint32]


@dataclass(frozen=True)
class UmbRewards:
    """A reward structure as the file has it; None where it has no values for an entity.

    Parameters
    ----------
    name
        The structure's name, empty where it has none.
    states, choices, branches
        Shapes (states,), (choices,), (branches,); a branch's reward is not multiplied by its
        probability. They may be negative or not finite: `fault` says whether properties can use
        them.
    """

    name: str
    states: FloatArray | None = None
    choices: FloatArray | None = None
    branches: FloatArray | None = None

    def fault(self, model: ExplicitModel) -> RewardFault | None:
        """Return the first reward that no engine takes, or None.

        Parameters
        ----------
        model
            The model that has the rewards.
        """
        groups, matrix = model.row_group_offsets, model.matrix
        states = np.arange(model.num_states)
        of_choices = states if groups is None else np.repeat(states, np.diff(groups))
        return (
            first_fault(self.states)
            or first_fault(self.choices, of_choices)
            or first_fault(self.branches, np.repeat(of_choices, matrix.row_lengths()))
        )


@dataclass(frozen=True)
class UmbFile:
    """What a UMB file holds.

    Parameters
    ----------
    model
        The model, checked. The rewards of its branches are in there as expected values: a DTMC's
        and a CTMC's in the state rewards (times the exit rate in a CTMC), an MDP's in the choice
        rewards. Branches of probability 0 are dropped; the others keep the file's order.
    probabilities
        Shape (branches,): for a CTMC the embedded chain's, else the matrix's values. Those of a row
        sum to 1 but for rounding.
    exit_rates
        Shape (states,), CTMCs only.
    rewards
        The reward structures before branches were folded in, in the model's order. PRISM's
        instantaneous rewards are those of the states alone.
    valuations
        The variables' values in each state, where the file has them.
    choice_actions, branch_actions
        The actions, where the file has them.
    model_data, file_data
        What `index.json` says of the model's name and origin and of the tool that wrote the file.
    left_out
        What the file holds besides, in words.
    rescaled
        Which rows of probabilities were divided by their sums; None for none.
    """

    model: ExplicitModel
    probabilities: FloatArray
    exit_rates: FloatArray | None
    rewards: tuple[UmbRewards, ...]
    valuations: StateValuations | None
    choice_actions: Actions | None
    branch_actions: Actions | None
    model_data: dict[str, Any]
    file_data: dict[str, Any]
    left_out: tuple[str, ...]
    rescaled: RescaledRows | None = None
