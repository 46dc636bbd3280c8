"""The writer of UMB files."""

from __future__ import annotations

import gzip
import json
import lzma
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from bridge.files.atomic import replacing
from bridge.files.umb_archive import BLOCK, INDEX_NAME
from bridge.files.umb_content import Actions, UmbFile, UmbRewards
from bridge.files.umb_index import ACTION_NAME_LIMIT, FORMAT_VERSION, bit_set_bytes
from bridge.files.umb_valuations import StateValuations, pack_valuations
from engines.arrays import FloatArray, MaskArray
from engines.errors import InvalidModelError
from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, ModelKind

Compression: TypeAlias = Literal["none", "gz", "xz"]

_CHUNK = 2**18
_DOUBLE = {"type": "double", "size": 64}
_BOOL = {"type": "bool", "size": 1}
_RECORD = 20 * BLOCK


def write_umb(
    model: ExplicitModel | UmbFile,
    path: str | PathLike[str],
    compression: Compression = "none",
    *,
    valuations: StateValuations | None = None,
    choice_actions: Actions | None = None,
    branch_actions: Actions | None = None,
) -> None:
    """Write a model as a UMB file: whole or not at all, and the same bytes for the same model.

    A CTMC's rates go into the file as exit rates and probabilities. Both are chosen so that their
    product is the rate again, to the last bit wherever a few neighbouring numbers offer it, else to
    one unit in the last place.

    Parameters
    ----------
    model
        The model, or what `read_umb` returned: then exit rates, rewards of branches, valuations,
        actions and the model's description are written as they were read. The rewards of an MDP's
        branches are written as expected rewards of its choices: PRISM reads no others.
    path
        The file, replaced if it exists. Its name's ending is not looked at.
    compression
        A plain file is read fastest; PRISM writes gz.
    valuations, choice_actions, branch_actions
        What to write besides; they go before those of a `UmbFile`.

    Raises
    ------
    InvalidModelError
        The model breaks a rule of its kind, or arrays do not fit its states, choices and branches.
    OSError
        The file cannot be written.
    """
    if compression not in ("none", "gz", "xz"):
        raise ValueError(f"compression {compression!r}: none, gz or xz")
    content = _Content(
        model,
        valuations=valuations,
        actions={"choices": choice_actions, "branches": branch_actions},
    )
    with (
        replacing(Path(path)) as draft,
        draft.open("wb") as file,
        _compressing(file, compression) as stream,
    ):
        written = 0
        for name, array in content.members():
            written += _write_member(stream, name, array)
        end = 2 * BLOCK
        stream.write(bytes(end + -(written + end) % _RECORD))


