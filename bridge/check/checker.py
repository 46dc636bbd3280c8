"""The walk over the property tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from bridge.check.accuracy import Accuracy, Bounded, accuracy_of, compare
from bridge.check.arithmetic import accuracy_of_arithmetic
from bridge.check.ctl import satisfied
from bridge.check.filters import apply_filter, with_default_filter
from bridge.check.outcome import Outcome, everywhere
from bridge.check.paths import certain_path, path_probability
from bridge.check.rewards import expected_reward, long_run_probability
from bridge.language.ast import (
    Expression,
    Filter,
    Label,
    Parentheses,
    Probability,
    Quantifier,
    Reward,
    SteadyState,
    Strategy,
    Threshold,
    Value,
)
from bridge.language.constants import constant_value
from bridge.language.evaluate import Scope, evaluate, type_of
from bridge.language.properties_file import PropertiesFile
from bridge.language.text import Range, value_text
from bridge.model import CheckableModel, StateVector, UnexploredStates
from engines.arrays import MaskArray
from engines.errors import InvalidModelError, UnsupportedError
from engines.model.environment import Method, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.model.progress import Progress
from engines.model.result import SolveResult, Status
from engines.systems.one_sided import Direction

Log = Callable[[str], None]
METHODS_OF_CHAINS = (Method.POWER, Method.JACOBI, Method.JOR)
METHODS_OF_MDPS = (Method.POLICY_ITERATION, Method.MODIFIED_POLICY_ITERATION)


@dataclass(frozen=True)
class SolveRecord:
    """A numerical solve, and the operator that asked for it."""

    text: str
    result: SolveResult


@dataclass(frozen=True)
class CheckResult:
    """The result of a property.

    Parameters
    ----------
    value
        A truth value, a number, or the smallest and largest of several numbers.
    accuracy
        How accurate it is; None where that is not known, or not a question.
    vector
        Shape (states,): the values that the property's outermost filter was applied to.
    """

    value: Value | Range
    accuracy: Accuracy | None
    vector: StateVector

    @property
    def text(self) -> str:
        """The result as PRISM's report shows it, the remark on its accuracy included."""
        remark = self.remark
        return f"{value_text(self.value)} ({remark})" if remark else value_text(self.value)

    @property
    def remark(self) -> str:
        """The remark on the accuracy alone; empty for none."""
        if self.accuracy is None:
            return ""
        number = self.accuracy.less_known(self.value)
        return "" if number is None else self.accuracy.remark(number)


