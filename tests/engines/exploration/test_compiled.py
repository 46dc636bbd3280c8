"""Models built by C that is compiled from their programs are those that byte code makes."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import engines.host
from engines.errors import InvalidModelError, UnsupportedError
from engines.exploration.build import ExplorationTuning, build
from engines.exploration.initial import initial_states
from engines.host.exploring import compiled as compiled_code
from engines.host.exploring.explorer import HostExplorer
from engines.model.events import Kind
from engines.process.cache import CACHE_VARIABLE
from engines.program import native
from engines.program.packing import Packing
from engines.program.source import arithmetic_constants
from tests.engines.montecarlo.programs import herman_model
from tests.engines.montecarlo.reader import read_model

from .programs import random_program
from .test_build import GRID, KINDS, require_same
from .test_successors import BEGINNING

COMPILED = ExplorationTuning(states_before_compiling=0)
SMALL_PARTS = ExplorationTuning(
    states_before_compiling=0, seconds_of_a_part=0.0, states_of_a_part=7
)
BY_BYTE_CODE = ExplorationTuning(states_before_compiling=2**40)


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    try:
        native.compiler()
    except UnsupportedError as error:
        pytest.skip(str(error))


@pytest.fixture
def own_cache(monkeypatch, tmp_path):
    folder = tmp_path / "cache"
    monkeypatch.setenv(CACHE_VARIABLE, str(folder))
    return folder


GARBAGE = """
static __attribute__((noinline)) void leave_garbage(void) {
  volatile u8 bytes[1 << 16];
  for (int i = 0; i < 1 << 16; i++) bytes[i] = 64;
}
EXPORTED void expand_states(const u64 *states, int count, Found *found, u8 *failed) {
  leave_garbage();
  expand(states, count, found, failed);
}
"""


@pytest.fixture
def garbage_in_memory(monkeypatch):
    """Let local variables begin with anything."""
    source_of = compiled_code.source_of

    def changed(program, packing):
        text = source_of(program, packing)
        beginning = "EXPORTED void expand_states"
        assert text.count(beginning) == 1
        return text.replace(beginning, "static __attribute__((noinline)) void expand") + GARBAGE

    monkeypatch.setattr(compiled_code, "source_of", changed)


def same_arrays(a, b):
    """Whether two built models are the same, to the last bit."""
    pairs = [(a.states, b.states), (a.actions, b.actions), (a.deadlocks, b.deadlocks)]
    for x, y in ((a.model.matrix, b.model.matrix), (a.model, b.model)):
        names = [field.name for field in fields(x)]
        pairs += [(getattr(x, name), getattr(y, name)) for name in names]
    arrays = [(x, y) for x, y in pairs if isinstance(x, np.ndarray) or isinstance(y, np.ndarray)]
    return all(np.array_equal(x, y) for x, y in arrays)


def compiled(program, tuning=COMPILED, threads=None):
    """A model built by compiled code, without a word of what did not work."""
    built = build(program, tuning=tuning, threads=threads)
    assert built.events == ()
    return built


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("seed", BEGINNING)
@pytest.mark.usefixtures("garbage_in_memory")
def test_random_programs(seed, everything):
    program = random_program(seed, everything=everything)
    try:
        expected = build(program, tuning=BY_BYTE_CODE)
    except InvalidModelError:
        with pytest.raises(InvalidModelError, match="state"):
            build(program, tuning=COMPILED)
        return
    require_same(program, compiled(program, SMALL_PARTS, threads=2))
    assert same_arrays(expected, compiled(program))


@pytest.mark.usefixtures("garbage_in_memory")
def test_guards_that_can_fail_hold_in_the_states_of_a_block_alone():
    # Guards of eight states are packed together, the last of which may be none of the block.
    text = "dtmc module m x : [0..50000]; y : bool; [] pow(x,2)=-3 -> (y'=true); endmodule "
    for states in range(1, 10):
        program, _ = read_model(text + f"init x<{states} & !y endinit")
        built = compiled(program)
        assert len(built.states) == states
        require_same(program, built)


def test_what_an_impossible_update_assigns_need_not_have_a_value():
    program, _ = read_model(
        "ctmc module m x : [0..3]; y : [0..3]; [] x<3 -> 1 : (x'=x+1) + (x=4 ? 1 : 0) : "
        "(x'=mod(pow(2,34),3)) + max(0,-x) : (y'=mod(x,0)); endmodule"
    )
    built = compiled(program)
    assert len(built.states) == 4
    require_same(program, built)


@pytest.mark.parametrize("kind", ["dtmc", "ctmc", "mdp"])
def test_threads_and_the_moment_of_compiling_do_not_matter(kind):
    program, _ = read_model(GRID.format(kind=kind, most=30))
    expected = build(program, tuning=BY_BYTE_CODE)
    for threads in (1, 3):
        for states in (0, 200, 900):
            tuning = ExplorationTuning(states_before_compiling=states, states_of_a_part=300)
            assert same_arrays(expected, compiled(program, tuning, threads))


@pytest.mark.parametrize("variables", [9, 70])
def test_states_of_many_words(variables):
    kinds = "\n".join(f"  x{i} : {KINDS[i % 3]};" for i in range(variables))
    text = f"mdp\nmodule m\n{kinds}\n"
    text += "".join(f"  [] x{i}=0 -> (x{i}'=1);\n" for i in range(0, variables, variables // 5))
    program, _ = read_model(text + "endmodule\n")
    built = compiled(program)
    assert built.packing.words > 1
    require_same(program, built)


def test_more_transitions_than_a_buffer_holds():
    updates = " + ".join(f"1/40 : (x'=mod(x+{i}*y, 97))" for i in range(40))
    text = f"mdp module m x : [0..96]; [a] true -> {updates}; [b] x<90 -> {updates}; endmodule "
    program, _ = read_model(text + "module n y : [1..3]; [a] true -> (y'=mod(y,3)+1); endmodule")
    require_same(program, compiled(program))


def test_modules_that_synchronise_in_too_many_ways_are_left_to_byte_code():
    program, _ = read_model(herman_model(9))
    built = build(program, tuning=COMPILED)
    (event,) = built.events
    assert "transitions under one action; at most" in str(event)
    assert same_arrays(build(program, tuning=BY_BYTE_CODE), built)


def test_logarithms_and_powers_have_the_same_digits():
    weights = ["pow(x+0.5, 0.3*y)", "log(x+1.25, 3)", "pow(2.0, x-y)", "pow(1/3, x)"]
    text = "ctmc module m x : [0..20]; y : [0..20]; [] x<20 -> 1 : (x'=x+1); "
    text += "".join(f"[] y<20 -> {weight} : (y'=y+1); " for weight in weights)
    program, _ = read_model(text + "endmodule")
    by_byte_code = build(program, tuning=BY_BYTE_CODE)
    require_same(program, by_byte_code)
    assert same_arrays(by_byte_code, compiled(program))


def test_the_compiled_library_has_the_constants_of_the_arithmetic():
    path = Path(engines.host.__file__).parent / "src" / "explore_arithmetic.hpp"
    lines = path.read_text().splitlines()
    assert [line for line in lines if line.startswith("#define")] == arithmetic_constants()


def test_a_search_pauses_at_a_number_of_states_and_not_by_the_clock():
    program, _ = read_model(GRID.format(kind="mdp", most=200))
    packing = Packing.of(program)
    found = []
    for threads, seconds in ((1, 100.0), (1, 0.0), (3, 100.0)):
        explorer = HostExplorer(program, packing, initial_states(program, packing), 2**40, threads)
        report = explorer.search(seconds, 3_000)
        while report.found <= 3_000:
            report = explorer.search(seconds, 3_000)
        assert not report.done
        found.append(report.found)
    assert len(set(found)) == 1


def test_a_fault_is_that_of_byte_code():
    text = "dtmc module m x : [0..500]; [] x<499 -> (x'=x+1); [] x=499 -> (x'=x+2); endmodule"
    program, _ = read_model(text)
    for tuning in (BY_BYTE_CODE, COMPILED):
        with pytest.raises(InvalidModelError, match=r"501 is out of its range 0\.\.500"):
            build(program, tuning=tuning)


def test_a_program_is_compiled_once(own_cache, monkeypatch):
    program, _ = read_model(GRID.format(kind="dtmc", most=7))
    first = compiled(program)
    assert {path.stat().st_mode & 0o777 for path in own_cache.rglob("*.so")} == {0o600}
    monkeypatch.setattr(native, "_compile", None)
    assert same_arrays(first, compiled(program))


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("command", ["", "false"])
def test_without_a_compiler_byte_code_goes_on_and_one_line_says_so(monkeypatch, command):
    program, _ = read_model(GRID.format(kind="mdp", most=9))
    expected = build(program, tuning=BY_BYTE_CODE)
    assert expected.events == ()
    if command:
        monkeypatch.setenv("CC", command)
    else:
        monkeypatch.setenv("PATH", "/nonexistent")
        monkeypatch.delenv("CC", raising=False)
    native.compiler.cache_clear()
    native._identity.cache_clear()
    try:
        built = build(program, tuning=SMALL_PARTS)
    finally:
        native.compiler.cache_clear()
        native._identity.cache_clear()
    (event,) = built.events
    assert event.kind is Kind.BUILT_BY_BYTE_CODE
    reason = "did not compile the model" if command else "no C compiler was found"
    assert reason in str(event)
    assert same_arrays(expected, built)