class _Content:
    """The index and the arrays of the file to write."""

    def __init__(
        self,
        source: ExplicitModel | UmbFile,
        *,
        valuations: StateValuations | None,
        actions: dict[str, Actions | None],
    ) -> None:
        model = source.model if isinstance(source, UmbFile) else source
        model.check()
        self._model = model
        self._matrix = model.matrix
        self._probabilities: FloatArray = self._matrix.values
        self._exit_rates: FloatArray | None = None
        rewards = tuple(
            UmbRewards(reward.name, reward.state_rewards, reward.choice_rewards)
            for reward in model.rewards
        )
        self._valuations = valuations
        self._model_data: dict[str, Any] = {}
        if isinstance(source, UmbFile):
            self._probabilities, self._exit_rates = source.probabilities, source.exit_rates
            self._valuations = valuations or source.valuations
            actions["choices"] = actions["choices"] or source.choice_actions
            actions["branches"] = actions["branches"] or source.branch_actions
            self._model_data = source.model_data
            if model.kind is not ModelKind.MDP:
                rewards = source.rewards
        elif model.kind is ModelKind.CTMC:
            self._probabilities, self._exit_rates = split_rates(self._matrix)
        self._actions = {entity: labels for entity, labels in actions.items() if labels is not None}
        self._counts = {
            "states": model.num_states,
            "choices": self._matrix.num_rows,
            "branches": self._matrix.num_entries,
        }
        self._initial, self._labels = self._state_sets()
        self._arrays: list[tuple[str, str, NDArray[Any]]] = []
        self._annotations: dict[str, dict[str, Any]] = {}
        self._add_transitions()
        self._add_actions()
        self._add_labels()
        for reward in rewards:
            self._add_rewards(reward)
        self._add_valuations()

    def members(self) -> Iterator[tuple[str, _Array]]:
        """Yield the members' names and contents, the index first."""
        try:
            text = json.dumps(self._index(), indent=2, ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise InvalidModelError(f"{INDEX_NAME}: {error}") from None
        yield INDEX_NAME, _Array("|u1", np.frombuffer(text, np.uint8))
        for name, dtype, array in self._arrays:
            yield name, _Array(dtype, array)

    def _index(self) -> dict[str, Any]:
        kind, counts = self._model.kind, self._counts
        num_actions = {entity: len(labels.names) for entity, labels in self._actions.items()}
        system: dict[str, Any] = {
            "time": "stochastic" if kind is ModelKind.CTMC else "discrete",
            "#players": 1 if kind is ModelKind.MDP else 0,
            "#states": counts["states"],
            "#initial-states": int(np.count_nonzero(self._initial)),
            "#choices": counts["choices"],
            "#choice-actions": num_actions.get("choices", 0),
            "#branches": counts["branches"],
            "#branch-actions": num_actions.get("branches", 0),
            "#observations": 0,
        }
        if counts["branches"]:
            system["branch-probability-type"] = _DOUBLE
        if kind is ModelKind.CTMC:
            system["exit-rate-type"] = _DOUBLE
        index: dict[str, Any] = {
            "format-version": FORMAT_VERSION,
            "format-revision": 0,
            "model-data": self._model_data,
            "file-data": {"tool": "prism-gpu"},
            "transition-system": system,
            "annotations": self._annotations,
        }
        if self._valuations is not None:
            index["valuations"] = {"states": _describe(self._valuations)}
        return index

    def _state_sets(self) -> tuple[MaskArray, dict[str, MaskArray]]:
        """Return the initial states and the labels; "init" is no label but the initial states."""
        labels = dict(self._model.labels)
        initial = labels.pop("init", None)
        if self._model.initial_states is not None:
            if initial is not None and not np.array_equal(initial, self._model.initial_states):
                raise InvalidModelError('the label "init" and the initial states differ')
            initial = self._model.initial_states
        if initial is None:
            initial = np.zeros(self._counts["states"], np.bool_)
        self._require_length(initial, "states", "the initial states")
        return initial, labels

    def _require_length(self, array: NDArray[Any], entity: str, what: str) -> None:
        if array.shape[:1] != (self._counts[entity],):
            raise InvalidModelError(
                f"{what}: {len(array)} values for {self._counts[entity]} {entity}"
            )

    def _add(self, name: str, dtype: str, array: NDArray[Any]) -> None:
        self._arrays.append((name, dtype, array))

    def _add_bits(self, name: str, mask: MaskArray) -> None:
        packed = np.packbits(np.asarray(mask, np.bool_), bitorder="little")
        self._add(name, "|u1", np.pad(packed, (0, bit_set_bytes(len(mask)) - len(packed))))

    def _add_transitions(self) -> None:
        if self._model.row_group_offsets is not None:
            self._add("state-to-choices.bin", "<u8", self._model.row_group_offsets)
        self._add("choice-to-branches.bin", "<u8", self._matrix.row_offsets)
        if self._counts["branches"]:
            self._require_length(self._probabilities, "branches", "the probabilities")
            self._add("branch-to-probability.bin", "<f8", self._probabilities)
        if self._exit_rates is not None:
            self._require_length(self._exit_rates, "states", "the exit rates")
            self._add("state-to-exit-rate.bin", "<f8", self._exit_rates)
        if self._counts["branches"]:
            self._add("branch-to-target.bin", "<u8", self._matrix.columns)
        self._add_bits("state-is-initial.bin", self._initial)

    def _add_actions(self) -> None:
        for entity, labels in self._actions.items():
            self._require_length(labels.indices, entity, f"the actions of the {entity}")
            count = len(labels.names)
            if len(labels.indices) and not 0 <= int(labels.indices.max()) < count:
                raise InvalidModelError(f"the actions of the {entity}: there are only {count}")
            try:
                names = [name.encode() for name in labels.names]
            except UnicodeEncodeError as error:
                raise InvalidModelError(f"the actions of the {entity}: {error}") from None
            if any(len(name) > ACTION_NAME_LIMIT for name in names):
                raise InvalidModelError(f"an action's name is over {ACTION_NAME_LIMIT} bytes")
            ends = np.cumsum([0, *map(len, names)])
            folder = f"actions/{entity}"
            self._add(f"{folder}/string-mapping.bin", "<u8", ends)
            self._add(f"{folder}/strings.bin", "|u1", np.frombuffer(b"".join(names), np.uint8))
            self._add(f"{folder}/values.bin", "<u4", labels.indices)

    def _add_labels(self) -> None:
        for name, mask in self._labels.items():
            self._require_length(mask, "states", f"the label {name!r}")
            folder = self._annotate("aps", name, _BOOL, ["states"])
            self._add_bits(f"{folder}/states/values.bin", mask)

    def _add_rewards(self, reward: UmbRewards) -> None:
        states, choices, branches = reward.states, reward.choices, reward.branches
        if choices is not None and self._model.kind is not ModelKind.MDP:
            # PRISM reads no rewards of choices there: each branch gets its state's.
            spread = np.repeat(choices, self._matrix.row_lengths())
            branches = spread if branches is None else branches + spread
            choices = None
        elsewhere = choices is not None or branches is not None
        if states is None and not elsewhere:
            states = np.zeros(self._counts["states"])
        if states is not None and elsewhere and not np.any(states):
            states = None  # what an absent array reads as
        parts = {"states": states, "choices": choices, "branches": branches}
        given = {entity: values for entity, values in parts.items() if values is not None}
        folder = self._annotate("rewards", reward.name, _DOUBLE, list(given))
        for entity, values in given.items():
            self._require_length(values, entity, f"reward structure {reward.name!r}")
            if not np.all(np.isfinite(values)):
                raise InvalidModelError(f"reward structure {reward.name!r}: values must be finite")
            self._add(f"{folder}/{entity}/values.bin", "<f8", values)

    def _annotate(
        self, group: str, name: str, value_type: Mapping[str, Any], entities: list[str]
    ) -> str:
        """Describe an annotation, and return the folder of its values."""
        described = self._annotations.setdefault(group, {})
        if name and any(other.get("alias") == name for other in described.values()):
            raise InvalidModelError(f"two annotations of group {group} are named {name!r}")
        key = re.sub(r"[^a-z0-9_-]", "_", name.lower())[:48] or str(len(described) + 1)
        while key in described:
            key += "_"
        alias = {"alias": name} if name else {}
        described[key] = {**alias, "applies-to": entities, "type": value_type}
        return f"annotations/{group}/{key}"

    def _add_valuations(self) -> None:
        if self._valuations is not None:
            if any(variable.origin for variable in self._valuations.layout.variables):
                # PRISM and umbi do not know numbers that count from another one than 0.
                columns = {name: self._valuations.values(name) for name in self._valuations.names}
                self._valuations = pack_valuations(columns)
            records = self._valuations.records
            self._require_length(records, "states", "the state valuations")
            self._add("valuations/states/valuations.bin", "|u1", records.reshape(-1))


def _describe(valuations: StateValuations) -> dict[str, Any]:
    layout = valuations.layout
    items: list[dict[str, Any]] = []
    position = 0
    for variable in layout.variables:
        if variable.offset > position:
            items.append({"padding": variable.offset - position})
        items.append(
            {"name": variable.name, "type": {"type": variable.type, "size": variable.size}}
        )
        position = variable.offset + variable.size
    if 8 * layout.record_bytes > position:
        items.append({"padding": 8 * layout.record_bytes - position})
    return {"unique": layout.unique, "classes": [{"variables": items}]}


def split_rates(rates: CsrMatrix) -> tuple[FloatArray, FloatArray]:
    """Return probabilities and exit rates whose products are the given rates.

    Parameters
    ----------
    rates
        The rate matrix of a CTMC.

    Returns
    -------
    probabilities
        Shape (entries,).
    exit_rates
        Shape (states,); the row sums, moved by a few units in the last place where only then the
        products come out to the last bit.
    """
    rows = rates.row_of_entry()
    exit_rates = rates.row_sums()
    probabilities = _divide(rates.values, exit_rates[rows])
    sums = exit_rates.copy()
    missed = np.zeros(rates.num_rows, np.bool_)
    missed[rows[probabilities * exit_rates[rows] != rates.values]] = True
    entries = np.flatnonzero(missed[rows])
    for attempt in range(64):
        if len(entries) == 0:
            break
        # One up, one down, two up, two down, … from the sum.
        steps = (attempt // 2 + 1) * (1 if attempt % 2 == 0 else -1)
        of_row, wanted = rows[entries], rates.values[entries]
        totals = sums[of_row] + steps * np.spacing(sums[of_row])
        quotients = _divide(wanted, totals)
        missed[of_row] = False
        missed[of_row[quotients * totals != wanted]] = True
        solved = ~missed[of_row]
        probabilities[entries[solved]] = quotients[solved]
        exit_rates[of_row[solved]] = totals[solved]
        entries = entries[~solved]
    return probabilities, exit_rates


def _divide(rates: FloatArray, totals: FloatArray) -> FloatArray:
    """Return the quotient, or the neighbour of it that gives the rate back."""
    # A row of zero rates alone: whatever the probabilities, their products are 0.
    quotient = np.divide(rates, totals, out=np.zeros_like(rates), where=totals > 0)
    for neighbour in (np.nextafter(quotient, 0.0), np.nextafter(quotient, 2.0)):
        better = (quotient * totals != rates) & (neighbour * totals == rates)
        quotient = np.where(better, neighbour, quotient)
    return quotient


class _Array:
    """An array and the type that it has in the file."""

    def __init__(self, dtype: str, array: NDArray[Any]) -> None:
        self._dtype = np.dtype(dtype)
        self._array = array
        self.num_bytes = len(array) * self._dtype.itemsize

    def chunks(self) -> Iterator[memoryview]:
        """Yield the bytes, converted a part at a time."""
        for start in range(0, len(self._array), _CHUNK):
            part = np.ascontiguousarray(self._array[start : start + _CHUNK], self._dtype)
            yield memoryview(cast("bytearray", part)).cast("B")


def _write_member(stream: BinaryIO, name: str, array: _Array) -> int:
    """Write a member, and return how many bytes of the archive it takes."""
    stream.write(_tar_header(name, array.num_bytes))
    for chunk in array.chunks():
        stream.write(chunk)
    padding = -array.num_bytes % BLOCK
    stream.write(bytes(padding))
    return BLOCK + array.num_bytes + padding


def _tar_header(name: str, size: int) -> bytes:
    # Octal while it fits in 11 digits, else GNU's binary form.
    stated = b"%011o\0" % size if size < 8**11 else b"\x80" + size.to_bytes(11, "big")
    fields = [
        name.encode().ljust(100, b"\0"),
        b"0000644\0" + b"0000000\0" * 2,
        stated,
        b"%011o\0" % 0,
        b" " * 8,
        b"0" + bytes(100),
        b"ustar\x0000",
    ]
    header = bytearray(b"".join(fields).ljust(BLOCK, b"\0"))
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


@contextmanager
def _compressing(file: BinaryIO, compression: Compression) -> Iterator[BinaryIO]:
    if compression == "none":
        yield file
    elif compression == "gz":
        # No name and no time in the header: the same bytes for the same model.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as stream:
            yield cast("BinaryIO", stream)
    else:
        with lzma.open(file, "wb", preset=6) as packed:
            yield cast("BinaryIO", packed)
