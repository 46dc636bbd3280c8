"""Memory that does not suffice, stage by stage, limits lowered on purpose: errors, not crashes."""

from __future__ import annotations

import sys

import pytest

from tests.conftest import Run, run_command
from tests.endtoend.test_failures import assert_clean, error_line

pytestmark = pytest.mark.prism

CLUSTER = "ctmcs/cluster/cluster.sm"
KANBAN = "ctmcs/kanban/kanban.sm"
HERMAN = "dtmcs/herman/herman11.pm"
TANDEM = "ctmcs/tandem/tandem.sm"

QUICK = 'P=? [ F<=0.1 !"minimum" ]'
AT_ONCE = '"minimum"'
SERIAL = ("-javaparams", "-XX:+UseSerialGC")

CUDD_IS_FULL = """
import jpype
from prism_hooks.backend import EngineBackend

read = EngineBackend._symbolic_model
held = []

def with_full_library(self, problem):
    diagrams = jpype.JClass("jdd.JDD")
    diagrams.SetCUDDMaxMem(1)
    # Nodes that it has ready would do for a while.
    try:
        while True:
            held.append(diagrams.Constant(2.0 + len(held)))
    except jpype.JException:
        return read(self, problem)

EngineBackend._symbolic_model = with_full_library
"""
FILLED_HEAP = """
import jpype
from prism_hooks.backend import EngineBackend

held = []

def fill():
    # All but what an error takes to be told; the arrays are reachable from Python alone.
    for size in (1 << 20, 1 << 14):
        try:
            while True:
                held.append(jpype.JArray(jpype.JByte)(size))
        except jpype.JException:
            pass
    del held[-24:]

def first(name):
    method = getattr(EngineBackend, name)
    def call(self, *arguments):
        fill()
        return method(self, *arguments)
    setattr(EngineBackend, name, call)

def afterwards(name):
    method = getattr(EngineBackend, name)
    def call(self, *arguments):
        result = method(self, *arguments)
        fill()
        return result
    setattr(EngineBackend, name, call)
"""
NO_ADDRESSES_LEFT = """
import resource
from engines.host.compiled.library import library
from prism_hooks.symbolic import SymbolicModel

library()
expanded = SymbolicModel.expanded

def limited(self, *arguments):
    with open("/proc/self/statm", encoding="utf-8") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + (48 << 20), resource.RLIM_INFINITY))
    return expanded(self, *arguments)

SymbolicModel.expanded = limited
"""
TOLD_BY_COMPILED_CODE = """
import jpype
from prism_hooks.answers import Answers

def full(self):
    text = "Java heap space: failed reallocation of scalar replaced objects"
    raise jpype.JClass("java.lang.OutOfMemoryError")(text)

Answers.simulationMethod = full
"""
COMMAND = "import sys\nfrom bridge.cli import main\nmain(sys.argv[1:])\n"


@pytest.fixture
def with_limits(prism_install):
    """Return a function that runs `prism-gpu` in a process that a text has prepared."""

    def run(preparation: str, *words: object) -> Run:
        program = preparation + COMMAND
        command = [sys.executable, "-c", program, *map(str, words), "-nogpu"]
        return run_command(command, timeout=300, PRISM_DIR=str(prism_install.root))

    return run


def test_diagrams_that_fill_cudd_while_building(prism_gpu, prism, prism_examples):
    words = [prism_examples / KANBAN, "-const", "t=4", "-pf", 'R{"throughput"}=? [ S ]']
    words += ["-sparse", "-cuddmaxmem", "6m"]
    ours, theirs = prism_gpu(*words), prism(*words)
    assert error_line(ours.output) == error_line(theirs.output)
    assert "-cuddmaxmem" in ours.output.partition("\nError: ")[2]
    assert ours.code == theirs.code == 1
    assert_clean(ours)


