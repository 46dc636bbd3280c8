"""Explicit models for PRISM, built from their programs by the engines.

`prismgpu.GpuConstructModel` sends the program. The engines keep the arrays for what is asked of the
model later, and PRISM's classes get those that they read (`prism_hooks.held`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engines.arrays import INT32_MAX, extremes
from engines.devices.exploring import gpu_for_building
from engines.devices.opening import MODELS
from engines.errors import InvalidModelError, ModelSizeError, UnsupportedError
from engines.exploration.build import ExploredModel, Limits, build
from engines.host.compiled.library import LibraryMissingError
from engines.model.events import told
from engines.model.explicit import ExplicitModel, ModelKind
from engines.model.row_sums import are_one
from engines.program.faults import StateFaultError
from prism_hooks.crossing import java_array
from prism_hooks.exit_gate import GATE
from prism_hooks.failure import unexpected
from prism_hooks.held import HeldModel, java_type
from prism_hooks.memory import is_full_heap
from prism_hooks.options import HookOptions
from prism_hooks.program import read_program
from prism_hooks.sets import words_of

MOST_ELEMENTS = INT32_MAX - 8
"""Of a Java array."""


@dataclass(frozen=True)
class GivingUp:
    """Which models are left to PRISM's default engine, where the user named no engine.

    Parameters
    ----------
    states_on_cpu, states_on_gpu
        Those with more states, without a GPU and with one. A CPU finds so many in some ten
        seconds, a GPU in one; models with more are often small as diagrams.
    transitions_on_cpu
        Those with more transitions, without a GPU.
    crowding
        Those with more transitions beyond 64 a state: every state that a process can go on to is
        combined with every one of the others', which a diagram need not write out.
    heap_share
        Those whose arrays take more of Java's heap, where PRISM makes more arrays of their size.
    """

    states_on_cpu: int = 10_000_000
    transitions_on_cpu: int = 100_000_000
    states_on_gpu: int = 100_000_000
    crowding: int = 500_000
    heap_share: float = 0.5

    def limits(self, max_states: int | None, *, on_gpu: bool) -> Limits:
        """Return what a model may have that is built here.

        Parameters
        ----------
        max_states
            What the user allows.
        on_gpu
            Whether there is a GPU.
        """
        states = self.states_on_gpu if on_gpu else self.states_on_cpu
        return Limits(
            states if max_states is None else min(states, max_states),
            None if on_gpu else self.transitions_on_cpu,
            self.crowding,
        )


def built_for_java(
    construction: Any, options: HookOptions, giving_up: GivingUp | None = None
) -> HeldModel | None:
    """Build the model of a `prismgpu.Construction`; fill in its arrays, a refusal or an error.

    Parameters
    ----------
    construction
        The Java object.
    options
        What the command line says about the engines.
    giving_up
        Which models are left to PRISM's default engine; None for the default.

    Returns
    -------
    The model as the engines take it from PRISM, without labels and rewards; None where there is
    none, or where reading it is an error.
    """
    try:
        return _built(construction, options, giving_up or GivingUp())
    except ModelSizeError as error:
        if (error.most, error.what) == (options.max_states, "states"):
            construction.error = str(error)
        else:
            construction.refusal = f"the model has more than {error.most} {error.what}"
    except StateFaultError as error:
        # PRISM has its own words for it; where it has none, it builds the model.
        construction.faultyState = java_array(np.array(error.state, dtype=np.int32))
        construction.refusal = str(error)
    except (UnsupportedError, InvalidModelError, LibraryMissingError) as error:
        construction.refusal = str(error)
    except MemoryError as error:
        construction.refusal = f"memory does not suffice: {error}"
    except Exception as error:
        if is_full_heap(error):
            construction.refusal = "Java's heap is full (-javamaxmem)"
            return None
        # A wrong model would be worse than none: nothing is handed back in silence.
        construction.error = unexpected(error)
    return None


def _built(construction: Any, options: HookOptions, giving_up: GivingUp) -> HeldModel | None:
    program = read_program(str(construction.program))
    construction.begin()
    gpu = gpu_for_building(options.device, options.device_number)
    share, limits = 1.0, Limits(options.max_states)
    if construction.mayStartAnew:
        share = giving_up.heap_share
        limits = giving_up.limits(options.max_states, on_gpu=gpu is not None)

    def progress(found: int) -> None:
        GATE.stop_if_ending()
        MODELS.meet(found)
        construction.showProgress(min(found, INT32_MAX))

    explored = build(
        program,
        gpu=gpu,
        gpu_memory=options.device_memory,
        limits=limits,
        progress=progress,
    )
    MODELS.meet(explored.model.num_states)
    construction.remark = told(explored.events)
    _require_heap(explored, int(share * construction.heapBytes))
    _hand_over(explored, construction)
    plain = explored.model
    model = replace(plain, initial_states=None, labels={}, rewards=())
    held: HeldModel = java_type(HeldModel)(int(construction.id), replace(explored, model=model))
    construction.held = held
    try:
        model.require_finite_exit_rates()
    except InvalidModelError:
        # An error of whatever reads the model, not of building it.
        return None
    return held


def _require_heap(explored: ExploredModel, available: int) -> None:
    """Refuse a model whose arrays do not fit into Java's heap, or the share of it."""
    matrix, groups = explored.model.matrix, explored.model.row_group_offsets
    numbers = matrix.num_rows + matrix.num_entries + (0 if groups is None else len(groups))
    if explored.actions is not None:
        # Java has an object for each as well.
        numbers += 2 * len(explored.actions)
    needed = 4 * numbers + 8 * matrix.num_entries + explored.states.nbytes
    if needed > available:
        raise UnsupportedError(
            f"the model's arrays take {needed >> 20} MB, and {available >> 20} MB of Java's heap "
            "may be taken (-javamaxmem)"
        )


def _hand_over(explored: ExploredModel, construction: Any) -> None:
    model, packing = explored.model, explored.packing
    _require_array(explored.states.size)
    describe(model, construction)
    construction.hasActions = explored.actions is not None and extremes(explored.actions)[1] >= 0
    construction.words = packing.words
    fields = packing.fields
    construction.fieldWords = java_array(np.array([x.word for x in fields], dtype=np.int32))
    construction.shifts = java_array(np.array([x.shift for x in fields], dtype=np.int32))
    construction.masks = java_array(np.array([x.mask for x in fields], dtype=np.int64))
    construction.lows = java_array(np.array([x.low for x in fields], dtype=np.int32))
    labels = dict(model.labels)
    construction.initial = java_array(words_of(labels.pop("init")))
    construction.deadlocks = java_array(words_of(labels.pop("deadlock")))
    for states in labels.values():
        construction.addLabel(java_array(words_of(states)))


def describe(model: ExplicitModel, built: Any) -> None:
    """Fill in what a `prismgpu.Built` says of a model.

    Parameters
    ----------
    model
        The model.
    built
        The Java object.

    Raises
    ------
    UnsupportedError
        For more elements of an array than Java's have.
    """
    matrix, groups = model.matrix, model.row_group_offsets
    _require_array(max(matrix.num_entries, matrix.num_rows + 1))
    built.numStates, built.numTransitions = model.num_states, matrix.num_entries
    if groups is not None:
        built.numChoices = matrix.num_rows
        built.mostChoices = int(np.diff(groups).max(initial=0))
    if model.kind is not ModelKind.CTMC:
        built.sumsToOne = are_one(matrix)


def _require_array(elements: int) -> None:
    if elements > MOST_ELEMENTS:
        raise UnsupportedError(f"an array of {elements} elements, which Java cannot hold")
