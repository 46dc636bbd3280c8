"""Problems that come as diagrams, with arrays in the place of PRISM's objects."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from engines.diagrams.diagram import TERMINAL, Diagram, StateNumbering
from engines.errors import DeviceMemoryError
from engines.host.expansion import walks
from engines.host.expansion.room import Room
from engines.model.choice import Format
from engines.model.environment import DeviceChoice, Method
from prism_hooks import symbolic
from prism_hooks.backend import EngineBackend
from prism_hooks.options import HookOptions
from tests.engines.diagrams.random_diagrams import diagram_of, numbering_of

ROWS, COLUMNS, CHOICES = (2, 4), (3, 5), (0,)
# Four assignments of two variables, of which 01 is no state: states 0, 1, 2 are 00, 10, 11.
STATES = np.array([[True, False], [True, True]])
CHAIN = np.array([[0.0, 0.5, 0.5], [0.0, 1.0, 0.0], [0.25, 0.0, 0.75]])


def java_diagram(diagram: Diagram) -> SimpleNamespace:
    arrays = {name: getattr(diagram, name).tolist() for name in ("variables", "low", "high")}
    values = diagram.values[diagram.variables == TERMINAL].tolist()
    left_to_python = {"ofStates": lambda _model: None}
    return SimpleNamespace(**arrays, **left_to_python, values=values, root=diagram.root)


def of_states(values: list[float]) -> SimpleNamespace:
    dense = np.zeros((2, 2))
    dense[STATES] = values
    return java_diagram(diagram_of(dense, ROWS))


def of_matrices(*matrices: np.ndarray) -> SimpleNamespace:
    """Return the diagram of one matrix, or of one for each value of a choice variable."""
    parts = []
    for matrix in matrices:
        dense = np.zeros((2, 2, 2, 2))
        places = np.argwhere(STATES)
        for i, row in enumerate(places):
            for j, column in enumerate(places):
                dense[row[0], column[0], row[1], column[1]] = matrix[i, j]
        parts.append(dense)
    if len(parts) == 1:
        return java_diagram(diagram_of(parts[0], (2, 3, 4, 5)))
    return java_diagram(diagram_of(np.stack(parts), (0, 2, 3, 4, 5)))


def java_source(kind: str, transitions: SimpleNamespace) -> SimpleNamespace:
    numbering: StateNumbering = numbering_of(STATES, ROWS, COLUMNS)
    return SimpleNamespace(
        kind=kind,
        rows=list(ROWS),
        columns=list(COLUMNS),
        choices=list(CHOICES) if kind == "MDP" else None,
        transitions=transitions,
        forget=lambda: None,
        numbering=SimpleNamespace(
            low=numbering.low.tolist(),
            high=numbering.high.tolist(),
            lowCounts=numbering.low_counts.tolist(),
            counts=numbering.counts.tolist(),
            root=numbering.root,
        ),
    )


def parts(solution: np.ndarray, **given) -> SimpleNamespace:
    names = ("states", "remain", "start", "stateRewards", "choiceRewards")
    fields = dict.fromkeys(names) | {"startAddress": 0} | given
    return SimpleNamespace(**fields, solutionAddress=solution.ctypes.data)


def problem(task: str, source: SimpleNamespace, part: SimpleNamespace, **more) -> SimpleNamespace:
    said: list[str] = []
    fields = {
        "task": task, "modelId": 1, "numStates": 3, "embedded": False, "model": lambda: source,
        "parts": part, "direction": None, "lower": 0.0, "upper": 0.0, "method": "Jacobi",
        "omega": 0.9,
        "epsilon": 1e-12, "absolute": False, "maxIterations": 10_000, "intervals": None,
        "topological": False,
        "detectsSteadyState": False, "wantsStrategy": False, "errorOnNonConvergence": True,
        "say": said.append, "warn": said.append, "said": said, "error": None, "refusal": None,
        "iterations": 0, "errorBound": -1.0, "errorAbsolute": None, "guaranteed": None,
        "told": False, "bound": float("nan"), "relation": None,
    }  # fmt: skip
    return SimpleNamespace(**(fields | more))


def solved(asked: SimpleNamespace, options: HookOptions | None = None) -> SimpleNamespace:
    EngineBackend(options or HookOptions(device=DeviceChoice.CPU)).solve(asked)
    assert asked.error is None, asked.error
    return asked


def test_until_probabilities_are_written_where_prism_wants_them():
    solution = np.full(3, np.nan)
    part = parts(solution, states=of_states([1, 0, 1]), start=of_states([0, 1, 0]))
    solved(problem("reachability", java_source("DTMC", of_matrices(CHAIN)), part))
    assert solution == pytest.approx([1.0, 1.0, 1.0])


def test_a_distribution_is_read_from_prism_s_vector():
    solution, start = np.full(3, np.nan), np.array([1.0, 0.0, 0.0])
    part = parts(solution, startAddress=start.ctypes.data)
    source = java_source("DTMC", of_matrices(CHAIN))
    solved(problem("transient distribution", source, part, upper=2.0))
    assert solution == pytest.approx(start @ CHAIN @ CHAIN)
    assert start.tolist() == [1.0, 0.0, 0.0]


def test_rewards_of_states_and_choices_are_added():
    stay = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    # The second choice is one of the last two states alone, and costs 7.
    costs = np.zeros((2, 2, 2))
    costs[1][STATES] = 7.0
    solution = np.full(3, np.nan)
    part = parts(
        solution,
        stateRewards=of_states([1, 2, 3]),
        choiceRewards=java_diagram(diagram_of(costs, (0, *ROWS))),
    )
    source = java_source("MDP", of_matrices(CHAIN, stay))
    asked = problem("cumulative reward", source, part, upper=1.0, direction="max")
    asked.method = "Value iteration"
    solved(asked)
    assert solution.tolist() == [1.0, 9.0, 10.0]


def test_what_does_not_fit_and_has_no_other_way_is_left_to_prism(monkeypatch):
    monkeypatch.setattr(symbolic, "fits_expanded", lambda _: Room(9_000_000_000, 4_000_000_000))
    source = java_source("DTMC", of_matrices(CHAIN))
    part = parts(np.zeros(3), stateRewards=of_states([1, 2, 3]))
    asked = solved(problem("cumulative reward", source, part, upper=2.0))
    assert "without a matrix: the matrix takes 9.0 GB of memory" in asked.refusal
    assert "4.0 GB are free" in asked.refusal
    assert asked.said == []


def test_a_matrix_that_has_been_made_needs_no_more_room(monkeypatch):
    backend = EngineBackend(HookOptions(device=DeviceChoice.CPU))
    source = java_source("DTMC", of_matrices(CHAIN))
    found = []
    for room in (Room(1, 100), Room(9_000_000_000, 4_000_000_000)):
        monkeypatch.setattr(symbolic, "fits_expanded", lambda _, room=room: room)
        solution = np.full(3, np.nan)
        asked = problem(
            "long-run average", source, parts(solution, stateRewards=of_states([1, 2, 3]))
        )
        backend.solve(asked)
        assert (asked.error, asked.refusal) == (None, None)
        found.append(solution.tolist())
    assert found[0] == found[1]


def why(task, *, direction=None, said=None, matrix=CHAIN, matrix_format=Format.HYBRID, **options):
    """Return why a problem of three states is solved without its matrix."""
    source = java_source("DTMC", of_matrices(matrix))
    model = symbolic.SymbolicModel(source)
    backend = EngineBackend(HookOptions(matrix_format=matrix_format, **options))
    asked = problem(task, source, parts(np.zeros(3)), direction=direction)
    return symbolic.why_without_matrix(
        *(asked, model, backend.environment(asked)), held=False, say=(said or []).append
    )


def test_hybrid_is_a_format_of_chains():
    for task, direction, wanted in (
        ("reachability", None, "-gpuformat hybrid"),
        ("steady state", None, "-gpuformat hybrid"),
        ("long-run average", None, "-gpuformat hybrid"),
        ("long-run distribution", None, "-gpuformat hybrid"),
        ("reachability", "max", None),
        ("cumulative reward", None, None),
    ):
        for device in (DeviceChoice.AUTO, DeviceChoice.CPU):
            assert why(task, direction=direction, device=device) == wanted


@pytest.mark.parametrize("matrix_format", [Format.AUTO, Format.PATTERNS])
def test_a_matrix_of_too_many_entries_is_left_out_where_a_gpu_can_do_without(
    monkeypatch, matrix_format
):
    monkeypatch.setattr(symbolic, "gpu_refusal", lambda: None)
    how = {"matrix_format": matrix_format, "device": DeviceChoice.AUTO}
    entries = np.count_nonzero(CHAIN)
    assert why("reachability", **how) is None
    monkeypatch.setattr(symbolic, "MOST_EXPANDED", entries)
    assert why("reachability", **how) is None
    monkeypatch.setattr(symbolic, "MOST_EXPANDED", entries - 1)
    said = [""]
    for task in ("reachability", "steady state", "long-run average", "long-run distribution"):
        assert why(task, said=said, **how) == f"it would have {entries} entries"
    assert said == [""]
    # What needs a matrix has one, whatever its size, and so has the CPU, which sweeps it faster.
    assert why("reachability", direction="max", **how) is None
    assert why("cumulative reward", **how) is None
    assert why("lower prob1", **how) is None
    monkeypatch.setattr(symbolic, "MOST_EXPANDED", 0)
    assert why("long-run average", matrix=TWO_ENDS, said=said, **how) is None
    assert "entries: the long run is computed with a matrix: state 1" in said[1]
    assert why("reachability", matrix_format=matrix_format, device=DeviceChoice.CPU) is None
    assert why("reachability", matrix_format=Format.CSR, device=DeviceChoice.AUTO) is None
    monkeypatch.setattr(symbolic, "gpu_refusal", lambda: "no NVIDIA driver was found")
    assert why("reachability", **how) is None


TWO_ENDS = np.array([[0.0, 0.5, 0.5], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


def test_a_long_run_that_needs_a_matrix_has_one_and_says_why():
    said = [""]
    assert why("long-run average", matrix=TWO_ENDS, said=said) is None
    assert "the long run is computed with a matrix: state 1 does not reach state 2" in said[1]
    assert why("long-run average", method=Method.POWER, said=said) is None
    assert "with a matrix: Power method needs an expanded matrix" in said[2]


RING = np.array([[0.0, 1.0, 0.0], [0.25, 0.25, 0.5], [1.0, 0.0, 0.0]])
SHARES = np.array([3.0, 4.0, 2.0]) / 9.0


@pytest.mark.parametrize("room", [Room(1, 100), Room(9_000_000_000, 4_000_000_000)])
@pytest.mark.parametrize("matrix_format", [Format.AUTO, Format.HYBRID])
def test_the_long_run_is_solved_without_a_matrix(monkeypatch, room, matrix_format):
    monkeypatch.setattr(symbolic, "fits_expanded", lambda _: room)
    options = HookOptions(device=DeviceChoice.CPU, matrix_format=matrix_format)
    source = java_source("DTMC", of_matrices(RING))
    line = "prism-gpu: solved on PRISM's diagram, without a matrix: "
    solution = np.zeros(3)
    part = parts(solution, stateRewards=of_states([9, 0, 18]))
    asked = solved(problem("long-run average", source, part), options)
    assert solution == pytest.approx(3 * [7.0], rel=1e-9)
    named = [text for text in asked.said if text.startswith(line)]
    assert bool(named) == (not room.fits or matrix_format is Format.HYBRID)
    start = np.array([0.25, 0.5, 0.25])
    part = parts(solution, startAddress=start.ctypes.data)
    solved(problem("long-run distribution", source, part), options)
    assert solution == pytest.approx(SHARES, rel=1e-9)


def test_a_long_run_without_room_and_with_two_ends_is_left_to_prism(monkeypatch):
    monkeypatch.setattr(symbolic, "fits_expanded", lambda _: Room(9_000_000_000, 4_000_000_000))
    source = java_source("DTMC", of_matrices(TWO_ENDS))
    part = parts(np.zeros(3), stateRewards=of_states([1, 2, 3]))
    asked = solved(problem("long-run average", source, part))
    assert "without a matrix: the matrix takes 9.0 GB" in asked.refusal
    assert "more than one bottom strongly connected component" in asked.refusal


@pytest.mark.parametrize("reward", [-1.0, np.inf])
def test_rewards_that_are_no_rewards_are_an_error_without_a_matrix_too(reward):
    source = java_source("DTMC", of_matrices(RING))
    part = parts(np.zeros(3), stateRewards=of_states([1.0, reward, 3.0]))
    asked = problem("long-run average", source, part)
    EngineBackend(HookOptions(device=DeviceChoice.CPU, matrix_format=Format.HYBRID)).solve(asked)
    assert f"state 1 has reward {reward}" in asked.error


def test_a_gpu_without_room_leaves_the_matrix_to_the_cpu_and_says_so(monkeypatch):
    def full(_model, _surveyed, device_number, memory):
        raise DeviceMemoryError(f"GPU {device_number}: 8 bytes wanted, {memory} allowed")

    monkeypatch.setattr(walks, "WALKED_STEPS_A_LEVEL", 0)
    monkeypatch.setattr(symbolic, "DEVICE_ENTRIES", 0)
    monkeypatch.setattr(symbolic.SymbolicModel, "_expanded_on_device", full)
    monkeypatch.setattr("prism_hooks.backend.usable_device", lambda _: 3)
    solution = np.full(3, np.nan)
    part = parts(solution, states=of_states([1, 0, 1]), start=of_states([0, 1, 0]))
    options = HookOptions(device=DeviceChoice.CPU, device_memory=7)
    asked = problem("reachability", java_source("DTMC", of_matrices(CHAIN)), part)
    solved(asked, options)
    assert solution == pytest.approx([1.0, 1.0, 1.0])
    text = "prism-gpu: the CPU makes the matrix: GPU 3: 8 bytes wanted, 7 allowed"
    assert text in asked.said


@pytest.mark.parametrize(
    ("error", "beginning", "tip"),
    [
        (DeviceMemoryError("GPU 0: 9 bytes"), "prism-gpu ran out of device memory in a", "-nogpu"),
        (MemoryError(), "prism-gpu ran out of memory in a", "raise the limit"),
    ],
)
def test_a_shortage_says_where_and_what_to_do(monkeypatch, error, beginning, tip):
    def short(*_):
        raise error

    monkeypatch.setattr(symbolic.SymbolicModel, "expanded", short)
    source = java_source("DTMC", of_matrices(CHAIN))
    asked = problem("reachability", source, parts(np.zeros(3)), numStates=3)
    EngineBackend(HookOptions(device=DeviceChoice.CPU)).solve(asked)
    assert asked.error.startswith(f"{beginning} reachability computation on 3 states: ")
    assert str(error) in asked.error
    assert tip in asked.error.partition("\nTip: ")[2]


def test_a_full_heap_of_java_s_is_handed_back_to_java():
    full = type("java.lang.OutOfMemoryError", (Exception,), {})

    def read():
        raise full("Java heap space")

    asked = problem("reachability", java_source("DTMC", of_matrices(CHAIN)), parts(np.zeros(3)))
    asked.model = read
    EngineBackend(HookOptions(device=DeviceChoice.CPU)).solve(asked)
    assert (asked.heapIsFull, asked.error, asked.refusal) == (True, None, None)
