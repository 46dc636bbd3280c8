"""Rows put together by the compiled library: plain loops over dictionaries are the oracle."""

from __future__ import annotations

import random
from itertools import accumulate

import numpy as np
import pytest

from engines.host import assemble
from engines.host.assemble import (
    MERGED,
    UNSET,
    Entries,
    Place,
    RowStatus,
    TransitionRewards,
    append_rows,
    count_choices,
    count_rows,
    place_rows,
    tidy_rows,
)
from engines.model.csr import CsrMatrix

WIDTHS = [(np.int32, np.int32), (np.int64, np.int32), (np.int64, np.int64)]


def random_rows(chance: random.Random, states: int, with_choices: bool):
    """Return key, value and action of each transition, in order; some states have none."""
    rows = []
    for state in range(states):
        for choice in range(chance.randint(0, 3) if with_choices else chance.randint(0, 1)):
            action = chance.randint(0, 3)
            for target in chance.sample(range(states), chance.randint(1, min(states, 50))):
                key = (state, choice, target) if with_choices else (state, target)
                rows.append(
                    (key, chance.random(), action if with_choices else chance.randint(0, 3))
                )
    return rows


def arrays(rows, integers: int):
    keys = np.array([key for key, _, _ in rows], dtype=np.int64).reshape(-1, integers)
    values = np.array([value for _, value, _ in rows])
    return keys, values, np.array([action for _, _, action in rows], dtype=np.int32)


def by_row(rows):
    """Return the transitions of each (state, choice) or (state,)."""
    found: dict[tuple[int, ...], list] = {}
    for key, value, action in rows:
        found.setdefault(key[:-1], []).append((key[-1], value, action))
    return found


class Room:
    """Empty arrays for rows."""

    def __init__(self, rows, states, with_choices, widths=WIDTHS[0]):
        offset_type, column_type = widths
        self.states, self.with_choices = states, with_choices
        self.count = len(rows)
        self.num_rows = len(by_row(rows)) if with_choices else states
        self.groups = np.zeros(states, dtype=offset_type) if with_choices else None
        self.lengths = np.zeros(self.num_rows, dtype=offset_type)
        codes = np.full(self.num_rows, UNSET) if with_choices else np.zeros(self.count)
        self.entries = Entries(
            np.zeros(self.count, dtype=column_type), np.zeros(self.count), codes.astype(np.int32)
        )
        self.place = Place()

    def append(self, rows):
        return append_rows(
            *arrays(rows, 2 + self.with_choices),
            *(self.groups, self.lengths, self.entries, self.place),
        )

    def placed(self, rows):
        """Count and place rows in any order; return the offsets of states, or None."""
        keys, values, actions = arrays(rows, 2 + self.with_choices)
        offsets = None
        if self.with_choices:
            assert count_choices(keys, self.groups, self.num_rows)[0] is RowStatus.OK
            offsets = np.array([0, *accumulate(self.groups.tolist())])
        assert count_rows(keys, offsets, self.lengths, self.states)[0] is RowStatus.OK
        self.next = np.array([0, *accumulate(self.lengths.tolist())])[:-1]
        return offsets, place_rows(
            keys, values, actions, offsets, self.next, self.entries, self.states
        )

    def content(self):
        """Return the transitions of each row that has any, as `by_row` does."""
        found, entry, row = {}, 0, 0
        for state in range(self.states):
            for choice in range(int(self.groups[state]) if self.with_choices else 1):
                key = (state, choice) if self.with_choices else (state,)
                for _ in range(int(self.lengths[row])):
                    code = self.entries.codes[row if self.with_choices else entry]
                    one = (self.entries.columns[entry], self.entries.values[entry], code)
                    found.setdefault(key, []).append(tuple(item.item() for item in one))
                    entry += 1
                row += 1
        return found


@pytest.mark.parametrize("widths", WIDTHS, ids=str)
@pytest.mark.parametrize("with_choices", [False, True])
def test_rows_in_order_are_appended(with_choices, widths):
    chance = random.Random(3)
    for states in (1, 4, 30):
        rows = random_rows(chance, states, with_choices)
        room = Room(rows, states, with_choices, widths)
        for first in range(0, len(rows), 7):
            assert room.append(rows[first : first + 7])[0] is RowStatus.OK
        assert room.content() == by_row(rows)
        assert room.place.filled == len(rows)


@pytest.mark.parametrize("widths", WIDTHS, ids=str)
@pytest.mark.parametrize("with_choices", [False, True])
def test_rows_in_any_order_are_placed(with_choices, widths):
    chance = random.Random(4)
    for states in (1, 4, 30):
        rows = random_rows(chance, states, with_choices)
        chance.shuffle(rows)
        room = Room(rows, states, with_choices, widths)
        assert room.placed(rows)[1][0] is RowStatus.OK
        assert room.content() == by_row(rows)


CHAIN = [((0, 1), 1.0, 0), ((1, 0), 0.5, 0), ((1, 2), 0.5, 0), ((2, 2), 1.0, 0)]
DECISIONS = [((0, 0, 1), 1.0, 1), ((0, 1, 2), 1.0, 2), ((1, 0, 0), 0.5, 1), ((1, 0, 2), 0.5, 1)]