def test_a_full_cudd_under_our_reader_ends_as_prism_ends(with_limits, prism_examples):
    words = [prism_examples / CLUSTER, "-const", "N=16", "-pf", f"{AT_ONCE};{QUICK}", "-sparse"]
    run = with_limits(CUDD_IS_FULL, *words)
    assert run.results() == ["true"]
    assert "prismgpu.Diagram.<init>" in run.output
    assert error_line(run.output) == "Out of memory (or other internal error) in the CUDD library."
    assert "-cuddmaxmem" in run.output.partition("\nError: ")[2]
    assert run.code == 1
    assert_clean(run)


def test_states_that_fill_java_s_heap_while_building(prism_gpu, prism_examples):
    words = [prism_examples / "mdps/csma/csma3_4.nm", "-pf", "Pmax=? [ F false ]", "-explicit"]
    run = prism_gpu(*words, "-javamaxmem", "16m")
    text = "Java ran out of memory (Java heap space) while building the model; "
    assert error_line(run.output) == text + "its heap has at most 16 MB."
    assert "-javamaxmem" in run.output.partition("\nError: ")[2]
    assert run.code == 1
    assert_clean(run)


def test_what_fills_java_s_heap_is_named_without_how_it_was_noticed(with_limits, prism_examples):
    words = [prism_examples / HERMAN, "-pf", 'R=? [ F "stable" ]', "-sim"]
    run = with_limits(TOLD_BY_COMPILED_CODE, *words)
    text = "Java ran out of memory (Java heap space) while checking a property; "
    assert error_line(run.output).startswith(text + "its heap has at most ")
    assert run.code == 1
    assert_clean(run)


def test_diagrams_that_fill_java_s_heap_leave_the_results_before_them(with_limits, prism_examples):
    words = [prism_examples / CLUSTER, "-const", "N=256", "-pf", f"{AT_ONCE};{QUICK}", "-sparse"]
    preparation = FILLED_HEAP + 'first("_symbolic_model")\n'
    run = with_limits(preparation, *words, "-javamaxmem", "24m", *SERIAL)
    text = "Java ran out of memory (Java heap space) while reading the model for our engines; "
    assert error_line(run.output).startswith(text + "its heap has at most 2")
    assert run.results() == ["true"]
    assert run.code == 1
    assert_clean(run)


def test_a_solution_that_fills_java_s_heap(with_limits, prism_examples):
    words = [prism_examples / TANDEM, "-const", "c=255", "-pf", "P=? [ F<=0.01 sc=1 ]", "-explicit"]
    preparation = FILLED_HEAP + 'afterwards("_answer")\n'
    run = with_limits(preparation, *words, "-javamaxmem", "200m", *SERIAL)
    text = "while handing a question to our engines, or its answer back"
    assert text in error_line(run.output)
    assert run.results() == []
    assert run.code == 1
    assert_clean(run)


def test_a_heap_too_small_to_start_in_is_refused(prism_gpu, prism_examples):
    run = prism_gpu(prism_examples / HERMAN, "-javamaxmem", "8m")
    text = "a Java heap of 8m is too small to start in: -javamaxmem must be at least 16m."
    assert error_line(run.output) == text
    assert run.code == 1
    assert_clean(run)


def test_a_matrix_that_the_host_cannot_hold_leaves_the_results_before_it(
    with_limits, prism_examples
):
    words = [prism_examples / CLUSTER, "-const", "N=200", "-pf", f"{AT_ONCE};{QUICK}"]
    run = with_limits(NO_ADDRESSES_LEFT, *words, "-sparse")
    text = error_line(run.output)
    where = "prism-gpu ran out of memory in a time-bounded until computation on 1451220 states: "
    assert text.startswith(where)
    assert "Unable to allocate" in text
    assert "-gpuformat hybrid" in run.output
    assert run.results() == ["true"]
    # As after PRISM's own "Out of memory" in a solve: the property fails, the run goes on.
    assert run.code == 0
    assert_clean(run)
