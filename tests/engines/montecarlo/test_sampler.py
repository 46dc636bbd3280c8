"""Sampled paths: exact values, the same digits as the plain interpreter, errors, batches."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

from engines.errors import UnsupportedError
from engines.model.environment import DeviceChoice
from engines.montecarlo import layout, sampler
from engines.montecarlo.failure import FailureKind, PathFailure
from engines.montecarlo.plan import SynchronisationStrategy
from engines.montecarlo.questions import (
    Bounds,
    CumulativeReward,
    InstantaneousReward,
    Monitor,
    Next,
    ReachabilityReward,
    RewardQuestion,
    Until,
    is_bounded,
)
from engines.montecarlo.reference import sample_path
from engines.montecarlo.tally import BooleanOutcomes
from engines.program import native
from engines.program.expressions import ONE, TRUE
from engines.program.program import RewardStructure, StateReward

from . import programs
from .explicit import Explicit
from .random_programs import random_program
from .reader import read_model

PATHS = 20_000
UNOPTIMIZED = ("-O0", *(option for option in native.OPTIONS if not option.startswith("-O")))
STRATEGIES = list(SynchronisationStrategy)


@pytest.fixture
def unoptimized(monkeypatch):
    """Large programs are compiled in a third of the time; those of `CASES` as users have them."""
    identity = f"{native._identity()} {UNOPTIMIZED}"
    monkeypatch.setattr(native, "OPTIONS", UNOPTIMIZED)
    monkeypatch.setattr(native, "_identity", lambda: identity)


def on_cpu(program, questions, seed=5, **options):
    return sampler.Sampler(program, questions, seed, DeviceChoice.CPU, **options)


def assert_same_as_reference(program, questions, count, seed=5, first=0, **options):
    """Answers, rewards and lengths of some paths are those of the plain interpreter."""
    limit = options.get("path_limit", sampler.DEFAULT_PATH_LIMIT)
    made = on_cpu(program, questions, seed, **options)
    arrays = made.sample(first, count)
    assert arrays.first_failed is None
    rows = made.compiled.rows
    for i in range(count):
        path = sample_path(made.compiled.plan, questions, seed, first + i, limit)
        for row, question, answer in zip(rows, questions, path.answers, strict=True):
            is_reward = isinstance(question, RewardQuestion)
            found = (arrays.rewards if is_reward else arrays.booleans)[row][i]
            assert found == answer or (found != found and answer != answer), (i, question)
        assert path.length == arrays.lengths[i]
    return arrays


CASES = list(programs.cases())


@pytest.mark.parametrize("case", CASES, ids=[name for name, _, _ in CASES])
def test_estimates_are_within_five_deviations_of_the_exact_values(case):
    _, program, questions = case
    exact = Explicit(program)
    batch = on_cpu(program, questions).run(0, PATHS)
    for question, outcome in zip(questions, batch.outcomes, strict=True):
        value = exact.answer(question)
        if isinstance(outcome, BooleanOutcomes):
            mean, variance = outcome.num_true / PATHS, value * (1.0 - value)
        else:
            mean, variance = outcome.moments.mean, outcome.moments.variance
        assert outcome.num_undecided == 0
        assert abs(mean - value) <= 5.0 * math.sqrt(max(variance, 0.0) / PATHS) + 1e-9, question


def test_known_values():
    _, program, questions = CASES[0]
    exact = Explicit(program)
    assert exact.answer(questions[0]) == pytest.approx(1 / 6)
    assert exact.answer(questions[5]) == pytest.approx(11 / 3)  # Knuth and Yao
    _, herman, rewards = CASES[1]
    assert Explicit(herman).answer(rewards[0]) == pytest.approx(1.9333333333333333)


@pytest.mark.parametrize("case", CASES, ids=[name for name, _, _ in CASES])
def test_paths_are_those_of_the_plain_interpreter(case):
    _, program, questions = case
    assert_same_as_reference(program, questions, 60)


@pytest.mark.usefixtures("unoptimized")
@pytest.mark.parametrize("form", ["written out", "in tables"])
@pytest.mark.parametrize("discrete", [True, False], ids=["dtmc", "ctmc"])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 6))]
)
def test_random_programs_have_the_interpreters_paths_in_every_form(
    seed, discrete, form, monkeypatch
):
    monkeypatch.setattr(layout, "MOST_UNITS", 0 if form == "in tables" else 99)
    program, questions = random_program(seed, discrete)
    strategies = STRATEGIES[1:4] if discrete else STRATEGIES[1:3]
    for strategy in strategies:
        assert_same_as_reference(
            program, questions, 15, first=seed << 33, strategy=strategy, path_limit=100
        )


@pytest.mark.usefixtures("unoptimized")
@pytest.mark.parametrize("discrete", [True, False], ids=["dtmc", "ctmc"])
def test_every_strategy_has_the_exact_distribution(discrete):
    program, questions = random_program(0, discrete)
    exact = Explicit(program)
    asked = [question for question in questions if is_bounded(question)]
    for strategy in STRATEGIES[: 4 if discrete else 3]:
        batch = on_cpu(program, asked, strategy=strategy).run(0, PATHS)
        for question, outcome in zip(asked, batch.outcomes, strict=True):
            value = exact.answer(question)
            if isinstance(outcome, BooleanOutcomes):
                mean, variance = outcome.num_true / PATHS, value * (1.0 - value)
            else:
                mean, variance = outcome.moments.mean, outcome.moments.variance
            assert abs(mean - value) <= 5.0 * math.sqrt(variance / PATHS) + 1e-9, (
                strategy,
                question,
            )


@pytest.mark.usefixtures("unoptimized")
def test_large_programs_have_the_interpreters_paths():
    program, e = read_model(programs.philosophers_model(40))
    questions = [
        Until(TRUE, e("p1=6"), Bounds(0, 100)),
        programs.twice(e, "p1=6", "p2=6", 100),
        CumulativeReward(0, 50.0),
    ]
    for strategy in (SynchronisationStrategy.AUTO, SynchronisationStrategy.LAZY):
        assert_same_as_reference(program, questions, 4, strategy=strategy)
    many, e = read_model(programs.philosophers_model(300))  # two levels of sums above the weights
    assert_same_as_reference(many, [Until(TRUE, e("p1=6"), Bounds(0, 40))], 2)


def test_large_synchronous_programs_have_the_interpreters_paths():
    program, e = read_model(programs.herman_model(9))
    assert_same_as_reference(program, [ReachabilityReward(0, e("num_tokens=1"))], 30)


def test_many_alternatives_are_counted_in_doubles():
    modules = "".join(
        f"module m{i}\n x{i} : [0..1]; [a] true -> 0.5:(x{i}'=0) + 0.5:(x{i}'=1); "
        f"[a] x{i}=0 -> (x{i}'=1);\nendmodule\n"
        for i in range(40)
    )
    program, e = read_model(f"dtmc\n{modules}")
    question = Until(TRUE, e("x3=1 & x7=1"), Bounds(0, 1))
    made = on_cpu(program, [question])
    assert not made.compiled.plan.whole
    assert_same_as_reference(program, [question], 20)
    batch = made.run(0, PATHS)
    # from 0 both commands are enabled: 1/2 * 1/2 + 1/2 to reach 1
    assert abs(batch.outcomes[0].num_true / PATHS - 0.75**2) < 5 * 0.5 / math.sqrt(PATHS)


def test_answers_do_not_depend_on_batches_or_threads():
    _, program, questions = CASES[3]
    whole = on_cpu(program, questions, threads=1).sample(0, 3000)
    made = on_cpu(program, questions, threads=4)
    parts = [made.sample(first, count) for first, count in ((0, 1), (1, 1700), (1701, 1299))]
    for name in ("booleans", "rewards", "lengths"):
        pieces = [getattr(part, name) for part in parts]
        assert np.array_equal(getattr(whole, name), np.concatenate(pieces, axis=-1))
    sums = [part.batch(questions).outcomes[3].moments for part in parts]
    assert sums[0] + sums[1] + sums[2] == whole.batch(questions).outcomes[3].moments


def test_answers_do_not_depend_on_what_else_is_asked():
    _, program, questions = CASES[4]
    together = on_cpu(program, questions).sample(0, 500)
    alone = on_cpu(program, questions[2:3]).sample(0, 500)
    assert np.array_equal(together.rewards[0], alone.rewards[0])


@pytest.mark.parametrize("negated", [False, True])
def test_monitors_read_the_states_of_paths_and_of_deadlocks(negated):
    program, e = read_model(programs.DEADLOCK)
    # an even number of states with x > 0 among the first 7: parity cannot be known before the end
    parity = np.array([[0, 1], [1, 0]], dtype=np.int32)
    open_ = np.full(2, 2, dtype=np.uint8)
    question = Monitor.of_arrays([e("x>0")], parity, open_, np.array([True, False]), 7)
    question = replace(question, negated=negated)
    decided = programs.twice(e, "x=1", "x=4", 3)
    assert_same_as_reference(program, [question, decided], 60)
    batch = on_cpu(program, [question, decided]).run(0, PATHS)
    # the chain leaves 0 at once, and 6 states follow the first
    assert batch.outcomes[0].num_true == (0 if negated else PATHS)
    assert abs(batch.outcomes[1].num_true / PATHS - 0.25) < 5 * 0.5 / math.sqrt(PATHS)


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_monitors_are_answered_where_a_path_is_absorbed(strategy, small, monkeypatch):
    if not small:
        monkeypatch.setattr(layout, "MOST_COMMANDS", 0)
    program, e = read_model(programs.DIE)
    rows, open_ = ((0, 1), (1, 1)), (2, 1)
    reaches = Monitor((e("d=6"),), rows, open_, (False, True), 0, 10_001)
    # Whether s=7 holds at an odd number of 500 states: its 500 letters end nowhere before.
    parity = Monitor((e("s=7"),), ((0, 1), (1, 0)), (2, 2), (False, True), 0, 500)
    questions = [reaches, replace(reaches, negated=True), parity]
    assert_same_as_reference(program, questions, 60, strategy=strategy)
    batch = on_cpu(program, questions, strategy=strategy).run(0, PATHS)
    found = [outcomes.num_true for outcomes in batch.outcomes]
    assert sum(outcomes.num_undecided for outcomes in batch.outcomes) == 0
    assert batch.lengths.longest < 60
    assert found[0] + found[1] == PATHS
    assert abs(found[0] / PATHS - 1 / 6) < 5 * 0.5 / math.sqrt(PATHS)
    # The coin is flipped an odd number of times, 3 + 2k, so that 500 - 3 - 2k states are left.
    assert found[2] == PATHS


def test_a_state_left_with_some_probability_does_not_end_a_monitor():
    text = "dtmc\nmodule m\n x : [0..1];\n [] x=0 -> 0.5:(x'=0) + 0.5:(x'=1);\n [] x=1 -> true;\n"
    program, e = read_model(f"{text}endmodule")
    question = Monitor((e("x=1"),), ((0, 1), (1, 1)), (2, 1), (False, True), 0, 3)
    batch = on_cpu(program, [question]).run(0, PATHS)
    assert abs(batch.outcomes[0].num_true / PATHS - 0.75) < 5 * 0.5 / math.sqrt(PATHS)
    assert batch.lengths.longest == 2


def test_a_sampler_can_be_sent_to_another_process():
    _, program, questions = CASES[1]
    made = on_cpu(program, questions, 77, path_limit=9, threads=1)
    sent = pickle.loads(pickle.dumps(made))
    first, second = made.sample(5, 300), sent.sample(5, 300)
    assert np.array_equal(first.lengths, second.lengths)
    assert np.array_equal(first.rewards, second.rewards, equal_nan=True)
    assert first.lengths.max() == 9


def test_seeds_differ_and_are_checked():
    _, program, questions = CASES[0]
    first, second = (on_cpu(program, questions, seed).sample(0, 200) for seed in (1, 2))
    assert not np.array_equal(first.lengths, second.lengths)
    with pytest.raises(ValueError, match="64 bits"):
        on_cpu(program, questions, -1)
    with pytest.raises(ValueError, match="no paths"):
        on_cpu(program, questions).run(0, 0)


def test_progress_counts_every_path():
    _, program, questions = CASES[0]
    seen = []
    on_cpu(program, questions).run(0, 5000, seen.append)
    assert sum(seen) == 5000
    assert len(seen) > 1


def test_unbounded_questions_are_undecided_at_the_path_limit():
    program, e = read_model("dtmc\nmodule m\n x : [0..1];\n [] true -> (x'=1-x);\nendmodule")
    questions = [Until(TRUE, e("x=2")), Until(TRUE, e("x=2"), Bounds(0, 30))]
    batch = on_cpu(program, questions, path_limit=20).run(0, 10)
    never, bounded = batch.outcomes
    assert (never.num_undecided, never.num_true) == (10, 0)
    assert (bounded.num_undecided, bounded.num_true) == (0, 0)
    assert batch.lengths.longest == 31  # the bounded question is pursued beyond the limit


def test_a_certain_loop_decides_an_unbounded_until():
    text = "dtmc\nmodule m\n x : [0..2];\n [] x=0 -> 0.5:(x'=1) + 0.5:(x'=2);\n [] x>0 -> true;\n"
    program, e = read_model(f"{text}endmodule")
    batch = on_cpu(program, [Until(TRUE, e("x=2"))]).run(0, 1000)
    assert batch.outcomes[0].num_undecided == 0
    assert 400 < batch.outcomes[0].num_true < 600
    assert batch.lengths.longest == 2
    doubled, e = read_model(f"{text} [] x>0 -> true;\nendmodule")
    assert on_cpu(doubled, [Until(TRUE, e("x=2"))]).run(0, 50).outcomes[0].num_undecided > 0


def test_a_reward_that_is_never_reached_is_undecided():
    program, e = read_model(programs.DEADLOCK)
    question = ReachabilityReward(0, e("x=3"))
    made = on_cpu(program, [question])
    outcome = made.run(0, 400).outcomes[0]
    assert 0 < outcome.num_undecided < 400
    assert made.run(0, 400).lengths.longest == sampler.DEFAULT_PATH_LIMIT


@pytest.mark.parametrize("strategy", ["auto", "lazy"])
def test_a_program_without_commands_stays_where_it_is(strategy):
    text = "dtmc\nmodule m\n x : [0..1];\n [a] true -> (x'=1);\nendmodule\n"
    blocked, e = read_model(f"{text}module n\n y : [0..1];\n [b] true -> true;\nendmodule")
    silent = replace(blocked.modules[1], extra_actions=frozenset({0, 1}), commands=())
    stuck = replace(blocked, modules=(blocked.modules[0], silent))
    questions = [Until(TRUE, e("x=1")), CumulativeReward(0, 3.0)]
    program = replace(stuck, reward_structures=(_one_a_state(),))
    batch = on_cpu(program, questions, strategy=SynchronisationStrategy(strategy)).run(0, 5)
    assert batch.outcomes[0].num_true == batch.outcomes[0].num_undecided == 0
    assert batch.outcomes[1].moments.mean == 3.0
    assert batch.lengths.longest == 0


def _one_a_state():
    return RewardStructure("one", (StateReward(TRUE, ONE),))


def test_paths_begin_in_any_of_several_initial_states():
    program, e = read_model(programs.DIE)
    several = replace(program, initial_states=((1, 0), (2, 0), (7, 3)))
    assert_same_as_reference(several, [Until(TRUE, e("d=3"))], 40)
    outcome = on_cpu(several, [Until(TRUE, e("s=7 & d=3"))]).run(0, PATHS).outcomes[0]
    value = Explicit(several).answer(Until(TRUE, e("s=7 & d=3")))
    assert abs(outcome.num_true / PATHS - value) < 5 * 0.5 / math.sqrt(PATHS)


FAILURES = [
    (FailureKind.OUT_OF_RANGE, "[] true -> (x'=x+1);", "", {"variable": 0, "value": 4.0}),
    (FailureKind.NEGATIVE, "[] true -> (1-x) : (x'=x+1) + x : (x'=x+1);", "", {"value": -1.0}),
    (FailureKind.NOT_FINITE, "[] true -> (1/(1-x)) : (x'=x+1) + 0 : true;", "", {}),
    (FailureKind.ZERO, "[] true -> (1-x) : (x'=1);", "", {"command": (0, 0)}),
    (FailureKind.SUM, "[] x=0 -> (x'=1); [] x=1 -> 0.5:(x'=2) + 0.4:(x'=1);", "", {"value": 0.9}),
    (FailureKind.SUM, "[] x=0 -> (x'=1); [] x=1 -> (x/2):(x'=2) + 0.4:(x'=1);", "", {"step": 1}),
    (FailureKind.EVALUATION, "[] x<2 -> (x'=x+1); [] mod(x, 2-x)=5 -> true;", "", {"step": 2}),
    (FailureKind.REWARD_NEGATIVE, "[] x<3 -> (x'=x+1);", "true : 1-x;", {"structure": 0}),
    (FailureKind.REWARD_NOT_FINITE, "[] x<3 -> (x'=x+1);", "[] true : 1/(2-x);", {"step": 2}),
]


@pytest.mark.parametrize(("kind", "commands", "rewards", "details"), FAILURES)
@pytest.mark.parametrize("form", ["written out", "in tables"])
def test_errors_on_paths_are_found_and_explained(
    form, kind, commands, rewards, details, monkeypatch
):
    monkeypatch.setattr(layout, "MOST_UNITS", 0 if form == "in tables" else 99)
    text = f"dtmc\nmodule m\n x : [0..3];\n {commands}\nendmodule\nrewards {rewards} endrewards"
    program, e = read_model(text)
    made = on_cpu(program, [Until(TRUE, e("x=4"), Bounds(0, 9))])
    with pytest.raises(PathFailure) as caught:
        made.run(0, 50)
    failure = caught.value.failure
    assert failure.kind is kind
    for name, value in details.items():
        assert getattr(failure, name) == pytest.approx(value)
    first = failure.path
    if first > 0:
        assert made.run(0, first).num_paths == first


def test_errors_behind_the_end_of_a_path_do_not_matter():
    program, e = read_model("dtmc\nmodule m\n x : [0..3];\n [] true -> (x'=x+1);\nendmodule")
    assert on_cpu(program, [Until(TRUE, e("x=3"))]).run(0, 9).outcomes[0].num_true == 9


def test_rates_of_a_blocked_action_are_not_looked_at():
    text = """ctmc
