"""Models from files, with the names that properties refer to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bridge.files.source import plain_name
from bridge.files.umb import UmbFile, read_umb
from bridge.model import CheckableModel, NamedRewards, StateVector
from engines.errors import InvalidModelError
from engines.formats.csr import FloatArray
from engines.model import ExplicitModel, ModelKind

if TYPE_CHECKING:
    from bridge.files.reader import FileModel

UMB_ENDING = ".umb"
TEXT_ENDINGS = (".tra", ".pexp")


def is_model_file(path: Path) -> bool:
    """Return whether a path is that of explicit files: `.umb`, `.tra`, `.pexp`, or a folder.

    Parameters
    ----------
    path
        Any path; `.gz` or `.xz` may follow the ending.
    """
    return path.is_dir() or plain_name(path).endswith((UMB_ENDING, *TEXT_ENDINGS))


def read_checkable(path: Path, kind: ModelKind | str | None = None) -> CheckableModel:
    """Read a model from a UMB file, explicit text files, or a folder with either.

    Parameters
    ----------
    path
        A `.umb`; or what `bridge.files.reader.read_model` takes.
    kind
        For text files: DTMC, CTMC or MDP, where the header does not say.

    Raises
    ------
    InvalidModelError
        If the files are no model; the message names the file, and the line where there is one.
    UnsupportedError
        For other kinds of model.
    OSError
        If a file cannot be read.
    """
    if path.is_dir():
        archives = sorted(file for file in path.iterdir() if _is_umb(file))
        texts = any(plain_name(file).endswith(TEXT_ENDINGS) for file in path.iterdir())
        if len(archives) > 1 or (archives and texts):
            raise InvalidModelError(f"{path}: the folder must hold one model, it holds several")
        path = archives[0] if archives else path
    if _is_umb(path):
        return checkable_from_umb(path)
    # The reader of text brings numba along.
    from bridge.files.reader import read_model

    return checkable_from_text(read_model(path, kind), path)


def _is_umb(path: Path) -> bool:
    return plain_name(path).endswith(UMB_ENDING)


def checkable_from_umb(path: Path) -> CheckableModel:
    """Read a model from a UMB file; see `read_checkable`."""
    file = read_umb(path)
    variables: dict[str, StateVector] = {}
    if file.valuations is not None:
        variables = {name: file.valuations.values(name) for name in file.valuations.names}
    actions = file.choice_actions if file.choice_actions is not None else file.branch_actions
    return CheckableModel(
        _with_standard_labels(file.model),
        rewards=_umb_rewards(file),
        variables=variables,
        source=str(path),
        notes=tuple(f"not read: {what}" for what in file.left_out),
        action_names=("",) if actions is None else actions.names,
        actions=None if actions is None else actions.indices.astype(np.int32),
    )


def checkable_from_text(file: FileModel, path: Path) -> CheckableModel:
    """Return a model read from text files with its names.

    Parameters
    ----------
    file
        What was read.
    path
        Where, for the report.
    """
    variables: dict[str, StateVector] = {}
    if file.variables is not None:
        for number, name in enumerate(file.variables.names):
            column = file.variables.values[:, number]
            is_boolean = file.variables.booleans[number]
            variables[name] = column.astype(bool if is_boolean else np.int64)
    return CheckableModel(
        _with_standard_labels(file.model),
        rewards=tuple(
            NamedRewards(item.name, item, file.state_rewards[number])
            for number, item in enumerate(file.model.rewards)
        ),
        variables=variables,
        source=str(path),
        action_names=file.action_names,
        actions=file.actions,
    )


def _umb_rewards(file: UmbFile) -> tuple[NamedRewards, ...]:
    zeros: FloatArray = np.zeros(file.model.num_states)
    return tuple(
        NamedRewards(raw.name, folded, zeros if raw.states is None else raw.states)
        for raw, folded in zip(file.rewards, file.model.rewards, strict=True)
    )


def _with_standard_labels(model: ExplicitModel) -> ExplicitModel:
    """Return the model with the labels "init" and "deadlock", which every model of PRISM's has."""
    nowhere = np.zeros(model.num_states, dtype=bool)
    initial = nowhere if model.initial_states is None else model.initial_states
    labels = {"init": initial, "deadlock": nowhere, **model.labels}
    return ExplicitModel(
        model.kind, model.matrix, model.row_group_offsets, initial, labels, model.rewards
    )