@dataclass
class Checker:
    """Checks properties on a built model.

    Parameters
    ----------
    model
        The model and its names.
    environment
        Method, termination, limits, device.
    properties
        The file that the properties come from: its labels, formulas and other properties.
    constants
        Values of that file's constants.
    log
        Where the report goes, line by line.
    verbose
        Whether long lists of states are shown whole.
    on_solve
        Called with each numerical result, for a line in the log.
    progress
        Called after each batch of sweeps.
    want_strategy
        MDPs: whether `records` shall have optimal strategies, where a question has them.
    unexplored
        States that were not explored, and how they count; None where all were.
    """

    model: CheckableModel
    environment: SolverEnvironment
    properties: PropertiesFile = field(default_factory=PropertiesFile)
    constants: Mapping[str, Value] = field(default_factory=dict)
    log: Log = print
    verbose: bool = False
    on_solve: Callable[[SolveResult], None] | None = None
    progress: Progress | None = None
    want_strategy: bool = False
    unexplored: UnexploredStates | None = None
    records: list[SolveRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        choices = self.model.model.kind is ModelKind.MDP
        if self.environment.method in (METHODS_OF_CHAINS if choices else METHODS_OF_MDPS):
            # PRISM's switches name a method for either; the other's is not meant.
            self.environment = replace(self.environment, method=Method.AUTO)
        self._outcomes: dict[Expression, Outcome] = {}
        self._masks: dict[str, MaskArray] = {}
        self._asking: list[str] = []
        self._named = {
            item.name: item.expression for item in self.properties.properties if item.name
        }
        self._scope = Scope(
            num_states=self.model.model.num_states,
            variables=self.model.variables,
            constants={**self.model.constants, **self.constants},
            formulas={**self.model.formulas, **self.properties.formulas},
            label=self._label,
            operator=lambda node: self._operator(node).values,
            properties=self._named,
        )

    @property
    def engine_model(self) -> ExplicitModel:
        """The model as the engines take it."""
        return self.model.model

    def check(self, expression: Expression) -> CheckResult:
        """Return the result of a property, printing on the way what PRISM prints.

        Parameters
        ----------
        expression
            The property.

        Raises
        ------
        InvalidModelError
            When the property has a fault: an unknown name, a wrong type, a bound out of range.
        UnsupportedError
            For what this checker cannot do.
        ConvergenceError
            When a solve does not converge, or a value is too near to its bound.
        """
        self._outcomes.clear()
        initial = int(np.count_nonzero(self.model.initial_states))
        kind = type_of(expression, self._scope)
        node = with_default_filter(expression, kind, initial, self._scope)
        filtered = apply_filter(self, node)
        if filtered.value is None:
            # What keeps its vector, such as a print filter, needs a filter around it.
            again = Filter(
                "state" if initial == 1 else "range", node, Label("init"), explicit=False
            )
            if filtered.vector.values.dtype == bool:
                again = Filter("forall", node, Label("init"), explicit=False)
            self._outcomes[node] = filtered.vector
            filtered = apply_filter(self, again)
        assert filtered.value is not None
        return CheckResult(filtered.value, filtered.accuracy, self.outcome(node.operand).values)

    def values(self, expression: Expression) -> StateVector:
        """Return an expression's value in every state, shape (states,).

        Parameters
        ----------
        expression
            A property; the exceptions are those of `check`.
        """
        type_of(expression, self._scope)
        return self.outcome(expression).values

    def mask(self, expression: Expression) -> MaskArray:
        """Return the states that satisfy a state formula, shape (states,)."""
        values = self.outcome(expression).values
        if values.dtype != bool:
            raise InvalidModelError(f"Type error: {expression} is not a Boolean")
        return np.asarray(values, dtype=bool)

    def is_property(self, label: Label) -> bool:
        """Return whether a name in quotes is that of a property."""
        return label.name in self._named

    def integer(self, expression: Expression) -> int:
        """Return the value of a constant expression that must be an integer."""
        return self._whole(expression, f"Type error: {expression} must be an integer")

    def steps(self, expression: Expression, operator: str) -> int:
        """Return the value of a constant expression that bounds an operator's steps."""
        kind = self.engine_model.kind
        message = f"Time bounds on the {operator} operator must be integers for {kind}s"
        return self._whole(expression, message)

    def is_constant(self, expression: Expression) -> bool:
        """Return whether it takes no variable, label or operator to find an expression's value."""
        try:
            constant_value(expression, self._scope.constants, self._scope.formulas)
        except (InvalidModelError, UnsupportedError):
            return False
        return True

    def _whole(self, expression: Expression, message: str) -> int:
        value = constant_value(expression, self._scope.constants, self._scope.formulas)
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidModelError(message)
        return value

    def number(self, expression: Expression) -> float:
        """Return the value of a constant expression that must be a number."""
        value = constant_value(expression, self._scope.constants, self._scope.formulas)
        if isinstance(value, bool):
            raise InvalidModelError(f"Type error: {expression} must be a number")
        return float(value)

    def outcome(self, expression: Expression) -> Outcome:
        """Return the values of an expression and their accuracy.

        Parameters
        ----------
        expression
            A state formula, a number, or an operator; the exceptions are those of `check`.
        """
        while isinstance(expression, Parentheses):
            expression = expression.operand
        known = self._outcomes.get(expression)
        if known is not None:
            return known
        if isinstance(expression, Label) and expression.name in self._named:
            return self._named_property(expression)
        if isinstance(
            expression, Probability | Reward | SteadyState | Quantifier | Filter | Strategy
        ):
            return self._operator(expression)
        value = evaluate(expression, self._scope)
        if not isinstance(value, np.ndarray):
            return Outcome(everywhere(value, self.engine_model.num_states))
        if value.dtype.kind != "f":
            return Outcome(value)
        return Outcome(value, accuracy_of_arithmetic(self, expression))

    def solved(self, result: SolveResult, bounded: Bounded | None = None) -> Outcome:
        """Return the outcome of a solve, after a look at its status.

        Parameters
        ----------
        result
            What an engine returned.
        bounded
            For a number of sweeps that is fixed by the question: how its error is measured.
        """
        if self.on_solve is not None:
            self.on_solve(result)
        self.records.append(SolveRecord(self._asking[-1] if self._asking else "", result))
        result.raise_unless_converged()
        if result.status is Status.CHANGE_ONLY:
            self.log(
                f"\nWarning: {result.method}: the change a sweep makes is {result.change:.2g}, but "
                f"the estimated error is {result.error_estimate:.2g}; {result.remedy}."
            )
        asked = self.environment.two_sided and bounded is not Bounded.STEPS
        if asked and not result.two_sided and result.error_estimate > 0.0:
            self.log(
                f"\nprism-gpu: {result.method} has no bounds here: the error of this result is "
                "estimated, in spite of -ii"
            )
        accuracy = accuracy_of(result, self.environment, bounded)
        return Outcome(result.values, accuracy, result.exactly)

    def print_vector(
        self, values: StateVector | None, states: MaskArray, limit: int | None = None
    ) -> None:
        """Print states, and their values where there are any, a line each.

        Parameters
        ----------
        values
            Shape (states,), or None.
        states
            Which states.
        limit
            How many lines at most.
        """
        numbers = np.flatnonzero(states)
        if len(numbers) == 0:
            self.log("(none)" if values is None else "(all zero)")
        lines = []
        for state in numbers[:limit]:
            value = "" if values is None else f"={value_text(values[state].item())}"
            lines.append(f"{self.model.state_line(int(state))}{value}")
        if lines:
            self.log("\n".join(lines))

    def _named_property(self, reference: Label) -> Outcome:
        node = self._named[reference.name]
        text = f'"{reference.name}": {node}'
        if text in self._asking:
            raise InvalidModelError(f'Cyclic dependency of property "{reference.name}"')
        self.log(f"\nModel checking : {text}")
        self._asking.append(text)
        try:
            outcome = self.outcome(node)
        finally:
            self._asking.pop()
        self._outcomes[reference] = outcome
        return outcome

    def _label(self, name: str) -> MaskArray:
        known = self._masks.get(name)
        if known is None:
            known = self._masks[name] = self._find_label(name)
        return known

    def _find_label(self, name: str) -> MaskArray:
        own = self.properties.labels.get(name)
        if own is None and name in self.engine_model.labels:
            return self.engine_model.labels[name]
        expression = own if own is not None else self.model.labels.get(name)
        if expression is None:
            known = sorted({*self.properties.labels, *self.engine_model.labels, *self.model.labels})
            raise InvalidModelError(f'Undeclared label "{name}"; declared: {", ".join(known)}')
        return self.mask(expression)

    def _operator(self, node: Expression) -> Outcome:
        if isinstance(node, Label):
            return self.outcome(node)
        known = self._outcomes.get(node)
        if known is not None:
            return known
        self._asking.append(str(node))
        try:
            outcome = self._evaluate_operator(node)
        finally:
            self._asking.pop()
        self._outcomes[node] = outcome
        return outcome

    def _evaluate_operator(self, node: Expression) -> Outcome:
        match node:
            case Probability(threshold, path):
                direction = self._direction(threshold, node)
                if threshold.bound is not None:
                    bound = self._bound(threshold.bound, probability=True)
                    qualitative = certain_path(self, path, direction, threshold.relation, bound)
                    if qualitative is not None:
                        return Outcome(qualitative)
                outcome = path_probability(self, path, direction)
                return self._compared(outcome, threshold, probability=True)
            case Reward(threshold=threshold):
                outcome = expected_reward(self, node, self._direction(threshold, node))
                return self._compared(outcome, threshold, probability=False)
            case SteadyState(threshold):
                return self._compared(long_run_probability(self, node), threshold, probability=True)
            case Quantifier():
                return Outcome(satisfied(self, node))
            case Filter():
                return apply_filter(self, node).vector
            case _:
                raise UnsupportedError(
                    f"{node}: games, strategies and multi-objective properties are not supported"
                )

    def _direction(self, threshold: Threshold, node: Expression) -> Direction | None:
        """Return how an MDP's choices are resolved; a bound asks for the worst case."""
        if self.engine_model.kind is not ModelKind.MDP:
            return None
        letter = str(node)[0]
        if threshold.direction in ("min", "max"):
            return Direction(threshold.direction)
        if threshold.direction:
            raise InvalidModelError(f"Can't use \"{letter}{threshold.direction}=? for MDPs")
        if threshold.bound is None:
            raise InvalidModelError(
                f'Can\'t use "{letter}=?" for nondeterministic models; use "{letter}min=?" '
                f'or "{letter}max=?"'
            )
        return Direction.MINIMISE if threshold.relation in (">", ">=") else Direction.MAXIMISE

    def _compared(self, outcome: Outcome, threshold: Threshold, *, probability: bool) -> Outcome:
        if threshold.bound is None:
            return outcome
        bound = self._bound(threshold.bound, probability=probability)
        satisfied = compare(
            outcome.numbers, threshold.relation, bound, outcome.accuracy, outcome.exactly
        )
        return Outcome(satisfied)

    def _bound(self, expression: Expression, *, probability: bool) -> float:
        bound = self.number(expression)
        if probability and not 0.0 <= bound <= 1.0:
            raise InvalidModelError(f"Invalid probability bound {value_text(bound)} in P operator")
        return bound