module m
  x : [0..2];
  [a] true -> (0-1) : (x'=2);
  [] x=0 -> 3 : (x'=1);
endmodule
module n
  y : [0..1];
  [a] y=1 -> true;
  [a] y=1 -> 2 : true;
endmodule
"""
    program, e = read_model(text)
    for strategy in STRATEGIES[:3]:
        batch = on_cpu(program, [Until(TRUE, e("x=1"))], strategy=strategy).run(0, 9)
        assert batch.outcomes[0].num_true == 9
        open_, e = read_model(text.replace("y : [0..1]", "y : [0..1] init 1"))
        with pytest.raises(PathFailure, match="negative"):
            on_cpu(open_, [Until(TRUE, e("x=1"))], strategy=strategy).run(0, 9)


def test_deadlocks_are_errors_when_they_are_not_to_be_fixed():
    program, e = read_model(programs.DEADLOCK)
    for strategy in (SynchronisationStrategy.AUTO, SynchronisationStrategy.LAZY):
        made = on_cpu(program, [Next(e("x=4"))], deadlocks_fixed=False, strategy=strategy)
        with pytest.raises(PathFailure) as caught:
            made.run(0, 100)
        assert caught.value.failure.kind is FailureKind.DEADLOCK
        assert caught.value.failure.state == (4,)
        assert on_cpu(program, [Next(e("x=4"))], strategy=strategy).run(0, 100).num_paths == 100


def test_probabilities_need_not_sum_to_one_when_they_are_not_checked():
    text = "dtmc\nmodule m\n x : [0..2];\n [] true -> 0.2:(x'=1) + 0.6:(x'=2);\n endmodule"
    program, e = read_model(text)
    loose = replace(program, probabilities_checked=False)
    assert_same_as_reference(loose, [Next(e("x=1"))], 30)
    outcome = on_cpu(loose, [Next(e("x=1"))]).run(0, PATHS).outcomes[0]
    assert abs(outcome.num_true / PATHS - 0.25) < 5 * 0.5 / math.sqrt(PATHS)
    with pytest.raises(PathFailure, match="sum"):
        on_cpu(program, [Next(e("x=1"))]).run(0, 1)


def test_without_a_gpu_the_gpu_is_refused_and_auto_takes_the_cpu(monkeypatch):
    def refuse(*_):
        raise UnsupportedError("no device")

    monkeypatch.setattr(sampler, "CudaPaths", refuse)
    _, program, questions = CASES[0]
    with pytest.raises(UnsupportedError, match="no device"):
        sampler.Sampler(program, questions, 1, DeviceChoice.GPU)
    made = sampler.Sampler(program, questions, 1)
    assert isinstance(made, sampler.Sampler)
    assert made.run(0, 5).num_paths == 5


def test_instantaneous_rewards_at_time_zero_are_those_of_the_initial_state():
    program, _ = read_model(programs.DEADLOCK.replace("x : [0..4]", "x : [0..4] init 2"))
    batch = on_cpu(program, [InstantaneousReward(0, 0.0), CumulativeReward(0, 0.0)]).run(0, 3)
    assert [outcome.moments.mean for outcome in batch.outcomes] == [2.0, 0.0]
