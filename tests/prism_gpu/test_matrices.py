"""Models from matrices, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import prism_gpu as pg


def gambler(states, up):
    """The gambler's ruin on 0 to states - 1: one up with a probability, else one down."""
    matrix = np.zeros((states, states))
    matrix[0, 0] = matrix[-1, -1] = 1.0
    for state in range(1, states - 1):
        matrix[state, state + 1], matrix[state, state - 1] = up, 1.0 - up
    return matrix


def birth_death(most, arrival, service):
    """The rates of a queue with one server and room for `most`."""
    return np.diag(np.full(most, arrival), 1) + np.diag(np.full(most, service), -1)


@pytest.mark.parametrize("up", [0.3, 0.5, 0.55])
def test_the_gamblers_ruin(up):
    states = 12
    model = pg.dtmc(
        gambler(states, up),
        labels={"rich": states - 1, "over": [0, states - 1]},
        rewards={"bets": [0, *[1] * (states - 2), 0]},
        initial=4,
        epsilon=1e-10,
    )
    start, top = np.arange(states), states - 1
    odds = (1 - up) / up
    if up == 0.5:
        rich, bets = start / top, start * (top - start)
    else:
        rich = (1 - odds**start) / (1 - odds**top)
        bets = (start - top * rich) / (1 - 2 * up)
    result = model.check('P=? [ F "rich" ]')
    assert np.allclose(result.vector, rich, rtol=1e-9)
    assert result.value == result.vector[4]
    assert result.error < 1e-9
    assert np.allclose(model.check('R{"bets"}=? [ F "over" ]').vector, bets, rtol=1e-8)


@pytest.mark.parametrize("form", [np.array, np.ndarray.tolist, sparse.coo_array, sparse.csc_matrix])
def test_the_form_of_a_matrix_does_not_matter(form):
    model = pg.dtmc(form(gambler(7, 0.4)), labels={"rich": 6}, initial=3)
    assert (model.kind, model.num_states, model.num_transitions) == ("DTMC", 7, 12)
    assert np.array_equal(model.transition_matrix.toarray(), gambler(7, 0.4))
    assert model.check('P=? [ F "rich" ]').value == pytest.approx(
        (1 - 1.5**3) / (1 - 1.5**6), rel=1e-6
    )


def test_a_queue_in_the_long_run_and_at_a_time():
    most, arrival, service = 20, 1.0, 1.5
    model = pg.ctmc(
        birth_death(most, arrival, service),
        labels={"full": most},
        rewards={"customers": np.arange(most + 1)},
    )
    load = arrival / service
    shares = load ** np.arange(most + 1) * (1 - load) / (1 - load ** (most + 1))
    full = model.check('S=? [ "full" ]', epsilon=1e-12)
    assert full.value == pytest.approx(shares[-1], rel=1e-9)
    mean = model.check('R{"customers"}=? [ S ]', epsilon=1e-12)
    assert mean.value == pytest.approx(shares @ np.arange(most + 1), rel=1e-9)
    bounded = model.check('R{"customers"}=? [ S ]', bounds=True)
    assert bounded.proven
    assert abs(bounded.value - mean.value) <= bounded.error + 1e-12
    rates = model.rate_matrix.toarray()
    assert np.array_equal(rates, birth_death(most, arrival, service))
    assert np.allclose(model.transition_matrix.sum(axis=1), 1.0)


def test_the_probability_of_one_transition_by_a_time():
    model = pg.ctmc([[0, 0.7], [0, 0]], labels={"there": 1})
    result = model.check('P=? [ F<=T "there" ]', {"T": np.float64(1.3)})
    assert result.value == pytest.approx(1 - np.exp(-0.7 * 1.3), rel=1e-9)
    assert result.proven
    assert result.constants == {"T": 1.3}


def test_a_state_without_rates_is_a_deadlock_with_a_loop():
    model = pg.ctmc([[0, 2.0], [0, 0]])
    assert model.labels["deadlock"].tolist() == [False, True]
    assert model.notes == ("Deadlocks detected and fixed in 1 states",)
    assert model.check("S=? [ x=1 ]").value == 1.0


SAFE = [[0.1, 0.9, 0.0], [0, 1, 0], [0, 0, 1]]
BOLD = [[0.0, 0.5, 0.5], [0, 0, 0], [0, 0, 0]]


def small_mdp(**more):
    """A state with a slow and a risky way to state 1; state 2 is the end of the risky one."""
    return pg.mdp({"safe": SAFE, "bold": BOLD}, labels={"there": 1}, **more)


