"""`index.json` of a UMB file: which model it is, how large, and what is annotated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from bridge.files.names import first_repeated, printable
from bridge.files.umb_archive import INDEX_NAME, Promise
from engines.errors import InvalidModelError, UnsupportedError
from engines.model.explicit import ModelKind

_T = TypeVar("_T")

FORMAT_VERSION = 1
ENTITIES = ("states", "choices", "branches", "observations", "players")
COUNT_LIMIT = 2**62
ACTION_NAME_LIMIT = 2**16

_TYPES = ("bool", "int", "uint", "double", "rational", "string")
_LABELS = "aps"
_GROUPS = (_LABELS, "rewards")
_DECODED = ("bool", "int", "uint", "double")
_WHOLE = ("int", "uint")
_INTERVALS = tuple(f"{name}-interval" for name in _TYPES[1:5])


@dataclass(frozen=True)
class ValueType:
    """A type and its size in bits, None for the type's usual one."""

    name: str
    size: int | None

    def require_double(self, what: str) -> None:
        """Raise unless values of this type are 64-bit floating-point numbers."""
        if self.name != "double":
            raise UnsupportedError(
                f"{what} of type {self.name}; only double is supported, but PRISM reads others "
                "with -importmodel"
            )
        if self.size not in (None, 64):
            raise InvalidModelError(f"{what}: a double of {self.size} bits; it has 64")


@dataclass(frozen=True)
class Annotation:
    """A label or a reward structure: its values lie apart for states, choices and branches."""

    id: str
    name: str
    entities: tuple[str, ...]
    group: str

    def member(self, entity: str) -> str:
        """Return the name of the member with the values for an entity."""
        return f"annotations/{self.group}/{self.id}/{entity}/values.bin"


@dataclass(frozen=True)
class Variable:
    """A variable of the state valuations: `size` bits from bit `offset` of a state's record.

    `origin` is added to the number in these bits: Storm counts from the lowest value.
    """

    name: str
    type: str
    offset: int
    size: int
    origin: int = 0


@dataclass(frozen=True)
class ValuationLayout:
    """How the variables' values of one state are packed into `record_bytes` bytes."""

    variables: tuple[Variable, ...]
    record_bytes: int
    unique: bool


@dataclass(frozen=True)
class Index:
    """What `index.json` says; `left_out` names what the file holds but is not read."""

    kind: ModelKind
    counts: dict[str, int]
    num_initial_states: int
    num_actions: dict[str, int]
    labels: tuple[Annotation, ...]
    rewards: tuple[Annotation, ...]
    valuations: ValuationLayout | None
    model_data: dict[str, Any]
    file_data: dict[str, Any]
    left_out: tuple[str, ...]

    def promises(self) -> dict[str, Promise]:
        """Return the members that matter and the bytes that they must have."""
        states, choices, branches = (self.counts[entity] for entity in ENTITIES[:3])
        sizes = {
            "state-to-choices.bin": 8 * (states + 1),
            "choice-to-branches.bin": 8 * (choices + 1),
            "branch-to-target.bin": 8 * branches,
            "branch-to-probability.bin": 8 * branches,
            "state-is-initial.bin": bit_set_bytes(states),
        }
        if self.kind is ModelKind.CTMC:
            sizes["state-to-exit-rate.bin"] = 8 * states
        for label in self.labels:
            sizes[label.member("states")] = bit_set_bytes(states)
        for reward in self.rewards:
            for entity in reward.entities:
                sizes[reward.member(entity)] = 8 * self.counts[entity]
        if self.valuations is not None:
            sizes["valuations/states/valuations.bin"] = states * self.valuations.record_bytes
        promises = {name: Promise(size) for name, size in sizes.items()}
        for entity, actions in self.num_actions.items():
            folder = f"actions/{entity}"
            promises[f"{folder}/values.bin"] = Promise(4 * self.counts[entity])
            promises[f"{folder}/string-mapping.bin"] = Promise(8 * (actions + 1))
            promises[f"{folder}/strings.bin"] = Promise(ACTION_NAME_LIMIT * actions, exact=False)
        return promises

    def other_bytes(self) -> int:
        """Return how many bytes the members that are left out may have."""
        return 2**26 + 64 * sum(self.counts.values()) * len(self.left_out)