@pytest.mark.parametrize(
    ("rows", "place", "wrong", "status"),
    [
        (CHAIN, 1, ((3, 0), 1.0, 0), RowStatus.BAD_SOURCE),
        (CHAIN, 2, ((1, 3), 1.0, 0), RowStatus.BAD_TARGET),
        (CHAIN, 3, ((0, 0), 1.0, 0), RowStatus.OUT_OF_ORDER),
        (DECISIONS, 1, ((0, 2, 0), 1.0, 0), RowStatus.OUT_OF_ORDER),
        (DECISIONS, 2, ((1, 1, 0), 1.0, 0), RowStatus.OUT_OF_ORDER),
        (DECISIONS, 3, ((1, 0, 2), 0.5, 2), RowStatus.TWO_ACTIONS),
        (DECISIONS, 3, ((1, 1, 2), 0.5, 2), RowStatus.TOO_MANY_ROWS),
        (DECISIONS, 0, ((2**40, 0, 2), 0.5, 2), RowStatus.BAD_SOURCE),
        (DECISIONS, 0, ((0, 0, 2**40), 0.5, 2), RowStatus.BAD_TARGET),
        (CHAIN, 0, ((-1, 0), 0.5, 2), RowStatus.BAD_SOURCE),
        (CHAIN, 0, ((0, -1), 0.5, 2), RowStatus.BAD_TARGET),
        (DECISIONS, 0, ((0, -1, 0), 0.5, 2), RowStatus.OUT_OF_ORDER),
    ],
)
def test_the_first_wrong_transition_is_named(rows, place, wrong, status):
    room = Room(rows, 3, len(rows[0][0]) == 3)
    assert room.append([*rows[:place], wrong, *rows[place + 1 :]]) == (status, place)


def test_what_cannot_be_counted_is_named():
    keys, _, _ = arrays(DECISIONS, 3)
    groups, lengths = np.zeros(3, dtype=np.int32), np.zeros(3, dtype=np.int32)
    assert count_choices(keys, groups, 1) == (RowStatus.BAD_CHOICE, 1)
    assert count_choices(keys, groups[:1], 3) == (RowStatus.BAD_SOURCE, 2)
    assert count_rows(keys[:, ::2].copy(), None, lengths[:1], 1) == (RowStatus.BAD_TARGET, 0)
    assert count_rows(keys[2:, ::2].copy(), None, lengths[:1], 1) == (RowStatus.BAD_SOURCE, 0)
    assert count_rows(keys, np.array([0, 1, 3, 3]), lengths, 3) == (RowStatus.CHANGED, 1)


@pytest.mark.parametrize(
    "changed",
    [(3, 0, 0), (0, 0, 3), (0, 2, 0), (2, 0, 0), (0, 2**63 - 1, 0), (0, -1, 0), (1, 0, 0)],
    ids=str,
)
def test_what_was_not_counted_is_not_placed(changed):
    room = Room(DECISIONS, 3, True)
    offsets, _ = room.placed(DECISIONS)
    keys, values, actions = arrays([(changed, 1.0, 1)], 3)
    status, _ = place_rows(keys, values, actions, offsets, room.next, room.entries, 3)
    # The last row is full, and the other states and choices are not there.
    assert status is RowStatus.CHANGED
    assert room.content() == by_row(DECISIONS)


def plain_tidy(row, with_codes: bool):
    """Return the entries of a row as they should be, or the target of a duplicate."""
    ordered = sorted(row, key=lambda one: (one[0], one[2] if with_codes else 0))
    kept: list[list] = []
    before = None
    for target, value, code in ordered:
        if value != 0.0:
            if kept and kept[-1][0] == target:
                if not with_codes or before == code:
                    return target
                kept[-1][1:] = [kept[-1][1] + value, MERGED]
            else:
                kept.append([target, value, code])
        before = code
    return kept


