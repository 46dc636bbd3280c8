"""Simulation without PRISM: `-sim` of the embedded front end, reported as PRISM reports it.

`prism_hooks.simulation` samples and judges as it does for PRISM, so that paths and results are the
same; here it is given the model and the properties as our own parser reads them.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bridge.check.initial_states import SimulationResult, beginning_in, initial_states, together
from bridge.check.model_text import SimulatedModel
from bridge.check.path_program import question_reader
from bridge.check.simulated_question import Asked
from bridge.check.simulation_options import SimulationOptions
from bridge.language.ast import Expression, Probability, Reward, SteadyState, Value
from bridge.language.properties_file import PropertiesFile, Property
from bridge.language.text import double_text, seconds_text, value_text
from engines.errors import BridgeError, ConvergenceError, InvalidModelError, UnsupportedError
from engines.montecarlo.methods import NOT_PRECISE, PATH_LIMIT, Bound, Judgement, MethodError
from engines.montecarlo.methods_choice import choose_method
from prism_hooks.options import HookOptions
from prism_hooks.simulation import UNDECIDED_PATH, Simulation
from prism_hooks.simulation_methods import switches_of

Constants = Mapping[str, Value]
Log = Callable[[str], None]
UNKNOWN = "s=unknown"
"""In the parameters of a method that finds the number of its samples or iterations."""
_numbers = itertools.count(1)


@dataclass
class AskedMethod:
    """What a method is asked and says; a `prismgpu.EngineMethod`, by the names of its fields."""

    ofRewards: bool  # noqa: N815
    bounded: bool
    atLeast: bool  # noqa: N815
    bound: float
    name: str = ""
    fullName: str = ""  # noqa: N815
    parameters: str = ""
    estimate: float = 0.0
    halfWidth: float = 0.0  # noqa: N815
    confidence: float = 0.0
    decision: int = -1
    remark: str = ""
    explanation: str = ""


@dataclass
class Sampling:
    """Paths and what they are asked; a `prismgpu.Sampling`, by the names of its fields."""

    program: str
    questions: str
    pathLimit: int  # noqa: N815
    endsInDeadlocks: bool  # noqa: N815
    methods: list[AskedMethod]
    log: Log
    id: int = field(default_factory=lambda: next(_numbers))
    seed: int | None = None
    numWanted: int = 0  # noqa: N815
    firstPath: int = 0  # noqa: N815
    numPaths: int = 0  # noqa: N815
    counted: bool = False
    numGood: int = 0  # noqa: N815
    lengths: tuple[int, int, int] = (0, 0, 0)
    failure: str | None = None
    failedIn: list[int] | None = None  # noqa: N815
    refusal: str | None = None
    error: str | None = None
    remark: str = ""
    percent: int = 0

    def say(self, line: str) -> None:
        """Print a line."""
        self.log(line)

    def warn(self, text: str) -> None:
        """Print a warning."""
        self.log(f"\nWarning: {text}")

    def setLengths(self, total: int, shortest: int, longest: int) -> None:  # noqa: N802
        """Take the sum and the extremes of the paths' lengths."""
        self.lengths = total, shortest, longest

    def showProgress(self, percent: int) -> None:  # noqa: N802
        """Print how much of the work is done, each tenth of it."""
        while self.percent + 10 <= percent:
            self.percent += 10
            print(f" {self.percent}%", end="", flush=True)

    def text(self, number: float) -> str:
        """Return a number as PRISM prints it."""
        return double_text(number)