def bit_set_bytes(count: int) -> int:
    """Return the bytes of a bit set over `count` entities: whole 64-bit words."""
    return (count + 63) // 64 * 8


class JsonObject:
    """A JSON object whose fields must have the types that they are asked for with.

    Parameters
    ----------
    value
        The parsed JSON.
    where
        How messages name it.
    """

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise InvalidModelError(f"{where} must be a JSON object, not {_json_name(value)}")
        self.where = where
        self.raw: dict[str, Any] = value

    def has(self, key: str) -> bool:
        """Return whether a field is there; null counts as absent."""
        return self.raw.get(key) is not None

    def child(self, key: str) -> JsonObject:
        """Return a field that must be an object; an absent one reads as empty."""
        value = self.raw[key] if self.has(key) else {}
        return JsonObject(value, f"{self.where}.{key}")

    def children(self) -> Iterator[tuple[str, JsonObject]]:
        """Yield every field, each of which must be an object."""
        for key in self.raw:
            yield key, JsonObject(self.raw[key], f"{self.where}.{key}")

    def sequence(self, key: str) -> list[Any]:
        """Return a field that must be a list."""
        return self._typed(key, list, "a list")

    def text(self, key: str) -> str:
        """Return a field that must be a text."""
        return self._typed(key, str, "a text")

    def flag(self, key: str) -> bool:
        """Return a field that must be true or false; an absent one is false."""
        return self.has(key) and self._typed(key, bool, "true or false")

    def count(self, key: str, *, limit: int = COUNT_LIMIT) -> int:
        """Return a field that must be a whole number of 0 or more, below a limit."""
        number = self._typed(key, int, "a whole number")
        if isinstance(number, bool) or not 0 <= number <= limit:
            raise InvalidModelError(
                f"{self.where}.{key} must be a whole number from 0 to {limit}, not {number!s:.40}"
            )
        return number

    def whole(self, key: str, *, limit: int = COUNT_LIMIT) -> int:
        """Return a field that must be a whole number of at most `limit` either way."""
        number = self._typed(key, int, "a whole number")
        if isinstance(number, bool) or not -limit <= number <= limit:
            raise InvalidModelError(
                f"{self.where}.{key} must be a whole number from {-limit} to {limit}, "
                f"not {number!s:.40}"
            )
        return number

    def value_type(self, key: str) -> ValueType:
        """Return a field that must be a UMB type."""
        described = JsonObject(self.raw.get(key), f"{self.where}.{key}")
        name = described.text("type")
        if name not in _TYPES + _INTERVALS:
            raise InvalidModelError(f"{described.where}: there is no type {name!r:.60}")
        return ValueType(name, described.count("size") if described.has("size") else None)

    def _typed(self, key: str, kind: type[_T], description: str) -> _T:
        value: object = self.raw.get(key)
        if not isinstance(value, kind):
            found = "it is missing" if value is None else f"not {_json_name(value)}"
            raise InvalidModelError(f"{self.where}.{key} must be {description}; {found}")
        return value


