"""The exported models that PRISM wrote, and ways to compare what was read."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bridge.files.reader import FileModel

SAMPLES = Path(__file__).parents[3].parent / "shared" / "reference" / "models"
SAMPLE_FILES = sorted(SAMPLES.rglob("*.tra")) if SAMPLES.is_dir() else []
NO_SAMPLES = f"needs PRISM's exported models: there is no folder {SAMPLES}"


def sample_id(path: Path) -> str:
    """Name a sample by its path below the folder of samples."""
    return str(path.relative_to(SAMPLES).with_suffix(""))


def assert_same(one: FileModel, other: FileModel, *, headers: bool = True) -> None:
    """Fail unless two models are equal, array by array."""
    assert one.model.kind is other.model.kind
    for name in ("row_offsets", "columns", "values"):
        np.testing.assert_array_equal(
            getattr(one.model.matrix, name), getattr(other.model.matrix, name)
        )
    assert (one.model.row_group_offsets is None) == (other.model.row_group_offsets is None)
    if one.model.row_group_offsets is not None:
        np.testing.assert_array_equal(one.model.row_group_offsets, other.model.row_group_offsets)
    np.testing.assert_array_equal(one.model.initial_states, other.model.initial_states)
    assert list(one.model.labels) == list(other.model.labels)
    for name, mask in one.model.labels.items():
        np.testing.assert_array_equal(mask, other.model.labels[name])
    for mine, theirs in zip(one.model.rewards, other.model.rewards, strict=True):
        assert mine.name == theirs.name or not headers
        np.testing.assert_array_equal(mine.state_rewards, theirs.state_rewards)
        assert (mine.choice_rewards is None) == (theirs.choice_rewards is None)
        if mine.choice_rewards is not None:
            np.testing.assert_array_equal(mine.choice_rewards, theirs.choice_rewards)
    assert (one.variables is None) == (other.variables is None)
    if one.variables is not None and other.variables is not None:
        assert one.variables.names == other.variables.names
        assert one.variables.booleans == other.variables.booleans
        np.testing.assert_array_equal(one.variables.values, other.variables.values)
    assert action_list(one) == action_list(other)


def action_list(whole: FileModel) -> list[str] | None:
    """Return the actions by name: their numbers depend on the order in the file."""
    if whole.actions is None:
        return None
    return [whole.action_names[code] for code in whole.actions.tolist()]
