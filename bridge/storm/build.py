"""From the text of a model to the built model, in PRISM's numbering."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from bridge.files.umb import UmbFile, read_umb
from bridge.language.ast import Value
from bridge.language.constants import define_constants
from bridge.language.model_check import check_with_constants, checked_outline
from bridge.language.model_outline import ModelOutline
from bridge.language.text import seconds_text
from bridge.model import CheckableModel, StateVector
from bridge.storm.command_faults import command_fault
from bridge.storm.model_text import for_storm
from bridge.storm.process import run_storm, storm_version, unavailable
from bridge.storm.rewards import named_rewards
from bridge.storm.states import choice_order, restored_rates, sorted_matrix, state_order
from engines.arrays import IndexArray, MaskArray
from engines.errors import BridgeError, InvalidModelError, UnsupportedError
from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, ModelKind
from engines.process.leftovers import temporary_folder

KINDS = tuple(kind.lower() for kind in ModelKind)


def build_model(
    path: Path,
    constants: Mapping[str, Value],
    *,
    text: str | None = None,
    declared: ModelOutline | None = None,
    fix_deadlocks: bool = True,
    log: Callable[[str], None],
) -> CheckableModel:
    """Return the model that a text in PRISM's language describes, built by Storm.

    Parameters
    ----------
    path
        The model's file.
    constants
        The values of the constants that it does not define; other names are passed over.
    text
        What the file holds, where it was read before: a pipe can be read once.
    declared
        What stands in the text, where it was read and checked before.
    fix_deadlocks
        Whether states without a transition get a self-loop, of rate 1 in a CTMC; else they are an
        error.
    log
        Takes a line for the report: what Storm took, and what the rest.

    Returns
    -------
    The model with states, rewards and labels as PRISM has them: states sorted by the variables'
    values, the choices of a state by action. The labels of the model are all in `model.labels`.

    Raises
    ------
    InvalidModelError
        For a text that breaks the grammar, wrong types, undefined constants, probabilities that do
        not sum to 1, variables that leave their range, and deadlocks that are not to be fixed.
    UnsupportedError
        For kinds of model other than DTMC, CTMC and MDP, and for what Storm's builder or the
        engines cannot do.
    DeviceMemoryError
        When the memory does not suffice.
    BridgeError
        When Storm is not there, or crashed.
    OSError
        When the file cannot be read.
    """
    reason = unavailable()
    if reason is not None:
        raise BridgeError(reason)
    if text is None:
        text = path.read_text(encoding="utf-8", errors="replace")
    if declared is None:
        declared = checked_outline(text, str(path))
    require_support(declared, path)
    values = define_constants(declared.constants, constants, formulas=declared.formulas)
    check_with_constants(declared, values)
    begin = time.perf_counter()
    open_values = {
        item.name: values[item.name] for item in declared.constants if item.value is None
    }
    try:
        umb, notes = _built(for_storm(text, str(path), declared), open_values, path)
    except (InvalidModelError, BridgeError) as error:
        # Storm's words, or those on its arrays, name no command.
        raise command_fault(declared, values) or error from None
    built = time.perf_counter()
    deadlocks = _label(umb, "deadlock")
    if fixed := int(np.count_nonzero(deadlocks)):
        if not fix_deadlocks:
            raise InvalidModelError(f"Model contains {fixed} deadlock states")
        notes.append(f"Deadlocks detected and fixed in {fixed} states")
    model = _assemble(umb, declared, values, deadlocks, path)
    log(
        f"Storm {storm_version()}: {seconds_text(built - begin)} seconds; "
        f"states in PRISM's order: {seconds_text(time.perf_counter() - built)} seconds."
    )
    return replace(model, notes=tuple(notes))


def require_support(declared: ModelOutline, path: Path) -> None:
    """Refuse a model of a kind that is not built.

    Parameters
    ----------
    declared
        The model's outline.
    path
        Its file, for the message.

    Raises
    ------
    UnsupportedError
        For all but DTMCs, CTMCs and MDPs.
    """
    kind = declared.kind or "mdp"
    if kind not in KINDS:
        raise UnsupportedError(
            f"{path}: a {kind.upper()}; the embedded front end builds DTMCs, CTMCs and MDPs"
        )


def _built(text: str, constants: Mapping[str, Value], path: Path) -> tuple[UmbFile, list[str]]:
    """Return what Storm built, and its warnings."""
    with temporary_folder() as folder:
        model, archive = folder / "model.prism", folder / "model.umb"
        model.write_text(text, encoding="utf-8")
        notes = run_storm(model, constants, archive, source=str(path))
        try:
            # The arrays are copied before the folder goes: into their new order.
            return read_umb(archive), notes
        except (InvalidModelError, UnsupportedError) as error:
            raise type(error)(str(error).replace(str(archive), str(path))) from None


def _assemble(
    umb: UmbFile,
    declared: ModelOutline,
    constants: Mapping[str, Value],
    deadlocks: MaskArray,
    path: Path,
) -> CheckableModel:
    built = umb.model
    stored = _variables(umb, declared)
    states = state_order(stored, built.num_states)
    variables = {name: column[states] for name, column in stored.items()}
    rows, groups, names, actions = _choices(umb, declared, states)
    matrix = sorted_matrix(built.matrix, rows, states)
    if built.kind is ModelKind.CTMC:
        rates = restored_rates(matrix.values)
        matrix = CsrMatrix(matrix.row_offsets, matrix.columns, rates, matrix.num_columns)
    rewards = named_rewards(umb, declared, constants, variables, states, rows, deadlocks[states])
    labels = {"init": _initial(umb)[states], "deadlock": deadlocks[states]}
    labels.update({name: _label(umb, name)[states] for name in declared.labels})
    return CheckableModel(
        ExplicitModel(
            kind=built.kind,
            matrix=matrix,
            row_group_offsets=groups,
            initial_states=labels["init"],
            labels=labels,
            rewards=tuple(structure.expected for structure in rewards),
        ),
        rewards=rewards,
        variables=variables,
        constants=constants,
        formulas=declared.formulas,
        source=str(path),
        modules=declared.modules,
        action_names=names,
        actions=actions,
    )


def _choices(
    umb: UmbFile, declared: ModelOutline, states: IndexArray
) -> tuple[IndexArray, IndexArray | None, tuple[str, ...], IndexArray | None]:
    """Return rows and row groups in their new order, and the actions' names and numbers."""
    groups = umb.model.row_group_offsets
    if groups is None:
        return states, None, ("",), None
    place = {name: number for number, name in enumerate(("", *declared.actions))}
    if umb.choice_actions is None:
        actions = np.zeros(umb.model.matrix.num_rows, np.int32)
        ranks = [0]
    else:
        actions = umb.choice_actions.indices.astype(np.int32)
        ranks = [place[name] for name in umb.choice_actions.names]
    rows, new_groups = choice_order(groups, states, actions, ranks)
    return rows, new_groups, tuple(place), np.asarray(ranks, np.int32)[actions][rows]


def _variables(umb: UmbFile, declared: ModelOutline) -> dict[str, StateVector]:
    if umb.valuations is None:
        if umb.left_out or declared.variables:
            raise UnsupportedError(f"Storm's state valuations: {', '.join(umb.left_out) or 'none'}")
        return {}
    return {name: umb.valuations.values(name) for name in declared.variables}


def _initial(umb: UmbFile) -> MaskArray:
    initial = umb.model.initial_states
    return np.zeros(umb.model.num_states, dtype=bool) if initial is None else initial


def _label(umb: UmbFile, name: str) -> MaskArray:
    nowhere = np.zeros(umb.model.num_states, dtype=bool)
    return umb.model.labels.get(name, nowhere)
