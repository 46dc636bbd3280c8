"""Decompositions of graphs that PRISM asks for: strong components and end components."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.arrays import IndexArray, MaskArray
from engines.devices.graph import operations_of
from engines.errors import UnsupportedError
from engines.graph.components import Components, condensation_order, sccs
from engines.graph.mec import end_component_states
from engines.host.graph import CpuGraph
from engines.model.csr import CsrMatrix
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from prism_hooks.crossing import numpy_array
from prism_hooks.extract import mask
from prism_hooks.options import HookOptions

STRONG_COMPONENTS, END_COMPONENTS = "strong components", "end components"
DECOMPOSITIONS = (STRONG_COMPONENTS, END_COMPONENTS)
"""The decompositions by the names that `prismgpu.Problem` gives the tasks."""
BOTTOM_COMPONENTS, END_COMPONENT_STATES = "bottom components", "states of end components"
DECOMPOSITIONS_OF_DIAGRAMS = (BOTTOM_COMPONENTS, END_COMPONENTS, END_COMPONENT_STATES)
"""Those of graphs in diagrams; the last is told of which states its components consist."""

ZERO_REWARD_ENDS, STATE_FORMULA = "zero-reward end components", "state formula"
OF_BUILT_MODELS = (ZERO_REWARD_ENDS, STATE_FORMULA)
"""What is asked of models that the engines have built; see `prism_hooks.built`."""

SMALL_GRAPH = {STRONG_COMPONENTS: 1_000_000, END_COMPONENTS: 150_000}
"""Below this many states and transitions PRISM's own code is as fast, or slower by less than it
takes to read the graph. On one core the strong components of 2 million (mutual5) took PRISM 0.08 s,
and us as long; the end components of 200,000 to 300,000 took PRISM from 0.06 s (wlan3) to 3.3 s
(coin2, K=512), and us 0.04 s and 0.03 s, reading included."""


@dataclass(frozen=True)
class SearchSteps:
    """How many steps a search on diagrams may take: some, and more where a graph is large.

    Parameters
    ----------
    steps
        Of any search; see `prism_hooks.diagram_search.DiagramSearch.steps`.
    a_transition
        For each transition.
    """

    steps: float
    a_transition: float

    def of(self, transitions: int) -> float:
        """Return the steps of a graph with so many transitions."""
        return self.steps + self.a_transition * transitions


@dataclass(frozen=True)
class SearchLimits:
    """How long searches on diagrams may take before the graph is searched instead.

    Steps are the same in each run, which seconds are not; a second has one or two million.

    Parameters
    ----------
    new
        Searches are over sooner, as a rule; those that are not may take a minute. In this time two
        cores write the transitions out and look at them.
    known
        Where the graph has been written out before: it is looked at, and no more.
    bottom
        Of a search that is in vain where a chain ends in more than one component: a tenth of what
        the long run of a dense one takes.
    """

    new: SearchSteps = SearchSteps(steps=2e5, a_transition=0.04)
    known: SearchSteps = SearchSteps(steps=4e4, a_transition=0.1)
    bottom: SearchSteps = SearchSteps(steps=4e4, a_transition=0.02)


@dataclass(frozen=True)
class Decomposition:
    """Disjoint components of a graph, in PRISM's order.

    Parameters
    ----------
    members
        The states component by component, each component's in ascending order.
    ends
        Shape (components,): where each component ends in `members`; it starts where the one
        before ends.
    """

    members: NDArray[np.int32]
    ends: NDArray[np.int32]


def smallest_graph(task: str, options: HookOptions) -> int:
    """Return from how many states and transitions on the engines do a task on a graph.

    Parameters
    ----------
    task
        One of `DECOMPOSITIONS`.
    options
        What the command line says about the engines.
    """
    if options.smallest_graph is not None:
        return options.smallest_graph
    return SMALL_GRAPH[task]


def search_steps(
    options: HookOptions,
    transitions: int,
    *,
    has_graph: bool = False,
    limits: SearchLimits = SearchLimits(),
) -> float:
    """Return how many steps PRISM's kind of search may take before its graph is searched.

    Parameters
    ----------
    options
        What the command line says about the engines.
    transitions
        How many edges the graph has.
    has_graph
        Whether it is written out already.
    limits
        The most there may be.
    """
    if options.smallest_graph == 0:
        return 0.0
    return (limits.known if has_graph else limits.new).of(transitions)


def bottom_steps(
    options: HookOptions,
    transitions: int,
    *,
    has_graph: bool = False,
    limits: SearchLimits = SearchLimits(),
) -> float:
    """Return how many steps a search may take for the one component that a chain ends in.

    Parameters
    ----------
    options, transitions, has_graph, limits
        As of `search_steps`.
    """
    most = search_steps(options, transitions, has_graph=has_graph, limits=limits)
    return min(most, limits.bottom.of(transitions))


def graph_of(source: Any) -> ExplicitModel:
    """Return the model that a `prismgpu.GraphSource` holds, a bulk copy an array.

    Parameters
    ----------
    source
        The Java object, its arrays filled.

    Returns
    -------
    An MDP where there are choices, else a CTMC, which may lack transitions; each value is 1.
    """
    groups = source.groupOffsets
    columns = numpy_array(source.columns, np.int32)
    matrix = _with_ones(numpy_array(source.rowOffsets, np.int32), columns, int(source.numStates))
    if groups is None:
        return ExplicitModel(ModelKind.CTMC, matrix)
    return ExplicitModel(ModelKind.MDP, matrix, numpy_array(groups, np.int32))


def every_entry(model: ExplicitModel) -> ExplicitModel:
    """Return the model, or where it has entries of value 0 one whose edges they are.

    To PRISM each entry is an edge, to our engines each that is not 0.

    Parameters
    ----------
    model
        A model of any kind.
    """
    matrix = model.matrix
    if np.all(matrix.values):
        return model
    kind = ModelKind.CTMC if model.row_group_offsets is None else ModelKind.MDP
    edges = _with_ones(matrix.row_offsets, matrix.columns, matrix.num_columns)
    return ExplicitModel(kind, edges, model.row_group_offsets)


def _with_ones(offsets: IndexArray, columns: IndexArray, num_states: int) -> CsrMatrix:
    ones = np.broadcast_to(np.ones(1), len(columns))
    return CsrMatrix(offsets, columns, ones, num_states)


def decomposed(problem: Any, model: ExplicitModel, environment: SolverEnvironment) -> Decomposition:
    """Return the components that a `prismgpu.Problem` asks for.

    Parameters
    ----------
    problem
        The problem, with a task of `DECOMPOSITIONS`.
    model
        The graph.
    environment
        Which device to use.

    Raises
    ------
    UnsupportedError
        For end components where there are no choices, or a choice leads nowhere.
    """
    size = model.num_states
    within = None if problem.remain is None else mask(problem.remain, size)
    if str(problem.task) == STRONG_COMPONENTS:
        return strong_components(
            model,
            within,
            environment,
            with_trivial=bool(problem.withTrivial),
            in_order=bool(problem.inOrder),
            absorbing_loops=bool(problem.embedded),
        )
    accept = None if problem.states is None else mask(problem.states, size)
    return end_components(model, within, environment, accept=accept)


def strong_components(
    model: ExplicitModel,
    within: MaskArray | None,
    environment: SolverEnvironment,
    *,
    with_trivial: bool,
    in_order: bool = False,
    absorbing_loops: bool = False,
) -> Decomposition:
    """Return the strongly connected components, ordered by their smallest states or by edges.

    Parameters
    ----------
    model
        A model of any kind.
    within
        Boolean mask, shape (states,): the states to look at; None for all.
    environment
        Which device to use.
    with_trivial
        Whether single states without a loop are components.
    in_order
        Whether each component must come after those that it may enter.
    absorbing_loops
        Whether states without transitions count as having a loop.
    """
    found = sccs(model, within, environment)
    order: IndexArray = np.arange(found.count)
    if in_order:
        order = condensation_order(model, found, environment)
    if not with_trivial:
        order = order[~_trivial(model, found, absorbing_loops)[order]]
    return _listed(found.labels, order, found.count)


def bottom_components(
    model: ExplicitModel, environment: SolverEnvironment
) -> tuple[Decomposition, int]:
    """Return the bottom strongly connected components, and how many strong ones there are.

    Single states without a loop are no components.

    Parameters
    ----------
    model
        A model of any kind.
    environment
        Which device to use.
    """
    found = sccs(model, None, environment)
    strong = ~_trivial(model, found, absorbing_loops=False)
    left = operations_of(model, environment).components_left(found.labels, found.count)
    bottom = np.flatnonzero(strong & ~left)
    return _listed(found.labels, bottom, found.count), int(np.count_nonzero(strong))


def end_components(
    model: ExplicitModel,
    within: MaskArray | None,
    environment: SolverEnvironment,
    *,
    accept: MaskArray | None = None,
) -> Decomposition:
    """Return the maximal end components, ordered by their smallest states.

    Parameters
    ----------
    model
        An MDP.
    within
        Boolean mask, shape (states,): components lie within these states; None for all.
    environment
        Which device to use.
    accept
        Boolean mask, shape (states,): only components that have one of these; None for all.

    Raises
    ------
    UnsupportedError
        If the model has no choices, or one of them leads nowhere.
    """
    if model.row_group_offsets is None:
        raise UnsupportedError("of a model without choices")
    if np.any(np.diff(model.matrix.row_offsets) == 0):
        # To PRISM it stays in any set, to our engines it is no choice.
        raise UnsupportedError("of a model with a choice that leads nowhere")
    found = end_component_states(model, within, environment=environment)
    chosen = np.ones(found.count, dtype=np.bool_)
    if accept is not None:
        inside = found.labels[accept & (found.labels >= 0)]
        chosen = np.bincount(inside, minlength=found.count) > 0
    return _listed(found.labels, np.flatnonzero(chosen), found.count)


def _trivial(model: ExplicitModel, found: Components, absorbing_loops: bool) -> MaskArray:
    """Return which components are a single state without a loop, shape (components,)."""
    inside = found.labels >= 0
    single: MaskArray = np.bincount(found.labels[inside], minlength=found.count) == 1
    if not single.any():
        return single
    looped = loops(model)
    if absorbing_loops:
        looped |= np.diff(_state_offsets(model)) == 0
    single[found.labels[inside & looped]] = False
    return single


def loops(model: ExplicitModel, chunk_states: int = 1 << 20) -> MaskArray:
    """Return the states that are among their own successors, shape (states,).

    Parameters
    ----------
    model
        A model of any kind, none of its entries 0.
    chunk_states
        The edges of so many are looked through at a time.
    """
    found = np.zeros(model.num_states, dtype=np.bool_)
    offsets = _state_offsets(model)
    for first in range(0, model.num_states, chunk_states):
        last = min(first + chunk_states, model.num_states)
        owners = np.repeat(
            np.arange(first, last, dtype=offsets.dtype), np.diff(offsets[first : last + 1])
        )
        columns = model.matrix.columns[offsets[first] : offsets[last]]
        found[columns[columns == owners]] = True
    return found


def _state_offsets(model: ExplicitModel) -> IndexArray:
    """Return where each state's entries begin, and one past the last."""
    offsets = model.matrix.row_offsets
    return offsets if model.row_group_offsets is None else offsets[model.row_group_offsets]


