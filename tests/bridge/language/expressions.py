"""Random expressions: trees for the parser, and well-typed texts for the evaluation."""

import random

from hypothesis import strategies as st

from bridge.language.ast import (
    BINARY_PRECEDENCE,
    Binary,
    Bound,
    Conditional,
    Cumulative,
    Filter,
    Function,
    Identifier,
    InnerFilter,
    Instantaneous,
    Label,
    Literal,
    LongRun,
    Parentheses,
    Probability,
    Quantifier,
    Reward,
    SteadyState,
    Temporal,
    Threshold,
    Unary,
)
from bridge.language.tree import Precedence

NAMES = st.sampled_from(["a", "b_1", "x", "Fa", "PP", "minimum"])
LITERALS = st.one_of(
    st.sampled_from([Literal(True, "true"), Literal(False, "false")]),
    st.integers(0, 2**31 - 1).map(lambda number: Literal(number, str(number))),
    st.sampled_from(["0.5", ".25", "1e5", "2.5E-3", "007"]).map(
        lambda text: Literal(float(text), text)
    ),
)


def fitted(node, loosest):
    """Return a node, in parentheses where it binds less tightly than its place asks for."""
    return node if node._precedence >= loosest else Parentheses(node)


def _unary(operator, operand):
    own = Precedence.NOT if operator == "!" else Precedence.MINUS
    return Unary(operator, fitted(operand, own))


def _binary(operator, left, right):
    own = BINARY_PRECEDENCE[operator]
    above = Precedence(own + 1)
    # What groups to the right, and = and !=, whose text shows every grouping.
    left = fitted(left, above if operator in ("=>", "^", "=", "!=") else own)
    right = fitted(right, own if operator in ("=>", "^") else above)
    return Binary(operator, left, _after(operator, right))


def _after(relation, node):
    """Return a node as it may stand after a relation: `<-` is another token."""
    return Parentheses(node) if relation == "<" and str(node).startswith("-") else node


def _conditional(condition, then, otherwise):
    return Conditional(
        fitted(condition, Precedence.IMPLIES),
        fitted(then, Precedence.IMPLIES),
        fitted(otherwise, Precedence.CONDITIONAL),
    )


FUNCTIONS = st.sampled_from(
    [("min", 1), ("max", 3), ("floor", 1), ("round", 1), ("pow", 2), ("mod", 2), ("log", 2)]
)


def _plain(children):
    return st.one_of(
        children.map(Parentheses),
        st.builds(_unary, st.sampled_from("!-"), children),
        st.builds(_binary, st.sampled_from(sorted(BINARY_PRECEDENCE)), children, children),
        st.builds(_conditional, children, children, children),
        FUNCTIONS.flatmap(
            lambda function: st.builds(
                Function,
                st.just(function[0]),
                st.tuples(*[children] * function[1]),
                st.booleans(),
            )
        ),
    )


# Deferred strategies have short names; the full ones would fill pages.
PLAIN = st.deferred(
    lambda: st.recursive(st.one_of(NAMES.map(Identifier), LITERALS), _plain, max_leaves=12)
)


def _bounds():
    times = st.one_of(NAMES.map(Identifier), LITERALS)
    return st.one_of(
        st.builds(Bound, upper=times, upper_strict=st.booleans()),
        st.builds(Bound, lower=times, lower_strict=st.booleans()),
        st.builds(Bound, lower=PLAIN, upper=PLAIN),
        LITERALS.map(lambda time: Bound(lower=time, upper=time, exact=True)),
    )


def _temporal(operator, left, right, bound):
    right = fitted(right, Precedence.TEMPORAL_UNARY)
    if bound is not None and str(right).startswith("-"):
        # The bound and a minus after it would be one expression.
        right = Parentheses(right)
    if operator in "XFG":
        return Temporal(operator, None, right, None if operator == "X" else bound)
    return Temporal(operator, fitted(left, Precedence.TEMPORAL_UNARY), right, bound)


def paths(states):
    """Return path formulas over state formulas."""
    return st.recursive(
        states,
        lambda children: st.one_of(
            st.builds(
                _temporal,
                st.sampled_from("XFGUWR"),
                children,
                children,
                st.one_of(st.none(), _bounds()),
            ),
            _plain(children),
        ),
        max_leaves=5,
    )


THRESHOLDS = st.one_of(
    st.builds(
        lambda relation, bound: Threshold("", relation, _after(relation, bound)),
        st.sampled_from(["<", "<=", ">", ">="]),
        PLAIN,
    ),
    st.builds(Threshold, st.sampled_from(["", "min", "max", "minmax", "maxmax"])),
)
PLAIN_THRESHOLDS = THRESHOLDS.filter(lambda threshold: not threshold.direction)


