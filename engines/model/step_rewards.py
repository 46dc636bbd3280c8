"""What a step earns: the rewards of states and choices, checked and put together."""

from __future__ import annotations

import numpy as np

from engines.arrays import FloatArray, extremes
from engines.errors import InvalidModelError
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure


def step_rewards(model: ExplicitModel, rewards: RewardStructure) -> FloatArray:
    """Return the reward of each row: of a state, in an MDP of a choice, its state's included.

    Parameters
    ----------
    model
        A DTMC, a CTMC or an MDP.
    rewards
        Its rewards.

    Returns
    -------
    Shape (rows,); for a CTMC still a unit of time's.

    Raises
    ------
    InvalidModelError
        For rewards that are negative or not finite, naming the state, and for rewards that do not
        fit the model.
    """
    of_states = checked_state_rewards(rewards.name, rewards.state_rewards, model.num_states)
    name = _called(rewards.name)
    if model.kind is not ModelKind.MDP:
        if rewards.choice_rewards is not None:
            raise InvalidModelError(
                f"{name}: a {model.kind} has no choices, but choice rewards were given; add them "
                "to the state rewards, by their probabilities or rates"
            )
        return of_states
    state_of_row = model.states_of_rows()
    earned: FloatArray = of_states[state_of_row]
    if rewards.choice_rewards is None:
        return earned
    of_choices = np.asarray(rewards.choice_rewards, dtype=np.float64)
    if of_choices.shape != earned.shape:
        raise InvalidModelError(f"{name}: {of_choices.shape} rewards for {len(earned)} choices")
    wrong = ~(np.isfinite(of_choices) & (of_choices >= 0.0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidModelError(
            f"{name}: choice {row}, of state {state_of_row[row]}, has reward {of_choices[row]}; "
            "rewards must be finite and not negative"
        )
    return earned + of_choices


def checked_state_rewards(name: str, state_rewards: FloatArray, num_states: int) -> FloatArray:
    """Return state rewards, of shape (states,), that are finite and not negative.

    Parameters
    ----------
    name
        Of the rewards; empty for none.
    state_rewards
        The rewards.
    num_states
        Number of states.

    Raises
    ------
    InvalidModelError
        For any others, naming the first such state.
    """
    of_states: FloatArray = np.asarray(state_rewards, dtype=np.float64)
    if of_states.shape != (num_states,):
        raise InvalidModelError(
            f"{_called(name)}: {of_states.shape} state rewards for {num_states} states"
        )
    least, greatest = extremes(of_states)
    if not (least >= 0.0 and greatest < np.inf):
        state = int(np.argmax(~(np.isfinite(of_states) & (of_states >= 0.0))))
        raise InvalidModelError(
            f"{_called(name)}: state {state} has reward {of_states[state]}; rewards must be finite "
            "and not negative"
        )
    return of_states


def _called(name: str) -> str:
    return f'rewards "{name}"' if name else "rewards"