@pytest.mark.parametrize("widths", [*WIDTHS, (np.int32, np.int64)], ids=str)
@pytest.mark.parametrize("with_codes", [False, True])
def test_rows_are_tidied(monkeypatch, with_codes, widths):
    monkeypatch.setattr(assemble, "ROWS_A_CALL", 3)
    chance = random.Random(6)
    outcomes = set()
    for _ in range(400):
        targets = chance.choice([8, 1000])
        lengths = [chance.choice([0, 1, 2, 3, 9]) for _ in range(chance.randint(1, 9))]
        if targets == 1000:
            lengths.append(100)
        rows = [
            [
                (
                    chance.randrange(targets),
                    chance.choice([0.0, chance.random(), chance.random()]),
                    chance.randint(0, 9),
                )
                for _ in range(length)
            ]
            for length in lengths
        ]
        if chance.random() < 0.2:
            rows = [sorted({one[0]: one for one in row}.values()) for row in rows]
        offsets = np.array([0, *accumulate(map(len, rows))], dtype=widths[0])
        flat = [one for row in rows for one in row]
        columns = np.array([one[0] for one in flat], dtype=widths[1])
        values = np.array([one[1] for one in flat], dtype=np.float64)
        codes = np.array([one[2] for one in flat], dtype=np.int32) if with_codes else None
        expected = [plain_tidy(row, with_codes) for row in rows]
        found = tidy_rows(offsets, columns, values, codes)
        outcomes.add(found[0])
        wrong = next((k for k, row in enumerate(expected) if not isinstance(row, list)), None)
        if wrong is not None:
            assert found == (RowStatus.DUPLICATE, wrong, expected[wrong])
            continue
        kept = [one for row in expected for one in row]
        assert found == (RowStatus.OK, 0, len(kept))
        assert offsets.tolist() == [0, *accumulate(map(len, expected))]
        assert columns[: len(kept)].tolist() == [one[0] for one in kept]
        assert values[: len(kept)].tolist() == [one[1] for one in kept]
        if with_codes:
            assert codes[: len(kept)].tolist() == [one[2] for one in kept]
    assert outcomes == {RowStatus.OK, RowStatus.DUPLICATE}


@pytest.mark.parametrize("widths", [*WIDTHS, (np.int32, np.int64)], ids=str)
@pytest.mark.parametrize("with_choices", [False, True])
def test_rewards_lie_beside_their_transitions(with_choices, widths):
    chance = random.Random(8)
    states = 12
    rows = random_rows(chance, states, with_choices)
    room = Room(rows, states, with_choices)
    assert room.append(rows)[0] is RowStatus.OK
    offsets = np.array([0, *accumulate(room.lengths.tolist())], dtype=widths[0])
    columns = room.entries.columns.astype(widths[1])
    assert tidy_rows(offsets, columns, room.entries.values, None)[0] is RowStatus.OK
    groups = np.array([0, *accumulate(room.groups.tolist())]) if with_choices else None
    matrix = CsrMatrix(offsets, columns, room.entries.values, states)
    earned = TransitionRewards(matrix, groups)
    given = {key: chance.choice([0.0, 2.0, chance.random()]) for key, _, _ in rows[::2]}
    listed = [(key, reward, 0) for key, reward in given.items()]
    chance.shuffle(listed)
    for first in range(0, len(listed), 10):
        keys, values, _ = arrays(listed[first : first + 10], 2 + with_choices)
        assert earned.add(keys, values)[0] is RowStatus.OK
    sums, ordered = [], by_row(sorted(rows))
    for key in ordered if with_choices else [(state,) for state in range(states)]:
        row = [(value, given.get((*key, t), 0.0)) for t, value, _ in ordered.get(key, [])]
        total = 0.0
        for value, reward in row:
            total += value * reward
        same = {reward for _, reward in row}
        sums.append((total, same.pop() if len(same) == 1 else total))
    before = np.array([chance.random() for _ in sums])
    after = before.copy()
    earned.add_expected(after)
    np.testing.assert_allclose(after, before + [total for total, _ in sums], rtol=1e-14)
    assert earned.of_rows().tolist() == [one if one else 0.0 for _, one in sums]
    again = arrays(listed[:1], 2 + with_choices)
    assert earned.add(*again[:2]) == (RowStatus.DUPLICATE, 0)


def test_rewards_of_no_transition_are_named():
    matrix = CsrMatrix(np.array([0, 1, 2]), np.array([1, 0]), np.ones(2), 2)
    one = np.ones(1)
    chain = TransitionRewards(matrix, None)
    assert chain.add(np.array([[2, 0]]), one) == (RowStatus.BAD_SOURCE, 0)
    for target in (0, 2, 2**40):
        assert chain.add(np.array([[0, target]]), one) == (RowStatus.NOT_THERE, 0)
    decisions = TransitionRewards(matrix, np.array([0, 2, 2]))
    for choice in (2, 2**63 - 1, -1):
        assert decisions.add(np.array([[0, choice, 0]]), one) == (RowStatus.BAD_CHOICE, 0)
    assert decisions.add(np.array([[1, 0, 0]]), one) == (RowStatus.BAD_CHOICE, 0)
    assert decisions.rewards.tolist() == [0.0, 0.0]


def test_shapes_must_fit():
    room = Room(CHAIN, 3, False)
    keys, values, actions = arrays(CHAIN, 2)
    rest = (room.lengths, room.entries, room.place)
    with pytest.raises(ValueError, match="keys of 3"):
        append_rows(keys, values, actions, np.zeros(3, dtype=np.int32), *rest)
    with pytest.raises(ValueError, match="actions"):
        append_rows(keys, values, actions[:1], None, *rest)
    with pytest.raises(ValueError, match="no room"):
        append_rows(*(np.concatenate([one, one]) for one in (keys, values, actions)), None, *rest)
    with pytest.raises(ValueError, match="3 states do not have 2 rows"):
        count_rows(keys, None, room.lengths[:2], 3)
    with pytest.raises(ValueError, match="columns"):
        tidy_rows(np.array([0, 2]), np.array([1]), np.ones(2), None)
    assert not room.lengths.any()