def _in_filter(operator):
    """Return what the parser makes of an operator with an old filter."""
    inner = operator.filter
    if inner is None:
        return operator
    kind = {(0, 0): "state", (1, 0): "min", (0, 1): "max", (1, 1): "range"}
    name = kind[inner.minimum, inner.maximum] if operator.threshold.bound is None else "forall"
    return Filter(name, operator, inner.states, explicit=False)


def _operators(children):
    inner = st.one_of(st.none(), st.builds(InnerFilter, children, st.booleans(), st.booleans()))
    index = st.one_of(st.none(), st.sampled_from(["time", "r_2"]), PLAIN)
    bodies = st.one_of(
        st.just(LongRun()),
        st.just(Cumulative()),
        st.builds(Cumulative, PLAIN),
        st.builds(Instantaneous, PLAIN),
        paths(children),
    )
    rewards = st.tuples(index, index).map(
        lambda pair: pair if pair[0] is not None else (None, None)
    )
    return st.one_of(
        _plain(children),
        st.builds(Probability, THRESHOLDS, paths(children), inner).map(_in_filter),
        st.builds(SteadyState, PLAIN_THRESHOLDS, children, inner).map(_in_filter),
        rewards.flatmap(
            lambda pair: st.builds(
                Reward, st.just(pair[0]), st.just(pair[1]), THRESHOLDS, bodies, inner
            )
        ).map(_in_filter),
        st.builds(Quantifier, st.sampled_from("AE"), paths(children)),
        st.builds(
            Filter,
            st.sampled_from(["min", "argmax", "count", "print", "range"]),
            children,
            st.one_of(st.none(), children),
        ),
        children.map(lambda operand: Filter("exists", operand, None, symbol="|")),
    )


PROPERTIES = st.deferred(
    lambda: st.recursive(
        st.one_of(NAMES.map(Identifier), LITERALS, st.sampled_from(["a", "init"]).map(Label)),
        _operators,
        max_leaves=8,
    )
)

VARIABLES = {"x": "int", "y": "int", "b": "bool", "c": "bool", "d": "double"}
_INTS = (0, 1, 2, 3, -1, -7, 46341, 2**31 - 1, -(2**31))
_DOUBLES = (0.0, -0.0, 0.5, -0.5, 2.5, -2.5, 1.0, 1e10, -1e300, 0.1)


def random_state(source: random.Random):
    """Return a value for each of `VARIABLES`."""
    choices = {"int": _INTS, "bool": (False, True), "double": _DOUBLES}
    return [source.choice(choices[kind]) for kind in VARIABLES.values()]


def random_text(source: random.Random, kind: str, depth: int) -> str:
    """Return a well-typed expression over `VARIABLES`.

    Parameters
    ----------
    source
        Of randomness.
    kind
        Its type: "int", "bool" or "double".
    depth
        How deep it may be.
    """

    def part(of: str) -> str:
        return random_text(source, of, depth - 1)

    def number() -> str:
        return part(source.choice(("int", "double")))

    if depth == 0:
        leaves = {
            "int": ("x", "y", "0", "1", "3", "2147483647"),
            "bool": ("b", "c", "true", "false"),
            "double": ("d", "0.5", "2.0", "1e9", "0.0"),
        }
        return source.choice(leaves[kind])
    forms = {
        "int": [
            lambda: f"({part('int')} {source.choice('+-*')} {part('int')})",
            lambda: f"(-{part('int')})",
            lambda: f"mod({part('int')}, {part('int')})",
            lambda: f"{source.choice(('floor', 'ceil', 'round'))}({part('double')})",
            lambda: f"{source.choice(('min', 'max'))}({part('int')}, {part('int')})",
            lambda: f"pow({part('int')}, {part('int')})",
            lambda: f"({part('int')} ^ {part('int')})",
        ],
        "double": [
            lambda: f"({number()} {source.choice('+-*')} {part('double')})",
            lambda: f"({number()} / {number()})",
            lambda: f"(-{part('double')})",
            lambda: f"{source.choice(('min', 'max'))}({number()}, {part('double')}, {number()})",
            lambda: f"pow({number()}, {part('double')})",
            lambda: f"log({number()}, {number()})",
            lambda: f"({part('bool')} ? {part('int')} : {part('double')})",
        ],
        "bool": [
            lambda: f"({part('bool')} {source.choice(('&', '|', '=>', '<=>'))} {part('bool')})",
            lambda: f"(!{part('bool')})",
            lambda: f"({number()} {source.choice(('<', '<=', '>', '>=', '=', '!='))} {number()})",
            lambda: f"({part('bool')} {source.choice(('=', '!='))} {part('bool')})",
        ],
    }
    conditional = f"({part('bool')} ? {part(kind)} : {part(kind)})"
    return source.choice([*forms[kind], lambda: conditional, lambda: part(kind)])()
