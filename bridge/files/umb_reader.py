"""The reader of UMB files."""

from __future__ import annotations

from itertools import pairwise
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bridge.files.names import printable
from bridge.files.umb_archive import Archive, Bytes
from bridge.files.umb_content import Actions, UmbFile, UmbRewards
from bridge.files.umb_index import Annotation, Index, parse_index
from bridge.files.umb_valuations import StateValuations
from engines.arrays import FloatArray, IndexArray, MaskArray, index_dtype, sums_by_row
from engines.errors import InvalidModelError
from engines.model.csr import CsrMatrix
from engines.model.explicit import ROW_SUM_TOLERANCE, ExplicitModel, ModelKind, RewardStructure
from engines.model.row_sums import rescaled


def read_umb(path: str | PathLike[str]) -> UmbFile:
    """Return the model in a UMB file.

    Parameters
    ----------
    path
        The file; plain, gz and xz are told apart by their first bytes.

    Raises
    ------
    InvalidModelError
        The file is damaged, its parts contradict each other, or the model breaks a rule of its
        kind; the message names the file and the member.
    UnsupportedError
        A model other than a DTMC, CTMC or MDP, values other than doubles, or another compression.
    OSError
        The file cannot be opened or read.
    """
    path = Path(path)
    with Archive(path) as archive:
        index = parse_index(archive.read_index(), printable(str(path)))
        content = archive.load(index.promises(), index.other_bytes())
    return _Reader(printable(str(path)), index, content).read()