def test_a_small_mdp_and_its_strategies():
    model = small_mdp(choice_rewards={"cost": [2.0, 1.0, 0.0, 0.0]})
    assert model.num_choices == 4
    assert model.state_of_choice.tolist() == [0, 0, 1, 2]
    assert model.actions.tolist() == ["safe", "bold", "safe", "safe"]
    best = model.check('Pmax=? [ F "there" ]', strategy=True)
    worst = model.check('Pmin=? [ F "there" ]', strategy=True)
    assert (best.value, worst.value) == (1.0, 0.5)
    assert (best.strategy[0], worst.strategy[0]) == (0, 1)
    cost = model.check('R{"cost"}min=? [ F ("there" | x=2) ]', strategy=True)
    assert cost.value == pytest.approx(1.0)
    for result, value in ((best, 1.0), (worst, 0.5)):
        chain = model.induced(result.strategy)
        assert chain.kind == "DTMC"
        assert chain.check('P=? [ F "there" ]').value == value
    chain = model.induced(best.strategy)
    assert chain.check('R{"cost"}=? [ F "there" ]').value == pytest.approx(2.0 / 0.9)


def test_a_row_for_each_choice_is_the_same_mdp():
    rows = [SAFE[0], BOLD[0], SAFE[1], SAFE[2]]
    model = pg.mdp(rows, [0, 0, 1, 2], labels={"there": 1}, actions=["safe", "bold", "", ""])
    other = small_mdp()
    assert np.array_equal(model.transition_matrix.toarray(), other.transition_matrix.toarray())
    assert model.actions.tolist() == ["safe", "bold", "", ""]
    assert model.check('Pmin=? [ F "there" ]').value == 0.5
    strategy = np.array([1, 2, 3], dtype=np.uint64)
    assert model.induced(strategy).check('P=? [ F "there" ]').value == 0.5


def test_matrices_by_number_have_no_names():
    for matrices in ([SAFE, BOLD], np.array([SAFE, BOLD]), [sparse.csr_array(SAFE), BOLD]):
        model = pg.mdp(matrices, labels={"there": 1})
        assert model.actions is None
        assert model.check('Pmin=? [ F "there" ]').value == 0.5


def test_negated_properties_have_strategies_too():
    model = small_mdp()
    result = model.check('Pmax=? [ G !"there" ]', strategy=True)
    assert result.value == 0.5
    assert model.induced(result.strategy).check('P=? [ G !"there" ]').value == 0.5


def test_what_has_no_strategy_says_so():
    with pytest.raises(pg.UnsupportedError, match="strategies are known for"):
        small_mdp().check('Pmax=? [ F<=3 "there" ]', strategy=True)
    # The graph decides the outermost operator, and the solve is that of the one within.
    with pytest.raises(pg.UnsupportedError, match="strategies are known for"):
        small_mdp().check('P>=1 [ F (P>0.6 [ F "there" ]) ]', strategy=True)


def test_rows_that_sum_to_one_roughly_are_divided_by_their_sum():
    with pytest.warns(UserWarning, match="row 0 of P, with sum 0.99999"):
        model = pg.dtmc([[0.499999, 0.5], [0, 1]])
    assert np.allclose(model.transition_matrix.sum(axis=1), 1.0, rtol=0, atol=1e-15)


def test_a_model_keeps_no_array_of_the_users():
    matrix = sparse.csr_array(gambler(5, 0.5))
    rich = np.array([False, False, False, False, True])
    model = pg.dtmc(matrix, labels={"rich": rich}, initial=2)
    matrix.data[:] = 0.0
    rich[:] = True
    model.transition_matrix.data[:] = 0.0
    model.labels["rich"][:] = True
    model.check('"rich"').vector[:] = True
    model.initial_states[:] = True
    assert model.check('P=? [ F "rich" ]').value == pytest.approx(0.5)


def test_the_users_matrix_keeps_its_unused_space():
    for form in (sparse.csr_array, sparse.csc_array, sparse.csr_matrix):
        matrix = form(np.eye(2))
        matrix.data = np.append(matrix.data, 7.0)
        matrix.indices = np.append(matrix.indices, 0)
        assert pg.dtmc(matrix).transition_matrix.toarray().tolist() == np.eye(2).tolist()
        assert len(matrix.data) == len(matrix.indices) == 3


def test_variables_take_the_place_of_the_states_number():
    model = pg.dtmc(
        gambler(4, 0.5), variables={"money": [0, 10, 20, 30], "in_debt": [True] + [False] * 3}
    )
    assert model.states.dtype.names == ("money", "in_debt")
    assert model.states["money"].tolist() == [0, 10, 20, 30]
    assert model.check("filter(count, money>5 & !in_debt)").value == 3
    assert pg.dtmc(gambler(4, 0.5)).states["x"].tolist() == [0, 1, 2, 3]


def test_several_initial_states_give_a_range():
    result = pg.dtmc(gambler(5, 0.5), initial=[1, 3], epsilon=1e-12).check("P=? [ F x=4 ]")
    assert result.value == pytest.approx((0.25, 0.75))
    with pytest.raises(TypeError, match="several initial states"):
        float(result)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.bool_, np.float32])
def test_entries_given_several_times_add_up_whatever_their_type(dtype):
    rows, columns = np.zeros(300, dtype=int), np.ones(300, dtype=int)
    given = sparse.coo_matrix((np.ones(300, dtype=dtype), (rows, columns)), shape=(2, 2))
    assert pg.ctmc(given).rate_matrix.toarray()[0, 1] == 300.0
