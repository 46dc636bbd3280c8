"""Exports of the built model and of vectors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bridge.check.export_request import PARTS, ModelExport
from bridge.check.outputs import write_output
from bridge.files.checkable import as_file_model, as_umb
from bridge.files.names import with_suffix
from bridge.files.umb import write_umb
from bridge.language.text import value_text
from bridge.model import CheckableModel, StateVector
from engines.arrays import IndexArray
from engines.errors import UnsupportedError
from engines.model.explicit import ModelKind

if TYPE_CHECKING:
    from bridge.files.reader import FileModel

Log = Callable[[str], None]
NAMES = {
    ".tra": "model",
    ".srew": "state rewards",
    ".trew": "transition rewards",
    ".sta": "reachable states",
    ".lab": "labels and satisfying states",
}
"""What the parts of a model are called."""
ENDINGS = {"trans": ".tra", "states": ".sta", "labels": ".lab"}
"""What the switches of a part export."""


def export_model(
    model: CheckableModel, request: ModelExport, log: Log, *, headers: bool, source: str
) -> None:
    """Export a model, or a part of it, as PRISM's switches do.

    Parameters
    ----------
    model
        The built model.
    request
        What to export where.
    log
        Where the announcement goes.
    headers
        Whether text files have headers where the request does not say.
    source
        The model's file: a target that is an ending alone goes beside it.

    Raises
    ------
    UnsupportedError
        For a combined file without headers.
    BridgeError, OSError
        If a file cannot be written.
    """
    target = request.target
    if request.headers is not None:
        headers = request.headers
    if request.what != "model":
        _export_parts(model, request, headers, [(ENDINGS[request.what], target)], log)
        return
    stem, _, endings = target.rpartition(".")
    if target.startswith(".") and not stem:
        stem = source.rpartition(".")[0]
        target = f"{stem}.{endings}"
    if endings == "umb":
        log(f'\nExporting model in UMB format to file "{target}"...')
        write_umb(as_umb(model), target, request.compression)
        return
    if endings == "pexp":
        from bridge.files.writer import write_model

        if not headers:
            raise UnsupportedError("Headers cannot be disabled for combined explicit export")
        log(f'\nExporting model in combined format to file "{target}"...')
        write_model(_in_prisms_order(model), target, combined=True, actions=request.actions)
        return
    named = [ending for part in endings.split(",") for ending in PARTS[part]]
    targets = [(part, stem if stem == "stdout" else f"{stem}{part}") for part in named]
    _export_parts(model, request, headers, targets, log)


def _export_parts(
    model: CheckableModel,
    request: ModelExport,
    headers: bool,
    targets: list[tuple[str, str]],
    log: Log,
) -> None:
    from bridge.files.writer import text_parts

    parts = text_parts(_in_prisms_order(model), headers=headers, actions=request.actions)
    for ending, target in targets:
        # There is a file for each reward structure.
        _deliver([parts[part] for part in parts if part.endswith(ending)], ending, target, log)


def _deliver(texts: list[Iterator[str]], ending: str, target: str, log: Log) -> None:
    name = NAMES[ending]
    if not texts:
        log(f"\nThe model has nothing for {ending}; no file is written")
        return
    if target == "stdout":
        log(f"\nExporting {name} in plain text format below:")
        for text in texts:
            sys.stdout.writelines(text)
        return
    log(f'\nExporting {name} in plain text format to file "{target}"...')
    files = [target]
    if len(texts) > 1:
        files = [with_suffix(target, str(number)) for number in range(1, len(texts) + 1)]
        log(f"Rewards were exported to multiple files: {','.join(files)}")
    for text, file in zip(texts, files, strict=True):
        write_output(Path(file), text)


def _in_prisms_order(model: CheckableModel) -> FileModel:
    """Return a model whose transitions are sorted by target, then by the action's name."""
    whole = as_file_model(model)
    matrix = whole.model.matrix
    rows = matrix.row_of_entry()
    # An MDP's actions are those of its rows.
    by_entries = None if whole.model.kind is ModelKind.MDP else whole.actions
    keys: list[IndexArray] = [matrix.columns, rows]
    if by_entries is not None:
        by_name = np.argsort(np.array(whole.action_names), kind="stable")
        keys.insert(0, np.argsort(by_name, kind="stable")[by_entries])
    order = np.lexsort(keys)
    actions = whole.actions if by_entries is None else by_entries[order]
    ordered = replace(matrix, columns=matrix.columns[order], values=matrix.values[order])
    return replace(whole, model=replace(whole.model, matrix=ordered), actions=actions)


def export_vector(model: CheckableModel, values: StateVector, target: str, log: Log) -> None:
    """Export a property's value in every state, as PRISM's -exportvector does.

    Parameters
    ----------
    model
        The built model, for the states' names.
    values
        Shape (states,).
    target
        A file, which gets a value a line, or "stdout", which gets the states' names too.
    log
        Where the announcement goes.

    Raises
    ------
    BridgeError, OSError
        If the file cannot be written.
    """
    texts = map(value_text, values.tolist())
    if target == "stdout":
        log("\nExporting vector of results for all states below:")
        log("\n".join(f"{model.state_line(state)}={text}" for state, text in enumerate(texts)))
        return
    log(f'\nExporting vector of results for all states to file "{target}"...')
    write_output(Path(target), (f"{text}\n" for text in texts), shown=target)
