"""Lines of PRISM's engines around a solve."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engines.model.csr import CsrMatrix
from engines.model.environment import Method, SolverEnvironment
from engines.model.events import Kind
from engines.model.explicit import ExplicitModel, ModelKind
from engines.model.result import SolveResult
from prism_hooks import told_solve
from prism_hooks.engine_lines import engine_lines, warning_of
from prism_hooks.options import HookOptions
from prism_hooks.questions import Question
from prism_hooks.report import Ending
from prism_hooks.told_solve import Asked

# From state 0 half of the time back, and a quarter each to the target and to the sink.
CHAIN = ExplicitModel(
    ModelKind.DTMC,
    CsrMatrix(
        np.array([0, 3, 4, 5]), np.array([0, 1, 2, 1, 2]), np.array([0.5, 0.25, 0.25, 1, 1]), 3
    ),
)
QUESTION = Question(
    states=np.array([True, False, False]),
    remain=np.ones(3, dtype=np.bool_),
    start=np.array([0.0, 1.0, 0.0]),
)
BOUNDED = {"intervals": SimpleNamespace()}
SPARSE = HookOptions(engine_named=True, symbolic_engine="sparse")


def problem(*, symbolic: bool = True, **more: Any) -> Any:
    parts = SimpleNamespace(stepNodes=0) if symbolic else None
    return SimpleNamespace(
        **{"parts": parts, "intervals": None, "topological": False, "told": False, **more}
    )


def asked(method: Method = Method.JACOBI, ending: Ending = Ending.CONVERGENCE) -> Asked:
    environment = SolverEnvironment(method=method)
    return Asked("reachability", CHAIN, QUESTION, ending, environment)


def test_the_sparse_engine_tells_of_matrix_and_vectors_in_its_own_units():
    lines = engine_lines(problem(), asked(), SPARSE)
    assert lines is not None
    # 2 entries of one value off the diagonal: 8 + 2 * 4 + 3 bytes.
    assert lines.before.splitlines() == [
        "",
        "Building sparse matrix... [n=3, nnz=2, compact] [0.0 KB]",
        "Creating vector for diagonals... [dist=2, compact] [0.0 KB]",
        "Creating vector for RHS... [dist=2, compact] [0.0 KB]",
        "Allocating iteration vectors... [2 x 0.0 KB]",
        "TOTAL: [0.1 KB]",
        "",
        "Starting iterations...",
    ]
    result = SolveResult.exact(np.zeros(3), Method.JACOBI)
    assert lines.after(result).startswith("\nJacobi: 1 iterations in 0.00 seconds (average ")


def test_gauss_seidel_has_one_vector_of_iterates():
    lines = engine_lines(problem(), asked(Method.GAUSS_SEIDEL), SPARSE)
    assert lines is not None
    assert "Allocating iteration vector... [0.0 KB]\n" in lines.before


def test_what_is_infinite_is_no_value_of_the_right_hand_side():
    question = replace(QUESTION, start=np.array([0.0, 0.0, np.inf]), rewards=np.full(3, 2.0))
    lines = engine_lines(problem(), replace(asked(), question=question), SPARSE)
    assert lines is not None
    assert "Creating vector for RHS... [dist=2, compact]" in lines.before


def test_the_hybrid_engine_tells_of_no_storage_that_is_not_made():
    hybrid = replace(SPARSE, symbolic_engine="hybrid")
    lines = engine_lines(problem(), asked(), hybrid)
    assert lines is not None
    assert lines.before == "\nStarting iterations..."
    steps = replace(asked(Method.AUTO, Ending.STEPS), task="step-bounded until")
    bounded = engine_lines(problem(), steps, hybrid)
    assert bounded is not None
    result = SolveResult.exact(np.zeros(3), Method.POWER)
    assert bounded.after(result).startswith("\nIterative method: 0 iterations in ")


def steady(method: Method, rows: list[bool], task: str = "steady state") -> Asked:
    question = Question(states=np.array(rows), remain=np.ones(3, dtype=np.bool_))
    environment = SolverEnvironment(method=method)
    ending = Ending.CONVERGENCE
    return Asked(task, CYCLE, question, ending, environment, nodes=9, bottom_seconds=0.1234)


# States 0 and 1 alternate; state 2 leads to them.
CYCLE = ExplicitModel(
    ModelKind.DTMC,
    CsrMatrix(np.array([0, 1, 2, 4]), np.array([1, 0, 0, 2]), np.array([1, 1, 0.5, 0.5]), 3),
)


def test_a_component_has_the_entries_of_its_own_states():
    parts = SimpleNamespace(stepNodes=7)
    lines = engine_lines(problem(parts=parts), steady(Method.POWER, [True, True, False]), SPARSE)
    assert lines is not None
    told = lines.before.splitlines()
    assert told[1] == "Building power method iteration matrix MTBDD... [nodes=7] [0.1 Kb]"
    # Two transitions and two steps that stay.
    assert told[2].startswith("Building sparse matrix... [n=3, nnz=4, compact]")
    # Of larger models the diagram is not made: the nodes are those of the model's own.
    uncounted = problem(parts=SimpleNamespace(stepNodes=0))
    lines = engine_lines(uncounted, steady(Method.POWER, [True, True, False]), SPARSE)
    assert lines is not None
    assert "[nodes=9]" in lines.before
    # Exit rates have PRISM's sign, and 1 stands where there are none.
    lines = engine_lines(problem(), steady(Method.JACOBI, [True, True, False]), SPARSE)
    assert lines is not None
    assert "Creating vector for diagonals... [dist=2, compact]" in lines.before


def test_the_search_for_components_is_told_of_with_its_own_time():
    asked_for = steady(Method.JACOBI, [True, True, True], "long-run average")
    lines = engine_lines(problem(sought="probability"), asked_for, SPARSE)
    assert lines is not None
    assert "Time for BSCC computation: 0.123 seconds, found 1 BSCCs.\n" in lines.before
    # What PRISM's code puts together, or what is asked of a part, has our line.
    assert engine_lines(problem(sought=None), asked_for, SPARSE) is None


def test_large_arrays_are_not_looked_through(monkeypatch):
    monkeypatch.setattr(told_solve, "COUNTED", 0)
    lines = engine_lines(problem(), asked(), SPARSE)
    assert lines is not None
    assert "[n=3, nnz=3] [" in lines.before
    assert "compact" not in lines.before


def test_the_explicit_engine_counts_what_its_sweeps_multiply():
    explicit = HookOptions(engine_named=True)
    lines = engine_lines(problem(symbolic=False), asked(Method.POWER), explicit)
    assert lines is not None
    assert lines.before == "Starting value iteration (with Power method)..."
    result = SolveResult.exact(np.zeros(3), Method.POWER)
    told = lines.after(SimpleNamespace(**{**vars(result), "iterations": 7}))
    assert told == (
        "Value iteration (with Power method) took 7 iterations, 21 multiplications and 0.0 seconds."
    )


def test_bounds_are_told_of_with_how_far_they_are_apart():
    found = SolveResult.exact(np.zeros(3), Method.JACOBI)
    apart = SimpleNamespace(**{**vars(found), "iterations": 7, "change": 2.5e-7})
    explicit = HookOptions(engine_named=True)
    lines = engine_lines(problem(symbolic=False, **BOUNDED), asked(Method.POWER), explicit)
    assert lines is not None
    assert lines.after(apart) == (
        "Max relative diff between upper and lower bound on convergence: 2.5e-07\n"
        "Interval iteration (with Power method) took 7 iterations, 42 multiplications and "
        "0.0 seconds."
    )
    sparse = engine_lines(problem(**BOUNDED), asked(), SPARSE)
    assert sparse is not None
    assert "Allocating iteration vectors... [4 x 0.0 KB]" in sparse.before
    assert sparse.after(replace(found, iterations=7, change=2.5e-7)).startswith(
        "Max relative diff between upper and lower bound on convergence: 2.5E-07\n"
        "Jacobi (interval iteration): 7 iterations in "
    )


def test_bounds_of_rewards_are_our_own():
    question = replace(QUESTION, rewards=np.full(3, 2.0))
    assert engine_lines(problem(**BOUNDED), replace(asked(), question=question), SPARSE) is None


@pytest.mark.parametrize(
    ("options", "method", "more"),
    [
        (HookOptions(), Method.JACOBI, {}),
        (SPARSE, Method.AUTO, {}),
        (SPARSE, Method.JACOBI, {"topological": True}),
        (SPARSE, Method.GMRES, BOUNDED),
        (HookOptions(engine_named=True, symbolic_engine="hybrid"), Method.JACOBI, BOUNDED),
    ],
    ids=["no engine", "no method", "topological", "bounds by another method", "hybrid bounds"],
)
def test_our_own_lines_stay_where_prisms_would_not_be_true(options, method, more):
    assert engine_lines(problem(**more), asked(method), options) is None


@pytest.mark.parametrize(("error", "warns"), [(5e-6, False), (5e-5, True), (np.inf, True)])
def test_a_result_farther_off_than_prism_claims_is_warned_of(error, warns):
    event = Kind.CHANGE_MISLEADS(method="Jacobi", epsilon=1e-6, error_kind="relative", error=error)
    assert warning_of(event) == warns


def test_a_remark_on_how_a_result_was_found_is_no_warning():
    assert not warning_of(Kind.ENDED_BY(by="elimination"))
    assert warning_of(Kind.FAILED_BY_ROUNDING(method="GMRES", error=1.0))
