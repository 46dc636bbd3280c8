"""Exports of the built model and of vectors."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bridge.files.atomic import write_text
from bridge.files.umb import Actions, UmbFile, UmbRewards, pack_valuations, write_umb
from bridge.language.text import value_text
from bridge.model import CheckableModel, NamedRewards, StateVector
from engines.errors import UnsupportedError
from engines.formats.csr import FloatArray
from engines.model import ModelKind

if TYPE_CHECKING:
    from bridge.files.reader import FileModel

Log = Callable[[str], None]
PARTS = {"trans": ".tra", "states": ".sta", "labels": ".lab"}
NAMES = {"trans": "model", "states": "reachable states", "labels": "labels and satisfying states"}


def export_model(model: CheckableModel, what: str, target: str, log: Log) -> None:
    """Export a model, or a part of it, as PRISM's switches do.

    Parameters
    ----------
    model
        The built model.
    what
        "model", "trans", "states" or "labels".
    target
        A file, or "stdout". Of a model: `.umb`, `.pexp`, `.all`, or endings such as `.tra,lab`.
    log
        Where the announcement goes.

    Raises
    ------
    UnsupportedError
        For other endings.
    OSError
        If a file cannot be written.
    """
    if what == "model" and target.endswith(".umb"):
        log(f'\nExporting model in UMB format to file "{target}"...')
        write_umb(as_umb(model), target, "gz")
        return
    from bridge.files.writer import write_model

    with tempfile.TemporaryDirectory() as folder:
        written = write_model(as_file_model(model), Path(folder) / "model")
        parts = {path.suffix: path for path in written}
        if what != "model":
            _deliver(parts, PARTS[what], NAMES[what], target, log)
            return
        stem, _, endings = target.rpartition(".")
        if endings == "pexp":
            write_model(as_file_model(model), target, combined=True)
            log(f'\nExporting model in combined format to file "{target}"...')
            return
        wanted = list(parts) if endings == "all" else [f".{part}" for part in endings.split(",")]
        known = {".tra", ".sta", ".lab", ".srew", ".trew"}
        if not set(wanted) <= known | set(parts):
            raise UnsupportedError(
                f'-exportmodel: unknown file ending in "{target}"; known are .all, .umb, .pexp, '
                ".tra, .sta, .lab, .srew and .trew"
            )
        for ending in wanted:
            one = f"{stem}{ending}" if stem != "stdout" else "stdout"
            _deliver(parts, ending, f"model ({ending})", one, log)


def _deliver(parts: dict[str, Path], ending: str, name: str, target: str, log: Log) -> None:
    source = parts.get(ending)
    if source is None:
        log(f"\nThe model has nothing for {ending}; no file is written")
        return
    if target == "stdout":
        log(f"\nExporting {name} in plain text format below:")
        sys.stdout.write(source.read_text(encoding="utf-8"))
        return
    log(f'\nExporting {name} in plain text format to file "{target}"...')
    if Path(target).exists() and not Path(target).is_file():
        shutil.copyfile(source, target)
        return
    write_text(Path(target), source.read_text(encoding="utf-8"))


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
    OSError
        If the file cannot be written.
    """
    texts = map(value_text, values.tolist())
    if target == "stdout":
        log("\nExporting vector of results for all states below:")
        log("\n".join(f"{model.state_line(state)}={text}" for state, text in enumerate(texts)))
        return
    log(f'\nExporting vector of results for all states to file "{target}"...')
    write_text(Path(target), "".join(f"{text}\n" for text in texts))


def as_file_model(model: CheckableModel) -> FileModel:
    """Return a model as the writer of text files takes it."""
    from bridge.files.reader import FileModel
    from bridge.files.states import StateVariables

    variables = None
    if model.variables:
        for name, column in model.variables.items():
            if column.dtype.kind == "f":
                raise UnsupportedError(f"variable {name} is not an integer: .sta cannot hold it")
        columns = list(model.variables.values())
        variables = StateVariables(
            tuple(model.variables),
            np.stack(columns, axis=1).astype(np.int32),
            tuple(column.dtype == bool for column in columns),
        )
    rewards = tuple(item.expected for item in model.rewards)
    whole = replace(model.model, rewards=rewards)
    return FileModel(whole, variables, model.action_names, model.actions)


def as_umb(model: CheckableModel) -> UmbFile:
    """Return a model as the writer of UMB takes it."""
    engine_model = model.model
    matrix = engine_model.matrix
    exit_rates = None
    probabilities = matrix.values
    if engine_model.kind is ModelKind.CTMC:
        exit_rates = engine_model.exit_rates
        probabilities = matrix.values / np.repeat(exit_rates, matrix.row_lengths())
    actions = None
    if model.actions is not None:
        actions = Actions(model.action_names, model.actions.astype(np.uint32))
    of_choices = engine_model.kind is ModelKind.MDP
    return UmbFile(
        model=replace(engine_model, rewards=tuple(item.expected for item in model.rewards)),
        probabilities=probabilities,
        exit_rates=exit_rates,
        rewards=tuple(_umb_rewards(item, exit_rates) for item in model.rewards),
        valuations=pack_valuations(model.variables) if model.variables else None,
        choice_actions=actions if of_choices else None,
        branch_actions=None if of_choices else actions,
        model_data={},
        file_data={},
        left_out=(),
    )


def _umb_rewards(item: NamedRewards, exit_rates: FloatArray | None) -> UmbRewards:
    """Return the rewards of the states alone, and apart from them those of the choices."""
    expected = item.expected
    if expected.choice_rewards is not None:
        return UmbRewards(item.name, expected.state_rewards, expected.choice_rewards)
    of_transitions = expected.state_rewards - item.instantaneous
    if not of_transitions.any():
        return UmbRewards(item.name, item.instantaneous)
    if exit_rates is not None:
        # A file holds the reward of a jump, a model the reward of a unit of time.
        moving = exit_rates > 0.0
        of_transitions = np.divide(
            of_transitions, exit_rates, out=np.zeros_like(of_transitions), where=moving
        )
    return UmbRewards(item.name, item.instantaneous, of_transitions)
