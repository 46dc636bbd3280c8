"""Explicit models for PRISM, built from their programs by the engines.

`prismgpu.GpuConstructModel` sends the program; PRISM gets arrays that its own classes hold, and the
engines keep theirs for what is asked of the model later.
"""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np

from engines.arrays import INT32_MAX
from engines.devices.exploring import gpu_for_building
from engines.errors import InvalidModelError, UnsupportedError
from engines.exploration.build import ExploredModel, build
from engines.host.compiled.library import LibraryMissingError
from engines.model.events import told
from engines.model.explicit import ExplicitModel
from engines.program.faults import StateFaultError
from prism_hooks.crossing import java_array
from prism_hooks.exit_gate import GATE, SOLVE
from prism_hooks.memory import is_full_heap
from prism_hooks.options import HookOptions
from prism_hooks.program import read_program
from prism_hooks.sets import words_of

MOST_ELEMENTS = INT32_MAX - 8
"""Of a Java array."""


def built_for_java(construction: Any, options: HookOptions) -> ExplicitModel | None:
    """Build the model of a `prismgpu.Construction`; fill in its arrays, a refusal or an error.

    Parameters
    ----------
    construction
        The Java object.
    options
        What the command line says about the engines.

    Returns
    -------
    The model as the engines take it from PRISM, without labels; None where there is none, or where
    reading it is an error.
    """
    try:
        return _built(construction, options)
    except StateFaultError as error:
        # PRISM has its own words for it; where it has none, it builds the model.
        construction.faultyState = java_array(np.array(error.state, dtype=np.int32))
        construction.refusal = str(error)
    except (UnsupportedError, InvalidModelError, LibraryMissingError) as error:
        construction.refusal = str(error)
    except MemoryError as error:
        # PRISM's own lists of objects take several times as much.
        construction.error = f"prism-gpu ran out of memory while building the model: {error}"
    except Exception as error:
        if is_full_heap(error):
            construction.heapIsFull = True
            return None
        # A wrong model would be worse than none: nothing is handed back in silence.
        trace = "".join(traceback.format_exception(error))
        construction.error = f"prism-gpu failed unexpectedly; please report this:\n{trace}"
    return None


def _built(construction: Any, options: HookOptions) -> ExplicitModel | None:
    program = read_program(str(construction.program))
    construction.begin()

    def progress(found: int) -> None:
        GATE.stop_if_ending(SOLVE)
        construction.showProgress(min(found, INT32_MAX))

    gpu = gpu_for_building(options.device, options.device_number)
    explored = build(program, gpu=gpu, progress=progress)
    GATE.stop_if_ending(SOLVE)
    construction.remark = told(explored.events)
    _hand_over(explored, construction)
    model = ExplicitModel(
        explored.model.kind, explored.model.matrix, explored.model.row_group_offsets
    )
    try:
        model.require_finite_exit_rates()
    except InvalidModelError:
        # An error of whatever reads the model, not of building it.
        return None
    return model


def _hand_over(explored: ExploredModel, construction: Any) -> None:
    model, packing = explored.model, explored.packing
    matrix, groups = model.matrix, model.row_group_offsets
    longest = max(matrix.num_entries, explored.states.size, matrix.num_rows + 1)
    if longest > MOST_ELEMENTS:
        raise UnsupportedError(f"an array of {longest} elements, which Java cannot hold")
    construction.numStates = model.num_states
    construction.rowOffsets = java_array(matrix.row_offsets.astype(np.int32, copy=False))
    if groups is not None:
        construction.groupOffsets = java_array(groups.astype(np.int32, copy=False))
    construction.columns = java_array(matrix.columns)
    construction.values = java_array(matrix.values)
    if explored.actions is not None:
        construction.actions = java_array(explored.actions)
    construction.states = java_array(explored.states.ravel().view(np.int64))
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
