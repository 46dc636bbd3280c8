"""What PRISM asks, task by task, put to the engines.

Questions other than reachability are imported when the first is asked: most runs ask none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engines.arrays import FloatArray, MaskArray
from engines.errors import UnsupportedError
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from engines.model.initial import INITIAL_TOLERANCE
from engines.model.progress import Progress
from engines.model.result import SolveResult
from engines.questions.reachability import solve_reachability
from engines.questions.until import until_probabilities
from engines.systems.one_sided import Direction
from prism_hooks.extract import mask, rewards_of, start_of
from prism_hooks.report import Ending

ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""What a division by an exit rate, and its reversal, change a reward by at most, relatively."""


@dataclass(frozen=True)
class Question:
    """A `prismgpu.Problem` in Python's arrays; Problem.java says what each task makes of them.

    Parameters
    ----------
    states
        What the task is about, shape (states,).
    remain
        Where to stay, shape (states,).
    start
        One value a state, or None.
    rewards
        Shape (states,) or (choices,), or None.
    direction
        MDPs: minimise or maximise.
    lower, upper
        Bounds, included, in steps or time.
    wants_strategy
        MDPs: whether an optimal choice of each state is wanted.
    """

    states: MaskArray
    remain: MaskArray
    start: FloatArray | None = None
    rewards: FloatArray | None = None
    direction: Direction | None = None
    lower: float = 0.0
    upper: float = 0.0
    wants_strategy: bool = False

    @classmethod
    def read(cls, problem: Any, num_states: int) -> Question:
        """Copy a problem out of Java, a bulk copy an array.

        Parameters
        ----------
        problem
            The `prismgpu.Problem`.
        num_states
            Number of states of its model.
        """
        return cls(
            states=mask(problem.states, num_states),
            remain=~mask(None, num_states)
            if problem.remain is None
            else mask(problem.remain, num_states),
            start=start_of(problem, num_states),
            rewards=rewards_of(problem),
            direction=None if problem.direction is None else Direction(str(problem.direction)),
            lower=float(problem.lower),
            upper=float(problem.upper),
            wants_strategy=bool(problem.wantsStrategy),
        )

    def reward_structure(self, model: ExplicitModel, *, of_states: bool = False) -> RewardStructure:
        """Return the rewards as the engines take them.

        Parameters
        ----------
        model
            The model.
        of_states
            Whether they are of states even where the model has choices.
        """
        rewards = given(self.rewards, "rewards")
        if model.kind is ModelKind.MDP and not of_states:
            # Those of the states are in there.
            return RewardStructure("", np.zeros(model.num_states), rewards)
        return RewardStructure("", rewards)


def initial_distribution(asked: Question) -> FloatArray:
    """Return the probabilities to start with.

    Parameters
    ----------
    asked
        The question.

    Raises
    ------
    UnsupportedError
        If there are none, or they do not sum to 1.
    """
    initial = given(asked.start, "initial probabilities")
    total = float(initial.sum())
    if not (np.all(initial >= 0.0) and abs(total - 1.0) <= INITIAL_TOLERANCE):
        raise UnsupportedError(f"the initial values sum to {total:.6g}: no distribution")
    return initial


Answer = Callable[[ExplicitModel, Question, SolverEnvironment, Progress], SolveResult]


@dataclass(frozen=True)
class Task:
    """How a question is answered.

    Parameters
    ----------
    answer
        Puts the question to the engines.
    ending
        For each kind of model that has the task: what ends its sweeps.
    embeds
        Whether a CTMC may be seen as its embedded DTMC.
    method_counts
        Whether it matters which method the user named.
    bounds
        Whether the answer has bounds where they are asked for; a CTMC is then taken as it is.
    """

    answer: Answer
    ending: dict[ModelKind, Ending]
    embeds: bool = False
    method_counts: bool = False
    bounds: bool = False


def given(array: FloatArray | None, what: str) -> FloatArray:
    """Return an array that a task cannot do without.

    Parameters
    ----------
    array
        Part of a question.
    what
        What it holds.

    Raises
    ------
    UnsupportedError
        If it is missing.
    """
    if array is None:
        raise UnsupportedError(f"no {what} were given")
    return array


def _reachability(
    model: ExplicitModel, asked: Question, environment: SolverEnvironment, progress: Progress
) -> SolveResult:
    if environment.two_sided:
        return _bounded_reachability(model, asked, environment, progress)
    start = given(asked.start, "values to start from")
    if not asked.states.any():
        return SolveResult.exact(start, environment.method)
    return solve_reachability(
        model,
        asked.states,
        start,
        environment,
        rewards=asked.rewards,
        direction=asked.direction,
        progress=progress,
        want_strategy=asked.wants_strategy,
    )


