"""Sampled paths on a GPU: the same answers as on the CPU, digit for digit."""

from __future__ import annotations

import numpy as np
import pytest

from engines.errors import UnsupportedError
from engines.model.environment import DeviceChoice
from engines.montecarlo import cuda, layout
from engines.montecarlo.failure import FailureKind, PathFailure
from engines.montecarlo.plan import SynchronisationStrategy
from engines.montecarlo.questions import Bounds, ReachabilityReward, RewardQuestion, Until
from engines.montecarlo.reference import sample_path
from engines.montecarlo.sampler import DEFAULT_PATH_LIMIT, Sampler
from engines.program.expressions import TRUE
from engines.program.native import compiler
from tests.engines.montecarlo import programs
from tests.engines.montecarlo.random_programs import random_program
from tests.engines.montecarlo.reader import read_model

pytestmark = pytest.mark.gpu

CASES = list(programs.cases())
STRATEGIES = list(SynchronisationStrategy)


def has_compiler():
    try:
        compiler()
    except UnsupportedError:
        return False
    return True


def assert_same_on_both(program, questions, first=0, count=5000, seed=9, **options):
    """Answers and lengths are the CPU's bit for bit, and those of the interpreter.

    Without a C compiler more paths are compared with the interpreter's.
    """
    gpu = Sampler(program, questions, seed, DeviceChoice.GPU, **options)
    assert gpu.on_gpu
    on_gpu = gpu.sample(first, count)
    if has_compiler():
        on_cpu = Sampler(program, questions, seed, DeviceChoice.CPU, **options).sample(first, count)
        assert np.array_equal(on_gpu.lengths, on_cpu.lengths)
        assert np.array_equal(on_gpu.booleans, on_cpu.booleans)
        assert np.array_equal(on_gpu.rewards.view(np.int64), on_cpu.rewards.view(np.int64))
    limit = options.get("path_limit", DEFAULT_PATH_LIMIT)
    for i in range(3 if has_compiler() else 40):
        path = sample_path(gpu.compiled.plan, questions, seed, first + i, limit)
        assert path.length == on_gpu.lengths[i]
        for row, question, answer in zip(gpu.compiled.rows, questions, path.answers, strict=True):
            is_reward = isinstance(question, RewardQuestion)
            found = (on_gpu.rewards if is_reward else on_gpu.booleans)[row][i]
            assert found == answer or (found != found and answer != answer)
    return on_gpu


@pytest.mark.parametrize("case", CASES, ids=[name for name, _, _ in CASES])
def test_answers_are_those_of_the_cpu(case):
    _, program, questions = case
    assert_same_on_both(program, questions)


@pytest.mark.parametrize("form", ["written out", "in tables"])
@pytest.mark.parametrize("discrete", [True, False], ids=["dtmc", "ctmc"])
def test_random_programs_have_the_cpus_answers_in_every_form(discrete, form, monkeypatch):
    monkeypatch.setattr(layout, "MOST_UNITS", 0 if form == "in tables" else 99)
    for seed in range(2):
        program, questions = random_program(seed, discrete)
        for strategy in STRATEGIES[1:4] if discrete else STRATEGIES[1:3]:
            assert_same_on_both(program, questions, seed << 40, strategy=strategy, path_limit=300)


@pytest.mark.parametrize("strategy", ["auto", "lazy"])
def test_large_programs_have_the_cpus_answers(strategy):
    for number in (40, 300):
        program, e = read_model(programs.philosophers_model(number))
        questions = [
            Until(TRUE, e("p1=6"), Bounds(0, 200)),
            programs.twice(e, "p1=6", "p2=6", 200),
        ]
        assert_same_on_both(
            program, questions, strategy=SynchronisationStrategy(strategy), count=2000
        )


def test_large_synchronous_programs_have_the_cpus_answers():
    program, e = read_model(programs.herman_model(11))
    assert_same_on_both(program, [ReachabilityReward(0, e("num_tokens=1"))])


def test_answers_do_not_depend_on_batches():
    _, program, questions = CASES[4]
    made = Sampler(program, questions, 3, DeviceChoice.GPU)
    whole = made.sample(0, 70_001)
    parts = [made.sample(0, 1), made.sample(1, 60_000), made.sample(60_001, 10_000)]
    for name in ("booleans", "rewards", "lengths"):
        pieces = [getattr(part, name) for part in parts]
        assert np.array_equal(getattr(whole, name), np.concatenate(pieces, axis=-1), equal_nan=True)


def test_errors_are_explained():
    program, e = read_model(
        "dtmc\nmodule m\n x : [0..3];\n [] true -> 0.9:(x'=0) + 0.1:(x'=x+1);\nendmodule"
    )
    questions = [Until(TRUE, e("x=4"), Bounds(0, 500))]
    with pytest.raises(PathFailure) as caught:
        Sampler(program, questions, 1, DeviceChoice.GPU).run(0, 3000)
    failure = caught.value.failure
    assert failure.kind is FailureKind.OUT_OF_RANGE
    assert failure.state == (3,)
    plan = Sampler(program, questions, 1, DeviceChoice.GPU).compiled.plan
    for path in range(failure.path):
        assert sample_path(plan, questions, 1, path, DEFAULT_PATH_LIMIT).answers == [0.0]


@pytest.mark.parametrize("devices", [(0, 0), (0, 0, 0)])
def test_one_gpu_may_stand_for_several(monkeypatch, devices):
    monkeypatch.setattr(cuda, "_SHARE", 1000)
    _, program, questions = CASES[0]
    alone = Sampler(program, questions, 9, DeviceChoice.GPU).sample(7, 10_001)
    shared = Sampler(program, questions, 9, DeviceChoice.GPU, devices=devices)
    assert shared.num_devices == len(devices)
    found = shared.sample(7, 10_001)
    assert np.array_equal(found.lengths, alone.lengths)
    assert np.array_equal(found.booleans, alone.booleans)
    assert np.array_equal(found.rewards.view(np.int64), alone.rewards.view(np.int64))
