"""A model with its names, written as UMB and read again, is the same model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bridge.check.checker import Checker
from bridge.files.checkable import as_file_model, as_umb, read_checkable
from bridge.files.umb import Actions, UmbRewards, write_umb
from bridge.files.writer import write_model
from bridge.language.parser import parse_property
from bridge.model import CheckableModel, NamedRewards, RewardFault
from engines.errors import InvalidModelError, UnsupportedError
from engines.model.csr import CsrMatrix
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from tests.bridge.check.models import queue

STATES = 40


def random_model(kind: ModelKind, rng: np.random.Generator) -> CheckableModel:
    """Return a random model: rewards of states and of transitions, variables and actions."""
    groups = None
    num_rows = STATES
    if kind is ModelKind.MDP:
        groups = np.concatenate(([0], np.cumsum(rng.integers(1, 4, STATES)))).astype(np.int32)
        num_rows = int(groups[-1])
    rows = [np.sort(rng.choice(STATES, rng.integers(1, 5), replace=False)) for _ in range(num_rows)]
    if kind is ModelKind.CTMC:
        rows[7] = rows[7][:0]
    lengths = np.array([len(row) for row in rows])
    values = rng.uniform(0.1, 9.0, lengths.sum())
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    owner = np.repeat(np.arange(num_rows), lengths)
    if kind is not ModelKind.CTMC:
        values /= np.bincount(owner, values, num_rows)[owner]
    matrix = CsrMatrix(offsets, np.concatenate(rows).astype(np.int32), values, STATES)
    own = rng.uniform(0.0, 2.0, STATES)
    earned = np.where(lengths > 0, rng.uniform(0.0, 3.0, num_rows), 0.0)
    if kind is ModelKind.MDP:
        rewards = NamedRewards("time", RewardStructure("time", own, earned), own)
    else:
        rewards = NamedRewards("time", RewardStructure("time", own + earned), own)
    initial = np.arange(STATES) == 3
    names = {"init": initial, "deadlock": lengths[:STATES] == 0, "some": rng.random(STATES) < 0.5}
    model = ExplicitModel(kind, matrix, groups, initial, names, (rewards.expected,)).check()
    places = num_rows if kind is ModelKind.MDP else matrix.num_entries
    return CheckableModel(
        model,
        (rewards,),
        variables={"n": rng.integers(0, 9, STATES), "up": rng.random(STATES) < 0.5},
        action_names=("", "go", "stay"),
        actions=rng.integers(0, 3, places).astype(np.int32),
    )


@pytest.mark.parametrize("kind", list(ModelKind))
@pytest.mark.parametrize("seed", range(3))
def test_a_model_written_as_umb_reads_the_same(tmp_path, kind, seed):
    given = random_model(kind, np.random.default_rng(seed))
    write_umb(as_umb(given), tmp_path / "m.umb")
    read = read_checkable(tmp_path / "m.umb")
    assert read.model.kind is kind
    np.testing.assert_array_equal(read.model.matrix.columns, given.model.matrix.columns)
    # A rate may come back as the next number, where no exit rate and probability multiply to it.
    np.testing.assert_array_max_ulp(read.model.matrix.values, given.model.matrix.values, 1)
    for name, states in given.model.labels.items():
        np.testing.assert_array_equal(read.model.labels[name], states)
    (wrote,), (found,) = given.rewards, read.rewards
    assert found.name == "time"
    np.testing.assert_array_equal(found.instantaneous, wrote.instantaneous)
    np.testing.assert_allclose(
        found.expected.state_rewards, wrote.expected.state_rewards, rtol=1e-13
    )
    if kind is ModelKind.MDP:
        np.testing.assert_array_equal(found.expected.choice_rewards, wrote.expected.choice_rewards)
    for name, column in given.variables.items():
        np.testing.assert_array_equal(read.variables[name], column)
    assert read.action_names == given.action_names
    np.testing.assert_array_equal(read.actions, given.actions)


@pytest.mark.parametrize("kind", list(ModelKind))
@pytest.mark.parametrize("seed", range(3))
def test_text_files_keep_rewards_of_transitions_apart(tmp_path, kind, seed):
    """`I=T` asks for the rewards of states alone."""
    given = random_model(kind, np.random.default_rng(seed))
    # Names of actions tell which parallel transitions were merged.
    write_model(as_file_model(replace(given, actions=None)), tmp_path / "m", actions=False)
    (wrote,), (found,) = given.rewards, read_checkable(tmp_path / "m.tra").rewards
    for mine, theirs in (
        (found.instantaneous, wrote.instantaneous),
        (found.expected.state_rewards, wrote.expected.state_rewards),
        (found.expected.choice_rewards, wrote.expected.choice_rewards),
    ):
        if theirs is None:
            assert mine is None
        else:
            np.testing.assert_allclose(mine, theirs, rtol=1e-13)
    if kind is not ModelKind.MDP:
        assert not np.array_equal(wrote.instantaneous, wrote.expected.state_rewards)


def test_a_variable_that_is_no_integer_is_refused_by_name_in_text_files():
    given = random_model(ModelKind.DTMC, np.random.default_rng(0))
    wrong = CheckableModel(given.model, variables={"clock": np.linspace(0.0, 1.0, STATES)})
    with pytest.raises(UnsupportedError, match="clock"):
        as_file_model(wrong)


@pytest.mark.parametrize("ending", [".umb", ".tra"])
def test_a_negative_reward_is_a_fault_of_its_structure_alone(tmp_path, ending):
    given = queue()
    losses = np.array([0.0, -4.0, 0.0, -1.0])
    loss = NamedRewards("loss", RewardStructure("loss", losses), losses)
    given = replace(given, rewards=(*given.rewards, loss))
    write_umb(as_umb(given), tmp_path / "m.umb")
    write_model(as_file_model(given), tmp_path / "m")
    read = read_checkable(tmp_path / f"m{ending}")
    assert [item.fault for item in read.rewards] == [None, RewardFault(-4.0, 1)]
    checker = Checker(read, SolverEnvironment(), log=[].append)
    assert checker.check(parse_property('R{"customers"}=? [ I=0 ]')).value == 0.0
    for body in ("C<=1", "I=1", "F n=3", "S"):
        with pytest.raises(InvalidModelError) as raised:
            checker.check(parse_property(f'R{{"loss"}}=? [ {body} ]'))
        assert str(raised.value) == 'Reward structure "loss" is negative (-4.0) at state 1:(1)'


@pytest.mark.parametrize(
    ("rewards", "fault"),
    [
        (UmbRewards("r", choices=np.array([1.0, -2.0])), RewardFault(-2.0, 1)),
        (UmbRewards("r", branches=np.array([1.0, 2.0, np.inf])), RewardFault(np.inf, 1)),
        (UmbRewards("r", states=np.array([0.0, 1.0])), None),
    ],
)
def test_rewards_of_choices_and_branches_may_be_at_fault(rewards, fault):
    matrix = CsrMatrix(np.array([0, 2, 3]), np.array([0, 1, 1]), np.array([0.5, 0.5, 1.0]), 2)
    assert rewards.fault(ExplicitModel(ModelKind.DTMC, matrix)) == fault


def test_the_action_of_a_chains_choice_is_that_of_its_transitions(tmp_path):
    chain = queue().model
    written = tmp_path / "m.umb"
    actions = Actions(("", "go"), np.array([0, 1, *[0] * (chain.num_states - 2)], dtype=np.uint32))
    write_umb(chain, written, choice_actions=actions)
    read = read_checkable(written)
    of_second = chain.matrix.row_of_entry() == 1
    assert read.actions.tolist() == of_second.astype(int).tolist()
    lines = write_model(as_file_model(read), tmp_path / "m")[0].read_text().splitlines()[2:]
    assert [line.endswith(" go") for line in lines] == of_second.tolist()