def _bounded_reachability(
    model: ExplicitModel, asked: Question, environment: SolverEnvironment, progress: Progress
) -> SolveResult:
    """Answer between bounds, from the states that PRISM knows.

    The graph is searched again, because the quotient of a maximum needs its end components, and a
    CTMC is taken as it is, because PRISM's embedded chain has been rounded.
    """
    from engines.questions.reachability_rewards import reachability_rewards

    start = given(asked.start, "known values")
    if asked.rewards is None:
        return until_probabilities(
            model,
            asked.states,
            _known(asked, start, 1.0, otherwise=0.0),
            environment,
            direction=asked.direction,
            progress=progress,
            want_strategy=asked.wants_strategy,
        )
    target = _known(asked, start, 0.0, otherwise=np.inf)
    embedded = model.kind is ModelKind.CTMC
    if embedded:
        # PRISM has divided by the exit rates; the engines do so themselves.
        asked = replace(asked, rewards=asked.rewards * model.exit_rates)
    result = reachability_rewards(
        model,
        asked.reward_structure(model),
        target,
        environment,
        direction=asked.direction,
        progress=progress,
        want_strategy=asked.wants_strategy,
    )
    return _widened(result, environment) if embedded else result


def _known(asked: Question, start: FloatArray, value: float, *, otherwise: float) -> MaskArray:
    """Return the states known to have a value; all known states have that or the other one."""
    known = ~asked.states
    chosen: MaskArray = known & (start == value)
    if not (known & ~chosen & (start != otherwise)).any():
        return chosen
    raise UnsupportedError("bounds that start from given values of some states")


def _widened(result: SolveResult, environment: SolverEnvironment) -> SolveResult:
    """Return the result with room for the rounding of the rewards; the graph's has none."""
    if result.error_estimate == 0.0 or result.bounds is None:
        return result
    lower, upper = result.bounds
    largest = float(np.max(upper[np.isfinite(upper)], initial=0.0))
    widening = ROUNDING * (largest if environment.absolute else 1.0)
    return replace(
        result,
        bounds=(lower * (1.0 - ROUNDING), upper * (1.0 + ROUNDING)),
        error_estimate=result.error_estimate + widening,
    )


def _until(
    model: ExplicitModel, asked: Question, environment: SolverEnvironment, progress: Progress
) -> SolveResult:
    if not environment.automatic:
        # Who names a method, and no search of the graph, is to see what that comes to.
        return _reachability(model, asked, environment, progress)
    target = ~asked.states & (given(asked.start, "known values") == 1.0)
    return until_probabilities(
        model,
        asked.states,
        target,
        environment,
        direction=asked.direction,
        progress=progress,
        want_strategy=asked.wants_strategy,
    )


def _least_reward(
    model: ExplicitModel, asked: Question, environment: SolverEnvironment, progress: Progress
) -> SolveResult:
    from engines.questions.reachability_rewards import least_rewards

    if environment.two_sided:
        return _bounded_reachability(model, asked, environment, progress)
    start = given(asked.start, "known values")
    if not asked.states.any():
        return SolveResult.exact(start, environment.method)
    return least_rewards(
        model,
        given(asked.rewards, "rewards"),
        asked.states,
        np.isinf(start),
        environment,
        progress,
        want_strategy=asked.wants_strategy,
    )


def _steady_state(
    model: ExplicitModel, asked: Question, environment: SolverEnvironment, progress: Progress
) -> SolveResult:
    from engines.questions.steady_state import solve_steady_state

    return solve_steady_state(model, asked.states, environment, progress=progress)


def _next(
    model: ExplicitModel, asked: Question, environment: SolverEnvironment, _: Progress
) -> SolveResult:
    from engines.questions import bounded

    return bounded.next_probabilities(model, asked.states, environment, direction=asked.direction)


def _step_bounded_until(
    model: ExplicitModel, asked: Question, environment: SolverEnvironment, progress: Progress
) -> SolveResult:
    from engines.questions import bounded

    lower, upper = int(asked.lower), int(asked.upper)
    if asked.start is not None:
        return bounded.after(
            model,
            asked.remain,
            asked.start,
            lower,
            environment,
            direction=asked.direction,
            progress=progress,
        )
    return bounded.bounded_until(
        model,
        asked.remain,
        asked.states,
        upper,
        environment,
        direction=asked.direction,
        lower=lower,
        progress=progress,
    )


def _time_bounded_until(
    model: ExplicitModel, asked: Question, environment: SolverEnvironment, progress: Progress
) -> SolveResult:
    from engines.questions import uniformisation

    # PRISM asks for one phase at a time: which states absorb, and what each is worth at the end.
    values = np.ones(model.num_states) if asked.start is None else asked.start
    start = np.where(asked.states, values, 0.0)
    return uniformisation.backward(
        model.matrix, asked.remain, start, asked.upper, environment, progress=progress
    )


def _cumulative_reward(
    model: ExplicitModel, asked: Question, environment: SolverEnvironment, progress: Progress
) -> SolveResult:
    from engines.questions import bounded, time_bounded

    rewards = asked.reward_structure(model)
    if model.kind is ModelKind.CTMC:
        return time_bounded.cumulative_rewards_until(
            model, rewards, asked.upper, environment, progress=progress
        )
    until = (rewards, int(asked.upper), environment)
    return bounded.cumulative_rewards(model, *until, direction=asked.direction, progress=progress)


