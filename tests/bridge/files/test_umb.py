"""Reading and writing UMB files of our own making."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from bridge.files.umb import (
    Actions,
    StateValuations,
    UmbFile,
    UmbRewards,
    pack_valuations,
    read_umb,
    write_umb,
)
from bridge.files.umb_index import ValuationLayout, Variable
from bridge.files.umb_writer import _tar_header, split_rates
from engines.errors import InvalidModelError
from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from tests.bridge.files.test_umb_samples import assert_same, pack, unpack


def matrix(rows: list[dict[int, float]], num_columns: int) -> CsrMatrix:
    """Return the matrix with the given entries by row."""
    offsets = np.cumsum([0] + [len(row) for row in rows]).astype(np.int32)
    columns = np.array([column for row in rows for column in row], dtype=np.int32)
    values = np.array([value for row in rows for value in row.values()], dtype=float)
    return CsrMatrix(offsets, columns, values, num_columns)


def small_dtmc() -> ExplicitModel:
    return ExplicitModel(
        ModelKind.DTMC,
        matrix([{1: 0.25, 2: 0.75}, {1: 1.0}, {0: 0.5, 2: 0.5}], 3),
        initial_states=np.array([True, False, False]),
        labels={"goal": np.array([False, True, False])},
        rewards=(RewardStructure("steps", np.array([1.0, 0.0, 2.5])),),
    )


def small_ctmc() -> ExplicitModel:
    return ExplicitModel(
        ModelKind.CTMC,
        matrix([{1: 0.1, 2: 0.2}, {}, {0: 1 / 3, 1: 7e5}], 3),
        initial_states=np.array([True, False, False]),
    )


def small_mdp() -> ExplicitModel:
    return ExplicitModel(
        ModelKind.MDP,
        matrix([{0: 0.5, 1: 0.5}, {1: 1.0}, {0: 1.0}], 2),
        row_group_offsets=np.array([0, 2, 3], dtype=np.int32),
        initial_states=np.array([True, False]),
        rewards=(RewardStructure("", np.zeros(2), np.array([1.0, 0.0, 3.0])),),
    )


SMALL = {"dtmc": small_dtmc, "ctmc": small_ctmc, "mdp": small_mdp}


def wrapped(model: ExplicitModel) -> UmbFile:
    return UmbFile(model, model.matrix.values, None, (), None, None, None, {}, {}, ())


@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.parametrize("compression", ["none", "gz", "xz"])
def test_a_written_model_reads_the_same(kind, compression, tmp_path):
    model = SMALL[kind]()
    write_umb(model, tmp_path / "m.umb", compression)
    assert_same(read_umb(tmp_path / "m.umb"), wrapped(model))


@pytest.mark.parametrize("compression", ["none", "gz", "xz"])
def test_the_bytes_are_the_same_every_time(compression, tmp_path, monkeypatch):
    write_umb(small_dtmc(), tmp_path / "one.umb", compression)
    monkeypatch.setattr("time.time", lambda: 2e9)
    write_umb(small_dtmc(), tmp_path / "other.umb", compression)
    assert (tmp_path / "one.umb").read_bytes() == (tmp_path / "other.umb").read_bytes()


def test_rates_come_back_to_the_last_bit():
    random = np.random.default_rng(5)
    rows = [
        {c: float(random.exponential()) for c in range(random.integers(1, 6))} for _ in range(2000)
    ]
    rates = matrix(rows, 8)
    probabilities, exit_rates = split_rates(rates)
    product = probabilities * exit_rates[rates.row_of_entry()]
    np.testing.assert_array_max_ulp(product, rates.values, 1)
    assert np.mean(product == rates.values) > 0.999
    np.testing.assert_allclose(exit_rates, rates.row_sums(), rtol=1e-14)


def test_an_absorbing_state_has_exit_rate_0(tmp_path):
    write_umb(small_ctmc(), tmp_path / "m.umb")
    assert read_umb(tmp_path / "m.umb").exit_rates[1] == 0.0


def test_branches_of_probability_0_are_dropped(tmp_path):
    model = ExplicitModel(ModelKind.DTMC, matrix([{0: 0.0, 1: 1.0}, {1: 1.0, 0: 0.0}], 2))
    labels = Actions(("a", "b"), np.array([0, 1, 1, 0], np.uint32))
    rewards = (UmbRewards("r", branches=np.array([9.0, 2.0, 3.0, 9.0])),)
    file = UmbFile(model, model.matrix.values, None, rewards, None, None, labels, {}, {}, ())
    write_umb(file, tmp_path / "m.umb")
    again = read_umb(tmp_path / "m.umb")
    assert again.model.matrix.columns.tolist() == [1, 1]
    assert again.branch_actions.indices.tolist() == [1, 1]
    assert again.model.rewards[0].state_rewards.tolist() == [2.0, 3.0]


def test_rewards_of_branches_become_expected_rewards(tmp_path):
    for kind, expected in ((ModelKind.DTMC, [3.25]), (ModelKind.CTMC, [1 + 2 * 2.25])):
        rows = [{0: 0.25, 1: 0.75}, {1: 1.0}]
        model = ExplicitModel(kind, matrix(rows, 2))
        exit_rates = np.array([2.0, 1.0]) if kind is ModelKind.CTMC else None
        rewards = (
            UmbRewards(
                "r",
                states=np.array([1.0, 0.0]),
                choices=np.array([0.5, 0.0]),
                branches=np.array([1.0, 2.0, 0.0]),
            ),
        )
        file = UmbFile(
            model, model.matrix.values, exit_rates, rewards, None, None, None, {}, {}, ()
        )
        write_umb(file, tmp_path / "m.umb")
        folded = read_umb(tmp_path / "m.umb").model.rewards[0]
        np.testing.assert_allclose(folded.state_rewards[:1], expected)
        assert folded.choice_rewards is None


def test_an_mdps_rewards_of_branches_become_rewards_of_choices(tmp_path):
    write_umb(small_mdp(), tmp_path / "m.umb")
    members = unpack(tmp_path / "m.umb")
    index = json.loads(members["index.json"])
    index["annotations"]["rewards"]["1"]["applies-to"] = ["choices", "branches"]
    members["index.json"] = json.dumps(index).encode()
    members["annotations/rewards/1/branches/values.bin"] = np.array([1.0, 3, 0, 5]).tobytes()
    file = read_umb(pack(members, tmp_path / "m.umb"))
    assert file.model.rewards[0].choice_rewards.tolist() == [3.0, 0.0, 8.0]
    write_umb(file, tmp_path / "n.umb")
    assert_same(read_umb(tmp_path / "n.umb"), file)


def test_valuations_of_every_type_come_back(tmp_path):
    columns = {
        "flag": np.array([True, False, True]),
        "low": np.array([-5, 3, 0]),
        "wide": np.array([2**62, 1, 0]),
        "widest": np.array([2**64 - 1, 1, 0], np.uint64),
        "least": np.array([-(2**63), 2**63 - 1, 0]),
        "zero": np.zeros(3, np.int8),
        "real": np.array([0.1, -np.inf, 1e300]),
    }
    write_umb(small_dtmc(), tmp_path / "m.umb", valuations=pack_valuations(columns))
    valuations = read_umb(tmp_path / "m.umb").valuations
    assert valuations.names == tuple(columns)
    assert valuations.layout.unique
    for name, values in columns.items():
        np.testing.assert_array_equal(valuations.values(name), values)
    with pytest.raises(InvalidModelError, match="no variable"):
        valuations.values("absent")


def test_names_that_are_no_ids_come_back_as_aliases(tmp_path):
    mask = np.array([True, False, True])
    names = ["A", "a", "ä b/../c", "x" * 300, "x" * 300 + "y"]
    model = ExplicitModel(ModelKind.DTMC, small_dtmc().matrix, labels=dict.fromkeys(names, mask))
    write_umb(model, tmp_path / "m.umb")
    assert list(read_umb(tmp_path / "m.umb").model.labels) == names
    assert all(len(name) <= 100 for name in unpack(tmp_path / "m.umb"))


def test_the_label_init_is_the_initial_states(tmp_path):
    mask = np.array([False, True, True])
    model = ExplicitModel(ModelKind.DTMC, small_dtmc().matrix, labels={"init": mask})
    write_umb(model, tmp_path / "m.umb")
    again = read_umb(tmp_path / "m.umb").model
    assert again.labels == {}
    np.testing.assert_array_equal(again.initial_states, mask)
    contrary = ExplicitModel(
        ModelKind.DTMC, model.matrix, initial_states=~mask, labels={"init": mask}
    )
    with pytest.raises(InvalidModelError, match="initial states differ"):
        write_umb(contrary, tmp_path / "m.umb")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    target = tmp_path / "m.umb"
    write_umb(small_dtmc(), target)
    before = target.read_bytes()

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_umb(small_mdp(), target)
    assert target.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["m.umb"]


@pytest.mark.parametrize("what", ["label", "valuations", "actions", "twice", "nan", "name"])
def test_arrays_that_do_not_fit_are_not_written(what, tmp_path):
    model, more = small_dtmc(), {}
    changes = {}
    if what == "label":
        changes = {"labels": {"goal": np.zeros(4, bool)}}
    elif what == "valuations":
        more = {"valuations": pack_valuations({"x": np.arange(4)})}
    elif what == "actions":
        more = {"branch_actions": Actions(("a",), np.array([0, 0, 1, 0, 0], np.uint32))}
    elif what == "twice":
        changes = {"rewards": model.rewards * 2}
    elif what == "nan":
        changes = {"rewards": (RewardStructure("r", np.array([0, np.nan, 0])),)}
    else:
        changes = {"labels": {"\ud800": np.zeros(3, bool)}}
    fields = {"labels": {}, "rewards": (), **changes}
    with pytest.raises(InvalidModelError):
        write_umb(ExplicitModel(model.kind, model.matrix, **fields), tmp_path / "m.umb", **more)
    assert list(tmp_path.iterdir()) == []


def shifted(columns: dict[str, tuple[np.ndarray, int, int, str]]) -> StateValuations:
    """Pack numbers as Storm does: `origin` is taken off, `size` bits are kept."""
    variables, bits, offset = [], [], 0
    for name, (values, origin, size, kind) in columns.items():
        variables.append(Variable(name, kind, offset, size, origin))
        bits += [[(int(value) - origin) >> bit & 1 for value in values] for bit in range(size)]
        offset += size
    records = np.packbits(np.array(bits, np.uint8).T, axis=1, bitorder="little")
    return StateValuations(ValuationLayout(tuple(variables), records.shape[1], False), records)


SHIFTED = {
    "low": (np.array([-7, 0, 8]), -7, 4, "uint"),
    "one": (np.array([5, 5, 6]), 5, 1, "uint"),
    "none": (np.array([3, 3, 3]), 3, 0, "uint"),
    "signed": (np.array([9, 12, 10]), 10, 3, "int"),
    "wide": (np.array([-(2**31), 0, 2**31 - 1]), -(2**31), 32, "uint"),
}


def test_numbers_that_count_from_another_one_than_zero():
    valuations = shifted(SHIFTED)
    for name, (values, *_) in SHIFTED.items():
        np.testing.assert_array_equal(valuations.values(name), values)


def test_numbers_that_count_from_another_one_are_written_plain(tmp_path):
    write_umb(small_dtmc(), tmp_path / "m.umb", valuations=shifted(SHIFTED))
    members = unpack(tmp_path / "m.umb")
    assert "offset" not in members["index.json"].decode()
    found = read_umb(tmp_path / "m.umb").valuations
    for name, (values, *_) in SHIFTED.items():
        np.testing.assert_array_equal(found.values(name), values)


@pytest.mark.parametrize(
    ("kind", "size", "offset", "readable"),
    [
        ("uint", 3, -2, True),
        ("uint", 62, 2**62, True),
        ("uint", 63, 1, False),
        ("bool", 1, 1, False),
        ("double", 64, 1, False),
        ("double", 64, 0, True),
    ],
)
def test_an_offset_is_read_where_it_makes_sense(kind, size, offset, readable, tmp_path):
    write_umb(small_dtmc(), tmp_path / "m.umb")
    members = unpack(tmp_path / "m.umb")
    index = json.loads(members["index.json"])
    variable = {"name": "x", "type": {"type": kind, "size": size}, "offset": offset}
    index["valuations"] = {"states": {"classes": [{"variables": [variable]}]}}
    members["index.json"] = json.dumps(index).encode()
    members["valuations/states/valuations.bin"] = bytes(3 * ((size + 7) // 8))
    file = read_umb(pack(members, tmp_path / "shifted.umb"))
    if readable:
        np.testing.assert_array_equal(file.valuations.values("x"), [offset] * 3)
    else:
        assert file.valuations is None
        assert kind in str(file.left_out)


@pytest.mark.parametrize("offset", [1.5, "1", True, 2**63, -(2**63)])
def test_offsets_that_are_no_whole_numbers_are_refused(offset, tmp_path):
    write_umb(small_dtmc(), tmp_path / "m.umb")
    members = unpack(tmp_path / "m.umb")
    index = json.loads(members["index.json"])
    variable = {"name": "x", "type": {"type": "uint", "size": 8}, "offset": offset}
    index["valuations"] = {"states": {"classes": [{"variables": [variable]}]}}
    members["index.json"] = json.dumps(index).encode()
    members["valuations/states/valuations.bin"] = bytes(3)
    with pytest.raises(InvalidModelError, match="offset"):
        read_umb(pack(members, tmp_path / "wrong.umb"))


def test_sizes_beyond_octal_are_written_in_binary():
    header = _tar_header("x", 8**11)
    assert header[124:136] == b"\x80" + (8**11).to_bytes(11, "big")
