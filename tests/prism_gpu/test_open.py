"""Models from files, with PRISM and without, against `bridge.open` and each other."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bridge
import prism_gpu as pg

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = ROOT / "examples" / "models" / "cluster.sm"
DIE = """dtmc
const double p;
module die
  s : [0..3] init 0;
  [] s=0 -> p:(s'=1) + (1-p)/2:(s'=2) + (1-p)/2:(s'=0);
  [] s=1 -> (s'=1);
endmodule
label "one" = s=1;
rewards "rolls" s=0 : 1; endrewards
"""
ASKED = ('S=? [ "premium" ]', 'P=? [ F<=1.5 !"minimum" ]', 'R{"num_repairs"}=? [ F !"minimum" ]')


@pytest.fixture
def die(tmp_path):
    path = tmp_path / "die.pm"
    path.write_text(DIE)
    return path


@pytest.fixture(params=["builtin", pytest.param("prism", marks=pytest.mark.prism)])
def front_end(request):
    if request.param == "prism":
        request.getfixturevalue("prism_install")
    return request.param


def test_the_values_are_those_of_bridge(front_end):
    with (
        pg.open(CLUSTER, {"N": 2}, front_end=front_end, epsilon=1e-10) as model,
        bridge.open(CLUSTER, {"N": 2}, front_end=front_end, epsilon=1e-10) as session,
    ):
        assert (model.kind, model.num_states) == (session.kind, session.num_states)
        assert (model.rate_matrix != session.rate_matrix).nnz == 0
        assert set(model.labels) == set(session.labels)
        for name in model.labels:
            assert np.array_equal(model.labels[name], session.labels[name])
        for name, rewards in model.rewards.items():
            assert np.array_equal(rewards.state_rewards, session.rewards[name].state_rewards)
        for text in ASKED:
            ours, theirs = model.check(text), session.check(text)
            assert ours.value == theirs.value
            assert np.array_equal(ours.vector, theirs.vector)
            assert ours.method
            assert ours.seconds > 0.0


@pytest.mark.prism
@pytest.mark.usefixtures("prism_install")
def test_with_prism_and_without_the_values_agree():
    with pg.open(CLUSTER, {"N": 2}, front_end="prism", epsilon=1e-10) as held:
        built = pg.open(CLUSTER, {"N": 2}, epsilon=1e-10)
        for text in ASKED:
            one, other = held.check(text), built.check(text)
            assert np.allclose(one.vector, other.vector, rtol=1e-8)
            assert one.device == other.device == "CPU"
        one, other = (model.check(ASKED[2]) for model in (held, built))
        assert one.error == pytest.approx(other.error)
        ranged = [model.check('filter(range, P=? [ F<=T !"minimum" ])', {"T": 1.5}).value
                  for model in (held, built)]  # fmt: skip
        assert ranged[0] == pytest.approx(ranged[1])
        assert held.check_all(ASKED[:2])[1].value == held.check(ASKED[1]).value


@pytest.mark.prism
@pytest.mark.usefixtures("prism_install")
def test_what_a_session_of_prism_lacks_is_refused():
    with pg.open(CLUSTER, {"N": 2}, front_end="prism") as model:
        with pytest.raises(pg.UnsupportedError, match="bounds: not for a check by PRISM"):
            model.check(ASKED[0], bounds=True)
        with pytest.raises(pg.UnsupportedError, match="max_iterations: not for a check by PRISM"):
            model.check(ASKED[0], max_iterations=10)
        with pytest.raises(pg.UnsupportedError, match="variables of a model that PRISM holds"):
            model.states  # noqa: B018
        with pytest.raises(pg.UnsupportedError, match="files of properties"):
            model.check_all(CLUSTER.with_name("cluster.csl"))
        with pytest.raises(pg.InvalidModelError, match="no property speaks of the constant T"):
            model.check('S=? [ "premium" ]', {"T": 1.0})
        with pytest.raises(TypeError, match="a model that PRISM holds cannot be pickled"):
            pickle.dumps(model)
    with pytest.raises(pg.BridgeError, match="closed"):
        model.check(ASKED[0])
    given = {"front_end": "prism", "max_iterations": 5000, "device": "cpu"}
    with pg.open(CLUSTER, {"N": 2}, **given) as model:
        assert model.check(ASKED[0], device="cpu").value == model.check(ASKED[0]).value
        with pytest.raises(pg.UnsupportedError, match="max_iterations: not for a check by PRISM"):
            model.check(ASKED[0], max_iterations=10)
    with pytest.raises(pg.UnsupportedError, match="method: not for a model that PRISM holds"):
        pg.open(CLUSTER, {"N": 2}, front_end="prism", method="jacobi")


@pytest.mark.parametrize(
    "text", ["# A page\n", "dtmc\n", "dtmc\nmodule m\nx:[0..1] init 2;\nendmodule"]
)
def test_a_fault_of_a_model_names_its_file(tmp_path, text):
    path = tmp_path / "page.md"
    path.write_text(text)
    with pytest.raises(pg.InvalidModelError, match=r"page\.md: "):
        pg.open(path)


def test_what_is_not_built_is_refused(tmp_path):
    path = tmp_path / "clock.nm"
    path.write_text("pta\nmodule m\n x : clock;\n [] true -> true;\nendmodule\n")
    with pytest.raises(pg.UnsupportedError, match="PTA"):
        pg.open(path)


def test_a_model_of_prisms_language(die):
    model = pg.open(die, {"p": 0.25})
    assert repr(model) == "<DTMC with 3 states>"
    assert model.states["s"].tolist() == [0, 1, 2]
    assert any("Deadlocks" in note for note in model.notes)
    assert model.check('P=? [ F "one" ]').value == pytest.approx(0.25 / 0.625)
    assert model.check("P=? [ F<=k s=2 ]", {"k": 1}).value == 0.375
    with pytest.raises(pg.InvalidModelError, match="p is a constant of the model"):
        model.check("P=? [ F s=p ]", {"p": 1})


@pytest.mark.parametrize("ending", ["umb", "tra"])
def test_explicit_files(die, tmp_path, ending):
    target = tmp_path / "files" / ("die.umb" if ending == "umb" else "die.all")
    target.parent.mkdir()
    command = [sys.executable, "-m", "bridge", str(die), "-frontend", "builtin"]
    command += ["-const", "p=0.25", "-exportmodel", str(target)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True, timeout=200)
    for path in (target.parent, target.with_suffix(f".{ending}")):
        model = pg.open(path)
        assert model.states["s"].tolist() == [0, 1, 2]
        assert model.check('P=? [ F "one" ]').value == pytest.approx(0.25 / 0.625)
        assert model.check("R=? [ C<=1 ]").value == 1.0
    with pytest.raises(pg.InvalidModelError, match=r"unknown constant of the model 'p'"):
        pg.open(path, {"p": 0.25})
    with pytest.raises(pg.UnsupportedError, match="are read without PRISM"):
        pg.open(path, front_end="prism")


@pytest.mark.parametrize("ending", ["umb", "tra", "pexp"])
def test_what_is_saved_is_read_again(tmp_path, ending):
    matrices = {"safe": [[0.1, 0.9], [0, 1]], "bold": [[0.5, 0.5], [0, 0]]}
    costs = {"cost": [2.0, 1.0, 0.0]}
    model = pg.mdp(matrices, labels={"there": 1}, choice_rewards=costs)
    model.save(tmp_path / f"walk.{ending}")
    read = pg.open(tmp_path / f"walk.{ending}")
    assert read.kind == "MDP"
    assert np.array_equal(read.transition_matrix.toarray(), model.transition_matrix.toarray())
    assert read.actions.tolist() == model.actions.tolist()
    assert read.states["x"].tolist() == [0, 1]
    text = 'R{"cost"}min=? [ F "there" ]'
    assert read.check(text).value == model.check(text).value
    with pytest.raises(ValueError, match=r"end in \.umb, \.tra, \.pexp"):
        model.save(tmp_path / "walk.txt")


@pytest.mark.parametrize("ending", ["tra", "pexp"])
def test_a_variable_beyond_32_bits_is_not_cut(tmp_path, ending):
    model = pg.dtmc([[0, 1], [0, 1]], variables={"bytes": [2**40, 0]})
    with pytest.raises(pg.UnsupportedError, match="variable bytes is beyond 32 bits"):
        model.save(tmp_path / f"large.{ending}")
    model.save(tmp_path / "large.umb")
    assert pg.open(tmp_path / "large.umb").states["bytes"].tolist() == [2**40, 0]


def test_wrong_files_and_constants(die, tmp_path):
    with pytest.raises(FileNotFoundError, match="no model"):
        pg.open(tmp_path / "nothing.pm")
    for ask in (lambda: pg.open(""), lambda: pg.sweep("", "true", {})):
        with pytest.raises(FileNotFoundError, match="no model without a name"):
            ask()
    with pytest.raises(pg.InvalidModelError, match='constant "p" must be defined'):
        pg.open(die)
    with pytest.raises(pg.InvalidModelError, match="unknown constant of the model 'P'"):
        pg.open(die, {"P": 1.0})
    with pytest.raises(ValueError, match="did you mean 'prism'"):
        pg.open(die, {"p": 0.5}, front_end="prims")
    with pytest.raises(ValueError, match="for explicit text files alone"):
        pg.open(die, {"p": 0.5}, kind="DTMC")
    with pytest.raises(TypeError, match="did you mean 'epsilon'"):
        pg.open(die, {"p": 0.5}, epsilom=1)
    die.write_text(DIE.replace("endmodule", ""))
    with pytest.raises(pg.InvalidModelError, match="line 8"):
        pg.open(die, {"p": 0.5})


def test_a_reward_that_no_engine_takes(die):
    die.write_text(DIE.replace("s=0 : 1", "s=0 : -1"))
    model = pg.open(die, {"p": 0.5})
    assert model.check('P=? [ F "one" ]').value == pytest.approx(0.5 / 0.75)
    with pytest.raises(pg.InvalidModelError, match="-1"):
        model.rewards  # noqa: B018


def test_lists_of_properties(die, tmp_path):
    model = pg.open(die, {"p": 0.5})
    text = 'const int k; label "two" = s=2; "first": P=? [ F<=k "one" ]; P=? [ F "two" ];'
    path = tmp_path / "die.props"
    path.write_text(text)
    for given in (text, path, str(path)):
        results = model.check_all(given, {"k": 1})
        assert [item.value for item in results] == pytest.approx([0.5, 0.25 / 0.75])
        assert results[0].property == '"first": P=? [ F<=k "one" ]'
    results = model.check_all(['P=? [ F "one" ]', "filter(count, s>0)"])
    assert results[1].value == 2
    assert len(model.check_all('P=? [ F "one" ];\n// See also die.props')) == 1
    assert model.check_all("") == []
    with pytest.raises(FileNotFoundError):
        model.check_all("absent.props")


def test_a_sweep_over_constants(die):
    results = pg.sweep(
        die, ['P=? [ F<=k "one" ]', 'R{"rolls"}=? [ C ]'], {"p": [0.25, 0.5], "k": range(1, 3)}
    )
    assert [item.constants for item in results] == [
        {"p": 0.25, "k": 1}, {"p": 0.25, "k": 2}, {"p": 0.25},
        {"p": 0.5, "k": 1}, {"p": 0.5, "k": 2}, {"p": 0.5},
    ]  # fmt: skip
    expected = [0.25, 0.25 * 1.375, 1 / 0.625, 0.5, 0.625, 1 / 0.75]
    assert [item.value for item in results] == pytest.approx(expected)
    assert results.rows()[1]["k"] == 2
    numbers = pg.sweep(die, 'P=? [ F<=k "one" ]', {"p": 0.25, "k": np.arange(1, 3)})
    assert [type(item.constants["k"]) for item in numbers] == [int, int]
    model = pg.open(die, {"p": 0.5})
    assert [float(item) for item in pg.sweep(model, "P=? [ F<=k s=1 ]", {"k": 2})] == [0.625]
    with pytest.raises(pg.InvalidModelError, match="neither the model nor a property"):
        pg.sweep(model, "P=? [ F s=1 ]", {"k": 2})
    with pytest.raises(ValueError, match="constant k has no values"):
        pg.sweep(model, "P=? [ F<=k s=1 ]", {"k": []})
    with pytest.raises(TypeError, match="constants must be given by name, not as 5"):
        pg.sweep(model, "true", 5)
