"""Models that prism-gpu builds by itself, as the checks take them."""

from __future__ import annotations

import numpy as np
import pytest

from bridge import storm
from bridge.arguments import parse
from bridge.check.explored import explored_model
from bridge.check.sources import ExploredSource, StormSource, model_source
from bridge.front_end import embedded_reason
from bridge.versions import NoPrismError
from engines.errors import BridgeError, InvalidModelError, UnsupportedError

WALK = """mdp
const int N;
formula end = x=N;
module walk
  x : [0..N];
  up : bool;
  [go] !end -> 0.5 : (x'=x+1) + 0.5 : (up'=!up);
  [] up -> (up'=false);
endmodule
label "end" = end;
rewards "steps" [go] true : 1; x>0 : 2; endrewards
rewards "odd" x=2 : 1-x; endrewards
"""
LOSSY = "dtmc module m x : [0..2]; [] x<2 -> 0.3 : (x'=1) + 0.3 : (x'=2); endmodule"


def built(text, constants=None, **switches):
    """The model of a text."""
    return explored_model(text, "model.pm", constants or {}, log=lambda _: None, **switches)


def test_states_variables_actions_and_rewards_of_an_mdp():
    model = built(WALK, {"N": 2})
    assert [model.state_line(i) for i in range(6)] == [
        *("0:(0,false)", "1:(0,true)", "2:(1,false)", "3:(1,true)", "4:(2,false)", "5:(2,true)")
    ]
    assert model.model.row_group_offsets.tolist() == [0, 1, 3, 4, 6, 7, 8]
    # Without an action first.
    names = [model.action_names[action] for action in model.actions]
    assert names == ["go", "", "go", "go", "", "go", "", ""]
    assert model.notes == ("Deadlocks detected and fixed in 1 states",)
    assert np.flatnonzero(model.model.labels["deadlock"]).tolist() == [4]
    assert model.model.labels["end"].tolist() == [False] * 4 + [True] * 2
    steps = model.rewards[0]
    assert steps.instantaneous.tolist() == [0, 0, 2, 2, 2, 2]
    assert steps.expected.choice_rewards.tolist() == [1, 0, 1, 1, 0, 1, 0, 0]


def test_a_reward_with_a_fault_concerns_only_who_asks_for_it():
    steps, odd = built(WALK, {"N": 2}).rewards
    assert steps.fault is None
    assert (odd.fault.value, odd.fault.state) == (-1.0, 4)


def test_deadlocks_may_be_refused():
    with pytest.raises(InvalidModelError, match="Model contains 1 deadlock states"):
        built(WALK, {"N": 2}, fix_deadlocks=False)


def test_sums_of_probabilities_are_checked_or_scaled():
    with pytest.raises(InvalidModelError, match=r"Probabilities sum to 0\.6 in state \(x=0\)"):
        built(LOSSY)
    assert built(LOSSY, sums_checked=False).model.matrix.values.tolist() == [0.5, 0.5, 0.5, 0.5, 1]


def test_ours_takes_the_place_of_storm_where_there_is_none(monkeypatch, tmp_path):
    path = tmp_path / "walk.nm"
    path.write_text(WALK)

    def source(front_end):
        return model_source(path, kind=None, fix_deadlocks=True, front_end=front_end)

    monkeypatch.setattr(storm, "unavailable", lambda: None)
    assert isinstance(source(None), StormSource)
    assert isinstance(source("builtin"), ExploredSource)
    monkeypatch.setattr(storm, "unavailable", lambda: "no stormpy")
    assert isinstance(source(None), ExploredSource)
    with pytest.raises(BridgeError, match="no stormpy"):
        source("storm")


def test_nothing_more_is_needed_without_prism(monkeypatch):
    def missing(_):
        raise NoPrismError("no PRISM was found", "install it")

    monkeypatch.setattr("bridge.front_end.find_prism", missing)
    monkeypatch.setattr(storm, "unavailable", lambda: "no stormpy")
    assert "takes its place" in embedded_reason(parse(["walk.nm"], {}))
    with pytest.raises(BridgeError, match="-frontend prism was given"):
        embedded_reason(parse(["walk.nm", "-frontend", "prism"], {}))


def test_what_is_not_built_is_refused_by_name():
    text = "mdp module m x : bool; [] true -> true; endmodule system m endsystem"
    with pytest.raises(UnsupportedError, match="system definition"):
        built(text)
