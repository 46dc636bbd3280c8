"""Models that are built from programs are those of plain loops, on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.errors import (
    DeviceMemoryError,
    InvalidModelError,
    ModelSizeError,
    UnsupportedError,
)
from engines.exploration.build import ExplorationTuning, Limits, build
from engines.exploration.initial import EnumerationTuning, initial_states
from engines.program.arithmetic import EvaluationError
from engines.program.evaluate import evaluate
from engines.program.packing import Packing
from engines.program.program import Program
from tests.engines.montecarlo.reader import read_model

from .plain import FaultError, plain_model
from .plain import initial_states as plain_initial_states
from .programs import random_program

TUNING = ExplorationTuning(seconds_of_a_part=0.0, states_of_a_part=7)
"""Many small parts, so that their ends are met."""


def rows_of(built, program):
    """The rows of each state as `plain_model` has them."""
    matrix, groups, actions = built.model.matrix, built.model.row_group_offsets, built.actions
    offsets, columns, values = (
        x.tolist() for x in (matrix.row_offsets, matrix.columns, matrix.values)
    )

    def action(place):
        return None if actions is None or actions[place] < 0 else int(actions[place])

    def entries(row):
        return range(offsets[row], offsets[row + 1])

    if program.kind == "mdp":
        return [
            [(action(r), [(columns[e], values[e]) for e in entries(r)]) for r in range(first, last)]
            for first, last in zip(groups[:-1].tolist(), groups[1:].tolist(), strict=True)
        ]
    return [
        [[(columns[e], action(e), values[e]) for e in entries(row)]]
        for row in range(built.model.num_states)
    ]


def expected_rewards(program, plain, structure):
    """The rewards of states alone, of states with transitions, and of choices."""

    def sums(items, state):
        total = 0.0
        for item in items:
            if evaluate(item.guard, state):
                total += float(evaluate(item.value, state))
        return total

    def of_action(action, state):
        return sums([x for x in structure.transitions if x.action == action], state)

    alone = [sums(structure.states, state) for state in plain.states]
    expected, of_choices = list(alone), []
    for i, (state, choices) in enumerate(zip(plain.states, plain.choices, strict=True)):
        dead = plain.deadlocks[i]
        if program.kind == "mdp":
            of_choices += [0.0 if dead else of_action(action, state) for action, _ in choices]
        elif not dead:
            for _, action, weight in choices[0]:
                if reward := of_action(action, state):
                    expected[i] += weight * reward
    return alone, expected, of_choices


def expected_of(program):
    """What plain loops make of a program; raises `FaultError` and `EvaluationError`."""
    plain = plain_model(program)
    labels = [
        [bool(evaluate(label.expression, state)) for state in plain.states]
        for label in program.labels
    ]
    rewards = [expected_rewards(program, plain, x) for x in program.reward_structures]
    return plain, labels, rewards


def require_same(program, built, expected=None):
    """Compare a built model with plain loops, to the last bit."""
    plain, labels, rewards = expected or expected_of(program)
    model = built.model
    assert [built.packing.state(words) for words in built.states] == plain.states
    assert rows_of(built, program) == plain.choices
    assert built.deadlocks.tolist() == plain.deadlocks
    assert model.initial_states.tolist() == [state in plain.initial for state in plain.states]
    assert [model.labels[label.name].tolist() for label in program.labels] == labels
    for i, structure in enumerate(program.reward_structures):
        alone, with_transitions, of_choices = rewards[i]
        assert built.state_rewards[i].tolist() == alone
        assert model.rewards[i].state_rewards.tolist() == with_transitions
        found = model.rewards[i].choice_rewards
        if program.kind == "mdp" and structure.transitions:
            assert found.tolist() == of_choices
        else:
            assert found is None
    return plain


def same_model(a, b):
    """Whether two built models are equal to the last bit."""
    pairs = [
        (a.states, b.states),
        (a.model.matrix.row_offsets, b.model.matrix.row_offsets),
        (a.model.matrix.columns, b.model.matrix.columns),
        (a.model.matrix.values, b.model.matrix.values),
    ]
    return all(np.array_equal(x, y) for x, y in pairs)


def require_like_plain_loops(program, threads):
    """Build a program, or refuse it as plain loops do."""
    try:
        expected = expected_of(program)
    except (FaultError, EvaluationError):
        # Whichever of several faults is met first, it is reported as one of the model.
        with pytest.raises(InvalidModelError, match=r"state"):
            build(program, threads=threads, tuning=TUNING)
        return
    require_same(program, build(program, threads=threads, tuning=TUNING), expected)


@settings(deadline=None, max_examples=500)
@given(st.integers(0, 2**32), st.sampled_from([1, 3]), st.booleans())
def test_random_programs(seed, threads, everything):
    require_like_plain_loops(random_program(seed, everything=everything), threads)


@pytest.mark.slow
def test_many_random_programs():
    for seed in range(2_000):
        require_like_plain_loops(random_program(seed, everything=True), 1 + seed % 2)


GRID = """{kind}
module left
  x : [0..{most}];
  [up] x<{most} -> 0.25 : (x'=x+1) + 0.75 : (x'=x);
  [] x>0 -> (x'=x-1);
endmodule
module right
  y : [-3..{most}] init 0;
  [up] true -> 0.5 : (y'=min(y+1,{most})) + 0.5 : (y'=max(y-1,-3));
  [] y>x -> (y'=x);
endmodule
"""


@pytest.mark.parametrize("kind", ["dtmc", "ctmc", "mdp"])
def test_threads_and_parts_do_not_matter(kind):
    program, _ = read_model(GRID.format(kind=kind, most=30))
    whole = build(program, threads=1)
    require_same(program, whole)
    for threads, tuning in ((1, TUNING), (2, None), (5, ExplorationTuning(states_of_a_part=300))):
        assert same_model(whole, build(program, threads=threads, tuning=tuning))


@pytest.mark.parametrize("variables", [9, 25, 70])
def test_states_of_many_words(variables):
    # A variable takes 7, 20 or 32 bits: a few words, and more than sorting knows by their number.
    kinds = "\n".join(f"  x{i} : {KINDS[i % 3]};" for i in range(variables))
    step = " & ".join(f"(x{i}'=1-x{i})" for i in range(variables))
    text = f"mdp\nmodule m\n{kinds}\n  [] true -> {step};\n"
    text += "".join(f"  [] x{i}=0 -> (x{i}'=1);\n" for i in range(0, variables, variables // 5))
    program, _ = read_model(text + "endmodule\n")
    built = build(program)
    plain = require_same(program, built)
    assert built.packing.words > 1
    assert len(plain.states) >= 32


KINDS = ["[0..100]", "[-5..1000000] init 0", "int"]


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        ("[] x<3 -> 0.5 : (x'=x+1) + 0.4 : true;", r"Probabilities sum to 0\.9 in state \(x=0\)"),
        ("[] true -> 1/x : (x'=0) + 0 : true;", r"Probability is not finite in state \(x=0\)"),
        ("[] x=0 -> (x'=3); [] x=3 -> x-4 : true + 2 : true;", r"negative in state \(x=3\)"),
        ("[] true -> x : true + x : (x'=0);", r"Probability values sum to zero .* \(x=0\)"),
        ("[] true -> x : true;", r"Probability is zero for updates in state \(x=0\)"),
        ("[] true -> (x'=x+1);", r"Value of variable x overflows: 6 is out of its range 0\.\.5"),
        ("[] mod(1,x)=0 -> true;", r"Attempt to compute modulo .* in state \(x=0\)"),
    ],
)
def test_faults_in_prisms_words(commands, message):
    program, _ = read_model(f"dtmc\nmodule die\n  x : [0..5];\n  {commands}\nendmodule\n")
    with pytest.raises(InvalidModelError, match=message + r'.*command \d of module "die"'):
        build(program)


def test_a_fault_is_that_of_the_first_of_the_nearest_states():
    text = "mdp\nmodule m\n x : [0..9999];\n [] x=0 -> 1/9 : (x'=9) "
    text += "".join(f" + 1/9 : (x'={i})" for i in range(1, 9))
    program, _ = read_model(text + ";\n [] x>0 -> 0.4 : (x'=x+1);\nendmodule\n")
    for threads in (1, 2, 3):
        with pytest.raises(InvalidModelError, match=r"Probabilities sum to 0\.4 in state \(x=1\)"):
            build(program, threads=threads)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_fault_is_looked_for_in_all_states_of_a_wide_level(threads):
    text = "mdp\nmodule m\n x : [0..399999];\n [] x>4 -> 0.4 : (x'=1);\nendmodule\n"
    program, _ = read_model(text + "init true endinit\n")
    with pytest.raises(InvalidModelError, match=r"Probabilities sum to 0\.4 in state \(x=5\)"):
        build(program, threads=threads)


def test_deadlocks_are_given_a_loop_or_refused():
    program, _ = read_model("mdp\nmodule m\n  x : [0..5];\n  [a] x<2 -> (x'=x+1);\nendmodule\n")
    built = build(program)
    require_same(program, built)
    assert built.deadlocks.tolist() == [False, False, True]
    with pytest.raises(InvalidModelError, match="Model contains 1 deadlock states"):
        build(program, fix_deadlocks=False)


def test_memory_is_asked_for_before_it_is_taken():
    program, _ = read_model("dtmc\nmodule m\n  x : int;\n  [] true -> (x'=x+1);\nendmodule\n")
    with pytest.raises(
        DeviceMemoryError, match=r"\d+ were found, and their table needs [\d.]+ \w+"
    ):
        build(program, tuning=ExplorationTuning(memory_share=1e-4))


def test_a_search_can_be_left():
    program, _ = read_model("dtmc\nmodule m\n  x : int;\n  [] true -> (x'=x+1);\nendmodule\n")

    def left(found):
        raise KeyboardInterrupt(found)

    with pytest.raises(KeyboardInterrupt):
        build(program, progress=left, tuning=TUNING)


@pytest.mark.parametrize("limit", [Limits(states=50), Limits(transitions=50)])
def test_a_model_without_end_stops_at_a_limit(limit):
    program, _ = read_model("dtmc\nmodule m\n  x : int;\n  [] true -> (x'=x+1);\nendmodule\n")
    with pytest.raises(ModelSizeError, match="more than 50"):
        build(program, tuning=TUNING, limits=limit)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_transitions_beyond_64_a_state_are_limited(threads):
    # All 256 states lead to all: 192 of the transitions of each are beyond.
    move = "[go] true -> 0.25:(x{0}'=true) + 0.75:(x{0}'=false);"
    bits = "".join(
        f"module m{i}\n  x{i} : bool;\n  {move.format(i)}\nendmodule\n" for i in range(8)
    )
    program, _ = read_model(f"dtmc\n{bits}")
    most = 256 * 192
    built = build(program, limits=Limits(crowding=most), threads=threads)
    assert built.model.matrix.num_entries == 256 * 256
    with pytest.raises(ModelSizeError, match=f"{most - 1} transitions beyond 64 a state"):
        build(program, limits=Limits(crowding=most - 1), threads=threads)


def test_a_limit_that_is_met_exactly_does_not_matter():
    program, _ = read_model("mdp\nmodule m\n  x : [0..5];\n  [a] x<2 -> (x'=x+1);\nendmodule\n")
    assert build(program, limits=Limits(states=3, transitions=3)).model.num_states == 3
    with pytest.raises(ModelSizeError):
        build(program, limits=Limits(states=2))


def test_initial_states_of_unbounded_variables_need_equalities():
    text = "mdp\nmodule m\n  x : int;\n  y : int;\n  [] x<3 -> (x'=x+1);\nendmodule\n"
    program, read = read_model(text)
    conditions = {"x=1 & y=7": [(1, 7)], "y=-2 & (x=0 & true)": [(0, -2)]}
    for condition, expected in conditions.items():
        given_ = Program(
            *(program.kind, program.variables, program.modules),
            initial_condition=read(condition),
        )
        built = build(given_)
        found = built.states[built.model.initial_states]
        assert [built.packing.state(words) for words in found] == expected
    open_ = Program(
        *(program.kind, program.variables, program.modules), initial_condition=read("x=1 | y=1")
    )
    with pytest.raises(UnsupportedError, match="fix variables by equalities"):
        build(open_)


def test_initial_states_are_enumerated_part_by_part():
    variables = "x : [-3..9]; b : bool; y : [5..11];"
    text = f"mdp\nmodule m\n  {variables}\n  [] true -> true;\nendmodule\n"
    program, read = read_model(text)
    given_ = Program(
        *(program.kind, program.variables, program.modules),
        initial_condition=read("(x+y=8 | b) & mod(y,2)=1"),
    )
    packing = Packing.of(given_)
    found = initial_states(given_, packing, EnumerationTuning(states_of_a_part=5))
    assert {packing.state(words) for words in found} == plain_initial_states(given_)
    assert np.array_equal(found, initial_states(given_, packing))
    with pytest.raises(UnsupportedError, match="182 states to look at"):
        initial_states(given_, packing, EnumerationTuning(most_states=181))
