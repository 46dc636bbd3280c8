"""Reading `.srew` and `.trew`: the rewards of states and of transitions."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from bridge.files.names import printable
from bridge.files.rows import RowBlock, read_rows, read_size_line
from bridge.files.source import Section
from bridge.files.transitions import Transitions
from bridge.model import RewardFault, first_fault
from engines.arrays import FloatArray, IndexArray, MaskArray
from engines.host.assemble import MERGED, RowStatus, TransitionRewards
from engines.model.explicit import ModelKind, RewardStructure

NAME = re.compile(r'# ?Reward structure:?(?:\s*"([^"]*)")?\s*')
KIND = re.compile(r"# (?:State rewards|Transition rewards|Transitions.*|States|Labels)\s*")


def read_reward_structure(
    state_section: Section | None, transition_section: Section | None, transitions: Transitions
) -> tuple[RewardStructure, FloatArray, RewardFault | None]:
    """Read one reward structure.

    Rewards on the transitions of a Markov chain become rewards of their source, as PRISM's engines
    have it: the sum over the transitions of probability (CTMC: rate) times reward. Those of an MDP
    become the expected reward of the choice.

    Parameters
    ----------
    state_section, transition_section
        The texts; None where there are no rewards of that sort.
    transitions
        The model's transitions.

    Returns
    -------
    The structure, the rewards of the states alone, shape (states,), and the first negative reward.

    Raises
    ------
    InvalidModelError
        Naming the file, and the line where there is one.
    """
    num_states = transitions.matrix.num_columns
    state_rewards = np.zeros(num_states)
    choice_rewards = None
    names: list[str] = []
    if state_section is not None:
        name, state_rewards = _read_state_rewards(state_section, num_states)
        names.append(name)
    of_states = state_rewards
    fault = first_fault(of_states)
    if transition_section is not None:
        name, earned = _read_transition_rewards(transition_section, transitions)
        if names and names[0] != name:
            transition_section.fail(
                None, f'rewards "{name}", but "{names[0]}" in {printable(str(state_section.path))}'
                if state_section else ""
            )  # fmt: skip
        names.append(name)
        if earned is not None:
            fault = fault or first_fault(earned.rewards, _state_of_entry(transitions))
            if transitions.kind is ModelKind.MDP:
                choice_rewards = earned.of_rows()
            else:
                state_rewards = of_states.copy()
                earned.add_expected(state_rewards)
    if transitions.kind is ModelKind.MDP and choice_rewards is None:
        choice_rewards = np.zeros(transitions.matrix.num_rows)
    structure = RewardStructure(names[0] if names else "", state_rewards, choice_rewards)
    return structure, of_states, fault


def _state_of_entry(transitions: Transitions) -> IndexArray:
    rows = transitions.matrix.row_of_entry()
    groups = transitions.row_group_offsets
    if groups is None:
        return rows
    return np.repeat(np.arange(len(groups) - 1), np.diff(groups))[rows]


def _read_state_rewards(section: Section, num_states: int) -> tuple[str, FloatArray]:
    rewards = np.zeros(num_states)
    seen = np.zeros(num_states, dtype=bool)
    name, blocks = _read(section, 1, (num_states,), "`state reward`")
    for block in blocks:
        states = block.keys[:, 0]
        outside = states >= num_states
        if outside.any():
            row = int(np.argmax(outside))
            section.fail(
                block.line_of(row), f"state {states[row]}, but the states are 0 to {num_states - 1}"
            )
        again = seen[states]
        seen[states] = True
        if again.any() or np.unique(states).size < states.size:
            _refuse_repeated(section, block, again)
        rewards[states] = block.values
    return name, rewards


def _refuse_infinite(section: Section, block: RowBlock) -> None:
    wrong = ~np.isfinite(block.values)
    if wrong.any():
        row = int(np.argmax(wrong))
        reward = block.values[row]
        section.fail(block.line_of(row), f"the reward is {reward}; it must be finite")


def _refuse_repeated(section: Section, block: RowBlock, again: MaskArray) -> None:
    repeated = np.ones(len(again), dtype=bool)
    repeated[np.unique(block.keys[:, 0], return_index=True)[1]] = False
    row = int(np.argmax(repeated | again))
    section.fail(block.line_of(row), f"state {block.keys[row, 0]} has had a reward already")


def _read_transition_rewards(
    section: Section, transitions: Transitions
) -> tuple[str, TransitionRewards | None]:
    """Return the structure's name and each transition's reward; None where none has one."""
    matrix = transitions.matrix
    groups = transitions.row_group_offsets
    integers, shape = 2, "`state target reward`"
    counts: tuple[int, ...] = (matrix.num_columns,)
    if groups is not None:
        integers, shape = 3, "`state choice target reward`"
        counts = (matrix.num_columns, matrix.num_rows)
    earned: TransitionRewards | None = None
    name, blocks = _read(section, integers, counts, shape, transitions.num_choices)
    for block in blocks:
        if len(block.values) == 0:
            continue
        if earned is None:
            earned = TransitionRewards(matrix, groups)
        status, row = earned.add(block.keys, block.values)
        if status is not RowStatus.OK:
            where = " ".join(map(str, block.keys[row].tolist()))
            reason = {
                RowStatus.BAD_SOURCE: "the states are 0 to " + str(matrix.num_columns - 1),
                RowStatus.BAD_CHOICE: "that state has no such choice",
                RowStatus.NOT_THERE: "the model has no such transition",
                RowStatus.DUPLICATE: "that transition has had a reward already",
            }[status]
            section.fail(block.line_of(row), f"a reward for transition {where}: {reason}")
    if earned is not None and transitions.actions is not None and groups is None:
        _refuse_parallel(section, transitions, earned.rewards)
    return name, earned


def _refuse_parallel(section: Section, transitions: Transitions, entry_rewards: FloatArray) -> None:
    """Refuse rewards of transitions that share source and target.

    PRISM's symbolic engines write one reward, the mean, for all of them; its explicit engine one
    for each that is not zero, without the action. The file does not tell which it is, and PRISM
    itself reads it wrongly.
    """
    unclear = (transitions.actions == MERGED) & (entry_rewards != 0)
    if unclear.any():
        entry = int(np.argmax(unclear))
        state = int(np.searchsorted(transitions.matrix.row_offsets, entry, side="right")) - 1
        section.fail(
            None,
            f"a reward from state {state} to state {transitions.matrix.columns[entry]}, between "
            "which there are several transitions; this format does not tell which of them earns "
            "it. Export the model as UMB instead",
        )


def _read(
    section: Section,
    integers: int,
    counts: tuple[int, ...],
    shape: str,
    num_choices: int = 0,
) -> tuple[str, Iterator[RowBlock]]:
    """Return the structure's name, and the rows to come."""
    title = "# State rewards" if integers == 1 else "# Transition rewards"
    count_names = "`states choices rewards`" if len(counts) == 2 else "`states rewards`"
    with section.open() as reader:
        size = read_size_line(reader, (len(counts) + 1,), count_names)
    name = ""
    for comment in size.comments:
        if match := NAME.fullmatch(comment):
            name = printable(match[1] or "")
        elif KIND.fullmatch(comment) and comment.strip() != title:
            section.fail(None, f"expected {title!r}, found {comment!r}")
    if size.numbers[0] != counts[0]:
        section.fail(
            size.line, f"rewards of a model of {size.numbers[0]} states; this one has {counts[0]}"
        )
    if len(counts) == 2 and size.numbers[1] not in (counts[1], num_choices):
        section.fail(
            size.line, f"rewards of a model of {size.numbers[1]} choices; this one has {counts[1]}"
        )

    def blocks() -> Iterator[RowBlock]:
        met = 0
        with section.open() as reader:
            read_size_line(reader, (len(counts) + 1,), count_names)
            for block in read_rows(reader, integers, shape):
                _refuse_infinite(section, block)
                met += len(block.values)
                yield block
        if met != size.numbers[-1]:
            section.fail(size.line, f"{size.numbers[-1]} rewards are declared, but {met} follow")

    return name, blocks()
