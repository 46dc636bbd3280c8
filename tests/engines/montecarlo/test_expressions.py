"""Expressions: types, values as PRISM has them, ranges, and the same as C."""

from __future__ import annotations

import ctypes
import math
import struct
from decimal import Decimal, localcontext

import numpy as np
import pytest

from engines.errors import InvalidModelError
from engines.program import arithmetic
from engines.program.arithmetic import EvaluationError
from engines.program.evaluate import evaluate
from engines.program.expressions import (
    Binary,
    BinaryOperator,
    Call,
    Conditional,
    Function,
    Literal,
    Type,
    Unary,
    UnaryOperator,
    Variable,
    subexpressions,
    variables_of,
)
from engines.program.native import load
from engines.program.program import VariableDeclaration
from engines.program.ranges import range_of
from engines.program.source import arithmetic_constants, kernel
from engines.program.wording import Wording

from .reader import Reader, tokens_of

VARIABLES = (
    VariableDeclaration("a", Type.INT, -3, 5, 0),
    VariableDeclaration("b", Type.BOOL, 0, 1, 0),
    VariableDeclaration("c", Type.INT, 0, 2, 0),
    VariableDeclaration("d", Type.INT, -(2**31), 2**31 - 1, 0),
)
NAMES = {x.name: Variable(i, x.type) for i, x in enumerate(VARIABLES)}


def read(text):
    return Reader(tokens_of(text), NAMES, {}).expression()


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("7/2", Type.DOUBLE, 3.5),
        ("4/2", Type.DOUBLE, 2.0),
        ("2*3-1", Type.INT, 5),
        ("2*3.0", Type.DOUBLE, 6.0),
        ("mod(-7, 3)", Type.INT, 2),
        ("pow(2, 10)", Type.INT, 1024),
        ("pow(2.0, -2)", Type.DOUBLE, 0.25),
        ("pow(0, 0)", Type.INT, 1),
        ("log(8, 2)", Type.DOUBLE, 3.0),
        ("floor(-0.5)", Type.INT, -1),
        ("ceil(-0.5)", Type.INT, 0),
        ("round(2.5)", Type.INT, 3),
        ("round(-2.5)", Type.INT, -2),
        ("min(3, 2, 5)", Type.INT, 2),
        ("max(3, 2.5)", Type.DOUBLE, 3.0),
        ("1 = 1.0", Type.BOOL, True),
        ("0.0 = -0.0", Type.BOOL, False),
        ("false => (1/0 > 2)", Type.BOOL, True),
        ("true <=> false", Type.BOOL, False),
        ("true ? 1 : 2.5", Type.DOUBLE, 1.0),
        ("false & mod(1, 0)=1", Type.BOOL, False),
        ("1/0", Type.DOUBLE, math.inf),
    ],
)
def test_values_and_types_are_prisms(text, kind, value):
    expression = read(text)
    found = evaluate(expression, ())
    assert expression.type is kind
    assert type(found) is type(value)
    assert found == value


@pytest.mark.parametrize(
    "text",
    [
        "2147483647 + 1",
        "-(-2147483647 - 1)",
        "65536 * 65536",
        "pow(2, 31)",
        "pow(2, 0-1)",
        "mod(3, 0)",
        "floor(3000000000.0)",
        "ceil(1/0)",
    ],
)
def test_what_has_no_value_is_an_error(text):
    with pytest.raises(EvaluationError):
        evaluate(read(text), ())


@pytest.mark.parametrize(
    "text", ["1 & true", "!3", "-true", "1 = true", "true < false", "mod(1.5, 2)", "true ? 1 : b"]
)
def test_wrong_types_are_refused(text):
    with pytest.raises(InvalidModelError):
        read(text)


def test_literals_of_different_types_differ():
    assert len({Literal(1), Literal(1.0), Literal(True)}) == 3
    assert Literal(0.0) != Literal(-0.0)
    with pytest.raises(InvalidModelError, match="32 bits"):
        Literal(2**31)


def test_subexpressions_are_found_in_order():
    expression = read("a + c*2 > 1 ? b : false")
    assert [type(x).__name__ for x in subexpressions(expression)][:2] == ["Conditional", "Binary"]
    assert variables_of(expression) == {0, 1, 2}


def random_expression(rng, kind, depth):
    """An expression of a type, with subexpressions of all kinds."""
    if depth == 0 or rng.random() < 0.15:
        if kind is Type.BOOL:
            return NAMES["b"] if rng.random() < 0.7 else Literal(bool(rng.random() < 0.5))
        if kind is Type.INT:
            pool = [NAMES["a"], NAMES["c"], NAMES["d"], Literal(int(rng.integers(-4, 5)))]
            return pool[rng.integers(len(pool))]
        return Literal(float(rng.choice([-2.5, -1.0, 0.0, 0.5, 1.0, 3.0, 1e9])))

    def part(wanted):
        return random_expression(rng, wanted, depth - 1)

    def numeric():
        return part(Type.INT if rng.random() < 0.6 else Type.DOUBLE)

    if rng.random() < 0.15:
        return Conditional(part(Type.BOOL), part(kind), part(kind))
    if kind is Type.BOOL:
        which = rng.integers(3)
        if which == 0:
            return Unary(UnaryOperator.NOT, part(Type.BOOL))
        if which == 1:
            operator = BinaryOperator(rng.choice(["&", "|", "=>", "<=>", "=", "!="]))
            return Binary(operator, part(Type.BOOL), part(Type.BOOL))
        operator = BinaryOperator(rng.choice(["=", "!=", "<", "<=", ">", ">="]))
        return Binary(operator, numeric(), numeric())
    if rng.random() < 0.2:
        return Unary(UnaryOperator.MINUS, part(kind))
    if kind is Type.INT:
        name = rng.choice(["+", "-", "*", "min", "max", "mod", "pow", "floor", "ceil", "round"])
        if name in ("floor", "ceil", "round"):
            return Call(Function(name), (numeric(),))
        if name in ("+", "-", "*"):
            return Binary(BinaryOperator(name), part(Type.INT), part(Type.INT))
        return Call(Function(name), (part(Type.INT), part(Type.INT)))
    name = rng.choice(["+", "-", "*", "/", "min", "max", "pow", "log"])
    if name in ("+", "-", "*"):
        return Binary(BinaryOperator(name), numeric(), part(Type.DOUBLE))
    if name == "/":
        return Binary(BinaryOperator.DIVIDE, numeric(), numeric())
    return Call(Function(name), (numeric(), part(Type.DOUBLE)))


