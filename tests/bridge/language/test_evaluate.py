"""Evaluation over all states at once, and types, without PRISM."""

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.language.ast import Label
from bridge.language.evaluate import Scope, evaluate, type_of
from bridge.language.parser import parse_expression, parse_property
from engines.errors import InvalidModelError, UnsupportedError

X = np.array([0, 1, 2, 3, 4], dtype=np.int64)
D = np.array([0.5, 1.5, -0.5, 2.0, 0.0])
B = np.array([True, False, True, False, True])


def _scope(**more):
    return Scope(num_states=5, variables={"x": X, "d": D, "b": B}, **more)


def _values(text, **more):
    return evaluate(parse_expression(text), _scope(**more))


def test_results_have_the_shape_and_type_of_what_they_are():
    assert _values("x + 1").dtype == np.int64
    assert _values("x / 2").dtype == np.float64
    assert _values("x > 2").dtype == bool
    for text, value in (("1 + 2", 3), ("1 / 2", 0.5), ("1 < 2", True), ("max(1, 2.0)", 2.0)):
        result = _values(text)
        assert result == value
        assert type(result) is type(value)


def test_narrow_integers_do_not_wrap_around():
    narrow = Scope(num_states=2, variables={"x": np.array([100, 127], dtype=np.int8)})
    assert evaluate(parse_expression("x + x"), narrow).tolist() == [200, 254]


@given(
    st.sampled_from([("+", operator.add), ("-", operator.sub), ("*", operator.mul)]),
    st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=6),
    st.integers(-(2**31), 2**31 - 1),
)
def test_integers_overflow_at_32_bits(form, numbers, constant):
    symbol, apply = form
    scope = Scope(
        num_states=len(numbers),
        variables={"x": np.array(numbers, dtype=np.int64)},
        constants={"n": constant},
    )
    expected = [apply(number, constant) for number in numbers]
    expression = parse_expression(f"x {symbol} n")
    if all(-(2**31) <= value < 2**31 for value in expected):
        assert evaluate(expression, scope).tolist() == expected
    else:
        with pytest.raises(InvalidModelError, match="integer overflow"):
            evaluate(expression, scope)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=8), st.integers(-3, 9))
def test_modulus_where_it_is_asked_for(numbers, limit):
    scope = Scope(
        num_states=len(numbers),
        variables={"x": np.array(numbers, dtype=np.int64)},
        constants={"n": limit},
    )
    guarded = evaluate(parse_expression("x > 0 & mod(n, x) = 1"), scope)
    assert guarded.tolist() == [x > 0 and limit % x == 1 for x in numbers]
    chosen = evaluate(parse_expression("x <= 0 ? -x : mod(n, x)"), scope)
    assert chosen.tolist() == [-x if x <= 0 else limit % x for x in numbers]
    implied = evaluate(parse_expression("x > 0 => mod(n, x) = 0"), scope)
    assert implied.tolist() == [x <= 0 or limit % x == 0 for x in numbers]
    if min(numbers) <= 0:
        with pytest.raises(InvalidModelError, match="non-positive divisor"):
            evaluate(parse_expression("mod(n, x) = 1 & x > 0"), scope)


def test_a_branch_that_no_state_takes_cannot_fail():
    assert _values("x >= 0 ? x : mod(1, 0)").tolist() == X.tolist()
    assert _values("x < 0 ? mod(1, 0) : (x < 9 ? x + 1 : mod(1, 0))").tolist() == (X + 1).tolist()
    assert _values("true ? 1 : mod(1, 0)") == 1
    with pytest.raises(InvalidModelError, match="non-positive"):
        _values("x < 4 ? x : mod(1, 0)")


def test_branches_of_ints_and_doubles_are_doubles():
    assert _values("b ? x : d").tolist() == [0.0, 1.5, 2.0, 2.0, 4.0]
    single = _values("true ? 1 : 2.5")
    assert single == 1.0
    assert isinstance(single, float)


def test_doubles_are_equal_as_java_says():
    assert _values("d = 0").tolist() == [False, False, False, False, True]
    assert _values("-d = 0").tolist() == [False] * 5  # -0.0 is not 0.0
    assert _values("0 / 0 = 0 / 0") is True
    assert _values("x = 2.0").tolist() == (X == 2).tolist()


def test_formulas_and_constants():
    formulas = {"f": parse_expression("g * n"), "g": parse_expression("x + 1")}
    values = _values("f - 1", formulas=formulas, constants={"n": 2})
    assert values.tolist() == [1, 3, 5, 7, 9]
    cyclic = {"f": parse_expression("g"), "g": parse_expression("f")}
    with pytest.raises(InvalidModelError, match="Cyclic dependency"):
        _values("f", formulas=cyclic)