class _Reader:
    """Turns the members' bytes into arrays, checking each; drops the bytes once it has done so."""

    def __init__(self, path: str, index: Index, content: dict[str, Bytes]) -> None:
        self._path = path
        self._index = index
        self._content = content
        self._counts = index.counts

    def read(self) -> UmbFile:
        index = self._index
        targets = self._targets()  # first: what it holds bounds what absent members stand for
        groups = None
        if index.kind is ModelKind.MDP:
            groups = self._offsets("state-to-choices.bin", "states", "choices", least=1)
        offsets = self._offsets(
            "choice-to-branches.bin",
            "choices",
            "branches",
            least=0 if index.kind is ModelKind.CTMC else 1,
        )
        probabilities = self._values("branch-to-probability.bin", "branches")
        if probabilities is None:
            probabilities = np.ones(self._counts["branches"])
        branches = CsrMatrix(offsets, targets, probabilities, self._counts["states"])
        exit_rates = self._exit_rates(branches)
        rewards = [self._rewards(annotation) for annotation in index.rewards]
        actions = {entity: self._actions(entity) for entity in index.num_actions}
        keep = probabilities != 0.0
        if not np.all(keep):
            branches = _keep_branches(branches, keep)
            rewards = [_keep_rewards(structure, keep) for structure in rewards]
            if (labelled := actions.get("branches")) is not None:
                actions["branches"] = Actions(labelled.names, labelled.indices[keep])
        self._check_sums(branches)
        changed = None
        if index.kind is not ModelKind.CTMC:
            branches, changed = rescaled(branches)
        model = self._model(groups, branches, exit_rates, rewards)
        return UmbFile(
            model=model,
            probabilities=branches.values,
            exit_rates=exit_rates,
            rewards=tuple(rewards),
            valuations=self._valuations(),
            choice_actions=actions.get("choices"),
            branch_actions=actions.get("branches"),
            model_data=index.model_data,
            file_data=index.file_data,
            left_out=index.left_out,
            rescaled=changed,
        )

    def _check_sums(self, branches: CsrMatrix) -> None:
        sums = branches.row_sums()
        wrong = np.abs(sums - 1.0) > ROW_SUM_TOLERANCE
        if self._index.kind is ModelKind.CTMC:
            wrong &= branches.row_lengths() > 0
        if wrong.any():
            row = int(np.argmax(wrong))
            row_name = "choice" if self._index.kind is ModelKind.MDP else "state"
            raise self._invalid(
                "branch-to-probability.bin",
                f"the probabilities of {row_name} {row} sum to {float(sums[row])!r}, not 1",
            )

    def _model(
        self,
        groups: IndexArray | None,
        branches: CsrMatrix,
        exit_rates: FloatArray | None,
        rewards: list[UmbRewards],
    ) -> ExplicitModel:
        matrix = branches
        if exit_rates is not None:
            rates = branches.values * np.repeat(exit_rates, branches.row_lengths())
            matrix = CsrMatrix(branches.row_offsets, branches.columns, rates, branches.num_columns)
        model = ExplicitModel(
            kind=self._index.kind,
            matrix=matrix,
            row_group_offsets=groups,
            initial_states=self._initial_states(),
            labels={
                label.name: self._required_mask(label.member("states"))
                for label in self._index.labels
            },
            rewards=tuple(
                _fold_rewards(structure, self._index.kind, branches, exit_rates)
                for structure in rewards
            ),
        )
        try:
            return model.check()
        except InvalidModelError as error:
            raise self._invalid("branch-to-probability.bin", str(error)) from None

    def _offsets(self, name: str, owner: str, owned: str, *, least: int) -> IndexArray:
        count, total = self._counts[owner], self._counts[owned]
        content = self._content.pop(name, None)
        if content is None:
            if count != total:
                raise self._invalid(name, f"missing, though {count} {owner} have {total} {owned}")
            return np.arange(count + 1, dtype=index_dtype(total))
        offsets = content.view("<u8")
        if offsets[0] != 0 or offsets[-1] != total:
            raise self._invalid(
                name, f"runs from {offsets[0]} to {offsets[-1]}, not from 0 to the {total} {owned}"
            )
        falling = offsets[1:] < offsets[:-1]
        if np.any(falling):
            raise self._invalid(name, f"the offsets fall at {owner} entry {np.argmax(falling)}")
        narrow = _narrow(offsets, total)
        empty = np.diff(narrow) < least
        if np.any(empty):
            raise self._invalid(name, f"entry {np.argmax(empty)} of the {owner} has no {owned}")
        return narrow

    def _targets(self) -> IndexArray:
        name = "branch-to-target.bin"
        content = self._content.pop(name, None)
        if content is None:
            if self._counts["branches"]:
                raise self._invalid(name, "missing")
            content = np.empty(0, np.uint8)
        targets = content.view("<u8")
        states = self._counts["states"]
        if len(targets) and (wrong := targets >= states).any():
            branch = int(np.argmax(wrong))
            raise self._invalid(
                name,
                f"branch {branch} leads to {targets[branch]}, but the states are 0 to {states - 1}",
            )
        return _narrow(targets, states)

    def _values(self, name: str, entity: str) -> FloatArray | None:
        """Return an array of finite numbers, none negative; None where it is absent."""
        content = self._content.pop(name, None)
        if content is None:
            return None
        values: FloatArray = content.view("<f8").astype(np.float64, copy=False)
        wrong = ~np.isfinite(values) | (values < 0.0)
        if np.any(wrong):
            entry = int(np.argmax(wrong))
            raise self._invalid(
                name,
                f"entry {entry} of the {entity} is {values[entry]}; values must be finite and not "
                "negative",
            )
        return values

    def _exit_rates(self, branches: CsrMatrix) -> FloatArray | None:
        """Return a CTMC's exit rates."""
        if self._index.kind is not ModelKind.CTMC:
            return None
        name = "state-to-exit-rate.bin"
        rates = self._values(name, "states")
        if rates is None:
            raise self._invalid(name, "missing, though the model is a CTMC")
        absorbing = branches.row_lengths() == 0
        if np.any(lost := absorbing & (rates > 0)):
            state = int(np.argmax(lost))
            raise self._invalid(name, f"state {state} has rate {rates[state]} but no branches")
        return rates

    def _mask(self, name: str) -> MaskArray | None:
        content = self._content.pop(name, None)
        if content is None:
            return None
        bits = np.unpackbits(content, bitorder="little").view(np.bool_)
        states = self._counts["states"]
        if np.any(bits[states:]):
            raise self._invalid(name, f"a bit is set behind the last of {states} states")
        return bits[:states]

    def _required_mask(self, name: str) -> MaskArray:
        mask = self._mask(name)
        if mask is None:
            raise self._invalid(name, "missing")
        return mask

    def _initial_states(self) -> MaskArray:
        name = "state-is-initial.bin"
        expected = self._index.num_initial_states
        mask = self._mask(name)
        if mask is None:
            mask = np.zeros(self._counts["states"], np.bool_)
        if (found := int(np.count_nonzero(mask))) != expected:
            raise self._invalid(name, f"{found} initial states, but {expected} by index.json")
        return mask

    def _rewards(self, annotation: Annotation) -> UmbRewards:
        parts: dict[str, FloatArray] = {}
        for entity in annotation.entities:
            name = annotation.member(entity)
            if (content := self._content.pop(name, None)) is None:
                raise self._invalid(name, "missing")
            values: FloatArray = content.view("<f8").astype(np.float64, copy=False)
            parts[entity] = values
        return UmbRewards(annotation.name, **parts)

    def _actions(self, entity: str) -> Actions:
        folder = f"actions/{entity}"
        count = self._index.num_actions[entity]
        content = self._content.pop(f"{folder}/values.bin", None)
        if content is None:
            content = np.zeros(4 * self._counts[entity], np.uint8)
        indices = content.view("<u4")
        if len(indices) and (largest := int(indices.max())) >= count:
            raise self._invalid(f"{folder}/values.bin", f"action {largest}, but there are {count}")
        return Actions(self._action_names(folder, count), indices)

    def _action_names(self, folder: str, count: int) -> tuple[str, ...]:
        mapping = self._content.pop(f"{folder}/string-mapping.bin", None)
        strings = self._content.pop(f"{folder}/strings.bin", None)
        if mapping is None and strings is None:
            return tuple(f"_{number}" for number in range(1, count + 1))  # as PRISM names them
        if mapping is None or strings is None:
            raise self._invalid(folder, "string-mapping.bin and strings.bin come together")
        text = strings.tobytes()
        ends = mapping.view("<u8")
        if ends[0] != 0 or ends[-1] != len(text) or np.any(ends[1:] < ends[:-1]):
            raise self._invalid(
                f"{folder}/string-mapping.bin", f"does not divide the {len(text)} bytes of strings"
            )
        places = ends.tolist()
        try:
            return tuple(text[start:end].decode() for start, end in pairwise(places))
        except UnicodeDecodeError as error:
            raise self._invalid(f"{folder}/strings.bin", f"not UTF-8: {error}") from None

    def _valuations(self) -> StateValuations | None:
        layout = self._index.valuations
        if layout is None:
            return None
        name = "valuations/states/valuations.bin"
        content = self._content.pop(name, None)
        if content is None:
            raise self._invalid(name, "missing")
        return StateValuations(layout, content.reshape(self._counts["states"], layout.record_bytes))

    def _invalid(self, name: str, what: str) -> InvalidModelError:
        return InvalidModelError(f"{self._path}: {name}: {what}")


