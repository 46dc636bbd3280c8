"""Models from files and to files, with the names that properties refer to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from bridge.files.names import is_text_model, is_umb_file, printable
from bridge.files.reader import FileModel, read_model
from bridge.files.umb import Actions, UmbFile, UmbRewards, pack_valuations, read_umb
from bridge.files.umb_writer import split_rates
from bridge.model import CheckableModel, NamedRewards, StateVector
from engines.arrays import INT32_MAX, FloatArray, IndexArray, index_dtype
from engines.errors import InvalidModelError, UnsupportedError
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure

NUMBER = "x"
"""The variable of a model in files that has none of its own."""


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
    try:
        return _read(path, kind)
    except MemoryError as error:
        raise InvalidModelError(
            f"{printable(str(path))}: the model does not fit into memory"
        ) from error


def _read(path: Path, kind: ModelKind | str | None) -> CheckableModel:
    if path.is_dir():
        archives = sorted(file for file in path.iterdir() if is_umb_file(file))
        texts = any(is_text_model(file) for file in path.iterdir())
        if len(archives) > 1 or (archives and texts):
            raise InvalidModelError(
                f"{printable(str(path))}: the folder must hold one model, it holds several"
            )
        path = archives[0] if archives else path
    if is_umb_file(path):
        return checkable_from_umb(path)
    return checkable_from_text(read_model(path, kind), path)


def checkable_from_umb(path: Path) -> CheckableModel:
    """Read a model from a UMB file; see `read_checkable`."""
    file = read_umb(path)
    variables = _numbered(file.model.num_states)
    if file.valuations is not None:
        variables = {name: file.valuations.values(name) for name in file.valuations.names}
    names, actions = _umb_actions(file)
    return CheckableModel(
        _with_standard_labels(file.model),
        rewards=_umb_rewards(file),
        variables=variables,
        source=printable(str(path)),
        notes=(
            *(f"not read: {what}" for what in file.left_out),
            *_other_init(file.model),
            *_rescaled(file),
        ),
        action_names=names,
        actions=actions,
    )


def _umb_actions(file: UmbFile) -> tuple[tuple[str, ...], IndexArray | None]:
    """Return the actions of an MDP's choices, or of a chain's transitions."""
    is_chain = file.model.kind is not ModelKind.MDP
    if is_chain and file.branch_actions is not None:
        return file.branch_actions.names, file.branch_actions.indices.astype(np.int32)
    if file.choice_actions is None:
        return ("",), None
    indices = file.choice_actions.indices.astype(np.int32)
    if is_chain:
        # The one choice of a state has its action on all transitions.
        indices = np.repeat(indices, file.model.matrix.row_lengths())
    return file.choice_actions.names, indices


def checkable_from_text(file: FileModel, path: Path) -> CheckableModel:
    """Return a model read from text files with its names.

    Parameters
    ----------
    file
        What was read.
    path
        Where, for the report.
    """
    variables = _numbered(file.model.num_states)
    if file.variables is not None:
        variables = {}
        for number, name in enumerate(file.variables.names):
            column = file.variables.values[:, number]
            is_boolean = file.variables.booleans[number]
            variables[name] = column.astype(bool if is_boolean else np.int64)
    return CheckableModel(
        _with_standard_labels(file.model),
        rewards=tuple(
            NamedRewards(item.name, item, file.state_rewards[number], file.reward_faults[number])
            for number, item in enumerate(file.model.rewards)
        ),
        variables=variables,
        source=printable(str(path)),
        notes=tuple(f"prism-gpu: {note}" for note in file.notes),
        action_names=file.action_names,
        actions=file.actions,
    )


def _numbered(num_states: int) -> dict[str, StateVector]:
    """Return the variable that PRISM gives a model in files without any: the state's number."""
    return {NUMBER: np.arange(num_states, dtype=index_dtype(num_states))}


