"""PRISM's sample files: each read, held against its text companions, written and read again."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from bridge.files.umb import UmbFile, read_umb, write_umb
from engines.model.explicit import ModelKind

MODELS = Path(__file__).parents[3].parent / "shared" / "reference" / "models"
MERGED = ("phil3", "mutual3")
SAMPLES = sorted(MODELS.rglob("*.umb")) if MODELS.is_dir() else []


def sample(name: str) -> Path:
    """Return the path of a sample; the test is skipped where there are none."""
    if not SAMPLES:
        pytest.skip("needs the shared sample models")
    return MODELS / f"{name}.umb"


def unpack(path: Path) -> dict[str, bytes]:
    """Return the members of a UMB file, by Python's own tar reader."""
    with tarfile.open(path) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive.getmembers()}


def pack(members: dict[str, bytes], path: Path, compression: str = "") -> Path:
    """Write members with Python's own tar writer."""
    with tarfile.open(path, f"w:{compression}") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def assert_same(one: UmbFile, other: UmbFile) -> None:
    """Assert that two files hold the same model, to the last bit."""
    first, second = one.model, other.model
    assert first.kind == second.kind
    for name in ("row_offsets", "columns", "values"):
        left, right = getattr(first.matrix, name), getattr(second.matrix, name)
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)
    assert first.num_states == second.num_states
    if first.kind is ModelKind.MDP:
        np.testing.assert_array_equal(first.row_group_offsets, second.row_group_offsets)
    np.testing.assert_array_equal(first.initial_states, second.initial_states)
    assert list(first.labels) == list(second.labels)
    for name, mask in first.labels.items():
        np.testing.assert_array_equal(mask, second.labels[name])
    assert [r.name for r in first.rewards] == [r.name for r in second.rewards]
    for left, right in zip(first.rewards, second.rewards, strict=True):
        np.testing.assert_array_equal(left.state_rewards, right.state_rewards)
        if left.choice_rewards is None or right.choice_rewards is None:
            assert left.choice_rewards is right.choice_rewards
        else:
            np.testing.assert_array_equal(left.choice_rewards, right.choice_rewards)


def rows(path: Path) -> list[list[str]]:
    """Return the fields of a text file's lines behind its comments and its size line."""
    lines = [line.split() for line in path.read_text().splitlines() if not line.startswith("#")]
    return lines[1:]


def transitions(path: Path) -> list[list[str]]:
    """Return the transitions of the text file, as far as the UMB file has them.

    PRISM's symbolic engine wrote both, and merged a state's equal choices in the UMB file alone.
    """
    lines = rows(companion(path, ".tra"))
    if path.stem not in MERGED:
        return lines
    choices: dict[tuple[str, str], list[list[str]]] = {}
    for fields in lines:
        choices.setdefault((fields[0], fields[1]), []).append(fields[2:])
    merged: dict[str, list[list[list[str]]]] = {}
    for (state, _), branches in choices.items():
        distinct = merged.setdefault(state, [])
        if branches not in distinct:
            distinct.append(branches)
    return [
        [state, str(number), *branch]
        for state, distinct in merged.items()
        for number, branches in enumerate(distinct)
        for branch in branches
    ]


def companion(path: Path, ending: str) -> Path:
    """Return a sample's text file; the explicit engine's folder may lack it."""
    file = path.with_name(path.stem + ending)
    if not file.is_file():
        pytest.skip(f"{path.parent.name}/{path.stem} has no {ending} companion")
    return file


