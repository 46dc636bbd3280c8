"""Models read out of PRISM's diagrams, against PRISM's own export of the same models."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import bridge
from bridge.files.checkable import read_checkable
from engines.errors import BridgeError, InvalidModelError
from engines.host.paths import expand_vector
from engines.model.explicit import ExplicitModel, ModelKind
from prism_hooks.symbolic import diagram
from tests.bridge.session_models import MDP_WITH_REWARDS, MODELS, QUICK

pytestmark = pytest.mark.prism

ALL = [
    pytest.param(name, constants, id=f"{Path(name).stem}-{constants}", marks=marks)
    for name, constants in MODELS
    for marks in [() if (name, constants) in QUICK else pytest.mark.slow]
]


def exported(prism_install, file: Path, constants: str, folder: Path) -> ExplicitModel:
    """Return the model that PRISM's sparse engine exports."""
    prism = prism_install.root / "bin" / "prism"
    words = [str(prism), str(file), "-sparse", "-exportmodel", f"{folder}/m.all:format=explicit"]
    words += ["-exportmodelprecision", "17", *(["-const", constants] if constants else [])]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return read_checkable(folder / "m.tra").model


def compare(ours: ExplicitModel, theirs: ExplicitModel) -> None:
    """Fail unless two models are the same, entry by entry, choices in the same order."""
    assert ours.kind is theirs.kind
    assert ours.num_states == theirs.num_states
    assert np.array_equal(ours.matrix.row_offsets, theirs.matrix.row_offsets)
    assert np.array_equal(ours.matrix.columns, theirs.matrix.columns)
    # PRISM prints 17 digits, and reading them again gives the same doubles.
    assert np.array_equal(ours.matrix.values, theirs.matrix.values)
    if ours.kind is ModelKind.MDP:
        assert np.array_equal(ours.row_group_offsets, theirs.row_group_offsets)
    assert np.array_equal(ours.initial_states, theirs.initial_states)
    assert len(ours.rewards) == len(theirs.rewards)
    for mine, other in zip(ours.rewards, theirs.rewards, strict=True):
        states = 0.0 if other.state_rewards is None else other.state_rewards
        assert np.allclose(mine.state_rewards, states, rtol=1e-14, atol=0.0)
        choices = 0.0 if other.choice_rewards is None else other.choice_rewards
        if mine.choice_rewards is not None:
            assert np.allclose(mine.choice_rewards, choices, rtol=1e-14, atol=0.0)


def opened(prism_install, file: Path, constants: str) -> bridge.Session:
    """Return a session on a model that PRISM has built as a diagram."""
    values = dict(item.split("=") for item in constants.split(",")) if constants else {}
    return bridge.open(file, values, prism_dir=str(prism_install.root), symbolic=True)


@pytest.mark.parametrize(("name", "constants"), ALL)
def test_values_are_the_same_path_by_path_and_by_blocks(prism_install, name, constants):
    file = prism_install.root.parent / "prism-examples" / name
    with opened(prism_install, file, constants) as session:
        model, built = session._built._model, session._built._built
        functions = [built.initialStates(), *map(built.label, built.labelNames())]
        functions += [built.stateRewards(number) for number in range(len(built.rewardNames()))]
        for function in functions:
            by_paths = model._by_paths(function)
            by_blocks = expand_vector(diagram(function), model.numbering)
            if by_paths is None:
                assert model.num_states > 100_000
                continue
            np.testing.assert_array_equal(by_paths, by_blocks)
            np.testing.assert_array_equal(model.members(function), by_blocks != 0.0)


def test_a_function_of_choices_is_none_of_states(prism_install, tmp_path):
    file = tmp_path / "walk.nm"
    file.write_text(MDP_WITH_REWARDS)
    with opened(prism_install, file, "") as session:
        model, built = session._built._model, session._built._built
        earned = built.choiceRewards(0)
        assert model._by_paths(earned) is None
        with pytest.raises(InvalidModelError):
            model.of_states(earned)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "constants"), ALL)
def test_a_model_is_what_prism_exports(prism_install, tmp_path, name, constants):
    file = prism_install.root.parent / "prism-examples" / name
    with opened(prism_install, file, constants) as session:
        compare(session.model, exported(prism_install, file, constants, tmp_path))


def test_rewards_of_choices_and_labels_of_an_mdp(prism_install, tmp_path):
    file = tmp_path / "walk.nm"
    file.write_text(MDP_WITH_REWARDS)
    with opened(prism_install, file, "") as session:
        compare(session.model, exported(prism_install, file, "", tmp_path))
        assert session.labels["goal"].tolist() == [False, True, False, True]
        assert session.labels["init"].tolist() == [True, False, False, False]
        certain = session.check('Pmax=? [ F "goal" ]')
        assert certain.value == 1.0
        assert certain.vector == pytest.approx([1.0, 1.0, 1.0, 1.0])
        smallest = session.check('Pmin=? [ X "goal" ]')
        assert smallest.vector == pytest.approx([0.5, 1.0, 0.0, 1.0])
        holds = session.check("s=2 | P>=1 [ X s=3 ]")
        assert holds.vector.tolist() == [False, False, True, True]


def test_a_second_diagram_is_refused_until_the_first_is_closed(prism_install):
    file = Path(__file__).parents[2] / "examples" / "models" / "cluster.sm"
    with opened(prism_install, file, "N=2") as session:
        with pytest.raises(BridgeError, match=r"one model as a decision diagram .*cluster\.sm"):
            opened(prism_install, file, "N=3")
        with bridge.open(file, {"N": 3}, prism_dir=str(prism_install.root)) as other:
            assert other.num_states == 512
        assert session.check('P=? [ F<=1 "premium" ]').value == 1.0
    with opened(prism_install, file, "N=3") as session:
        assert session.num_states == 512