def random_states(rng, count):
    edges = [-(2**31), 2**31 - 1, 0, 7]
    for _ in range(count):
        yield (
            int(rng.integers(-3, 6)),
            int(rng.integers(2)),
            int(rng.integers(3)),
            int(rng.choice(edges)) if rng.random() < 0.5 else int(rng.integers(-50, 50)),
        )


@pytest.fixture(scope="module")
def random_cases():
    rng = np.random.default_rng(4)
    kinds = [Type.BOOL, Type.INT, Type.DOUBLE]
    expressions = [random_expression(rng, kinds[i % 3], 3) for i in range(240)]
    return expressions, list(random_states(rng, 40))


def value_or_none(expression, state):
    try:
        return evaluate(expression, state)
    except EvaluationError:
        return None


def test_ranges_contain_all_values_and_foresee_all_failures(random_cases):
    expressions, states = random_cases
    tight = 0
    for expression in expressions:
        found = range_of(expression, VARIABLES)
        tight += not found.can_fail
        for state in states:
            value = value_or_none(expression, state)
            if value is None:
                assert found.can_fail
            elif value != value:
                assert found.can_be_nan
            else:
                assert found.low <= value <= found.high
    assert tight > len(expressions) / 3


def as_bits(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def test_c_gives_the_same_digits_and_the_same_failures(random_cases):
    expressions, states = random_cases
    words = Wording(VARIABLES, lambda index: f"p->v{index}")
    lines = [*arithmetic_constants(), kernel("montecarlo")]
    lines.append("typedef struct { int v0, v1, v2, v3; u32 fail; } Path;")
    cases = " ".join(
        f"case {i}: return (double){words.value(x)};" for i, x in enumerate(expressions)
    )
    lines.append(f"static double value(Path *p, int i) {{ switch (i) {{ {cases} }} return 0; }}")
    lines.append(
        "EXPORTED double value_of(int i, const int *v, u32 *fail) { Path p = {v[0], v[1], v[2], "
        "v[3], 0}; double x = value(&p, i); *fail = p.fail; return x; }"
    )
    library = load("\n".join(lines) + "\n")
    library.value_of.restype = ctypes.c_double
    fail = ctypes.c_uint32()
    failures = 0
    for state in states:
        vector = (ctypes.c_int * 4)(*state)
        for i, expression in enumerate(expressions):
            found = library.value_of(i, vector, ctypes.byref(fail))
            value = value_or_none(expression, state)
            assert (value is None) == bool(fail.value), (expression, state)
            failures += value is None
            if value is not None and value == value:
                assert as_bits(found) == as_bits(float(value)), (expression, state)
            elif value is not None:
                assert found != found
    assert 0 < failures < len(states) * len(expressions) / 2


def test_logarithms_and_powers_are_as_accurate_as_they_say():
    rng = np.random.default_rng(1)
    with localcontext() as context:
        context.prec = 40
        for x in np.concatenate(
            [rng.random(300), np.ldexp(rng.random(300), rng.integers(-900, 900, 300))]
        ):
            exact = Decimal(float(x)).ln()
            for function, most in (
                (arithmetic.logarithm, 1.0),
                (arithmetic.precise_logarithm, 0.501),
            ):
                found = function(float(x))
                assert abs(Decimal(found) - exact) <= Decimal(most) * Decimal(math.ulp(found))
        for x, y in zip(
            np.ldexp(rng.random(300) + 0.5, rng.integers(-20, 20, 300)),
            rng.uniform(-30, 30, 300),
            strict=True,
        ):
            exact = (Decimal(float(x)).ln() * Decimal(float(y))).exp()
            found = arithmetic.power(float(x), float(y))
            assert abs(Decimal(found) - exact) <= Decimal("0.501") * Decimal(math.ulp(found))


def test_exact_powers_are_exact():
    for base in range(-9, 10):
        for exponent in range(12):
            assert arithmetic.power(float(base), float(exponent)) == float(base**exponent)
    assert arithmetic.power(2.0, 0.5) == 2**0.5
    assert arithmetic.power(2.0, -1074.0) == 5e-324
    assert arithmetic.power(10.0, 400.0) == math.inf
    assert math.isnan(arithmetic.power(-1.0, 0.5))
    assert math.isnan(arithmetic.power(1.0, math.inf))
    assert math.copysign(1.0, arithmetic.power(-0.0, 3.0)) == -1.0