def _instantaneous_reward(
    model: ExplicitModel, asked: Question, environment: SolverEnvironment, progress: Progress
) -> SolveResult:
    from engines.questions import bounded, time_bounded

    rewards = asked.reward_structure(model, of_states=True)
    if model.kind is ModelKind.CTMC:
        return time_bounded.instantaneous_rewards_at(
            model, rewards, asked.upper, environment, progress=progress
        )
    at = (rewards, int(asked.upper), environment)
    return bounded.instantaneous_rewards(model, *at, direction=asked.direction, progress=progress)


def _total_reward(
    model: ExplicitModel, asked: Question, environment: SolverEnvironment, progress: Progress
) -> SolveResult:
    from engines.questions.total_rewards import total_rewards

    return total_rewards(
        model,
        asked.reward_structure(model),
        environment,
        direction=asked.direction,
        progress=progress,
        want_strategy=asked.wants_strategy,
    )


def _transient_distribution(
    model: ExplicitModel, asked: Question, environment: SolverEnvironment, progress: Progress
) -> SolveResult:
    from engines.questions import bounded, time_bounded

    initial = given(asked.start, "initial probabilities")
    how = (model, initial)
    if model.kind is ModelKind.CTMC:
        return time_bounded.distribution_at(*how, asked.upper, environment, progress=progress)
    return bounded.distribution_after(*how, int(asked.upper), environment, progress=progress)


def _long_run_distribution(
    model: ExplicitModel, asked: Question, environment: SolverEnvironment, progress: Progress
) -> SolveResult:
    from engines.questions.long_run_distribution import steady_state_distribution

    start = initial_distribution(asked)
    return steady_state_distribution(model, start, environment, progress=progress)


def _long_run_average(
    model: ExplicitModel, asked: Question, environment: SolverEnvironment, progress: Progress
) -> SolveResult:
    from engines.questions.long_run import long_run_rewards

    if asked.rewards is None:
        asked = replace(asked, rewards=asked.states.astype(np.float64))
    two_sided = environment.two_sided
    if two_sided and (given(asked.rewards, "rewards") < 0.0).any():
        raise UnsupportedError("bounds of rewards below 0")
    result = long_run_rewards(model, asked.reward_structure(model), environment, progress=progress)
    if not two_sided:
        return result
    # What was asked for is what is claimed: tests compare as many digits as that.
    return replace(result, error_estimate=max(result.error_estimate, environment.epsilon))


CHAINS = (ModelKind.DTMC, ModelKind.CTMC)
_BOUNDED = {ModelKind.DTMC: Ending.STEPS, ModelKind.MDP: Ending.STEPS, ModelKind.CTMC: Ending.TIME}
_SWEPT = dict.fromkeys(ModelKind, Ending.CONVERGENCE)

TASKS = {
    "reachability": Task(_reachability, _SWEPT, embeds=True, method_counts=True, bounds=True),
    "until": Task(_until, _SWEPT, embeds=True, method_counts=True, bounds=True),
    "least reward": Task(
        _least_reward, {ModelKind.MDP: Ending.CONVERGENCE}, method_counts=True, bounds=True
    ),
    "steady state": Task(
        _steady_state,
        dict.fromkeys(CHAINS, Ending.CONVERGENCE),
        embeds=True,
        method_counts=True,
    ),
    # Of a CTMC, the engines themselves take the jumps.
    "next": Task(_next, dict.fromkeys(ModelKind, Ending.STEPS)),
    "step-bounded until": Task(
        _step_bounded_until, dict.fromkeys((ModelKind.DTMC, ModelKind.MDP), Ending.STEPS)
    ),
    "time-bounded until": Task(_time_bounded_until, {ModelKind.CTMC: Ending.TIME}),
    "cumulative reward": Task(_cumulative_reward, _BOUNDED),
    "instantaneous reward": Task(_instantaneous_reward, _BOUNDED),
    "total reward": Task(_total_reward, _SWEPT, method_counts=True, bounds=True),
    "transient distribution": Task(
        _transient_distribution, {kind: _BOUNDED[kind] for kind in CHAINS}
    ),
    "long-run average": Task(
        _long_run_average,
        dict.fromkeys(CHAINS, Ending.CONVERGENCE),
        method_counts=True,
        bounds=True,
    ),
    "long-run distribution": Task(
        _long_run_distribution,
        dict.fromkeys(CHAINS, Ending.CONVERGENCE),
        method_counts=True,
        bounds=True,
    ),
}
"""The tasks by the names that `prismgpu.Problem` gives them."""


def task_of(problem: Any, kind: ModelKind) -> Task:
    """Return how a problem is answered.

    Parameters
    ----------
    problem
        The `prismgpu.Problem`.
    kind
        Of its model, which a CTMC seen as its embedded DTMC still is.

    Raises
    ------
    UnsupportedError
        For what the engines do not answer on such a model, or within such bounds.
    """
    task = TASKS[str(problem.task)]
    if kind not in task.ending:
        raise UnsupportedError(f"of a {kind}")
    if problem.embedded and not task.embeds and str(problem.task) != "next":
        raise UnsupportedError("of an embedded chain")
    if problem.lower < 0 or problem.upper < problem.lower:
        raise UnsupportedError(f"between {problem.lower} and {problem.upper}")
    return task
