"""Rewards of models that the engines have built: they stay here, and cross where PRISM reads them.

`prismgpu.GpuConstructRewards` asks for a structure; most often only a solve wants its values.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import numpy as np

from engines.arrays import FloatArray
from engines.errors import InvalidModelError, UnsupportedError
from engines.exploration.build import ExploredModel
from engines.exploration.rewards import EarnedRewards, earned_rewards
from engines.graph.mec import end_component_states
from engines.model.environment import Method
from engines.model.explicit import ExplicitModel
from prism_hooks.crossing import java_array
from prism_hooks.extract import mask
from prism_hooks.failure import unexpected
from prism_hooks.graph import every_entry
from prism_hooks.memory import is_full_heap
from prism_hooks.methods import solver_environment
from prism_hooks.options import HookOptions
from prism_hooks.program import read_program


class HeldRewards:
    """What a `prismgpu.HeldRewards` stands for.

    Parameters
    ----------
    model
        The model.
    earned
        The rewards of one of its structures.
    """

    def __init__(self, model: ExplicitModel, earned: EarnedRewards) -> None:
        self._model, self._earned = model, earned

    def ofStates(self) -> Any:  # noqa: N802 - the name is Java's
        """Return the rewards of the states as Java's array."""
        return java_array(self._earned.expected)

    def ofChoices(self) -> Any:  # noqa: N802 - as above
        """Return the rewards of the choices as Java's array, None where they earn nothing."""
        of_choices = self._earned.of_choices
        return None if of_choices is None else java_array(of_choices)

    @property
    def of_states(self) -> FloatArray:
        """Those of the states, shape (states,), of a chain with those of its transitions."""
        return self._earned.expected

    @cached_property
    def by_choices(self) -> FloatArray:
        """Those of each choice of an MDP, its state's among them, shape (choices,)."""
        groups = self._model.row_group_offsets
        assert groups is not None, "rewards by choices are asked of MDPs alone"
        of_choices = self._earned.of_choices
        sums = np.repeat(self._earned.expected, np.diff(groups))
        return sums if of_choices is None else sums + of_choices


@cache
def _held_for_java() -> type[HeldRewards]:
    """Return `HeldRewards` whose objects Java can call; the JVM must be running."""
    import jpype

    methods = {
        name: jpype.JOverride(getattr(HeldRewards, name)) for name in ("ofStates", "ofChoices")
    }
    implement = jpype.JImplements("prismgpu.HeldRewards")
    made: type[HeldRewards] = implement(type("JavaHeldRewards", (HeldRewards,), methods))
    return made


def earn_for_java(earning: Any, explored: ExploredModel | None) -> None:
    """Find the rewards of a `prismgpu.Earning`; fill them in, or an error, or nothing.

    Parameters
    ----------
    earning
        The Java object.
    explored
        The model, as `prism_hooks.construction.built_for_java` returns it; None where the engines
        did not build it.
    """
    if explored is None:
        return
    try:
        (earned,) = earned_rewards(
            read_program(str(earning.program)),
            explored.packing,
            explored.states,
            explored.model,
            explored.actions,
            explored.deadlocks,
        )
        earning.ofChoices = earned.of_choices is not None and bool(earned.of_choices.any())
        earning.held = _held_for_java()(explored.model, earned)
    except (UnsupportedError, InvalidModelError, MemoryError):
        # PRISM finds the same fault, in its own words, or has memory in its own heap.
        return
    except Exception as error:
        if not is_full_heap(error):
            earning.error = unexpected(error)


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