def _other_init(model: ExplicitModel) -> tuple[str, ...]:
    label, initial = model.labels.get("init"), model.initial_states
    if label is None or initial is None or np.array_equal(label, initial):
        return ()
    return ('not read: the label "init", which differs from the initial states',)


def _rescaled(file: UmbFile) -> tuple[str, ...]:
    if file.rescaled is None:
        return ()
    return (f"prism-gpu: {file.rescaled.remark(file.model.row_group_offsets)}",)


def _umb_rewards(file: UmbFile) -> tuple[NamedRewards, ...]:
    zeros: FloatArray = np.zeros(file.model.num_states)
    return tuple(
        NamedRewards(
            raw.name,
            folded,
            zeros if raw.states is None else raw.states,
            raw.fault(file.model),
        )
        for raw, folded in zip(file.rewards, file.model.rewards, strict=True)
    )


def _with_standard_labels(model: ExplicitModel) -> ExplicitModel:
    """Return the model with the labels "init" and "deadlock", which every model of PRISM's has."""
    nowhere = np.zeros(model.num_states, dtype=bool)
    initial = nowhere if model.initial_states is None else model.initial_states
    labels = {"init": initial, "deadlock": nowhere, **model.labels}
    labels["init"] = initial  # whatever a file's label of this name says, as in PRISM
    return ExplicitModel(
        model.kind, model.matrix, model.row_group_offsets, initial, labels, model.rewards
    )


def as_file_model(model: CheckableModel) -> FileModel:
    """Return a model as the writer of text files takes it.

    Parameters
    ----------
    model
        Any model; each transition of a Markov chain has what its state's transitions earn on
        average.

    Raises
    ------
    UnsupportedError
        For a variable that is neither an integer of 32 bits nor true or false.
    """
    from bridge.files.reader import FileModel
    from bridge.files.states import StateVariables

    variables = None
    if model.variables:
        for name, column in model.variables.items():
            if column.dtype.kind == "f":
                raise UnsupportedError(f"variable {name} is not an integer: .sta cannot hold it")
            if len(column) and max(-int(column.min()), int(column.max())) > INT32_MAX:
                raise UnsupportedError(f"variable {name} is beyond 32 bits: .sta cannot hold it")
        columns = list(model.variables.values())
        variables = StateVariables(
            tuple(model.variables),
            np.stack(columns, axis=1).astype(np.int32),
            tuple(column.dtype == bool for column in columns),
        )
    plain = model.model
    exit_rates = plain.matrix.row_sums() if plain.kind is ModelKind.CTMC else None
    rewards = tuple(
        RewardStructure(item.name, item.instantaneous, _rewards_apart(item, exit_rates).choices)
        for item in model.rewards
    )
    whole = replace(plain, rewards=rewards)
    return FileModel(whole, variables, model.action_names, model.actions)


def as_umb(model: CheckableModel) -> UmbFile:
    """Return a model as the writer of UMB takes it.

    Parameters
    ----------
    model
        Any model; the rewards of its states alone stay apart from those of its transitions.
    """
    plain = model.model
    probabilities, exit_rates = plain.matrix.values, None
    if plain.kind is ModelKind.CTMC:
        probabilities, exit_rates = split_rates(plain.matrix)
    actions = None
    if model.actions is not None:
        actions = Actions(model.action_names, model.actions.astype(np.uint32))
    of_choices = plain.kind is ModelKind.MDP
    return UmbFile(
        model=replace(plain, rewards=tuple(item.expected for item in model.rewards)),
        probabilities=probabilities,
        exit_rates=exit_rates,
        rewards=tuple(_rewards_apart(item, exit_rates) for item in model.rewards),
        valuations=pack_valuations(model.variables) if model.variables else None,
        choice_actions=actions if of_choices else None,
        branch_actions=None if of_choices else actions,
        model_data={},
        file_data={},
        left_out=(),
    )


def _rewards_apart(item: NamedRewards, exit_rates: FloatArray | None) -> UmbRewards:
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
