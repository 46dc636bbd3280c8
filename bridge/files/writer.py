"""Writing a model as PRISM's explicit text files, whole or not at all."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from bridge.files.atomic import replacing
from bridge.files.names import COMPRESSIONS, TEXT_ENDINGS, plain_name
from bridge.files.reader import DEADLOCK, INIT, FileModel
from bridge.files.source import Stream
from bridge.files.states import StateVariables
from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.errors import InvalidModelError
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure

CHUNK = 1 << 16
DEFAULT_NAME = "model"

Lines = Iterator[str]


def write_model(
    model: FileModel | ExplicitModel,
    target: Path | str,
    *,
    headers: bool = True,
    actions: bool = True,
    compression: str = "",
    combined: bool = False,
) -> tuple[Path, ...]:
    """Write a model as PRISM's explicit files, under final names only once all are written.

    Values have as many digits as it takes to read the same double again.

    Parameters
    ----------
    model
        The model.
    target
        A folder (the files are then called `model.tra` and so on), or a path without ending or
        with `.tra` or `.pexp`: `runs/cluster` gives `runs/cluster.tra`, `runs/cluster.lab`, ….
    headers
        Write PRISM's `#` lines: the model's type and the names of reward structures.
    actions
        Write the names of actions, if the model has them.
    compression
        "", ".gz" or ".xz".
    combined
        Write one `.pexp` instead; it has headers always.

    Returns
    -------
    The files written.

    Raises
    ------
    InvalidModelError
        If the model breaks a rule of its kind, or has a name that the format cannot hold.
    OSError
        If a file cannot be written, or if an old file beside the new ones would be taken for a
        part of the model.
    """
    whole = model if isinstance(model, FileModel) else FileModel(model)
    if compression not in ("", ".gz", ".xz"):
        raise InvalidModelError(f"compression {compression!r}; known are '', '.gz' and '.xz'")
    stem = _stem(Path(target))
    parts = text_parts(whole, headers=headers or combined, actions=actions)
    named: dict[Path, Lines]
    if combined:
        named = {stem.with_name(stem.name + ".pexp"): _joined(list(parts.values()))}
    else:
        named = {stem.with_name(stem.name + ending): lines for ending, lines in parts.items()}
        _refuse_strangers(stem, whole)
    return write_together(named, compression)


def text_parts(model: FileModel, *, headers: bool, actions: bool) -> dict[str, Lines]:
    """Return the texts of PRISM's explicit files by their endings; they are made as they are read.

    Parameters
    ----------
    model, headers, actions
        As for `write_model`.

    Returns
    -------
    `.tra`, `.sta` where states have variables, `.lab`, `.srew`, `.trew`; several reward structures
    are numbered: `1.srew`, `1.trew`, ….

    Raises
    ------
    InvalidModelError
        As `write_model`.
    """
    _check(model)
    parts: dict[str, Lines] = {".tra": _transitions(model, headers, actions)}
    if model.variables is not None:
        parts[".sta"] = _states(model.variables, headers)
    parts[".lab"] = _labels(model.model, headers)
    for number, structure in enumerate(model.model.rewards, start=1):
        index = "" if len(model.model.rewards) == 1 else str(number)
        parts[f"{index}.srew"] = _state_rewards(structure, headers)
        parts[f"{index}.trew"] = _transition_rewards(model.model, structure, headers)
    return parts


def write_together(named: dict[Path, Lines], compression: str = "") -> tuple[Path, ...]:
    """Write files under their final names only once all are written.

    Parameters
    ----------
    named
        The files and their lines.
    compression
        "", ".gz" or ".xz"; the last two go behind the names.

    Returns
    -------
    The files written.
    """
    files = {path.with_name(path.name + compression): lines for path, lines in named.items()}
    with ExitStack() as drafts:
        for path, lines in files.items():
            draft = drafts.enter_context(replacing(path))
            with _create(draft, compression) as stream:
                for text in lines:
                    stream.write(text.encode())
    return tuple(files)


def _stem(target: Path) -> Path:
    if target.is_dir():
        return target / DEFAULT_NAME
    name = plain_name(target)
    for ending in TEXT_ENDINGS:
        name = name.removesuffix(ending)
    return target.with_name(name)


def _check(whole: FileModel) -> None:
    model = whole.model.check()
    states = model.num_states
    masks = dict(model.labels)
    if model.initial_states is not None:
        masks[INIT] = model.initial_states
    for name, mask in masks.items():
        if mask.shape != (states,) or mask.dtype != bool:
            raise InvalidModelError(f'label "{name}" is no boolean mask over {states} states')
    if INIT in masks and not masks[INIT].any():
        raise InvalidModelError("the model has no initial state")
    for structure in model.rewards:
        rows = structure.choice_rewards
        if structure.state_rewards.shape != (states,) or (
            rows is not None and rows.shape != (model.matrix.num_rows,)
        ):
            raise InvalidModelError(f'rewards "{structure.name}" do not fit the model')
    variables = whole.variables
    if variables is not None and variables.values.shape != (states, len(variables.names)):
        raise InvalidModelError("the variables' values do not fit the model")
    _check_names("a label", masks, '"')
    _check_names("a reward structure", [r.name for r in model.rewards if r.name], '"')
    _check_names("an action", whole.action_names[1:], " \t")
    _check_names("a variable", variables.names if variables else (), ",():")


def _check_names(what: str, names: Iterable[str], forbidden: str) -> None:
    for name in names:
        if not name or any(sign in forbidden or ord(sign) < 32 for sign in name):
            raise InvalidModelError(f"{name!r} as the name of {what} cannot be written")


def _refuse_strangers(stem: Path, whole: FileModel) -> None:
    """Refuse to write beside files that a reader would take for parts of this model."""
    count = len(whole.model.rewards)
    strangers = [] if whole.variables is not None else [".sta"]
    if count != 1:
        strangers += [".srew", ".trew", f"{count + 1}.srew", f"{count + 1}.trew"]
    for ending in strangers:
        for compression in ("", *COMPRESSIONS):
            path = stem.with_name(stem.name + ending + compression)
            if path.exists():
                raise FileExistsError(
                    f"{path} is not part of the model to be written, but would be read as such; "
                    "move it away, or choose another name"
                )


def _joined(parts: list[Lines]) -> Lines:
    for number, lines in enumerate(parts):
        if number:
            yield "\n"
        yield from lines


def _transitions(whole: FileModel, headers: bool, actions: bool) -> Lines:
    model = whole.model
    matrix = model.matrix
    if headers:
        yield f"# Transitions ({model.kind})\n"
    yield f"{_counts(model)} {matrix.num_entries}\n"
    names = [f" {name}" if name else "" for name in whole.action_names]
    codes = whole.actions if actions else None
    for first, last, sources in entry_chunks(model):
        texts = number_texts(matrix.values[first:last])
        targets = matrix.columns[first:last].tolist()
        if codes is None:
            yield "".join(
                [f"{a} {b} {v}\n" for a, b, v in zip(sources, targets, texts, strict=True)]
            )
            continue
        if model.kind is ModelKind.MDP:
            rows = _rows(matrix.row_offsets, first, last)
            chosen = [names[code] for code in codes[rows].tolist()]
        else:
            chosen = [names[code] for code in codes[first:last].tolist()]
        yield "".join(
            [
                f"{a} {b} {v}{name}\n"
                for a, b, v, name in zip(sources, targets, texts, chosen, strict=True)
            ]
        )


def _counts(model: ExplicitModel) -> str:
    choices = f" {model.matrix.num_rows}" if model.kind is ModelKind.MDP else ""
    return f"{model.num_states}{choices}"


def entry_chunks(model: ExplicitModel) -> Iterator[tuple[int, int, list[str]]]:
    """Yield ranges of transitions, and the text of the state (and choice) of each.

    Parameters
    ----------
    model
        Any model.
    """
    for first in range(0, model.matrix.num_entries, CHUNK):
        last = min(first + CHUNK, model.matrix.num_entries)
        rows = _rows(model.matrix.row_offsets, first, last)
        groups = model.row_group_offsets
        if groups is None:
            yield first, last, [str(row) for row in rows.tolist()]
            continue
        states = np.searchsorted(groups, rows, side="right") - 1
        choices = rows - groups[states]
        pairs = zip(states.tolist(), choices.tolist(), strict=True)
        yield first, last, [f"{state} {choice}" for state, choice in pairs]


def _rows(offsets: IndexArray, first: int, last: int) -> IndexArray:
    rows: IndexArray = np.searchsorted(offsets, np.arange(first, last), side="right") - 1
    return rows


def number_texts(values: FloatArray) -> list[str]:
    """Return numbers with as many digits as it takes to read the same doubles again.

    Parameters
    ----------
    values
        Shape (numbers,).
    """
    distinct, index = np.unique(values, return_inverse=True)
    texts = [repr(value).removesuffix(".0") for value in distinct.tolist()]
    return [texts[place] for place in index.tolist()]


def _states(variables: StateVariables, headers: bool) -> Lines:
    if headers:
        yield "# States\n"
    yield "(" + ",".join(variables.names) + ")\n"
    booleans = [place for place, boolean in enumerate(variables.booleans) if boolean]
    for first in range(0, len(variables.values), CHUNK):
        rows = variables.values[first : first + CHUNK].tolist()
        for row in rows:
            for place in booleans:
                row[place] = "true" if row[place] else "false"
        yield "".join([f"{first + k}:({','.join(map(str, row))})\n" for k, row in enumerate(rows)])


def _labels(model: ExplicitModel, headers: bool) -> Lines:
    nothing: MaskArray = np.zeros(model.num_states, dtype=bool)
    initial = model.labels.get(INIT, model.initial_states)
    if model.initial_states is not None:
        initial = model.initial_states
    if initial is None:
        initial = nothing.copy()
        initial[0] = True
    masks = {INIT: initial, DEADLOCK: model.labels.get(DEADLOCK, nothing), **model.labels}
    masks[INIT] = initial
    if headers:
        yield "# Labels\n"
    yield " ".join(f'{number}="{name}"' for number, name in enumerate(masks)) + "\n"
    for first in range(0, model.num_states, CHUNK):
        table = np.stack([mask[first : first + CHUNK] for mask in masks.values()], axis=1)
        states = np.flatnonzero(table.any(axis=1))
        # Few sets of labels occur: their text is made once.
        sets, index = np.unique(np.packbits(table[states], axis=1), axis=0, return_inverse=True)
        bits = np.unpackbits(sets, axis=1)
        texts = [" ".join(map(str, np.flatnonzero(row).tolist())) for row in bits]
        pairs = zip((first + states).tolist(), index.ravel().tolist(), strict=True)
        yield "".join([f"{state}: {texts[place]}\n" for state, place in pairs])


def _state_rewards(structure: RewardStructure, headers: bool) -> Lines:
    if headers:
        yield _reward_title(structure) + "# State rewards\n"
    states = np.flatnonzero(structure.state_rewards)
    yield f"{len(structure.state_rewards)} {len(states)}\n"
    for first in range(0, len(states), CHUNK):
        chunk = states[first : first + CHUNK]
        texts = number_texts(structure.state_rewards[chunk])
        pairs = zip(chunk.tolist(), texts, strict=True)
        yield "".join([f"{state} {text}\n" for state, text in pairs])


def _transition_rewards(model: ExplicitModel, structure: RewardStructure, headers: bool) -> Lines:
    if headers:
        yield _reward_title(structure) + "# Transition rewards\n"
    rewards = structure.choice_rewards
    if rewards is None:
        yield f"{_counts(model)} 0\n"
        return
    count = int(model.matrix.row_lengths()[rewards != 0].sum())
    yield f"{_counts(model)} {count}\n"
    for first, last, sources in entry_chunks(model):
        values = rewards[_rows(model.matrix.row_offsets, first, last)]
        columns = model.matrix.columns[first:last].tolist()
        yield "".join(
            [
                f"{source} {column} {text}\n"
                for source, column, text in zip(sources, columns, number_texts(values), strict=True)
                if text not in ("0", "-0")
            ]
        )


def _reward_title(structure: RewardStructure) -> str:
    return "# Reward structure" + (f' "{structure.name}"\n' if structure.name else "\n")


def _create(path: Path, compression: str) -> Stream:
    if compression == ".gz":
        return gzip.open(path, "wb", compresslevel=6)
    if compression == ".xz":
        return lzma.open(path, "wb", preset=3)
    return path.open("wb")
