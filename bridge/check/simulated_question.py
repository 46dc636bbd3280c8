"""What a property asks of each path, for the simulation without PRISM.

What `prismgpu.QuestionText` writes from PRISM's trees is written here from ours: F, G, W and R are
reduced to an until and a negation, and bounds are computed and included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bridge.check.bounds import require_no_lower_bound
from bridge.check.words import Names
from bridge.language.ast import (
    Binary,
    Cumulative,
    Expression,
    Filter,
    Instantaneous,
    Label,
    Literal,
    Parentheses,
    Probability,
    Reward,
    SteadyState,
    Temporal,
    Threshold,
    Unary,
    Value,
)
from bridge.language.constants import constant_value
from bridge.language.types import BOOL, TypeChecker
from engines.errors import InvalidModelError, UnsupportedError
from engines.montecarlo.methods import Bound

_TRUE = Literal(True, "true")
_CONNECTIVES = ("&", "|", "=>", "<=>")
_OPERATORS = (Probability, Reward, SteadyState)
NESTED = "Simulator cannot handle nested P, R or S operators"


@dataclass(frozen=True)
class Asked:
    """A property that can be simulated.

    Parameters
    ----------
    question
        As `prism_hooks.program.read_questions` takes it, but for JSON.
    of_rewards
        Whether it is an R operator.
    bound
        What it compares with, or None.
    """

    question: dict[str, Any]
    of_rewards: bool
    bound: Bound | None


@dataclass(frozen=True)
class QuestionReader:
    """Reads properties of one model.

    Parameters
    ----------
    names
        What names stand for, the labels of the properties among them.
    types
        Knows the types of expressions.
    named
        Properties that labels may refer to.
    reward_names
        Of the reward structures, in their order.
    kind
        "dtmc", "ctmc" or "mdp".
    """

    names: Names
    types: TypeChecker
    named: Mapping[str, Expression]
    reward_names: Sequence[str]
    kind: str

    def asked(self, expression: Expression) -> Asked:
        """Return what a property asks.

        Parameters
        ----------
        expression
            The property.

        Raises
        ------
        InvalidModelError, UnsupportedError
            In PRISM's words for what its simulator refuses.
        """
        if not isinstance(expression, Probability | Reward):
            filtered = isinstance(expression, Filter) and isinstance(
                expression.operand, Probability | Reward
            )
            raise UnsupportedError(
                "Simulator cannot handle P or R properties with filters"
                if filtered
                else "Simulator can only handle P or R properties"
            )
        self._require_flat(expression)
        self.types.type_of(expression)
        bound = self._threshold(expression.threshold)
        if isinstance(expression, Probability):
            return Asked(self._probability(expression.path), False, bound)
        return Asked(self._reward(expression), True, bound)

    def _require_flat(self, expression: Expression) -> None:
        for node in expression.walk():
            inside = node is not expression and isinstance(node, _OPERATORS)
            if inside or (isinstance(node, Label) and node.name in self.named):
                raise UnsupportedError(NESTED)

    def _threshold(self, threshold: Threshold) -> Bound | None:
        if threshold.direction and self.kind != "mdp":
            raise InvalidModelError(
                f"Can't use min/max operators for {self.kind.upper()}s: take P or R without them"
            )
        if threshold.bound is None:
            return None
        value = float(self._value(threshold.bound))
        return Bound(threshold.relation in (">", ">="), value)

    def _value(self, expression: Expression) -> Value:
        return constant_value(expression, self.names.constants, self.names.formulas)

    def _is_state_formula(self, expression: Expression | None) -> bool:
        return expression is None or self.types.type_of(expression) == BOOL

    # Probabilities

    def _probability(self, path: Expression) -> dict[str, Any]:
        if self._is_simple(path):
            return self._simple(path, False)
        if self.kind == "ctmc":
            raise UnsupportedError("LTL-style path formulas are not supported by the simulator")
        atoms: list[Expression] = []
        words: list[str] = []
        self._ltl(path, atoms, words)
        return {
            "kind": "ltl",
            "formula": words,
            "atoms": [self.names.words(atom) for atom in atoms],
        }

    def _is_simple(self, path: Expression) -> bool:
        match path:
            case Parentheses(operand) | Unary("!", operand):
                return self._is_simple(operand)
            case Temporal(_, left, right):
                return self._is_state_formula(left) and self._is_state_formula(right)
        return False

    def _simple(self, path: Expression, negated: bool) -> dict[str, Any]:
        match path:
            case Parentheses(operand):
                return self._simple(operand, negated)
            case Unary("!", operand):
                return self._simple(operand, not negated)
            case Temporal("X", _, right):
                return {"kind": "next", "negated": negated, "target": self.names.words(right)}
            case Temporal("U", left, right):
                assert left is not None, "an until has two operands"
                return self._until(left, right, path, negated)
            case Temporal("F", _, right):
                return self._until(_TRUE, right, path, negated)
            case Temporal("G", _, right):
                return self._until(_TRUE, _not(right), path, not negated)
            case Temporal("W", left, right):
                assert left is not None, "a weak until has two operands"
                require_no_lower_bound(path)
                waits = Binary("&", Parentheses(left), _not(right))
                neither = Binary("&", _not(left), _not(right))
                return self._until(waits, neither, path, not negated)
            case Temporal("R", left, right):
                assert left is not None, "a release has two operands"
                return self._until(_not(left), _not(right), path, not negated)
        raise UnsupportedError(f"a path formula of the form {path}")

    def _until(
        self, left: Expression, right: Expression, path: Temporal, negated: bool
    ) -> dict[str, Any]:
        lower, upper = self._bounds(path)
        return {
            "kind": "until",
            "negated": negated,
            "left": self.names.words(left),
            "right": self.names.words(right),
            "bounded": path.bound is not None,
            "lower": lower or 0,
            "upper": upper,
        }

    def _bounds(self, path: Temporal) -> tuple[Value | None, Value | None]:
        """Return the first and the last step or time; a strict bound of steps is included."""
        bound = path.bound
        if bound is None:
            return None, None
        lower = None if bound.lower is None else self._value(bound.lower)
        upper = None if bound.upper is None else self._value(bound.upper)
        if self.kind == "ctmc":
            lower, upper = (None if end is None else float(end) for end in (lower, upper))
        else:
            for end in (lower, upper):
                if isinstance(end, float):
                    raise InvalidModelError(f"A bound of steps is no integer in {path}")
            lower = None if lower is None else lower + bound.lower_strict
            upper = None if upper is None else upper - bound.upper_strict
        if (lower or 0) < 0 or (upper is not None and upper < (lower or 0)):
            raise InvalidModelError(f"Invalid bounds in {path}")
        return lower, upper

    def _ltl(self, expression: Expression, atoms: list[Expression], words: list[str]) -> None:
        if self._is_state_formula(expression):
            if expression not in atoms:
                atoms.append(expression)
            words.append(f"a{atoms.index(expression)}")
            return
        match expression:
            case Parentheses(operand):
                self._ltl(operand, atoms, words)
            case Unary("!", operand):
                self._ltl(operand, atoms, words)
                words.append("!")
            case Binary(operator, left, right) if operator in _CONNECTIVES:
                self._ltl(left, atoms, words)
                self._ltl(right, atoms, words)
                words.append(operator)
            case Temporal(operator, first, right):
                if first is not None:
                    self._ltl(first, atoms, words)
                self._ltl(right, atoms, words)
                lower, upper = self._bounds(expression)
                ends = ":".join("" if end is None else str(end) for end in (lower, upper))
                words.append("X" if operator == "X" else f"{operator}:{ends}")
            case _:
                raise UnsupportedError(f"a path formula of the form {expression}")

    # Rewards

    def _reward(self, expression: Reward) -> dict[str, Any]:
        if expression.divisor is not None:
            raise UnsupportedError("Simulator cannot handle ratios of rewards")
        structure = self._structure(expression.structure)
        match expression.body:
            case Cumulative(None):
                raise UnsupportedError(
                    "Simulator cannot handle cumulative reward properties without time bounds"
                )
            case Cumulative(bound) if bound is not None:
                return {"kind": "cumulative", "rewards": structure, "bound": self._time(bound)}
            case Instantaneous(time):
                return {"kind": "instantaneous", "rewards": structure, "bound": self._time(time)}
            case Temporal("F", _, right, None) if self._is_state_formula(right):
                return {"kind": "reach", "rewards": structure, "target": self.names.words(right)}
        raise UnsupportedError(f'Can\'t create sampler for property "{expression}"')

    def _time(self, expression: Expression) -> Value:
        value = self._value(expression)
        if self.kind == "ctmc":
            return float(value)
        if isinstance(value, float):
            raise InvalidModelError(f"The bound {value} of steps is no integer")
        return value

    def _structure(self, named: str | Expression | None) -> int:
        if isinstance(named, str):
            if named not in self.reward_names:
                raise InvalidModelError(f'Invalid reward structure index "{named}"')
            return self.reward_names.index(named)
        if not self.reward_names:
            raise InvalidModelError("Model has no rewards specified")
        number = 1 if named is None else int(self._value(named))
        if not 1 <= number <= len(self.reward_names):
            raise InvalidModelError(f'Invalid reward structure index "{number}"')
        return number - 1


def _not(expression: Expression) -> Expression:
    return Unary("!", Parentheses(expression))
