"""The property tree.

Nodes are immutable, compare by content and hash, so that a checker can remember what it has
evaluated. `str` of a node is PRISM's text for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from bridge.language.tree import Node, Precedence, TextPart

Value: TypeAlias = bool | int | float

BINARY_PRECEDENCE = {
    "=>": Precedence.IMPLIES,
    "<=>": Precedence.IFF,
    "|": Precedence.OR,
    "&": Precedence.AND,
    "=": Precedence.EQUALITY,
    "!=": Precedence.EQUALITY,
    "<": Precedence.RELATION,
    "<=": Precedence.RELATION,
    ">": Precedence.RELATION,
    ">=": Precedence.RELATION,
    "+": Precedence.SUM,
    "-": Precedence.SUM,
    "*": Precedence.PRODUCT,
    "/": Precedence.PRODUCT,
    "^": Precedence.POWER,
}


@dataclass(frozen=True, eq=False, repr=False)
class Literal(Node):
    """A truth value or a number.

    Parameters
    ----------
    value
        Its value: bool, int or float, after the literal's type.
    text
        As it was written; PRISM repeats that.
    """

    value: Value
    text: str

    def _parts(self) -> list[TextPart]:
        return [self.text]


@dataclass(frozen=True, eq=False, repr=False)
class Identifier(Node):
    """The name of a variable, constant or formula."""

    name: str

    def _parts(self) -> list[TextPart]:
        return [self.name]


@dataclass(frozen=True, eq=False, repr=False)
class Label(Node):
    """A label, or a reference to another property, in quotation marks."""

    name: str

    def _parts(self) -> list[TextPart]:
        return [f'"{self.name}"']


@dataclass(frozen=True, eq=False, repr=False)
class Parentheses(Node):
    """An expression in parentheses."""

    operand: Expression

    def _parts(self) -> list[TextPart]:
        return ["(", self.operand, ")"]


@dataclass(frozen=True, eq=False, repr=False)
class Unary(Node):
    """Negation: `operator` is "!" or "-"."""

    operator: str
    operand: Expression

    @property
    def _precedence(self) -> Precedence:
        return Precedence.NOT if self.operator == "!" else Precedence.MINUS

    def _parts(self) -> list[TextPart]:
        return [self.operator, *self._lower_in_parentheses(self.operand)]


@dataclass(frozen=True, eq=False, repr=False)
class Binary(Node):
    """`operator` is one of => <=> | & = != < <= > >= + - * / ^."""

    operator: str
    left: Expression
    right: Expression

    @property
    def _precedence(self) -> Precedence:
        return BINARY_PRECEDENCE[self.operator]

    def _parts(self) -> list[TextPart]:
        left = (
            self._same_in_parentheses(self.left)
            if self.operator in ("=>", "=", "!=")
            else self._lower_in_parentheses(self.left)
        )
        right = (
            self._same_in_parentheses(self.right)
            if self.operator in ("-", "/", "=", "!=")
            else self._lower_in_parentheses(self.right)
        )
        return [*left, self.operator, *right]


@dataclass(frozen=True, eq=False, repr=False)
class Conditional(Node):
    """`condition ? then : otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression

    @property
    def _precedence(self) -> Precedence:
        return Precedence.CONDITIONAL

    def _parts(self) -> list[TextPart]:
        return [
            *self._same_in_parentheses(self.condition),
            "?",
            *self._same_in_parentheses(self.then),
            ":",
            *self._lower_in_parentheses(self.otherwise),
        ]


@dataclass(frozen=True, eq=False, repr=False)
class Function(Node):
    """A call of a function such as min, max, floor, ceil, round, pow, mod or log.

    Parameters
    ----------
    name
        The function's name.
    arguments
        What it is called with.
    old_style
        Whether it was written ``func(name, …)``.
    """

    name: str
    arguments: tuple[Expression, ...]
    old_style: bool = False

    def _parts(self) -> list[TextPart]:
        start = f"func({self.name}, " if self.old_style else f"{self.name}("
        return [start, *_listed(self.arguments), ")"]


@dataclass(frozen=True, eq=False, repr=False)
class Bound(Node):
    """The steps or the time of a temporal operator, from `lower` to `upper`; None for no limit.

    `exact` says that it was written ``=t``; lower and upper are the same then.
    """

    lower: Expression | None = None
    lower_strict: bool = False
    upper: Expression | None = None
    upper_strict: bool = False
    exact: bool = False

    def _parts(self) -> list[TextPart]:
        if self.lower is None:
            assert self.upper is not None, "a bound has a limit"
            return ["<" if self.upper_strict else "<=", self.upper]
        if self.upper is None:
            return [">" if self.lower_strict else ">=", self.lower]
        if self.exact:
            return ["=", self.lower]
        return ["[", self.lower, ",", self.upper, "]"]


@dataclass(frozen=True, eq=False, repr=False)
class Temporal(Node):
    """A path formula.

    Parameters
    ----------
    operator
        X, F and G (without a left operand), U, W and R.
    left, right
        The operands.
    bound
        Limits of steps or time, or None.
    """

    operator: str
    left: Expression | None
    right: Expression
    bound: Bound | None = None

    @property
    def _precedence(self) -> Precedence:
        return Precedence.TEMPORAL_UNARY if self.left is None else Precedence.TEMPORAL_BINARY

    def _parts(self) -> list[TextPart]:
        operator: list[TextPart] = [self.operator]
        if self.bound is not None:
            operator.append(self.bound)
        if self.left is None:
            return [*operator, " ", *self._lower_in_parentheses(self.right)]
        left, right = self._same_in_parentheses(self.left), self._same_in_parentheses(self.right)
        return [*left, " ", *operator, " ", *right]


@dataclass(frozen=True, eq=False, repr=False)
class Threshold(Node):
    """What an operator is compared with: `relation` is one of < <= > >= =, `bound` None for `=?`.

    `direction` is "min", "max" or empty; for games, two of them such as "minmax".
    """

    direction: str = ""
    relation: str = "="
    bound: Expression | None = None

    def _parts(self) -> list[TextPart]:
        return [self.direction, self.relation, "?" if self.bound is None else self.bound]


@dataclass(frozen=True, eq=False, repr=False)
class InnerFilter(Node):
    """The old form of a filter, ``{states}{min}{max}`` inside an operator's brackets.

    It is there for the operator's text; the `Filter` around the operator says what it means.
    """

    states: Expression
    minimum: bool = False
    maximum: bool = False

    def _parts(self) -> list[TextPart]:
        wanted = ("{min}" if self.minimum else "") + ("{max}" if self.maximum else "")
        return ["{", self.states, "}", wanted]


@dataclass(frozen=True, eq=False, repr=False)
class Probability(Node):
    """P, over a path formula."""

    threshold: Threshold
    path: Expression
    filter: InnerFilter | None = None

    def _parts(self) -> list[TextPart]:
        return ["P", self.threshold, *_in_brackets(self.path, self.filter)]


@dataclass(frozen=True, eq=False, repr=False)
class SteadyState(Node):
    """S, over a state formula."""

    threshold: Threshold
    operand: Expression
    filter: InnerFilter | None = None

    def _parts(self) -> list[TextPart]:
        return ["S", self.threshold, *_in_brackets(self.operand, self.filter)]


@dataclass(frozen=True, eq=False, repr=False)
class Cumulative(Node):
    """The rewards up to a bound, or in total where there is none."""

    bound: Expression | None = None
    strict: bool = False

    def _parts(self) -> list[TextPart]:
        return ["C"] if self.bound is None else [f"C{'<' if self.strict else '<='}", self.bound]


@dataclass(frozen=True, eq=False, repr=False)
class Instantaneous(Node):
    """The reward of the state at a time."""

    time: Expression

    def _parts(self) -> list[TextPart]:
        return ["I=", self.time]


@dataclass(frozen=True, eq=False, repr=False)
class LongRun(Node):
    """The rewards' average in the long run."""

    def _parts(self) -> list[TextPart]:
        return ["S"]


@dataclass(frozen=True, eq=False, repr=False)
class Reward(Node):
    """R: expected rewards.

    Parameters
    ----------
    structure
        The reward structure: a name, an expression that gives its number, or None for the first.
    divisor
        The structure that it is divided by, or None.
    threshold
        What the value is compared with.
    body
        `Cumulative`, `Instantaneous`, `LongRun`, or a path formula to be satisfied.
    filter
        The old form of a filter, or None.
    """

    structure: str | Expression | None
    divisor: str | Expression | None
    threshold: Threshold
    body: RewardBody
    filter: InnerFilter | None = None

    def _parts(self) -> list[TextPart]:
        slash: TextPart = "" if self.divisor is None else "/"
        structures = [*_index(self.structure), slash, *_index(self.divisor)]
        return ["R", *structures, self.threshold, *_in_brackets(self.body, self.filter)]


@dataclass(frozen=True, eq=False, repr=False)
class Quantifier(Node):
    """CTL: `name` is A or E, over a path formula."""

    name: str
    path: Expression

    def _parts(self) -> list[TextPart]:
        return [self.name, *_in_brackets(self.path, None)]


@dataclass(frozen=True, eq=False, repr=False)
class Strategy(Node):
    """<<players>> or [[players]], over an operator.

    Parameters
    ----------
    existential
        Whether the brackets are << >>.
    coalition
        The text between them.
    operands
        The operators; one in parentheses, or one P or R without.
    """

    existential: bool
    coalition: str
    operands: tuple[Expression, ...]

    def _parts(self) -> list[TextPart]:
        before, after = ("<<", ">> ") if self.existential else ("[[", "]] ")
        operands = _listed(self.operands)
        if len(self.operands) != 1 or isinstance(self.operands[0], Parentheses):
            operands = ["(", *operands, ")"]
        return [before, self.coalition, after, *operands]


@dataclass(frozen=True, eq=False, repr=False)
class Filter(Node):
    """A filter over the states that satisfy an expression.

    Parameters
    ----------
    kind
        min, max, argmin, argmax, count, sum, avg, first, range, forall, exists, print, printall or
        state.
    operand
        What is evaluated in the states.
    states
        Which states; None for all of them.
    explicit
        False where the text does not show it: the old form ``P=? [ … {states} ]`` and its kin.
    symbol
        How `kind` was written where it was by a symbol: + for sum, & for forall, | for exists.
    """

    kind: str
    operand: Expression
    states: Expression | None
    explicit: bool = True
    symbol: str = ""

    def _parts(self) -> list[TextPart]:
        if not self.explicit:
            return [self.operand]
        states: list[TextPart] = [] if self.states is None else [", ", self.states]
        return [f"filter({self.symbol or self.kind}, ", self.operand, *states, ")"]


RewardBody: TypeAlias = "Cumulative | Instantaneous | LongRun | Expression"
Expression: TypeAlias = (
    Literal
    | Identifier
    | Label
    | Parentheses
    | Unary
    | Binary
    | Conditional
    | Function
    | Temporal
    | Probability
    | SteadyState
    | Reward
    | Quantifier
    | Strategy
    | Filter
)


def _index(structure: str | Expression | None) -> list[TextPart]:
    if structure is None:
        return []
    return [f'{{"{structure}"}}'] if isinstance(structure, str) else ["{", structure, "}"]


def _in_brackets(body: RewardBody, inner: InnerFilter | None) -> list[TextPart]:
    states: list[TextPart] = [] if inner is None else [" ", inner]
    return [" [ ", body, *states, " ]"]


def _listed(items: tuple[Expression, ...]) -> list[TextPart]:
    parts: list[TextPart] = []
    for item in items:
        parts.extend([", ", item] if parts else [item])
    return parts