class Simulator:
    """Simulates the properties of one model.

    Parameters
    ----------
    text, source
        The model in PRISM's language, and what error messages call it.
    properties
        The properties, with their constants and labels.
    options
        What the command line says about the simulation.
    hooks
        What it says about the engines.
    fix_deadlocks
        Whether a deadlock is a state that is never left; else it is an error.
    log
        Takes a line for the report.
    """

    def __init__(
        self,
        text: str,
        source: str,
        properties: PropertiesFile,
        options: SimulationOptions,
        hooks: HookOptions,
        *,
        fix_deadlocks: bool,
        log: Log,
    ) -> None:
        self._model = SimulatedModel(text, source)
        self._properties, self._options, self._hooks = properties, options, hooks
        self._fix_deadlocks, self._log = fix_deadlocks, log
        self._simulation: Simulation | None = None
        self._method = hooks.simulation_method or dict(options.words).get("simmethod", "")

    def constants(self, given: Constants) -> Constants:
        """Return the values of all constants of the model."""
        return self._model.constants(given)

    def simulate(
        self, item: Property, constants: Constants, assignments: Sequence[Constants]
    ) -> list[SimulationResult]:
        """Simulate a property for each choice of its constants, all on the same paths.

        Parameters
        ----------
        item
            The property.
        constants
            The values of all constants of the model.
        assignments
            For each choice the values of all constants that the property can see.

        Returns
        -------
        A result for each choice.

        Raises
        ------
        InvalidModelError, UnsupportedError, BridgeError
            Where nothing can be sampled, or a path met an error.
        """
        is_mdp = self._model.kind == "mdp"
        if is_mdp and len(assignments) == 1:
            self._log(
                "\nWarning: For simulation, nondeterminism in MDP is resolved uniformly "
                "(resulting in DTMC)."
            )
        # PRISM chooses a method for the first property, and keeps to it.
        self._method = self._method or ("sprt" if _is_bounded(item.expression) else "ci")
        try:
            readers = (
                question_reader(self._model, self._properties, values) for values in assignments
            )
            asked = [reader.asked(item.expression) for reader in readers]
        except (InvalidModelError, UnsupportedError):
            self._introduce_alone()
            raise
        states = initial_states(self._model, constants)
        program = self._model.program(constants, checked=self._options.checked)
        if states is None:
            results = self._simulated(program, asked)
        else:
            found = []
            for state in states:
                begun = beginning_in(program, state)
                found.append(self._simulated(begun, asked, several=len(states) > 1))
                if len(states) > 1:
                    name = self._model.named_state_text(state)
                    for result in found[-1]:
                        self._log(f"\nIn initial state {name}: {result.text or result.value}")
            results = [together(each) for each in zip(*found, strict=True)]
        if is_mdp and len(assignments) == 1:
            self._log("Warning: Nondeterminism in MDP was resolved uniformly")
        return results

    def _simulated(
        self, program: Mapping[str, Any], asked: Sequence[Asked], *, several: bool = False
    ) -> list[SimulationResult]:
        """Simulate from one initial state, which is one of several or the only one."""
        questions = json.dumps([entry.question for entry in asked])
        if several and '"init"' in questions:
            # A program to sample knows the state alone that its paths begin in.
            raise UnsupportedError('the label "init" of several initial states')
        methods = [_method_of(entry) for entry in asked]
        sampling = Sampling(
            json.dumps(program),
            questions,
            self._options.path_limit,
            not self._fix_deadlocks,
            methods,
            self._log,
        )
        self._ask(sampling)
        self._introduce(methods[0])
        sampling.numPaths = 1
        self._sample(sampling)
        return [
            _result_of(method, entry, sampling.numGood)
            for method, entry in zip(methods, asked, strict=True)
        ]

    def _ask(self, sampling: Sampling) -> None:
        """Have the engines sample; raise what they refuse."""
        if self._simulation is None:
            self._simulation = Simulation(
                replace(self._hooks, simulation_method=self._method, simulation=self._options.words)
            )
        self._simulation.sample(sampling)
        if sampling.error is not None:
            raise BridgeError(sampling.error)
        if sampling.refusal is not None:
            raise UnsupportedError(sampling.refusal)

    def _introduce_alone(self) -> None:
        """Print how would be simulated what is refused, as PRISM does; its own methods only."""
        if self._is_own:
            return
        switches = switches_of({**dict(self._options.words), "simmethod": self._method})
        try:
            method = choose_method(switches, None, reward=False).method
        except MethodError:
            return
        parameters = method.parameters_text(double_text)
        self._introduce(
            AskedMethod(False, False, False, 0.0, method.name, method.full_name, parameters)
        )

    def _introduce(self, method: AskedMethod) -> None:
        self._log(f"\nSimulation method: {method.name} ({method.fullName})")
        self._log(f"Simulation method parameters: {method.parameters}")
        self._log(f"Simulation parameters: max path length={self._options.path_limit}")

    def _sample(self, sampling: Sampling) -> None:
        begin = time.perf_counter()
        print("\nSampling progress: [", end="", flush=True)
        self._ask(sampling)
        if sampling.failure is not None:
            raise self._failure(sampling)
        if not self._is_own and all(
            UNKNOWN not in method.parameters for method in sampling.methods
        ):
            sampling.showProgress(90)
        self._log(" 100% ]")
        paths, seconds = sampling.numGood, time.perf_counter() - begin
        total, shortest, longest = sampling.lengths
        self._log(
            f"\nSampling complete: {paths} iterations in {seconds_text(seconds)} seconds "
            f"(average {seconds / paths:.2g})"
        )
        self._log(
            f"Path length statistics: average {total / paths:.2g}, min {shortest}, max {longest}"
        )
        remarks = [method.remark for method in sampling.methods] if self._is_own else []
        for remark in filter(None, [*remarks, sampling.remark]):
            self._log(f"prism-gpu: {remark}")

    @property
    def _is_own(self) -> bool:
        """Whether the method is one that PRISM does not have."""
        return bool(self._hooks.simulation_method)

    def _failure(self, sampling: Sampling) -> Exception:
        self._log(" ...\n\nSampling terminated early.")
        what = str(sampling.failure)
        if what == UNDECIDED_PATH:
            return ConvergenceError(PATH_LIMIT)
        if not sampling.failedIn:
            return InvalidModelError(what)
        state = self._model.state_text(sampling.failedIn)
        if what == "deadlock":
            self._log(f"\nDeadlock found in state {state}")
            return InvalidModelError("Deadlock state found")
        return InvalidModelError(f"{what} in state {state}")


def _is_bounded(expression: Expression) -> bool:
    if not isinstance(expression, Probability | Reward | SteadyState):
        return False
    return expression.threshold.bound is not None


def _method_of(asked: Asked) -> AskedMethod:
    bound = asked.bound or Bound(False, 0.0)
    return AskedMethod(asked.of_rewards, asked.bound is not None, bound.at_least, bound.threshold)


def _result_of(method: AskedMethod, asked: Asked, paths: int) -> SimulationResult:
    decision = None if method.decision < 0 else bool(method.decision)
    judgement = Judgement(
        *(method.estimate, (0.0, 0.0), method.halfWidth, method.confidence, paths),
        bound=asked.bound,
        decision=decision,
    )
    if judgement.problem is not None:
        return SimulationResult(f"Error: {NOT_PRECISE}", "")
    value: Value = method.estimate if decision is None else decision
    text = f"{value_text(value)} ({judgement.accuracy_text(double_text)})"
    return SimulationResult(value, text, judgement.half_width, judgement.confidence)
