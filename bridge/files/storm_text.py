"""Writing a model as the explicit text files that Storm's own parser reads.

They differ from PRISM's: the transitions start with the model's type and have no counts, and the
labels are declared by name and repeated by name.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from bridge.files.reader import DEADLOCK, INIT
from bridge.files.writer import CHUNK, Lines, entry_chunks, number_texts, write_together
from engines.arrays import FloatArray
from engines.errors import InvalidModelError, UnsupportedError
from engines.model.explicit import ExplicitModel, ModelKind


def write_for_storm(model: ExplicitModel, stem: Path) -> tuple[Path, ...]:
    """Write `stem.tra`, `stem.lab` and, with one reward structure, `stem.srew`.

    Parameters
    ----------
    model
        The model. A CTMC's state without a transition gets a self-loop of rate 1, because Storm
        knows no state without.
    stem
        The files' path without ending.

    Returns
    -------
    The files written.

    Raises
    ------
    InvalidModelError
        If the model breaks a rule of its kind, or a label's name has a blank.
    UnsupportedError
        For what these files cannot hold: several reward structures, rewards of choices.
    OSError
        If a file cannot be written.
    """
    model.check()
    parts = {".tra": _transitions(model), ".lab": _labels(model)}
    if len(model.rewards) > 1:
        raise UnsupportedError(
            "Storm's explicit files hold one reward structure; write UMB instead"
        )
    for structure in model.rewards:
        choices = structure.choice_rewards
        if choices is not None and choices.any():
            raise UnsupportedError(
                f'rewards "{structure.name}" of choices: write UMB for Storm instead'
            )
        parts[".srew"] = _rewards(structure.state_rewards)
    return write_together({stem.with_name(stem.name + end): part for end, part in parts.items()})


def _transitions(model: ExplicitModel) -> Lines:
    yield f"{model.kind.lower()}\n"
    matrix = model.matrix
    if model.kind is ModelKind.CTMC and not matrix.row_lengths().all():
        # The loops lie between the other transitions: the rows must come in order.
        yield from _with_loops(model)
        return
    for first, last, sources in entry_chunks(model):
        rows = zip(
            sources,
            matrix.columns[first:last].tolist(),
            number_texts(matrix.values[first:last]),
            strict=True,
        )
        yield "".join([f"{source} {target} {value}\n" for source, target, value in rows])


def _with_loops(model: ExplicitModel) -> Lines:
    matrix = model.matrix
    offsets = matrix.row_offsets.tolist()
    for state, (first, last) in enumerate(pairwise(offsets)):
        if first == last:
            yield f"{state} {state} 1\n"
        texts = number_texts(matrix.values[first:last])
        for target, text in zip(matrix.columns[first:last].tolist(), texts, strict=True):
            yield f"{state} {target} {text}\n"


def _labels(model: ExplicitModel) -> Lines:
    nothing = np.zeros(model.num_states, dtype=bool)
    initial = nothing if model.initial_states is None else model.initial_states
    masks = {INIT: initial, DEADLOCK: nothing, **model.labels}
    wrong = [name for name in masks if not name or any(sign.isspace() for sign in name)]
    if wrong:
        raise InvalidModelError(f"label {wrong[0]!r} cannot be written in Storm's files")
    yield f"#DECLARATION\n{' '.join(masks)}\n#END\n"
    names = np.array(list(masks), dtype=object)
    for first in range(0, model.num_states, CHUNK):
        table = np.stack([mask[first : first + CHUNK] for mask in masks.values()], axis=1)
        for state in np.flatnonzero(table.any(axis=1)).tolist():
            yield f"{first + state} {' '.join(names[table[state]])}\n"


def _rewards(rewards: FloatArray) -> Lines:
    states = np.flatnonzero(rewards)
    for state, text in zip(states.tolist(), number_texts(rewards[states]), strict=True):
        yield f"{state} {text}\n"