def parse_index(text: bytes, path: str) -> Index:
    """Return what an `index.json` says.

    Parameters
    ----------
    text
        The file's bytes.
    path
        How messages name the UMB file.

    Raises
    ------
    InvalidModelError
        It is not JSON, or not what UMB asks for, or its numbers contradict each other.
    UnsupportedError
        It describes a model that the engines do not know, or values that are not doubles.
    """
    where = f"{path}: {INDEX_NAME}"
    root = JsonObject(_parse_json(text, where), where)
    version = root.count("format-version")
    if version > FORMAT_VERSION:
        raise UnsupportedError(f"{where}: UMB version {version}; the newest known is 1")
    system = root.child("transition-system")
    counts = {entity: system.count(f"#{entity}") for entity in ENTITIES}
    kind = _model_kind(system, counts)
    _check_counts(kind, counts, system.where)
    initial = system.count("#initial-states", limit=counts["states"])
    actions = {
        entity: system.count(f"#{one}-actions", limit=10**7)
        for entity, one in (("choices", "choice"), ("branches", "branch"))
    }
    left_out: list[str] = []
    annotations = root.child("annotations")
    labels = _annotations(annotations, "aps", ("states",), left_out)
    rewards = _annotations(annotations, "rewards", ENTITIES[:3], left_out)
    left_out += [
        f"annotations of group {group!r}" for group in annotations.raw if group not in _GROUPS
    ]
    return Index(
        kind=kind,
        counts=counts,
        num_initial_states=initial,
        num_actions={entity: count for entity, count in actions.items() if count},
        labels=labels,
        rewards=rewards,
        valuations=_valuations(root.child("valuations"), left_out),
        model_data=root.child("model-data").raw,
        file_data=root.child("file-data").raw,
        left_out=tuple(left_out),
    )