@pytest.fixture(params=SAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def path(request):
    return request.param


def test_transitions_are_those_of_the_text_file(path):
    model = read_umb(path).model
    expected = []
    for fields in transitions(path):
        if model.kind is ModelKind.MDP:
            row = int(model.row_group_offsets[int(fields[0])]) + int(fields[1])
            expected.append((row, int(fields[2]), float(fields[3])))
        else:
            expected.append((int(fields[0]), int(fields[1]), float(fields[2])))
    found = list(
        zip(
            model.matrix.row_of_entry().tolist(),
            model.matrix.columns.tolist(),
            model.matrix.values.tolist(),
            strict=True,
        )
    )
    assert [entry[:2] for entry in sorted(found)] == [entry[:2] for entry in sorted(expected)]
    np.testing.assert_allclose(
        [entry[2] for entry in sorted(found)], [entry[2] for entry in sorted(expected)], rtol=4e-16
    )


def test_labels_and_initial_states_are_those_of_the_text_file(path):
    model = read_umb(path).model
    lines = companion(path, ".lab").read_text().splitlines()
    names = [entry.split("=")[1].strip('"') for entry in lines[1].split()]
    expected = {name: np.zeros(model.num_states, bool) for name in names}
    for line in lines[2:]:
        state, _, numbers = line.partition(":")
        for number in numbers.split():
            expected[names[int(number)]][int(state)] = True
    np.testing.assert_array_equal(model.initial_states, expected.pop("init"))
    if not expected["deadlock"].any():
        del expected["deadlock"]
    assert set(model.labels) == set(expected)
    for name, mask in expected.items():
        np.testing.assert_array_equal(model.labels[name], mask)


def test_rewards_are_those_of_the_text_files(path):
    file = read_umb(path)
    model = file.model
    branch_keys = list(
        zip(model.matrix.row_of_entry().tolist(), model.matrix.columns.tolist(), strict=True)
    )
    for number, reward in enumerate(file.rewards, start=1):
        ending = str(number) if len(file.rewards) > 1 else ""
        states = np.zeros(model.num_states)
        for state, value in rows(companion(path, ending + ".srew")):
            states[int(state)] = float(value)
        found = states * 0 if reward.states is None else reward.states
        np.testing.assert_allclose(found, states, rtol=4e-16)
        earned = rows(companion(path, ending + ".trew"))
        if model.kind is ModelKind.MDP:
            choices = np.zeros(model.matrix.num_rows)
            for state, choice, _, value in earned:
                choices[model.row_group_offsets[int(state)] + int(choice)] = float(value)
            found = choices * 0 if reward.choices is None else reward.choices
            np.testing.assert_allclose(found, choices, rtol=4e-16)
            continue
        expected = {(int(row), int(column)): float(value) for row, column, value in earned}
        branches = np.array([expected.get(key, 0.0) for key in branch_keys])
        found = branches * 0 if reward.branches is None else reward.branches
        np.testing.assert_allclose(found, branches, rtol=4e-16)
        # A jump's reward is earned with the jump's probability, or at its rate.
        folded = states + np.bincount(
            model.matrix.row_of_entry(), model.matrix.values * branches, model.num_states
        )
        np.testing.assert_allclose(model.rewards[number - 1].state_rewards, folded, rtol=1e-13)


def test_valuations_are_those_of_the_states_file(path):
    valuations = read_umb(path).valuations
    header, *lines = (
        companion(path, ".sta").read_text().splitlines()[-len(valuations.records) - 1 :]
    )
    assert valuations.names == tuple(header.strip("()").split(","))
    table = [line.split(":")[1].strip("()").split(",") for line in lines]
    for column, name in enumerate(valuations.names):
        expected = [{"true": 1, "false": 0}.get(row[column], row[column]) for row in table]
        np.testing.assert_array_equal(valuations.values(name), np.array(expected, dtype=int))


def test_actions_are_those_of_the_transitions_file(path):
    file = read_umb(path)
    model = file.model
    mdp = model.kind is ModelKind.MDP
    actions = file.choice_actions if mdp else file.branch_actions
    found = set()
    for entry, row in enumerate(model.matrix.row_of_entry().tolist()):
        index = row if mdp else entry
        name = "" if actions is None else actions.names[actions.indices[index]]
        found.add((row, int(model.matrix.columns[entry]), name))
    expected = set()
    for fields in transitions(path):
        row = int(fields[0])
        if mdp:
            row = int(model.row_group_offsets[row]) + int(fields[1])
        at = 2 if mdp else 1
        expected.add((row, int(fields[at]), fields[at + 2] if len(fields) > at + 2 else ""))
    assert found == expected


@pytest.mark.parametrize("compression", ["none", "gz", "xz"])
def test_a_sample_written_again_reads_the_same(path, tmp_path, compression):
    original = read_umb(path)
    write_umb(original, tmp_path / "again.umb", compression)
    again = read_umb(tmp_path / "again.umb")
    assert_same(again, original)
    np.testing.assert_array_equal(again.probabilities, original.probabilities)
    assert again.choice_actions is None or again.choice_actions.names
    for name in original.valuations.names:
        np.testing.assert_array_equal(
            again.valuations.values(name), original.valuations.values(name)
        )
    # The bare model, without what else the file held.
    write_umb(original.model, tmp_path / "bare.umb", compression)
    assert_same(read_umb(tmp_path / "bare.umb"), original)


def test_members_other_tools_read_are_the_samples_own(path, tmp_path):
    """Every array of PRISM's file is in ours, byte for byte."""
    write_umb(read_umb(path), tmp_path / "again.umb")
    theirs, ours = unpack(path), unpack(tmp_path / "again.umb")
    del theirs["index.json"]
    for name, content in theirs.items():
        zeros = not any(content) and "/rewards/" in name
        assert ours.get(name, content if zeros else None) == content, name