def _narrow(values: NDArray[np.uint64], largest: int) -> IndexArray:
    dtype = index_dtype(largest)
    return values.view(np.int64) if dtype is np.int64 else values.astype(dtype)


def _keep_branches(branches: CsrMatrix, keep: MaskArray) -> CsrMatrix:
    """Drop branches of probability 0: edges that no graph algorithm may follow."""
    kept = np.concatenate(([0], np.cumsum(keep)))
    offsets = kept[branches.row_offsets].astype(branches.row_offsets.dtype)
    return CsrMatrix(offsets, branches.columns[keep], branches.values[keep], branches.num_columns)


def _keep_rewards(structure: UmbRewards, keep: MaskArray) -> UmbRewards:
    if structure.branches is None:
        return structure
    return UmbRewards(structure.name, structure.states, structure.choices, structure.branches[keep])


@np.errstate(over="ignore", invalid="ignore")
def _fold_rewards(
    structure: UmbRewards, kind: ModelKind, branches: CsrMatrix, exit_rates: FloatArray | None
) -> RewardStructure:
    """Return a structure with its branches' rewards as expected rewards of states or choices."""
    choices = structure.choices
    if structure.branches is not None:
        expected = sums_by_row(
            branches.row_of_entry(), branches.values * structure.branches, branches.num_rows
        )
        choices = expected if choices is None else choices + expected
    states = structure.states
    if kind is not ModelKind.MDP and choices is not None:
        # A CTMC earns state rewards by time and these by jump, exit-rate many a unit of time.
        jumps = choices if exit_rates is None else choices * exit_rates
        states = jumps if states is None else states + jumps
        choices = None
    if states is None:
        states = np.zeros(branches.num_columns)
    return RewardStructure(structure.name, states, choices)
