"""What PRISM asks of models that the engines have built: rewards, and state formulas."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.errors import InvalidModelError, UnsupportedError
from engines.exploration.rewards import earned_rewards
from engines.graph.mec import end_component_states
from engines.host.exploring.explorer import evaluate_in
from engines.model.environment import Method
from engines.model.explicit import ExplicitModel
from prism_hooks.extract import mask
from prism_hooks.failure import unexpected
from prism_hooks.graph import ZERO_REWARD_ENDS, every_entry
from prism_hooks.held import HeldArrays, HeldModel, HeldRewards, java_type
from prism_hooks.memory import is_full_heap
from prism_hooks.methods import solver_environment
from prism_hooks.options import HookOptions
from prism_hooks.program import ExpressionReader, read_program
from prism_hooks.sets import words_of


def earn_for_java(earning: Any, held: HeldArrays | None) -> None:
    """Find the rewards of a `prismgpu.Earning`; fill them in, or an error, or nothing.

    Parameters
    ----------
    earning
        The Java object.
    held
        The model, as `prism_hooks.construction.built_for_java` returns it; anything else where the
        engines did not build it from its program.
    """
    if not isinstance(held, HeldModel):
        return
    text = str(earning.program)
    try:
        if text not in held.rewards:
            held.rewards[text] = _earned(text, held)
        earning.ofChoices = held.rewards[text].has_choices
        earning.held = held.rewards[text]
    except (UnsupportedError, InvalidModelError, MemoryError):
        # PRISM finds the same fault, in its own words, or has memory in its own heap.
        return
    except Exception as error:
        if not is_full_heap(error):
            earning.error = unexpected(error)


def _earned(text: str, held: HeldModel) -> HeldRewards:
    explored = held.explored
    (earned,) = earned_rewards(
        read_program(text),
        explored.packing,
        explored.states,
        explored.model,
        explored.actions,
        explored.deadlocks,
    )
    rewards: HeldRewards = java_type(HeldRewards)(explored.model, earned)
    return rewards


def answer(problem: Any, held: HeldArrays | None, options: HookOptions) -> None:
    """Answer a question of `OF_BUILT_MODELS`, unless the engines have let go of the model.

    Parameters
    ----------
    problem
        The `prismgpu.Problem`.
    held
        The model; anything else where it is not at hand.
    options
        What the command line says about the engines.
    """
    if not isinstance(held, HeldModel):
        problem.refusal = str(problem.task)
    elif str(problem.task) == ZERO_REWARD_ENDS:
        _count_zero_reward_ends(problem, held.explored.model, options)
    else:
        problem.found = _satisfying(str(problem.formula), held)


def _satisfying(text: str, held: HeldModel) -> NDArray[np.int64] | None:
    """Return where a formula holds as a BitSet's words; None where PRISM finds an error in it."""
    packing = held.explored.packing
    reader = ExpressionReader([variable.type for variable in packing.declarations])
    try:
        found = evaluate_in(reader.read(json.loads(text)), packing, held.explored.states)
    except (UnsupportedError, InvalidModelError, MemoryError):
        return None
    return None if found.failing is not None else words_of(found.values.astype(np.bool_))


def _count_zero_reward_ends(problem: Any, model: ExplicitModel, options: HookOptions) -> None:
    """Count the maximal end components in which nothing is earned."""
    environment = solver_environment(options, problem, Method.AUTO)
    within = mask(problem.remain, model.num_states)
    free = problem.held.by_choices <= 0.0
    found = end_component_states(every_entry(model), within, free, environment)
    problem.numComponents = found.count
