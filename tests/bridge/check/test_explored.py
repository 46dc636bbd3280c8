"""Models that prism-gpu builds by itself, as the checks take them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from bridge.arguments import parse
from bridge.check.explored import explored_model
from bridge.check.sources import model_source
from bridge.front_end import embedded_reason
from bridge.versions import NoPrismError
from engines.cuda import driver
from engines.errors import BridgeError, DeviceMemoryError, InvalidModelError, UnsupportedError
from engines.exploration import build as exploration
from engines.exploration.build import ExplorationTuning
from engines.exploration.rewards import earned_rewards
from engines.host.exploring.explorer import HostExplorer
from engines.model.environment import BuildingPlace, DeviceChoice

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


def test_rewards_are_worked_out_for_who_asks_for_them(monkeypatch):
    asked = []

    def noted(program, *rest):
        asked.extend(structure.name for structure in program.reward_structures)
        return earned_rewards(program, *rest)

    monkeypatch.setattr(exploration, "earned_rewards", noted)
    model = built(WALK, {"N": 1})
    assert [item.name for item in model.rewards] == ["steps", "odd"]
    assert asked == []
    for _ in range(2):
        assert model.rewards[1].expected.state_rewards.tolist() == [0, 0, 0, 0]
    assert asked == ["odd"]


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


def test_nothing_more_is_needed_without_prism(monkeypatch):
    def missing(_):
        raise NoPrismError("no PRISM was found", "install it")

    monkeypatch.setattr("bridge.front_end.find_prism", missing)
    assert "takes its place" in embedded_reason(parse(["walk.nm"], {}))
    with pytest.raises(BridgeError, match="-frontend prism was given"):
        embedded_reason(parse(["walk.nm", "-frontend", "prism"], {}))


@pytest.mark.parametrize(
    ("failure", "line"),
    [
        (None, "prism-gpu: model built on GPU 1"),
        (DeviceMemoryError("2 GiB needed"), "prism-gpu: model built on the CPU: 2 GiB needed"),
    ],
)
def test_a_large_model_is_built_where_the_user_says(monkeypatch, tmp_path, failure, line):
    monkeypatch.setattr(driver, "driver_present", lambda: True)
    small = partial(ExplorationTuning, seconds_of_a_part=0.0, states_before_gpu=2)
    monkeypatch.setattr(exploration, "ExplorationTuning", small)

    def on_gpu(program, packing, initial, number, _memory, **_):
        assert number == 1
        if failure is not None:
            raise failure
        explorer = HostExplorer(program, packing, initial, 2**30)
        report = explorer.search(10.0)
        states, rows = explorer.states(report.found), explorer.empty_rows(report)
        explorer.rows(states, 0, report.found, rows)
        return states, rows

    monkeypatch.setattr(exploration, "explored_on_gpu", on_gpu)
    path = tmp_path / "walk.nm"
    path.write_text(WALK)
    lines = []
    for device in (DeviceChoice.AUTO, DeviceChoice.CPU):
        source = model_source(path, kind=None, fix_deadlocks=True, place=BuildingPlace(device, 1))
        assert source.build({"N": 2}, lines.append).model.num_states == 6
    assert [text for text in lines if text.startswith("prism-gpu: ")] == [line]


def test_a_search_that_may_not_end_is_announced():
    lines = []
    text = "dtmc module m n : int; [] n<3 -> (n'=n+1); endmodule"
    explored_model(text, "model.pm", {}, log=lines.append)
    assert lines[0] == (
        "\nWarning: Model contains one or more unbounded variables: model construction may not "
        "terminate"
    )


def test_what_is_not_built_is_refused_by_name():
    text = "mdp module m x : bool; [] true -> true; endmodule system m endsystem"
    with pytest.raises(UnsupportedError, match="system definition"):
        built(text)


def test_long_chains_of_machine_written_models_are_built():
    guard = " | ".join(f"x={i % 7}" for i in range(3000))
    text = f"dtmc module m x : [0..6]; [] {guard} -> (x'=mod(x+1,7)); endmodule"
    model = built(f'{text} label "any" = {guard};').model
    assert model.num_states == 7
    assert model.labels["any"].all()


def test_formulas_that_refer_to_each_other_too_deeply_are_refused_by_name():
    formulas = "".join(f"formula f{i} = f{i - 1}+x;" for i in range(1, 500))
    text = f"dtmc formula f0 = x; {formulas} module m x : [0..1]; [] f499<1 -> true; endmodule"
    with pytest.raises(UnsupportedError, match="too many levels deep; put some of them together"):
        built(text)
