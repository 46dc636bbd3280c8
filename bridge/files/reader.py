"""Reading a model from PRISM's explicit text files, wherever they lie."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np

from bridge.files.labels import read_labels
from bridge.files.names import COMPRESSIONS, is_text_model, plain_name
from bridge.files.rewards import read_reward_structure
from bridge.files.source import Section, fail
from bridge.files.states import StateVariables, read_states
from bridge.files.transitions import read_transitions
from bridge.model import RewardFault
from engines.arrays import FloatArray, IndexArray
from engines.model.explicit import ExplicitModel, ModelKind

INIT, DEADLOCK = "init", "deadlock"


@dataclass(frozen=True)
class FileModel:
    """A model, and what its files say that the engines do not need.

    Parameters
    ----------
    model
        The model; its labels are those of the file, "init" and "deadlock" always among them.
    variables
        The variables' values in each state; None without a `.sta`.
    action_names
        Names of actions; the first is empty.
    actions
        Index into the names, for each choice (MDP) or transition; None where there are none.
        Parallel transitions of a Markov chain are merged, and then have no action.
    source
        The file that was read.
    state_rewards
        For each reward structure the rewards of the states alone, shape (states,).
    reward_faults
        For each reward structure why no property can use it, or None.
    notes
        What was changed in reading it, for the log.
    """

    model: ExplicitModel
    variables: StateVariables | None = None
    action_names: tuple[str, ...] = ("",)
    actions: IndexArray | None = None
    source: Path | None = None
    state_rewards: tuple[FloatArray, ...] = ()
    reward_faults: tuple[RewardFault | None, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelFiles:
    """Where the parts of a model are."""

    transitions: Section
    labels: Section | None = None
    states: Section | None = None
    rewards: tuple[tuple[Section | None, Section | None], ...] = ()


def read_model(path: Path | str, kind: ModelKind | str | None = None) -> FileModel:
    """Read a model from explicit files.

    Parameters
    ----------
    path
        A `.tra` (the others are found beside it by its name: `.lab`, `.sta`, and `.srew` and
        `.trew` with or without a number), a `.pexp`, or a folder that holds exactly one of these.
        Any of them may be compressed, with `.gz` or `.xz` behind its name.
    kind
        DTMC, CTMC or MDP. None: as the header says; without a header, as PRISM deduces it.

    Returns
    -------
    The model, checked. States without a transition get a self-loop (probability or rate 1) and the
    label "deadlock", as PRISM does it. Without a `.lab`, state 0 is initial.

    Raises
    ------
    InvalidModelError
        If the files are no model; the message names the file, and the line where there is one.
    OSError
        If a file cannot be read.
    """
    files = find_files(Path(path))
    transitions = read_transitions(files.transitions, None if kind is None else ModelKind(kind))
    num_states = transitions.matrix.num_columns
    labels = {} if files.labels is None else read_labels(files.labels, num_states)
    initial = labels.pop(INIT, None)
    if initial is None:
        initial = np.zeros(num_states, dtype=bool)
        # PRISM's rule: state 0, unless there is a file of labels that should have said so.
        initial[0] = files.labels is None
    if not initial.any() and files.labels is not None:
        files.labels.fail(None, f'no state has the label "{INIT}", so there is no initial state')
    deadlocks = labels.pop(DEADLOCK, None)
    deadlocks = transitions.deadlocks if deadlocks is None else deadlocks | transitions.deadlocks
    rewards = [
        read_reward_structure(of_states, of_transitions, transitions)
        for of_states, of_transitions in files.rewards
    ]
    model = ExplicitModel(
        transitions.kind,
        transitions.matrix,
        transitions.row_group_offsets,
        initial_states=initial,
        labels={INIT: initial, DEADLOCK: deadlocks, **labels},
        rewards=tuple(structure for structure, _, _ in rewards),
    )
    variables = None if files.states is None else read_states(files.states, num_states)
    actions = transitions.actions
    if actions is not None and actions.min(initial=0) < 0:
        actions = np.maximum(actions, 0)
    return FileModel(
        model.check(),
        variables,
        transitions.action_names,
        actions,
        files.transitions.path,
        tuple(of_states for _, of_states, _ in rewards),
        tuple(fault for _, _, fault in rewards),
        (transitions.note,) if transitions.note else (),
    )


def find_files(path: Path) -> ModelFiles:
    """Find the parts of a model; see `read_model`.

    Raises
    ------
    InvalidModelError
        If there is no model, or more than one.
    """
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if is_text_model(file))
        if len(found) != 1:
            names = ", ".join(file.name for file in found[:5]) or "none"
            fail(path, None, f"the folder must hold one model (.tra or .pexp); found: {names}")
        path = found[0]
    name = plain_name(path)
    if name.endswith(".pexp"):
        return _sections(path)
    if not name.endswith(".tra"):
        fail(path, None, "expected a .tra, a .pexp, or a folder with one of them")
    stem = path.with_name(name.removesuffix(".tra"))
    zipped = path.suffix if path.suffix in COMPRESSIONS else ""
    rewards = [(_beside(stem, ".srew", zipped), _beside(stem, ".trew", zipped))]
    if rewards == [(None, None)]:
        rewards = list(_numbered(stem, zipped))
    return ModelFiles(
        Section(path), _beside(stem, ".lab", zipped), _beside(stem, ".sta", zipped), tuple(rewards)
    )


def _beside(stem: Path, ending: str, zipped: str) -> Section | None:
    """Return a companion, compressed as the `.tra` is, or else in another way."""
    for compression in dict.fromkeys((zipped, "", *COMPRESSIONS)):
        candidate = stem.with_name(stem.name + ending + compression)
        if os.path.lexists(candidate):
            return Section(candidate)
    return None


def _numbered(stem: Path, zipped: str) -> Iterator[tuple[Section | None, Section | None]]:
    number = 1
    while True:
        numbered = stem.with_name(f"{stem.name}{number}")
        pair = (_beside(numbered, ".srew", zipped), _beside(numbered, ".trew", zipped))
        if pair == (None, None):
            return
        yield pair
        number += 1


def _sections(path: Path) -> ModelFiles:
    """Find the sections of a combined file: each starts at its title."""
    titles: list[tuple[str, int, int]] = []
    with Section(path).open() as reader:
        offset = 0
        for text, first_line in reader.blocks():
            block = text.tobytes()
            for start in _comment_starts(block):
                end = block.index(b"\n", start)
                title = block[start:end].decode(errors="replace").strip()
                line = first_line + block.count(b"\n", 0, start)
                titles.append((title, offset + start, line))
            offset += len(block)
    return _sorted_sections(path, titles, offset)


def _comment_starts(block: bytes) -> Iterator[int]:
    for match in re.finditer(rb"^# ?[A-Z]", block, flags=re.MULTILINE):
        yield match.start()


def _sorted_sections(path: Path, titles: list[tuple[str, int, int]], end: int) -> ModelFiles:
    starts: list[tuple[str, int, int]] = []
    for number, (title, offset, line) in enumerate(titles):
        if title.startswith("# Reward structure"):
            following = titles[number + 1 : number + 2]
            kind = following[0][0] if following and following[0][2] == line + 1 else ""
            if kind not in ("# State rewards", "# Transition rewards"):
                fail(path, line, "not followed by `# State rewards` or `# Transition rewards`")
            starts.append((kind, offset, line))
        elif title in ("# State rewards", "# Transition rewards"):
            if not (starts and starts[-1][0] == title and starts[-1][2] == line - 1):
                fail(path, line, f"{title!r} without `# Reward structure` before it")
        elif re.match(r"# (Transitions|States|Labels|Observations)\b", title):
            starts.append((" ".join(title.split()[:2]), offset, line))
    if not starts or starts[0][0] != "# Transitions":
        starts.insert(0, ("# Transitions", 0, 1))
    found: dict[str, list[Section]] = {}
    for (kind, offset, line), after in zip_longest(starts, starts[1:]):
        section = Section(path, offset, end if after is None else after[1], line)
        found.setdefault(kind, []).append(section)
    for kind in ("# Transitions", "# States", "# Labels"):
        if len(found.get(kind, [])) > 1:
            fail(path, found[kind][1].first_line, f"a second section {kind!r}")
    rewards = zip_longest(found.get("# State rewards", []), found.get("# Transition rewards", []))
    return ModelFiles(
        found["# Transitions"][0],
        next(iter(found.get("# Labels", [])), None),
        next(iter(found.get("# States", [])), None),
        tuple(rewards),
    )
