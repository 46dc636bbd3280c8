"""Storm reads the explicit text files that are written for it."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.files.checkable import read_checkable
from bridge.files.storm_text import write_for_storm
from engines.errors import InvalidModelError, UnsupportedError
from engines.model.explicit import ExplicitModel
from tests.bridge.check.models import dice, gamble, mask, matrix, queue
from tests.bridge.files.test_umb_samples import sample

PROPERTIES = [
    ("dice", 'P=? [ F "deadlock" ]', False),
    ("dice", 'R=? [ F "done" ]', True),
    ("cluster_N2", 'S=? [ "premium" ]', False),
    ("tandem_c3", "R=? [ S ]", True),
    ("coin2_K2", 'Pmin=? [ F "finished"&"all_coins_equal_1" ]', False),
    ("herman3", 'R=? [ F "stable" ]', True),
]


@pytest.fixture(scope="module")
def stormpy():
    return pytest.importorskip("stormpy", reason="needs stormpy")


def value(stormpy, model, text):
    result = stormpy.model_checking(model, stormpy.parse_properties(text)[0])
    return result.get_value(model.initial_states[0])


@pytest.mark.parametrize(("name", "text", "rewards"), PROPERTIES)
def test_storm_gives_the_same_values_for_text_as_for_umb(stormpy, tmp_path, name, text, rewards):
    path = sample(name)
    model = read_checkable(path).model
    if not rewards:
        model = ExplicitModel(
            model.kind, model.matrix, model.row_group_offsets, model.initial_states, model.labels
        )
    if name == "dice":
        done = model.matrix.row_lengths() == 1
        model = ExplicitModel(
            model.kind,
            model.matrix,
            initial_states=model.initial_states,
            labels={**model.labels, "done": done, "deadlock": done},
            rewards=model.rewards,
        )
    files = {file.suffix: str(file) for file in write_for_storm(model, tmp_path / "m")}
    theirs = stormpy.build_model_from_explicit(
        files[".tra"], files[".lab"], state_rewards=files.get(".srew")
    )
    assert theirs.nr_states == model.num_states
    assert theirs.nr_transitions == model.matrix.num_entries
    if name == "dice":
        expected = 11 / 3 if rewards else 1.0
    else:
        expected = value(stormpy, stormpy.build_model_from_umb(str(path)), text)
    # Storm stops at its own precision of 1e-6.
    assert value(stormpy, theirs, text) == pytest.approx(expected, rel=1e-6)


def test_an_absorbing_state_of_a_ctmc_gets_a_loop(tmp_path):
    rates = matrix([{1: 2.0}, {}], 2)
    model = ExplicitModel(queue().model.kind, rates, initial_states=mask(2, 0))
    files = write_for_storm(model, tmp_path / "m")
    assert files[0].read_text() == "ctmc\n0 1 2\n1 1 1\n"
    assert files[1].read_text() == "#DECLARATION\ninit deadlock\n#END\n0 init\n"


def test_what_the_files_cannot_hold_is_refused(tmp_path):
    plain = dice().model
    rewards = dice().rewards[0].expected
    two = ExplicitModel(
        plain.kind, plain.matrix, initial_states=plain.initial_states, rewards=(rewards, rewards)
    )
    with pytest.raises(UnsupportedError, match="one reward structure"):
        write_for_storm(two, tmp_path / "m")
    labelled = ExplicitModel(plain.kind, plain.matrix, labels={"a b": mask(13, 1)})
    with pytest.raises(InvalidModelError, match="a b"):
        write_for_storm(labelled, tmp_path / "m")
    choices = gamble().model
    earning = type(rewards)("r", np.zeros(4), np.ones(5))
    with pytest.raises(UnsupportedError, match="choices"):
        write_for_storm(
            ExplicitModel(
                choices.kind, choices.matrix, choices.row_group_offsets, rewards=(earning,)
            ),
            tmp_path / "m",
        )
    assert list(tmp_path.iterdir()) == []
