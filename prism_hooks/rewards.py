"""What is asked of the rewards of models that the engines have built."""

from __future__ import annotations

from typing import Any

from engines.errors import InvalidModelError, UnsupportedError
from engines.exploration.rewards import earned_rewards
from engines.graph.mec import end_component_states
from engines.model.environment import Method
from engines.model.explicit import ExplicitModel
from prism_hooks.extract import mask
from prism_hooks.failure import unexpected
from prism_hooks.graph import every_entry
from prism_hooks.held import HeldModel, HeldRewards, java_type
from prism_hooks.memory import is_full_heap
from prism_hooks.methods import solver_environment
from prism_hooks.options import HookOptions
from prism_hooks.program import read_program


def earn_for_java(earning: Any, held: HeldModel | None) -> None:
    """Find the rewards of a `prismgpu.Earning`; fill them in, or an error, or nothing.

    Parameters
    ----------
    earning
        The Java object.
    held
        The model, as `prism_hooks.construction.built_for_java` returns it; None where the engines
        did not build it.
    """
    if held is None:
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


def count_zero_reward_ends(problem: Any, model: ExplicitModel, options: HookOptions) -> None:
    """Count the maximal end components in which nothing is earned.

    Parameters
    ----------
    problem
        The `prismgpu.Problem`: rewards that are held, and the states to stay in.
    model
        Its MDP.
    options
        What the command line says about the engines.
    """
    environment = solver_environment(options, problem, Method.AUTO)
    within = mask(problem.remain, model.num_states)
    free = problem.held.by_choices <= 0.0
    found = end_component_states(every_entry(model), within, free, environment)
    problem.numComponents = found.count
