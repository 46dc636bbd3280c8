"""Values, states and labels as PRISM writes them."""

import math
from fractions import Fraction

import numpy as np
import pytest

from bridge.regress.vectors import (
    States,
    order_of,
    read_exact,
    read_labels,
    read_states,
    read_values,
    value_of,
)
from engines.errors import InvalidModelError


def test_values_are_numbers_infinities_and_truth_values():
    assert read_values("0.5\nInfinity\n-Infinity\n1.0E-17\n").tolist() == [
        0.5,
        math.inf,
        -math.inf,
        1e-17,
    ]
    assert np.isnan(read_values("NaN\n")[0])
    assert read_values("true\nfalse\n").tolist() == [1.0, 0.0]


def test_fractions_are_rounded_once_however_long_their_parts():
    assert value_of("1/3") == 1 / 3
    top, bottom = 7**500, 3 * 7**500 + 1
    assert value_of(f"{top}/{bottom}") == float(Fraction(top, bottom))


def test_an_exact_log_gives_each_state_its_value():
    log = (
        "Model checking: x\n0:(0,true)=1/3   (0.3333)\n1:(1,false)=Infinity   (Infinity)\n\nResult"
    )
    assert read_exact(log, 2).tolist() == [1 / 3, math.inf]
    assert read_exact("0:(5)=true\n1:(6)=false\n", 2).tolist() == [1.0, 0.0]
    with pytest.raises(InvalidModelError, match="no value of state 2 of 3"):
        read_exact(log, 3)


def test_states_are_matched_by_their_variables_wherever_they_stand():
    first = States("(x,y)", ("(0,0)", "(0,1)", "(1,0)"))
    other = States("(x,y)", ("(1,0)", "(0,0)", "(0,1)"))
    order = order_of(other, first)
    assert order is not None
    assert [other.lines[place] for place in order] == list(first.lines)
    assert order_of(States("(x,y)", ("(0,0)", "(0,1)", "(2,0)")), first) is None
    assert order_of(States("(y,x)", first.lines), first) is None
    assert order_of(States("(x,y)", first.lines[:2]), first) is None
    assert first.describe(1) == "x=0, y=1"


def test_exported_states_and_labels_are_read(tmp_path):
    (tmp_path / "m.sta").write_text("# States\n(s,b)\n0:(0,true)\n1:(1,false)\n")
    (tmp_path / "m.lab").write_text('# Labels\n0="init" 1="deadlock" 2="goal"\n0: 0 2\n1: 2\n')
    assert read_states(tmp_path / "m.sta") == States("(s,b)", ("(0,true)", "(1,false)"))
    labels = read_labels(tmp_path / "m.lab", 2)
    assert {name: mask.tolist() for name, mask in labels.items()} == {
        "init": [True, False],
        "deadlock": [False, False],
        "goal": [True, True],
    }
    (tmp_path / "m.sta").write_text("(s)\n0:(0)\n2:(1)\n")
    with pytest.raises(InvalidModelError, match="state 1 is expected"):
        read_states(tmp_path / "m.sta")
