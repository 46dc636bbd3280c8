"""The source of a program: what it holds, the strategies, compilers and their cache."""

from __future__ import annotations

import re
import threading

import pytest

from engines.errors import InvalidModelError, UnsupportedError
from engines.montecarlo.compile import compile_program
from engines.montecarlo.cuda import OPTIONS
from engines.montecarlo.layout import Layout
from engines.montecarlo.plan import Check, SynchronisationStrategy, make_plan
from engines.montecarlo.questions import (
    Bounds,
    CumulativeReward,
    InstantaneousReward,
    Monitor,
    Next,
    ReachabilityReward,
    Until,
)
from engines.process.cache import CACHE_VARIABLE
from engines.program import native
from engines.program.expressions import TRUE

from ..test_kernels_compile import compile_source, nvrtc  # noqa: F401
from . import programs
from .random_programs import random_program
from .reader import read_model

STRATEGIES = list(SynchronisationStrategy)


def test_no_name_of_a_model_reaches_the_source():
    text = re.sub(r"\bs\b", "system_rm_rf", programs.DIE)
    text = text.replace("module die", "module evil_name").replace('"flips"', '"*/ evil_name"')
    program, e = read_model(text)
    source = compile_program(program, [Until(TRUE, e("system_rm_rf=7"))]).text
    assert "rm_rf" not in source
    assert "evil" not in source
    assert source.isascii()


def test_equal_modules_share_their_functions():
    program, e = read_model(programs.philosophers_model(100))
    question = Until(TRUE, e("p1=6"), Bounds(0, 10))
    compiled = compile_program(program, [question])
    layout = Layout(compiled.plan)
    assert not layout.small
    assert len(layout.classes) == 1
    assert len(set(layout.slots)) == 100
    larger, e = read_model(programs.philosophers_model(150))
    source = compile_program(larger, [Until(TRUE, e("p1=6"), Bounds(0, 10))]).text
    assert len(source) < len(compiled.text) + 4000


def test_units_are_touched_only_by_those_whose_variables_they_read():
    program, _ = read_model(programs.philosophers_model(100))
    plan = make_plan(program)
    assert plan.touched[50] == (49, 50, 51)
    assert plan.touched[0] == (0, 1, 99)
    assert plan.level_sizes == (100, 7)


def test_strategies_make_units_of_actions():
    program, _ = read_model(programs.AGREEING)
    at_run_time = make_plan(program, SynchronisationStrategy.RUN_TIME)
    go = next(unit for unit in at_run_time.units if unit.action is not None)
    assert [len(factor.commands) for factor in go.factors] == [2, 2, 1]
    combined = make_plan(program, SynchronisationStrategy.COMPILE_TIME)
    go = next(unit for unit in combined.units if unit.action is not None)
    assert [len(factor.commands) for factor in go.factors] == [4]
    assert len(make_plan(program).units) == len(combined.units) == 3


def test_auto_does_not_write_out_large_products():
    program, _ = read_model(programs.herman_model(9))
    plan = make_plan(program)
    assert len(plan.units[0].factors) == 9
    with pytest.raises(UnsupportedError, match="run-time"):
        make_plan(program, SynchronisationStrategy.COMPILE_TIME)


def test_the_lazy_strategy_is_refused_where_its_distribution_is_not_prisms():
    program, _ = read_model(programs.POLLING)
    with pytest.raises(UnsupportedError, match="auto"):
        make_plan(program, SynchronisationStrategy.LAZY)


def test_constant_probabilities_need_no_look_at_run_time():
    program, _ = read_model(programs.DIE)
    plan = make_plan(program)
    checks = {
        plan.check(weights, program.variables)
        for command in plan.units[0].factors[0].commands
        for weights in command.weights
    }
    assert checks == {Check.NONE}
    bad, _ = read_model(programs.DIE.replace("s=0 -> 0.5", "s=0 -> 0.6"))
    first = make_plan(bad).units[0].factors[0].commands[0]
    assert plan.check(first.weights[0], bad.variables) is Check.STATIC


def sources():
    for name, program, questions in programs.cases():
        yield name, compile_program(program, questions).text
    for strategy in (SynchronisationStrategy.AUTO, SynchronisationStrategy.LAZY):
        program, e = read_model(programs.philosophers_model(160))
        twice = programs.twice(e, "p1=6", "p2=6", 200)
        yield f"philosophers {strategy}", compile_program(program, [twice], strategy).text
    program, e = read_model(programs.herman_model(9))
    yield "herman 9", compile_program(program, [ReachabilityReward(0, e("num_tokens=1"))]).text
    for discrete in (False, True):
        program, questions = random_program(1, discrete)
        for strategy in STRATEGIES[: 4 if discrete else 3]:
            compiled = compile_program(program, questions, strategy, deadlocks_fixed=discrete)
            yield f"random {strategy}", compiled.text