def _json_name(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return "null" if value is None else names.get(type(value), "a number")


def _parse_json(text: bytes, where: str) -> object:
    def refuse_constant(name: str) -> object:
        raise ValueError(f"{name} is not JSON")

    def fields_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [printable(key) for key, _ in pairs]
        fields = {key: _printable(value) for key, (_, value) in zip(keys, pairs, strict=True)}
        if (twice := first_repeated(keys)) is not None:
            raise ValueError(f"the field {twice!r:.60} is there twice")
        return fields

    try:
        return json.loads(
            text.decode(), parse_constant=refuse_constant, object_pairs_hook=fields_of
        )
    except RecursionError:
        raise InvalidModelError(f"{where}: nested too deep") from None
    except ValueError as error:  # JSON errors, text that is not UTF-8, numbers of 5,000 digits
        raise InvalidModelError(f"{where}: {error}") from None


def _printable(value: object) -> object:
    """Return a text, or the texts of a list, as they can be shown; see `printable`."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_printable(item) for item in value]
    return value


def _model_kind(system: JsonObject, counts: dict[str, int]) -> ModelKind:
    time = system.text("time")
    if time not in ("discrete", "stochastic", "urgent-stochastic"):
        raise InvalidModelError(f"{system.where}.time: there is no {time!r:.60}")
    players = counts["players"]
    if system.has("branch-probability-type"):
        system.value_type("branch-probability-type").require_double(
            f"{system.where}: branch probabilities"
        )
    elif counts["branches"] or players:
        raise UnsupportedError(
            f"{system.where}: a model without probabilities (LTS); DTMC, CTMC and MDP are supported"
        )
    if system.has("exit-rate-type"):
        system.value_type("exit-rate-type").require_double(f"{system.where}: exit rates")
    if counts["observations"]:
        raise UnsupportedError(
            f"{system.where}: a partially observable model (POMDP); "
            "DTMC, CTMC and MDP are supported"
        )
    known = {
        ("discrete", 0): ModelKind.DTMC,
        ("stochastic", 0): ModelKind.CTMC,
        ("discrete", 1): ModelKind.MDP,
    }
    if (time, players) in known:
        return known[time, players]
    other = {("stochastic", 1): "a CTMDP", ("urgent-stochastic", 1): "a Markov automaton"}
    what = other.get((time, players), f"a model in {time} time with {players} players")
    raise UnsupportedError(f"{system.where}: {what}; DTMC, CTMC and MDP are supported")


def _check_counts(kind: ModelKind, counts: dict[str, int], where: str) -> None:
    states, choices, branches = (counts[entity] for entity in ENTITIES[:3])
    if states == 0:
        raise InvalidModelError(f"{where}: a model without states")
    if kind is not ModelKind.MDP and choices != states:
        raise InvalidModelError(
            f"{where}: {choices} choices for {states} states; a {kind} has one each"
        )
    if choices < states:
        raise InvalidModelError(
            f"{where}: {choices} choices for {states} states; each has one at least"
        )
    if kind is not ModelKind.CTMC and branches < choices:
        raise InvalidModelError(
            f"{where}: {branches} branches for {choices} choices; each has one at least"
        )


def _annotations(
    groups: JsonObject, group: str, supported: tuple[str, ...], left_out: list[str]
) -> tuple[Annotation, ...]:
    found = []
    for key, described in groups.child(group).children():
        if not key or "/" in key:
            raise InvalidModelError(f"{described.where}: {key!r:.60} is no id of an annotation")
        name = described.text("alias") if described.has("alias") else ""
        if group == _LABELS:
            name = name or key
            value_type = described.value_type("type")
            if value_type.name != "bool" or value_type.size not in (None, 1):
                raise InvalidModelError(f"{described.where}: a label of type {value_type.name}")
        else:
            described.value_type("type").require_double(f"{described.where}: rewards")
        if described.has("probability-type"):
            raise UnsupportedError(f"{described.where}: stochastic annotations")
        applies_to = described.sequence("applies-to")
        for entity in applies_to:
            if entity not in ENTITIES or applies_to.count(entity) > 1:
                raise InvalidModelError(f"{described.where}.applies-to: {entity!r:.60}")
            if entity not in supported:
                left_out.append(f"{described.where}: values for {entity}")
        entities = tuple(entity for entity in supported if entity in applies_to)
        if entities:
            found.append(Annotation(key, name, entities, group))
    twice = first_repeated(annotation.name for annotation in found if annotation.name)
    if twice is not None:
        raise InvalidModelError(f"{groups.where}.{group}: the name {twice!r:.60} is there twice")
    return tuple(found)


def _valuations(valuations: JsonObject, left_out: list[str]) -> ValuationLayout | None:
    left_out += [f"valuations of {entity}" for entity in valuations.raw if entity != "states"]
    if not valuations.has("states"):
        return None
    described = valuations.child("states")
    classes = [
        JsonObject(value, f"{described.where}.classes") for value in described.sequence("classes")
    ]
    if len(classes) != 1:
        left_out.append(f"{described.where}: {len(classes)} classes of state valuations")
        return None
    variables = []
    offset = 0
    for value in classes[0].sequence("variables"):
        item = JsonObject(value, f"{described.where}.variables")
        if item.has("padding"):
            offset += item.count("padding", limit=2**20)
            continue
        variable_type = item.value_type("type")
        size = variable_type.size
        if variable_type.name == "double" and size is None:
            size = 64
        origin = item.whole("offset") if item.has("offset") else 0
        # Wider ones, with an offset of up to COUNT_LIMIT either way, may be no int64.
        shifted = origin != 0 and (variable_type.name not in _WHOLE or size is None or size > 62)
        known = variable_type.name in _DECODED and not shifted
        if not known or size is None or item.flag("is-optional"):
            left_out.append(f"{described.where}: a variable of type {variable_type.name}")
            return None
        widest = 64
        if not 0 <= size <= widest or (variable_type.name == "double" and size != widest):
            raise InvalidModelError(f"{item.where}: a {variable_type.name} of {size} bits")
        variables.append(Variable(item.text("name"), variable_type.name, offset, size, origin))
        offset += size
    names = {variable.name for variable in variables}
    if len(names) < len(variables):
        raise InvalidModelError(f"{described.where}: two variables of one name")
    return ValuationLayout(tuple(variables), (offset + 7) // 8, described.flag("unique"))