def test_formulas_that_are_too_deep_are_refused():
    formulas = {f"f{k}": parse_expression(f"f{k + 1} + 1") for k in range(3000)}
    formulas["f3000"] = parse_expression("x")
    with pytest.raises(UnsupportedError, match="too many levels"):
        _values("f0", formulas=formulas)
    assert _values("f2970", formulas=formulas).tolist() == (X + 30).tolist()


def test_labels_operators_and_named_properties():
    asked = []

    def operator_values(node):
        asked.append(str(node))
        return D

    scope = _scope(
        label=lambda name: X > 2 if name == "big" else B,
        operator=operator_values,
        properties={"value": parse_property("P=? [ F b ]")},
    )
    text = '"big" & P=? [ X "big" ] > 1 | "value" < 0'
    assert evaluate(parse_property(text), scope).tolist() == [False, False, True, True, False]
    assert asked == ['P=? [ X "big" ]', '"value"']
    assert type_of(Label("value"), scope) == "double"
    assert type_of(Label("big"), scope) == "bool"
    # What no state needs is not solved.
    asked.clear()
    assert evaluate(parse_property("x < 0 & P=? [ F b ] > 0"), scope).tolist() == [False] * 5
    assert asked == []


def test_thousands_of_operators_in_a_chain():
    disjunction = " | ".join(f"x = {number}" for number in range(1, 2000, 2))
    assert _values(disjunction).tolist() == [False, True, False, True, False]
    assert _values(" + ".join(["x"] * 2000)).tolist() == (2000 * X).tolist()
    table = "".join(f"x = {number} ? {number * number} : " for number in range(2000)) + "-1"
    assert _values(table).tolist() == (X * X).tolist()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("P=? [ F b ]", "double"),
        ("P>0.5 [ F b ]", "bool"),
        ("R=? [ C<=x ]", "double"),
        ('R{"r"}<=3 [ (F b) & (G b) ]', "bool"),
        ("S=? [ b ]", "double"),
        ("E [ F b ]", "bool"),
        ("filter(count, b)", "int"),
        ("filter(min, x + 1)", "int"),
        ("filter(avg, x, b)", "double"),
        ("filter(argmax, x)", "bool"),
        ("filter(forall, b)", "bool"),
        ("filter(range, x)", "interval of int"),
        ("1 - P=? [ F b {b}{min} ]", "double"),
        ("multi(Pmax=? [ F b ], R>1 [ C ])", "double"),
        ("multi(Pmax=? [ F b ], Pmin=? [ F b ])", "void"),
        ("multi(P>0.1 [ F b ], R>1 [ C ])", "bool"),
        ("<<1>> P>0.5 [ F b ]", "bool"),
    ],
)
def test_types_of_properties(text, kind):
    assert type_of(parse_property(text), _scope()) == kind


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("P=? [ x ]", 'Type error: Contents of P operator is not a path formula ("x", line 1'),
        ("P>=b [ F b ]", 'Type error: P operator probability bound is not a double ("b", line 1'),
        ("P=? [ F x ]", 'Type error: Argument of F operator is not Boolean ("x", line 1'),
        ("P=? [ F<=b b ]", "Type error: Upper bound in F operator must be an int or double"),
        ("S=? [ x ]", "Type error: Contents of S operator is not a Boolean"),
        ("R{1.5}=? [ C ]", "Type error: Reward structure index must be string or integer"),
        ("R=? [ x ]", 'Type error: Contents of R operator is invalid ("x", line 1'),
        ("R=? [ I=b ]", "Type error: Upper bound in I operator must be an int or double"),
        ("R<b [ C ]", 'Type error: R operator reward bound is not a double ("b", line 1'),
        ("P=? [ F b {x} ]", 'Type error: P operator filter is not a Boolean ("x", line 1'),
        ("P>0 [ F b {b}{min} ]", "Type error: Cannot use min/max filters in Boolean-valued prop"),
        (
            "filter(min, b)",
            "Type error: Boolean argument not allowed as operand for filter of type",
        ),
        ("filter(+, b)", 'operand for filter of type "+"'),
        ("filter(&, x)", 'Type error: Operand for filter of type "&" must be Boolean ("x", line 1'),
        (
            "filter(max, x, x)",
            'Type error: Second argument of filter is not a Boolean ("x", line 1',
        ),
        ("multi(x)", 'Type error: non-Boolean/Double argument to  function "multi" ("x", line 1'),
        ("multi(R>1 [ C ], P=? [ F b ])", "any Double arguments must come before any Boolean"),
        ("filter(range, x) + 1", "Type error: + can only be applied to ints or doubles"),
        ("P=? [ F z ]", 'Undeclared identifier ("z", line 1'),
    ],
)
def test_wrong_types_of_properties(text, message):
    with pytest.raises(InvalidModelError) as raised:
        type_of(parse_property(text), _scope())
    assert message in str(raised.value)
