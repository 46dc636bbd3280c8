"""Wrong arguments fail at once, and say what is wrong and where."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import prism_gpu as pg

CHAIN = [[0.0, 1.0], [0.0, 1.0]]


HIDDEN = np.ma.masked_array(CHAIN, mask=[[True, False], [True, False]])


def torn():
    """A matrix whose rows end behind its entries."""
    matrix = csr_array(np.array(CHAIN))
    matrix.indptr[1] = 9
    return matrix


def chain():
    return pg.dtmc(CHAIN, labels={"goal": 1}, rewards={"steps": [1, 0]})


MODELS = [
    (lambda: pg.dtmc([[0.5, 0.4], [0, 1]]), r"row 0 of P sums to 0\.9, not to 1"),
    (lambda: pg.dtmc([[0, 1], [0, 0]]), "row 1 of P sums to 0.0.* a loop of probability 1"),
    (lambda: pg.dtmc([[1.5, -0.5], [0, 1]]), r"P\[0, 1\] is -0\.5: entries must be finite"),
    (lambda: pg.dtmc([[np.nan, 1], [0, 1]]), r"P\[0, 0\] is nan"),
    (lambda: pg.dtmc([[1, 0]]), r"P must be square.*\(1, 2\)"),
    (lambda: pg.dtmc([1, 0]), r"P must have two dimensions, but its shape is \(2,\)"),
    (lambda: pg.dtmc([[1, 0], [1]]), "P must be an array of numbers"),
    (lambda: pg.dtmc([[1j]]), "P must hold real numbers, not complex128"),
    (lambda: pg.dtmc(np.zeros((0, 0))), "P has no states"),
    (lambda: pg.ctmc([[-1, 1], [1, -1]]), r"R\[0, 0\] is -1\.0.*diagonal of a generator"),
    (lambda: pg.dtmc(CHAIN, labels={"a": [True]}), r'label "a" has shape \(1,\).* 2 states'),
    (lambda: pg.dtmc(CHAIN, labels={"a": 2}), 'label "a" names state 2, .* 0 to 1'),
    (lambda: pg.dtmc(CHAIN, labels={"a": [0.5, 1]}), 'label "a" must be a mask of bool'),
    (lambda: pg.dtmc(CHAIN, labels={"a b": 1}), "'a b' is no name"),
    (lambda: pg.dtmc(CHAIN, labels={"init": 1}), 'every model has the label "init"'),
    (lambda: pg.dtmc(CHAIN, labels=[0]), "labels must be given by name"),
    (lambda: pg.dtmc(CHAIN, rewards={"r": [1, -2]}), 'rewards "r": state 1 has reward -2'),
    (lambda: pg.dtmc(CHAIN, rewards={"r": [1]}), r'"r" must have a number for each of 2 states'),
    (lambda: pg.dtmc(CHAIN, variables={"module": [1, 2]}), "a word of PRISM's language"),
    (lambda: pg.dtmc(CHAIN, variables={"x": [None, 1]}), "variable x is no number in state 0"),
    (lambda: pg.dtmc(CHAIN, initial=-1), "initial names state -1"),
    (lambda: pg.dtmc(CHAIN, initial=[]), "initial names no state"),
    (lambda: pg.mdp(CHAIN), "2 choices: say by state_of_choice"),
    (lambda: pg.mdp(CHAIN, [0]), "a state for each of 2 choices"),
    (lambda: pg.mdp(CHAIN, [1, 0]), "choice 1 belongs to state 0 after state 1"),
    (lambda: pg.mdp(CHAIN, [0, 5]), "from 0 to 5, but the states are 0 to 1"),
    (lambda: pg.mdp(CHAIN, [0, 0]), "state 1 has no choice"),
    (lambda: pg.mdp([[0, 0.9], [0, 1]], [0, 1]), r"choice 0 of state 0 \(row 0\) sums to 0\.9"),
    (lambda: pg.mdp(CHAIN, [0, 1], actions=["a"]), "1 actions for 2 choices"),
    (lambda: pg.mdp([CHAIN, CHAIN], [0, 1]), "state_of_choice and actions are not given"),
    (lambda: pg.mdp({"a": CHAIN, "b": [[1]]}), "b has 1 states, but the first action has 2"),
    (lambda: pg.mdp({}), "P has no actions"),
    (lambda: pg.mdp([]), r"P must have two dimensions, but its shape is \(0,\)"),
    (lambda: pg.mdp(None, [0]), r"P must have two dimensions, but its shape is \(\)"),
    (lambda: chain().induced([0, 1]), "a DTMC has no choices"),
    (lambda: pg.mdp(CHAIN, [0, 1]).induced([1, 1]), "row 1 is no choice of state 0"),
    (lambda: pg.mdp(CHAIN, [0, 1]).induced([1]), "a row of the transition matrix for each of 2"),
    (lambda: chain().rate_matrix, "a DTMC has no rates"),
    (lambda: pg.dtmc(HIDDEN), "P is a masked array"),
    (lambda: pg.dtmc(CHAIN, labels={"a": HIDDEN[0]}), 'label "a" is a masked array'),
    (lambda: pg.dtmc(CHAIN, rewards={"r": HIDDEN[0]}), 'rewards "r" is a masked array'),
    (lambda: pg.dtmc(CHAIN, rewards={"r": [10**400, 1]}), '"r" must be an array of numbers'),
    (lambda: pg.dtmc(CHAIN, labels={"true": 1}), "labels: true is a word of PRISM's language"),
    (lambda: pg.dtmc(CHAIN, rewards={"F": [1, 1]}), "rewards: F is a word of PRISM's language"),
    (
        lambda: pg.dtmc(CHAIN, variables={"y": np.array([2**64 - 1, 0], dtype=np.uint64)}),
        "variable y: 18446744073709551615 is beyond 64 bits",
    ),
    (lambda: pg.dtmc(torn()), "P: indptr must be"),
    (lambda: pg.mdp([*CHAIN, [1, 0]], np.array([0, 1, 0], dtype=np.uint8)), "choice 2 belongs to"),
    (lambda: pg.mdp(CHAIN, [0, 1], actions=["a", None]), "actions must be texts"),
    (lambda: pg.mdp(CHAIN, [0, 1]).induced(HIDDEN[1]), "strategy is a masked array"),
]


@pytest.mark.parametrize(("make", "message"), MODELS)
def test_a_wrong_model(make, message):
    with pytest.raises(pg.InvalidModelError, match=message):
        make()


PROPERTIES = [
    ('P=? [ F "gaol" ]', {}, "unknown label 'gaol'; did you mean 'goal'?"),
    ('P=? [ F "zzz" ]', {}, "unknown label 'zzz' .known: 'init', 'deadlock', 'goal'"),
    ('R{"step"}=? [ F x=1 ]', {}, "unknown reward structure 'step'; did you mean 'steps'?"),
    ("P=? [ F y=1 ]", {}, "unknown variable or constant without a value 'y'"),
    ("P=? [ F<=T x=1 ]", {}, "constant without a value 'T'"),
    ("P=? [ F x=1 ]", {"T": 1}, "no property speaks of the constant T"),
    ("P=? [ F x=1 ]", {"x": 1}, "x is a variable of the model, and no constant"),
    ("P=? [ F<=T x=1 ]", {"T": 0.5}, "must be an? integer|int"),
    ("P=? [ F x=", {}, "Syntax error"),
    ("Pmax=? [ F x=1 ] + true", {}, "Type error"),
    ("R=? [ C<=-1 ]", {}, "-1"),
]


@pytest.mark.parametrize(("text", "constants", "message"), PROPERTIES)
def test_a_wrong_property(text, constants, message):
    with pytest.raises(pg.InvalidModelError, match=message):
        chain().check(text, constants)


SETTINGS = [
    ({"epsilom": 1}, TypeError, "unknown setting 'epsilom'; did you mean 'epsilon'?"),
    ({"epsilon": "small"}, TypeError, "epsilon must be a number, not 'small'"),
    ({"epsilon": -1.0}, ValueError, "epsilon must be a number of at least 0"),
    ({"max_iterations": 1.5}, TypeError, "max_iterations must be a whole number"),
    ({"max_iterations": -1}, ValueError, "max_iterations must be from 0"),
    (
        {"method": "jacobbi"},
        ValueError,
        "unknown value of method 'jacobbi'; did you mean 'jacobi'?",
    ),
    ({"method": "politer"}, ValueError, "Policy iteration is not for a DTMC"),
    ({"device": "tpu"}, ValueError, "unknown value of device 'tpu'"),
    ({"precision": 64}, TypeError, "precision must be a text"),
    ({"bounds": 1}, TypeError, "bounds must be True or False"),
    ({"strategy": True}, ValueError, "a DTMC has no choices"),
    ({"omega": 0}, ValueError, "omega must be above 0"),
    ({"epsilon": 10**400}, ValueError, "epsilon is larger than the largest double"),
    ({"method": "jor", "omega": -1}, ValueError, "omega must be above 0"),
]


@pytest.mark.parametrize(("settings", "error", "message"), SETTINGS)
def test_a_wrong_setting_of_a_check_and_of_a_model(settings, error, message):
    model = chain()
    with pytest.raises(error, match=message):
        model.check("P=? [ F x=1 ]", **settings)
    with pytest.raises(error, match=message):
        pg.dtmc(CHAIN, **settings)


def test_a_gpu_that_is_missing_is_missed_at_once(monkeypatch):
    monkeypatch.setattr("engines.cuda.driver.gpu_refusal", lambda _: "none is plugged in")
    with pytest.raises(pg.UnsupportedError, match=r'device="gpu".*: none is plugged in'):
        pg.dtmc(CHAIN, device="gpu")


def test_several_properties_where_one_is_wanted():
    with pytest.raises(ValueError, match="holds 2; see check_all"):
        chain().check("P=? [ F x=1 ]; P=? [ F x=0 ]")
    with pytest.raises(TypeError, match="a property is a text"):
        chain().check(3)
    with pytest.raises(TypeError, match="constants must be given by name"):
        chain().check("P=? [ F x=1 ]", 3)
    with pytest.raises(TypeError, match="constant T must be a number"):
        chain().check("P=? [ F<=T x=1 ]", {"T": "3"})


def test_an_unknown_label_of_a_model():
    labels = chain().labels
    with pytest.raises(KeyError, match="did you mean 'goal'"):
        labels["gaol"]
    with pytest.raises(KeyError, match="unknown label 5"):
        labels[5]
    assert "gaol" not in labels
    assert list(labels) == ["init", "deadlock", "goal"]


def test_an_unknown_reward_structure_of_a_model():
    rewards = pg.dtmc(CHAIN, rewards={"steps": [1, 0]}).rewards
    with pytest.raises(KeyError, match="unknown reward structure 'step'; did you mean 'steps'"):
        rewards["step"]


@pytest.mark.parametrize("actions", ["ab", 5, [1, 2]])
def test_actions_are_texts(actions):
    with pytest.raises(pg.InvalidModelError, match="actions must be texts"):
        pg.mdp(CHAIN, [0, 1], actions=actions)


def test_paths_that_no_memory_holds():
    with pytest.raises(MemoryError, match=r"steps=1000000000000, paths=3 are 2\.4e\+04 GB"):
        chain().simulate(10**12, paths=3)
    with pytest.raises(MemoryError, match="for which there is no room"):
        chain().simulate(10**30)


def test_a_file_of_properties_is_named_where_its_grammar_is_wrong(tmp_path):
    file = tmp_path / "few.props"
    file.write_text("P=? [ F x=1 ];\nP=? [ F ")
    with pytest.raises(pg.InvalidModelError, match=r"few\.props: Syntax error .*line 2"):
        chain().check_all(file)


def test_arguments_of_other_types_are_named():
    model = chain()
    for ask, message in (
        (lambda: pg.dtmc("cluster.sm"), "P must be a matrix; a model in a file is opened by"),
        (lambda: pg.open(5), "path must be a text or a pathlib.Path, not 5"),
        (lambda: model.save(5), "path must be a text or a pathlib.Path, not 5"),
        (lambda: model.check_all(5), "properties must be a text, a path or a sequence, not 5"),
        (lambda: pg.sweep(model, 5, {}), "properties must be a text or a sequence of texts, not 5"),
        (lambda: model.simulate(10, seed="a"), "seed must be a whole number, not 'a'"),
    ):
        with pytest.raises(TypeError, match=message):
            ask()
    with pytest.raises(ValueError, match="seed must not be negative, but it is -1"):
        model.simulate(10, seed=-1)


class Table:
    """What matters of a table of pandas."""

    def __init__(self, values, index, columns):
        self.values, self.index, self.columns = values, index, columns

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


def test_a_table_with_rows_and_columns_in_different_orders_is_refused():
    values = [[0.5, 0.5], [0.0, 1.0]]
    for index in (["a", "b"], range(2)):
        assert pg.dtmc(Table(values, index, ["a", "b"])).check("P=? [ F x=1 ]").value == 1.0
    with pytest.raises(pg.InvalidModelError, match=r"row 0 .* 'a', and column 0 'b'; give both"):
        pg.dtmc(Table(values, ["a", "b"], ["b", "a"]))


def test_choices_without_an_action_are_written(tmp_path):
    model = pg.mdp([[0, 1.0], [1, 0], [0, 1]], [0, 0, 1], actions=["a", "", "b"])
    for ending in (".tra", ".pexp", ".umb"):
        file = tmp_path / f"some{ending}"
        model.save(file)
        names, of_choices = pg.open(file)._backing.actions
        assert [names[number] for number in of_choices] == ["a", "", "b"]
