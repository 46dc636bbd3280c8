"""The Python API, with a real PRISM in this very process, and without one."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bridge
from bridge import session as module
from bridge.check.opened import ModelOpenedHere
from bridge.versions import NoPrismError
from engines.errors import BridgeError, InvalidModelError
from engines.model.explicit import ModelKind

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "examples" / "models"
MDP = """mdp
module walk
  s : [0..3] init 0;
  [left] s=0 -> 0.5:(s'=1) + 0.5:(s'=2);
  [right] s=0 -> (s'=3);
  [] s>0 -> true;
endmodule
label "goal" = s=1;
rewards "cost"
  s=0 : 2;
  [right] true : 5;
endrewards
"""


@pytest.fixture(params=[pytest.param("prism", marks=pytest.mark.prism), "builtin"])
def where(request):
    """Who builds and checks models."""
    if request.param == "builtin":
        return {"front_end": "builtin"}
    return {"prism_dir": str(request.getfixturevalue("prism_install").root)}


@pytest.fixture
def cluster(where):
    with bridge.open(MODELS / "cluster.sm", {"N": 2}, epsilon=1e-10, **where) as session:
        yield session


@pytest.fixture
def walk(where, tmp_path):
    path = tmp_path / "walk.nm"
    path.write_text(MDP)
    with bridge.open(path, **where) as session:
        yield session


def test_the_matrix_labels_and_rewards_of_a_ctmc(cluster):
    assert cluster.kind is ModelKind.CTMC
    assert cluster.num_states == 276  # values.json: cluster N=2
    assert cluster.rate_matrix.shape == (276, 276)
    rows = cluster.transition_matrix.sum(axis=1)
    assert np.allclose(rows, 1.0)
    assert set(cluster.labels) == {"init", "deadlock", "minimum", "premium"}
    assert cluster.labels["init"].sum() == 1
    assert not cluster.labels["deadlock"].any()
    assert list(cluster.rewards) == ["percent_op", "time_not_min", "num_repairs"]
    below = cluster.rewards["time_not_min"].state_rewards > 0
    assert np.array_equal(below, ~cluster.labels["minimum"])


def test_a_check_gives_value_vector_and_accuracy(cluster):
    result = cluster.check('S=? [ "premium" ]')
    # values.json: cluster N=2, obtained by PRISM -exact.
    assert result.value == pytest.approx(0.9999615335622081, rel=1e-8)
    assert result.vector.shape == (276,)
    assert np.allclose(result.vector, result.value)


def test_a_vector_satisfies_the_equations_that_define_it(cluster):
    result = cluster.check('P=? [ "minimum" U "premium" ]')
    x, target = result.vector, cluster.labels["premium"]
    maybe = cluster.labels["minimum"] & ~target
    assert np.allclose((cluster.transition_matrix @ x)[maybe], x[maybe], atol=1e-9)
    assert np.all(x[target] == 1.0)
    assert np.all(x[~maybe & ~target] == 0.0)
    assert result.accuracy


def test_truth_values_and_constants_of_a_property(cluster):
    truth = cluster.check('const double p; P>=p [ F "premium" ]', {"p": 0.5})
    assert truth.value is True
    assert truth.vector.dtype == bool
    assert truth.vector.all()


def test_an_mdp_has_a_row_a_choice(walk):
    assert walk.kind is ModelKind.MDP
    assert walk.transition_matrix.shape == (5, 4)
    assert walk.row_group_offsets.tolist() == [0, 2, 3, 4, 5]
    assert walk.check('Pmax=? [ F "goal" ]').value == 0.5
    assert walk.check('Pmin=? [ F "goal" ]').value == 0.0
    cost = walk.rewards["cost"]
    assert cost.state_rewards.tolist() == [2.0, 0.0, 0.0, 0.0]
    assert sorted(cost.choice_rewards[:2].tolist()) == [0.0, 5.0]


SEVERAL = """mdp
module several
  s : [0..3];
  [a] s=0 -> 0.5:(s'=1) + 0.5:(s'=2);
  [b] s=0 -> (s'=2);
  [] s>0 -> true;
endmodule
init s=0 | s=3 endinit
label "goal" = s=1;
"""


@pytest.mark.parametrize("symbolic", [False, True])
def test_whole_numbers_and_filters_over_several_initial_states(where, tmp_path, symbolic):
    path = tmp_path / "several.nm"
    path.write_text(SEVERAL)
    goal = 'Pmax=? [ F "goal" ]'
    with bridge.open(path, symbolic=symbolic, **where) as session:
        for text, value in [
            ("filter(count, s>0)", 3),
            ("filter(sum, s)", 6),
            ("2 * filter(max, s)", 6),
            ("filter(state, s, s=2)", 2),
            (f"filter(max, {goal})", 1.0),
            (f"filter(avg, {goal})", 0.375),
        ]:
            result = session.check(text)
            assert result.value == value
            assert type(result.value) is type(value)
            assert result.vector.tolist() == [value] * 4
        assert session.check("filter(range, s)").value == "[0,3]"
        assert session.check(f"filter(range, {goal})").value == "[0.0,1.0]"
        whole = session.check("s")
        assert whole.value == "[0,3]"
        assert whole.vector.dtype == np.int64
        assert whole.vector.tolist() == [0, 1, 2, 3]
        over_initial = session.check(goal)
        assert over_initial.value == "[0.0,0.5]"
        assert over_initial.vector.tolist() == [0.5, 1.0, 0.0, 0.0]
        assert not session.check("filter(argmax, s)").value


def test_one_initial_state_gives_the_value_there(walk):
    result = walk.check("s + 1")
    assert result.value == 1
    assert result.vector.tolist() == [1, 2, 3, 4]
    assert walk.check("filter(range, s)").value == "[0,3]"


@pytest.mark.parametrize(
    "wrong", [{"epsilon": float("nan")}, {"epsilon": -1.0}, {"max_iterations": -1}]
)
def test_a_termination_that_is_no_number_is_refused(walk, wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name} must be"):
        walk.set_termination(**wrong)
    with pytest.raises(ValueError, match=f"{name} must be"):
        bridge.open(walk.path, **wrong)


@pytest.mark.prism
def test_a_session_keeps_its_own_settings_beside_others(prism_install):
    file, root = MODELS / "cluster.sm", str(prism_install.root)
    question = 'S=? [ "premium" ]'
    with bridge.open(file, {"N": 4}, epsilon=1e-12, symbolic=True, prism_dir=root) as session:
        alone = session.check(question).accuracy
        with bridge.open(file, {"N": 4}, epsilon=1e-3, prism_dir=root) as other:
            other.check(question)
            assert session.check(question).accuracy == alone
        assert session.check(question).accuracy == alone


def test_a_closed_session_says_so_and_keeps_what_was_read(walk):
    goal = walk.labels["goal"]
    states = walk.num_states
    walk.close()
    walk.close()
    for ask in (lambda: walk.check("true"), lambda: walk.labels["init"], walk.set_termination):
        with pytest.raises(BridgeError, match="the session is closed"):
            ask()
    assert walk.labels["goal"] is goal
    assert walk.num_states == states == 4


@pytest.mark.prism
def test_a_dropped_session_is_closed(prism_install):
    file, root = MODELS / "cluster.sm", str(prism_install.root)
    labels = bridge.open(file, {"N": 2}, symbolic=True, prism_dir=root).labels
    assert labels["init"].sum() == 1
    del labels
    with bridge.open(file, {"N": 1}, symbolic=True, prism_dir=root) as session:
        assert session.num_states == 112


def test_faults_come_with_prism_s_own_words(cluster, where, tmp_path):
    with pytest.raises(InvalidModelError, match="Syntax error"):
        cluster.check("P=? [ F ")
    with pytest.raises(ValueError, match="holds 2"):
        cluster.check('P=? [ F "premium" ]; P=? [ F "minimum" ]')
    with pytest.raises(KeyError, match="premium"):
        cluster.labels["nothing"]
    with pytest.raises(FileNotFoundError, match="absent"):
        bridge.open(tmp_path / "absent.sm", **where)
    with pytest.raises(InvalidModelError, match="N"):
        bridge.open(MODELS / "cluster.sm", **where)


OUTSIDE = """
import sys
import bridge
with bridge.open(sys.argv[1], {"N": 2}, log=True, front_end="builtin") as session:
    print("value", session.check('filter(count, true)').value)
assert "jpype" not in sys.modules
"""


def test_nothing_of_java_is_needed_without_prism():
    command = [sys.executable, "-c", OUTSIDE, str(MODELS / "cluster.sm")]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Reachable states and matrix" in done.stdout
    assert done.stdout.endswith("value 276\n")


def test_models_are_built_here_where_there_is_no_prism(monkeypatch):
    def nothing(*_):
        raise NoPrismError("no PRISM was found", "set PRISM_DIR")

    monkeypatch.setattr(module, "find_prism", nothing)
    # The JVM of other tests would do.
    monkeypatch.setattr(module, "jvm_runs", lambda: False)
    with bridge.open(MODELS / "cluster.sm", {"N": 2}) as session:
        assert isinstance(session._opened, ModelOpenedHere)


def test_a_front_end_that_is_none_is_refused():
    with pytest.raises(ValueError, match="prism or builtin, not storm"):
        bridge.open(MODELS / "cluster.sm", {"N": 2}, front_end="storm")


def test_sessions_without_prism_are_about_one_model(tmp_path):
    path = MODELS / "cluster.sm"
    with pytest.raises(ValueError, match="give each constant one value"):
        bridge.open(path, {"N": "1:2"}, front_end="builtin")
    with (
        bridge.open(path, {"N": 1}, front_end="builtin") as session,
        pytest.raises(ValueError, match="give each constant one value"),
    ):
        session.check("const int k; P=? [ F<=k true ]", {"k": "1:3"})
    wrong = tmp_path / "wrong.pm"
    wrong.write_text(
        "dtmc module m x : [0..3]; [] x<2 -> (x'=x+1); endmodule rewards x=1 : -x; endrewards"
    )
    with bridge.open(wrong, front_end="builtin") as session:
        assert session.check("P=? [ F x=2 ]").value == 1.0
        # Its rewards would be wrong.
        with pytest.raises(InvalidModelError, match="Reward structure is negative"):
            session.rewards["1"]