def test_sources_compile_for_gpus_without_warnings(nvrtc):  # noqa: F811
    options = (*OPTIONS, "--gpu-architecture=sm_90")
    for name, source in sources():
        code = compile_source(nvrtc, source, f"{name}.cu", options)
        assert b".text.sample_paths\0" in code


@pytest.fixture
def empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_libraries_are_compiled_once_even_by_two_at_a_time(empty_cache, monkeypatch):
    program, e = read_model(programs.DIE)
    text = compile_program(program, [Until(TRUE, e("s=7"))]).text
    found = []
    threads = [threading.Thread(target=lambda: found.append(native.load(text))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({library._name for library in found}) == 1
    assert len(list(empty_cache.iterdir())) == 1
    monkeypatch.setattr(native, "compiler", lambda: ("this-is-no-compiler",))
    assert native.load(text)._name == found[0]._name


def test_without_a_compiler_the_error_says_how_to_get_one(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("CC", raising=False)
    native.compiler.cache_clear()
    try:
        with pytest.raises(UnsupportedError, match="apt install gcc"):
            native.compiler()
    finally:
        native.compiler.cache_clear()


def test_the_compilers_complaint_is_passed_on(empty_cache):
    with pytest.raises(UnsupportedError, match="did not compile"):
        native.load("int broken(")
    assert not list(empty_cache.iterdir())


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (lambda e: Until(TRUE, e("s=7"), Bounds(0.0, 2.5)), "whole number"),
        (lambda e: Until(TRUE, e("s=7"), Bounds(0.0, 0.0, upper_strict=True)), "below 0"),
        (lambda e: Until(e("s"), e("s=7")), "is a int"),
        (lambda e: CumulativeReward(1, 3.0), "not there"),  # noqa: ARG005
        (lambda e: CumulativeReward(0, -3.0), "no bound"),  # noqa: ARG005
        (lambda e: InstantaneousReward(0, 2.5), "no bound"),  # noqa: ARG005
        (lambda e: Monitor((e("s=7"),), ((0, 1),), (2,), (True,), 0, 3), "not there"),
        (lambda e: Monitor((e("s=7"),), ((0,),), (2,), (True,), 0, 3), "fit together"),
    ],
)
def test_questions_that_do_not_fit_are_refused(question, reason):
    program, e = read_model(programs.DIE)
    with pytest.raises(InvalidModelError, match=reason):
        compile_program(program, [question(e)])


def test_an_unbounded_until_wants_checked_probabilities():
    from dataclasses import replace

    program, e = read_model(programs.DIE)
    loose = replace(program, probabilities_checked=False)
    with pytest.raises(UnsupportedError, match="not checked"):
        compile_program(loose, [Until(TRUE, e("s=7"))])
    assert "sample_paths" in compile_program(loose, [Next(e("s=1"))]).text


def test_what_is_too_much_for_a_source_is_refused():
    from dataclasses import replace

    program, e = read_model(programs.DIE)
    question = Until(TRUE, e("s=7"))
    many = replace(program, initial_states=((0, 0),) * (2**16 + 1))
    with pytest.raises(UnsupportedError, match="65537 states"):
        compile_program(many, [question])
    with pytest.raises(UnsupportedError, match="257 questions"):
        compile_program(program, [question] * 257)
    states = 2**18 + 1
    large = Monitor((), ((0,),) * states, (2,) * states, (True,) * states, 0, 3)
    with pytest.raises(UnsupportedError, match="262145 entries"):
        compile_program(program, [large])


def test_deeply_nested_expressions_are_refused():
    text = programs.DIE.replace("s<7 : 1", "s<7 : " + "+".join(["d"] * 3000))
    program, e = read_model(text)
    with pytest.raises(UnsupportedError, match="nested"):
        compile_program(program, [ReachabilityReward(0, e("s=7"))])


def test_sources_hold_nothing_but_numbers_and_generated_names():
    program, questions = random_program(3, True)
    source = compile_program(program, questions).text
    assert not re.findall(r"\bx[0-9]\b|\bm[0-9]\b|moved_by", source)