def _listed(labels: IndexArray, order: IndexArray, count: int) -> Decomposition:
    """Return the states of the components in this order; `count` are numbered, some left out."""
    places = np.full(count + 1, -1, dtype=np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    # States of no component have the label -1, and so the last place.
    place = places[labels]
    states = np.flatnonzero(place >= 0).astype(np.int32)
    ends = np.cumsum(np.bincount(place[states], minlength=len(order)), dtype=np.int32)
    return Decomposition(states[_sorted_by(place[states], len(order))], ends)


def _sorted_by(keys: IndexArray, num_keys: int, linear_from: int = 1_000_000) -> IndexArray:
    """Return the places of keys from 0 on in ascending order of key, then of place.

    From `linear_from` keys on SciPy is loaded to sort them, which takes a third of a second.
    """
    if len(keys) < linear_from:
        return np.argsort(keys, kind="stable")
    from scipy.sparse import csr_array

    # Transposing a matrix with one entry a row takes linear time.
    entries = np.ones(len(keys), dtype=np.int8)
    starts = np.arange(len(keys) + 1, dtype=np.int32)
    indices: IndexArray = (
        csr_array((entries, keys, starts), shape=(len(keys), num_keys)).tocsc().indices
    )
    return indices


def decomposition_line(
    problem: Any,
    model: ExplicitModel,
    environment: SolverEnvironment,
    found: Decomposition,
    started: float,
) -> str:
    """Return what a decomposition did in one line.

    Parameters
    ----------
    problem
        The `prismgpu.Problem`.
    model
        The graph.
    environment
        The device that was asked for.
    found
        The components.
    started
        When it began, by `time.perf_counter`.
    """
    seconds = time.perf_counter() - started
    operations = operations_of(model, environment)
    on_cpu = isinstance(operations, CpuGraph)
    device = "CPU" if on_cpu else f"GPU {environment.device_number}"
    note = getattr(operations, "note", "")
    return (
        f"prism-gpu: {problem.task}: {len(found.ends)} in {model.num_states} states and "
        f"{model.matrix.num_entries} transitions in {seconds:.4f} s, {device}"
        + (f" ({note})" if note else "")
    )
