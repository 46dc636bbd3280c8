"""Random expressions in random states, evaluated by PRISM and by us."""

import math
import random
import re

import numpy as np
import pytest

from bridge.language.evaluate import Scope, evaluate, type_of
from bridge.language.parser import parse_expression
from engines.errors import InvalidModelError
from tests.bridge.language.expressions import VARIABLES, random_state, random_text

pytestmark = pytest.mark.prism

DTYPES = {"int": np.int64, "bool": bool, "double": np.float64}


def _scope(states):
    columns = {
        name: np.array([state[place] for state in states], dtype=DTYPES[kind])
        for place, (name, kind) in enumerate(VARIABLES.items())
    }
    return Scope(num_states=len(states), variables=columns)


def _same(ours, theirs):
    if isinstance(theirs, float) and isinstance(ours, float):
        if math.isnan(theirs) or theirs == 0 or math.isinf(theirs):
            return str(ours) == str(theirs)
        # Powers and logarithms may differ in the last digit.
        return math.isclose(ours, theirs, rel_tol=1e-14)
    return type(ours) is type(theirs) and ours == theirs


def _reason(message):
    """Return a message without its place, and without numbers: old Javas print too many digits."""
    return re.sub(r"[0-9.]+(E[0-9]+)? ", "# ", message.split(" (")[0])


def _value(expression, state):
    try:
        value = evaluate(expression, _scope([state]))
    except InvalidModelError as error:
        return None, _reason(str(error))
    return np.asarray(value).ravel()[0].item(), ""


def _check(prism_says, text, states):
    """Compare an expression's value in each state; return in how many it has one."""
    theirs = prism_says("evaluate", text, variables=VARIABLES, states=states)["value"]
    expression = parse_expression(text)
    assert type_of(expression, _scope(states)) == theirs["type"]
    answers = theirs["answers"]
    for state, answer in zip(states, answers, strict=True):
        value, reason = _value(expression, state)
        assert reason == _reason(answer.get("error", "")), (text, state)
        assert reason or _same(value, answer["value"]), (text, state, value, answer)
    reasons = {_reason(answer["error"]) for answer in answers if "error" in answer}
    if reasons:
        with pytest.raises(InvalidModelError) as raised:
            evaluate(expression, _scope(states))
        assert _reason(str(raised.value)) in reasons, text
    else:
        values = np.broadcast_to(evaluate(expression, _scope(states)), len(states))
        for value, answer in zip(values.tolist(), answers, strict=True):
            assert _same(value, answer["value"]), (text, value, answer)
    return sum("value" in answer for answer in answers)


@pytest.mark.parametrize("kind", ["int", "bool", "double"])
def test_random_expressions(prism_says, kind):
    source = random.Random(f"expressions of type {kind}")
    with_value = 0
    for _ in range(200):
        states = [random_state(source) for _ in range(12)]
        text = random_text(source, kind, source.choice((1, 2, 3, 4)))
        with_value += _check(prism_says, text, states)
    assert 600 < with_value <= 2400


EDGES = """
x + y; x * y; x - y; -x; - - x; x ^ y; pow(x, y); pow(2.0, x); pow(d, x); pow(d, d); mod(x, y)
floor(d); ceil(d); round(d); round(d / 0); round(0 / 0.0); floor(d / 0); x / y; d / 0; log(x, y)
log(d, 2); log(x, d); min(d, -d); max(d, -d); min(x, d); max(0, -0.0); d = 0; d = -d; x = d; x = y
0 / 0.0 = 0 / 0.0; 0 / 0.0 != 0.0; b = c; b != c; x < d; 0 / 0.0 < d; b & mod(x, 0) = 1
b | mod(x, 0) = 1; b => mod(x, 0) = 1; b ? mod(x, 0) : y; b ? 1 : d; true ? 1 : 2.5; b ? x : -x
y > 0 & mod(x, y) > 0; y <= 0 | mod(x, y) > 0; y > 0 => mod(x, y) > 0; y > 0 ? mod(x, y) : 0
b <=> mod(x, y) = 0; b & c & x > 0 | y > 0; y > 0 & (b ? mod(x, y) = 1 : c); x ^ 2 ^ y; (x ^ 2) ^ y
1 / 3 + 2 / 3; 0.1 + 0.2; floor(x / 2); (0 - 1) ^ (1 / 0); pow(1.0, 0 / 0.0); pow(1.0, 1 / 0)
pow(0 / 0.0, 0); round(-0.5); round(0.5); round(2147483647.5); round(-2147483648.5); ceil(-0.5)
max(x, y, 3); min(x); !b = c; !(b = c); 1 - -2147483647; true | mod(1, 0) = 1; false & mod(1, 0) = 1
true ? 1 : mod(1, 0); y > 0 ? mod(x, y) : y < 0 ? mod(x, -y) : -1; b & (c | mod(x, y) = 0)
(b => c) & (c => mod(x, y) < 5); !(y <= 0) & mod(x, y) = 1; (y > 0 & b) | (y < 0 & mod(x, -y) = 1)
"""


def test_edges(prism_says):
    source = random.Random(3)
    for text in EDGES.strip().replace("\n", ";").split(";"):
        states = [random_state(source) for _ in range(40)]
        _check(prism_says, text, states)


@pytest.mark.parametrize(
    "text",
    [
        "x + b",
        "b & x",
        "!x",
        "-b",
        "b < c",
        "b = x",
        "x ? 1 : 2",
        "b ? 1 : c",
        "mod(d, 2)",
        "min(b, 1)",
        "floor(b)",
        "z + 1",
        "(x + 1) & b",
        "b => x",
        "d / b",
        "b ^ 2",
    ],
)
def test_wrong_types_have_prisms_message(prism_says, text):
    theirs = prism_says("evaluate", text, variables=VARIABLES, states=[])
    with pytest.raises(InvalidModelError) as raised:
        evaluate(parse_expression(text), _scope([random_state(random.Random(1))]))
    assert str(raised.value) == theirs["error"]
