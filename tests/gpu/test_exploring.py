"""Exploring on a GPU: the CPU's arrays to the last bit, with little room and in many parts too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.cuda.driver import cupy
from engines.cuda.exploring import CudaExplorer, DeviceExplorationTuning
from engines.devices import exploring
from engines.errors import DeviceMemoryError, InvalidModelError
from engines.exploration.build import ExplorationTuning, build
from engines.exploration.initial import initial_states
from engines.exploration.run_matrix import runs_of_matrix
from engines.model.events import told
from engines.program import packing as packings
from engines.program.packing import Packing
from tests.engines.exploration.programs import random_program
from tests.engines.montecarlo.reader import read_model

pytestmark = pytest.mark.gpu

GRID = """
{kind}
module first  x : [0..40] init 0; [] x<40 -> {weights[0]} : (x'=x+1) + {weights[1]} : (x'=0);
  [go] x>3 -> 1 : (x'=x-1); endmodule
module second y : [0..30] init 0; [] y<30 -> 1 : (y'=y+1); [go] true -> 1 : (y'=mod(y+7, 31));
  [go] y=2 -> {weights[0]} : (y'=0) + {weights[1]} : true; endmodule
"""
SINKS = """
{kind}
module first  x : [0..40] init 0;
  [] x<40 -> {weights[0]} : (x'=x+1) + {weights[1]} : (x'=0); endmodule
module second y : [0..30] init 0; [] x<40 & y<30 -> 1 : (y'=y+1); endmodule
"""
KINDS = {"dtmc": ("0.25", "0.75"), "ctmc": ("0.5", "3"), "mdp": ("0.25", "0.75")}


def grid(kind, text=GRID):
    program, _ = read_model(text.format(kind=kind, weights=KINDS[kind]))
    return program


AT_ONCE = ExplorationTuning(states_before_gpu=0)


@pytest.fixture(params=[63, 6], ids=["one word", "many words"])
def _words(request, monkeypatch):
    """Words of so many bits: of few, even small programs have states of several."""
    monkeypatch.setattr(packings, "WORD_BITS", request.param)


def built_or_fault(program, gpu):
    try:
        return build(program, gpu=gpu, tuning=AT_ONCE)
    except InvalidModelError as error:
        return str(error)


def require_same(found, expected):
    """Compare built models to the last bit, or messages."""
    if isinstance(expected, str):
        assert found == expected
        return
    a, b = found.model, expected.model
    np.testing.assert_array_equal(found.states, expected.states)
    np.testing.assert_array_equal(found.deadlocks, expected.deadlocks)
    np.testing.assert_array_equal(a.matrix.row_offsets, b.matrix.row_offsets)
    np.testing.assert_array_equal(a.matrix.columns, b.matrix.columns)
    np.testing.assert_array_equal(a.matrix.values, b.matrix.values)
    for one, other in (
        (a.row_group_offsets, b.row_group_offsets),
        (found.actions, expected.actions),
    ):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_array_equal(one, other)


@pytest.mark.usefixtures("_words")
@pytest.mark.parametrize("seed", [*range(60), 752, 1088])
def test_random_programs(seed):
    program = random_program(seed)
    require_same(built_or_fault(program, 0), built_or_fault(program, None))


@pytest.mark.usefixtures("_words")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("first_states", "levels"), [(2**20, 4096), (4, 1), (3, 7)])
def test_room_and_parts_do_not_matter(kind, first_states, levels):
    program, expected = grid(kind), build(grid(kind))
    packing = Packing.of(program)
    tuning = DeviceExplorationTuning(first_states, growth=2, levels_of_a_part=levels)
    explorer = CudaExplorer(program, packing, initial_states(program, packing), tuning=tuning)
    launches = 1
    while (search := explorer.search())["begin"] != search["found"]:
        assert not search["faulty"]
        launches += 1
    assert (launches > 1) == (levels < 4096)
    assert search["found"] - search["holes"] == len(expected.states) > 1000
    np.testing.assert_array_equal(explorer.states().get(), expected.states)
    rows = explorer.rows()
    np.testing.assert_array_equal(rows.row_offsets.get(), expected.model.matrix.row_offsets)
    np.testing.assert_array_equal(rows.columns.get(), expected.model.matrix.columns)
    np.testing.assert_array_equal(rows.values.get(), expected.model.matrix.values)
    # As many as the rows have before equal ones are added up or left out.
    assert int(search["transitions"]) >= len(rows.columns)


@pytest.mark.usefixtures("_words")
def test_values_of_expressions():
    program, read = read_model(GRID.format(kind="ctmc", weights=KINDS["ctmc"]))
    packing = Packing.of(program)
    expressions = [read("x+y>9"), read("x/2+y"), read("1000000000*y>0")]
    explorer = CudaExplorer(program, packing, initial_states(program, packing), expressions)
    explorer.search()
    states = explorer.states().get()
    x, y = packing.column(states, 0), packing.column(states, 1)
    truths, failing = explorer.evaluate(0, as_truths=True)
    np.testing.assert_array_equal(truths.get().view(bool), x + y > 9)
    assert failing is None
    values, failing = explorer.evaluate(1, as_truths=False)
    np.testing.assert_array_equal(values.get(), x / 2 + y)
    assert failing is None
    assert explorer.evaluate(2, as_truths=True)[1] == int(np.argmax(y > 2))


@pytest.mark.usefixtures("_words")
def test_the_fault_is_that_of_the_least_of_the_nearest_states():
    program, _ = read_model(
        "dtmc module n y : [0..9] init 0; [] y<3 -> (y'=y+1); endmodule "
        "module m x : [0..9] init 0; [] x<5 -> 0.5 : (x'=x+1) + 0.5 : (x'=x+2); "
        "[] x>=5 -> 0.5 : (x'=10-x) + 0.4 : true; endmodule"
    )
    with pytest.raises(InvalidModelError, match=r"sum to 0\.9 in state \(y=0,x=5\)"):
        build(program, gpu=0, tuning=AT_ONCE)
    require_same(built_or_fault(program, 0), built_or_fault(program, None))


def test_memory_is_asked_for_before_it_is_taken():
    program = grid("ctmc")
    packing = Packing.of(program)
    initial = initial_states(program, packing)
    # What the process holds already counts.
    with pytest.raises(DeviceMemoryError, match=r"needed for \d+ states, \d+ bytes available"):
        CudaExplorer(program, packing, initial, most_memory=1000)
    cupy().get_default_memory_pool().free_all_blocks()
    require_same(build(program, gpu=0, tuning=AT_ONCE), build(program))


def test_a_state_with_very_many_transitions_is_left_to_the_cpu():
    bits = "".join(
        f" module m{i} b{i} : bool init false; [go] !b{i} -> 0.5 : (b{i}'=true)"
        f" + 0.5 : (b{i}'=false); endmodule"
        for i in range(14)
    )
    program, _ = read_model("dtmc" + bits)
    built = build(program, gpu=0, tuning=AT_ONCE)
    reason = "a state has 16384 transitions, more than 8192"
    assert told(built.events) == f"model built on the CPU: {reason}"
    require_same(built, build(program))


def test_only_many_states_go_to_the_gpu():
    program = grid("ctmc")
    few = build(program, gpu=0)
    many = build(program, gpu=0, tuning=replace(AT_ONCE, states_before_gpu=len(few.states) - 1))
    assert few.events == ()
    assert told(many.events) == "model built on GPU 0"
    require_same(many, few)


def test_what_the_gpu_refuses_is_built_on_the_cpu():
    moves = " ".join(f"[] x={i} -> 1 : (x'={i + 1});" for i in range(4001))
    program, _ = read_model(f"ctmc module m x : [0..4001] init 0; {moves} endmodule")
    found = build(program, gpu=0, tuning=AT_ONCE)
    assert told(found.events).startswith("model built on the CPU: 4001 updates of commands")
    require_same(found, build(program))


@pytest.mark.parametrize("text", [GRID, SINKS], ids=["without", "with deadlocks"])
@pytest.mark.parametrize("kind", ["dtmc", "ctmc"])
def test_runs_of_rows_are_those_of_the_cpu(monkeypatch, kind, text):
    monkeypatch.setattr(exploring, "STATES_OF_A_PART", 100)
    tuning = ExplorationTuning(states_before_gpu=0, most_entries=100, states_of_a_part=70)
    program = grid(kind, text)
    found, expected = (build(program, gpu=gpu, in_runs=True, tuning=tuning) for gpu in (0, None))
    assert expected.deadlocks.any() == (text is SINKS)
    assert "model built on GPU 0; " in told(found.events)
    a, b = (runs_of_matrix(x.model.matrix) for x in (found, expected))
    for name in ("firsts", "kinds", "pair_starts", "distances", "numbers"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    np.testing.assert_array_equal(found.deadlocks, expected.deadlocks)
    np.testing.assert_array_equal(found.states, expected.states)


def test_no_more_memory_is_taken_than_is_allowed():
    expected = build(grid("ctmc"))
    found = build(grid("ctmc"), gpu=0, gpu_memory=1_000_000, tuning=AT_ONCE)
    assert told(found.events).startswith("model built on the CPU: GPU 0: ")
    require_same(found, expected)
    cupy().get_default_memory_pool().free_all_blocks()
    most = cupy().get_default_memory_pool().used_bytes() + 10**9
    found = build(grid("ctmc"), gpu=0, gpu_memory=most, tuning=AT_ONCE)
    assert told(found.events) == "model built on GPU 0"
    require_same(found, expected)
