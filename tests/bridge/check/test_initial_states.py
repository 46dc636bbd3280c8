import pytest

from bridge.check.initial_states import initial_states
from bridge.check.model_text import SimulatedModel
from engines.errors import InvalidModelError, UnsupportedError

TEXT = """dtmc
module m
  x : [-2..3]; b : bool; y : [5..2000000];
  [] true -> true;
endmodule
init {} endinit
"""


def found(condition):
    return initial_states(SimulatedModel(TEXT.format(condition), "m.pm"), {})


def test_the_first_variable_changes_first():
    states = [(x, b, y) for y in (5, 6) for b in (0, 1) for x in (-2, 3)]
    assert found("y<7 & (x=-2 | x=3)") == states
    assert initial_states(SimulatedModel(TEXT.partition("init")[0], "m.pm"), {}) is None


@pytest.mark.parametrize("condition", ["x>y", "x=4"])
def test_no_initial_state_is_an_error_in_prisms_words(condition):
    with pytest.raises(InvalidModelError, match=r"^Empty set of initial states$"):
        found(condition)


def test_too_many_initial_states_are_refused():
    assert len(found("x=0 & b & y<1005")) == 1000
    with pytest.raises(UnsupportedError, match="more initial states than 1000"):
        found("x=0 & b & y<1006")


def test_a_condition_without_a_value_is_the_model_s_fault():
    with pytest.raises(InvalidModelError, match="mod"):
        found("b & y=5 & mod(y,x)=1")
