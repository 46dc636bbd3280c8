"""What is out of the way of a run's first solve."""

from __future__ import annotations

import pytest

from tests.endtoend.test_graph_searches import runner

pytestmark = pytest.mark.prism

FIRST_SOLVE = """
import gc, sys
from bridge import cli
from prism_hooks.backend import EngineBackend

solve = EngineBackend.solve

def watched(self, problem):
    before = set(sys.modules)
    solve(self, problem)
    print("LOADED:", *sorted(set(sys.modules) - before))
    import jpype
    beans = jpype.JPackage("java").lang.management.ManagementFactory.getGarbageCollectorMXBeans()
    def collections():
        return sum(int(bean.getCollectionCount()) for bean in beans)
    begun = collections()
    # Memory grows so that JPype would start a collection of Java's behind one of Python's.
    kept = []
    for _ in range(4):
        kept.append([bytes(1 << 16) for _ in range(1 << 10)])
        gc.collect()
    print("COLLECTIONS:", collections() - begun)

EngineBackend.solve = watched
cli.main()
"""


@pytest.fixture(scope="module")
def first_solve(prism_install, prism_examples):
    """Return what a run printed whose first solve was watched."""
    watched = runner(FIRST_SOLVE, prism_install, "-nogpu", "-javaparams", "-XX:+PrintCompilation")
    model = prism_examples / "dtmcs/herman/herman7.pm"
    run = watched(model, "-pf", 'filter(max, R=? [ F "stable" ])')
    assert run.code == 0, run.output + run.errors
    return run.output


def words_of(output: str, name: str) -> list[str]:
    """Return the words behind a name in the lines with it: of predecessors, a search, a solve."""
    # What Java's compiler prints meanwhile may stand before it.
    lines = [line.split(f"{name}:")[1] for line in output.splitlines() if f"{name}:" in line]
    assert len(lines) == 3
    return [word for line in lines for word in line.split()]


def test_it_loads_nothing_but_numpy_s_view_of_native_memory(first_solve):
    loaded = set(words_of(first_solve, "LOADED"))
    assert loaded <= {"numpy.ctypeslib", "numpy.ctypeslib._ctypeslib"}


def test_python_s_collections_start_none_of_java_s(first_solve):
    assert words_of(first_solve, "COLLECTIONS") == ["0", "0", "0"]


def test_what_writes_lambda_expressions_is_not_compiled_at_length(first_solve):
    compiled = [line.split() for line in first_solve.splitlines() if " 4   " in line]
    assert compiled
    assert not any("jdk.internal.org.objectweb.asm.Frame::execute" in words for words in compiled)
