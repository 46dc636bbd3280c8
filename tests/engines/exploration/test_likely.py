"""Models of which only likely states are explored: what is explored is as in the whole model."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.check.model_text import ModelText
from engines.errors import DeviceMemoryError, InvalidModelError
from engines.exploration.build import ExplorationTuning, Limits, build
from engines.host.exploring.likely import LikelyExplorer
from engines.program.faults import StateFaultError
from engines.program.packing import Packing

from .plain import FaultError, plain_model
from .programs import random_program
from .test_build import rows_of


def read_model(text):
    """The program of a model's text."""
    described = ModelText(text, "model.pm")
    return described.built_program(described.constants({}), checked=True)


def is_sound(seed):
    """Whether a random program has no state with a fault."""
    try:
        plain_model(random_program(seed))
    except FaultError:
        return False
    return True


SEEDS = [seed for seed in range(36) if is_sound(seed)]
SMALL_PARTS = ExplorationTuning(seconds_of_a_part=0.0, states_of_a_part=7)


@pytest.mark.parametrize("threshold", [0.3, 1e-2, 1e-6])
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_of_explored_states_are_those_of_the_whole_model(seed, threshold):
    program = random_program(seed)
    whole = build(program)
    part = build(program, likely=threshold, tuning=SMALL_PARTS)
    assert part.unexplored is not None
    numbers = {state.tobytes(): number for number, state in enumerate(whole.states)}
    known = np.array([numbers[state.tobytes()] for state in part.states])
    assert (np.diff(known) > 0).all()
    of_whole, of_part = rows_of(whole, program), rows_of(part, program)
    place = {int(number): i for i, number in enumerate(known)}
    for i, number in enumerate(known.tolist()):
        row = of_part[i]
        if part.unexplored[i]:
            assert row == ([(None, [(i, 1.0)])] if program.kind == "mdp" else [[(i, None, 1.0)]])
            assert not part.deadlocks[i]
            continue
        assert part.deadlocks[i] == whole.deadlocks[number]
        assert renumbered(of_whole[number], place, program.kind) == row
    assert part.model.labels["unexplored"] is part.unexplored
    assert not (part.unexplored & part.model.labels["init"]).any()


def renumbered(row, place, kind):
    """A row of the whole model with the numbers of states of the part."""
    if kind == "mdp":
        return [(action, [(place[c], value) for c, value in entries]) for action, entries in row]
    return [[(place[c], action, value) for c, action, value in entries] for entries in row]


CHAIN = """dtmc
module m
  x : int init 0;
  [] true -> 0.5 : (x'=x+1) + 0.5 : (x'=0);
endmodule
label "even" = mod(x, 2) = 0;
"""


def test_a_state_is_explored_from_the_threshold_on():
    # State n is reached with 2^-n; the one below the threshold is left out.
    built = build(read_model(CHAIN), likely=2.0**-5)
    assert built.packing.column(built.states, 0).tolist() == list(range(7))
    assert np.flatnonzero(built.unexplored).tolist() == [6]
    assert built.model.labels["even"].tolist() == [n % 2 == 0 for n in range(7)]
    assert build(read_model(CHAIN), likely=2.0**-5 * 1.01).model.num_states == 6


def test_no_more_states_are_explored_than_may_be():
    endless = CHAIN.replace("0.5 : (x'=x+1) + 0.5 : (x'=0)", "(x'=x+1)")
    built = build(read_model(endless), likely=0.5, limits=Limits(states=40))
    assert built.model.num_states == 41
    assert np.flatnonzero(built.unexplored).tolist() == [40]
    tuning = ExplorationTuning(most_likely_states=30)
    assert build(read_model(endless), likely=0.5, tuning=tuning).model.num_states == 31


def test_initial_states_are_explored_however_many_there_are():
    several = "dtmc module m x : [0..9]; [] true -> (x'=min(x+1,9)); endmodule init x<8 endinit"
    built = build(read_model(several), likely=0.9)
    assert np.flatnonzero(built.unexplored).tolist() == []
    assert built.model.num_states == 10


@pytest.mark.parametrize("words", [1, 3])
def test_choices_of_an_mdp_hand_on_the_whole_probability(words):
    wide = "".join(f"  y{i} : int init 0;\n" for i in range(words * 2 - 2))
    text = f"""mdp
module m
  x : int init 0;
{wide}  [] x=0 -> 0.6 : (x'=1) + 0.4 : (x'=2);
  [] x=0 -> 0.6 : (x'=3) + 0.4 : (x'=2);
  [] x>0 -> (x'=x);
endmodule
"""
    program = read_model(text)
    assert Packing.of(program).words >= words - 1
    built = build(program, likely=0.7)
    # State 2 is reached with 0.4 by either choice.
    assert built.packing.column(built.states, 0).tolist() == [0, 1, 2, 3]
    assert np.flatnonzero(built.unexplored).tolist() == [1, 3]


def test_faults_count_where_a_state_is_explored():
    faulty = CHAIN.replace("x : int", "x : [0..4]")
    with pytest.raises(StateFaultError):
        build(read_model(faulty), likely=2.0**-4)
    assert build(read_model(faulty), likely=2.0**-3).model.num_states == 5


def test_transition_rewards_are_not_earned_in_unexplored_states():
    text = CHAIN + 'rewards "moves" [] true : 1; true : 2; endrewards'
    built = build(read_model(text), likely=2.0**-5)
    (rewards,) = built.model.rewards
    assert rewards.state_rewards.tolist() == [3.0] * 6 + [2.0]


def test_a_label_of_the_same_name_is_refused():
    text = CHAIN + 'label "unexplored" = x=1;'
    with pytest.raises(InvalidModelError, match="unexplored"):
        build(read_model(text), likely=0.1)


def test_memory_ends_with_a_number():
    program = read_model(CHAIN.replace("0.5 : (x'=x+1) + 0.5 : (x'=0)", "(x'=x+1)"))
    packing = Packing.of(program)
    explorer = LikelyExplorer(program, packing, packing.packed([(0,)]), 0.5, 10_000)
    with pytest.raises(DeviceMemoryError, match="may take 10000 bytes"):
        explorer.search(10.0)
