"""Fuzzing the reader: whatever the bytes, a model that keeps the rules or one of our errors."""

from __future__ import annotations

import contextlib
import gzip
import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.files.umb import Actions, UmbFile, pack_valuations, read_umb, write_umb
from engines.errors import InvalidModelError, UnsupportedError
from tests.bridge.files.test_umb import SMALL
from tests.bridge.files.test_umb_samples import pack, unpack

ALLOWED = (InvalidModelError, UnsupportedError, OSError)
CHECKS = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
QUICK = settings(max_examples=150, suppress_health_check=CHECKS)
LONG = settings(max_examples=20_000, suppress_health_check=CHECKS)


def valid_files(folder: Path) -> list[dict[str, bytes]]:
    """Return a valid file of every kind, with all that a file may hold, as its members."""
    found = []
    for make in SMALL.values():
        model = make()
        states = model.num_states
        rows, entries = model.matrix.num_rows, model.matrix.num_entries
        write_umb(
            model,
            folder / "m.umb",
            valuations=pack_valuations({"x": np.arange(states) - 1, "b": np.arange(states) > 0}),
            choice_actions=Actions(("a", "", "ü"), np.arange(rows, dtype=np.uint32) % 3),
            branch_actions=Actions(("b",), np.zeros(entries, np.uint32)),
        )
        found.append(unpack(folder / "m.umb"))
    return found


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """Return a valid file of every kind as its members."""
    return valid_files(tmp_path_factory.mktemp("valid"))


def read_any(file: Path) -> None:
    """Read a file; what is accepted must be sound."""
    with contextlib.suppress(*ALLOWED):
        assert_sound(read_umb(file))


def assert_sound(read: UmbFile) -> None:
    """Assert that what was accepted keeps the rules."""
    model = read.model.check()
    assert model.num_states == len(model.initial_states)
    assert all(len(mask) == model.num_states for mask in model.labels.values())
    assert np.all(np.isfinite(model.matrix.values))
    for reward, stored in zip(model.rewards, read.rewards, strict=True):
        assert stored.fault(model) is not None or np.all(reward.state_rewards >= 0)
    if read.valuations is not None:
        for name in read.valuations.names:
            assert len(read.valuations.values(name)) == model.num_states


def mutate(data: st.DataObject, content: bytes) -> bytes:
    """Overwrite, cut out or put in a few bytes."""
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, max(len(changed) - 1, 0)))
        removed = data.draw(st.sampled_from([0, 1, 1, 1, 8, 512]))
        put = data.draw(st.one_of(st.binary(min_size=removed, max_size=removed), st.binary()))
        changed[place : place + removed] = put
    return bytes(changed)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 5)
    | st.sampled_from([10**12, 2**63, 10**30, 0.5])
    | st.sampled_from(["states", "choices", "double", "bool", "rational", "discrete", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


def mutate_index(data: st.DataObject, text: bytes) -> bytes:
    """Replace or remove a field somewhere in the index."""
    index = json.loads(text)
    for _ in range(data.draw(st.integers(1, 3))):
        place = index
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = data.draw(st.sampled_from(keys))
            if isinstance(place[key], (dict, list)) and data.draw(st.integers(0, 4)):
                place = place[key]
                continue
            if data.draw(st.integers(0, 3)):
                place[key] = data.draw(JSON)
            else:
                del place[key]
            break
    return json.dumps(index).encode()


def check_bytes(folder: Path, data: st.DataObject) -> None:
    magic = st.sampled_from([b"", b"\x1f\x8b\x08", b"\xfd7zXZ\x00", b"index.json"])
    (folder / "f.umb").write_bytes(data.draw(magic) + data.draw(st.binary(max_size=2048)))
    read_any(folder / "f.umb")


def check_file(folder: Path, data: st.DataObject, originals: list[dict[str, bytes]]) -> None:
    """Mutate a file's bytes, before or after its compression."""
    compress = data.draw(st.sampled_from([bytes, gzip.compress, lzma.compress]))
    plain = pack(data.draw(st.sampled_from(originals)), folder / "f.umb").read_bytes()
    if data.draw(st.booleans()):
        content = compress(mutate(data, plain))
    else:
        content = mutate(data, compress(plain))
    (folder / "f.umb").write_bytes(content)
    read_any(folder / "f.umb")


def check_members(folder: Path, data: st.DataObject, originals: list[dict[str, bytes]]) -> None:
    """Mutate the members behind sound tar headers, or the index as JSON."""
    members = dict(data.draw(st.sampled_from(originals)))
    name = data.draw(st.sampled_from(list(members)))
    if name == "index.json" and data.draw(st.booleans()):
        members[name] = mutate_index(data, members[name])
    elif data.draw(st.booleans()):
        words = bytearray(members[name])
        word = data.draw(st.integers(0, max(len(words) // 8 - 1, 0)))
        number = data.draw(
            st.one_of(
                st.integers(0, 5).map(lambda value: value.to_bytes(8, "little")),
                st.floats(width=64).map(lambda value: np.float64(value).tobytes()),
                st.binary(min_size=8, max_size=8),
            )
        )
        words[8 * word : 8 * word + 8] = number
        members[name] = bytes(words)
    else:
        members[name] = mutate(data, members[name])
    read_any(pack(members, folder / "f.umb"))


@QUICK
@given(data=st.data())
def test_random_bytes(tmp_path, data):
    check_bytes(tmp_path, data)


@QUICK
@given(data=st.data())
def test_mutated_files(tmp_path, originals, data):
    check_file(tmp_path, data, originals)


@QUICK
@given(data=st.data())
def test_mutated_members(tmp_path, originals, data):
    check_members(tmp_path, data, originals)


@pytest.mark.slow
@LONG
@given(data=st.data())
def test_random_bytes_at_length(tmp_path, data):
    check_bytes(tmp_path, data)


@pytest.mark.slow
@LONG
@given(data=st.data())
def test_mutated_files_at_length(tmp_path, originals, data):
    check_file(tmp_path, data, originals)


@pytest.mark.slow
@LONG
@given(data=st.data())
def test_mutated_members_at_length(tmp_path, originals, data):
    check_members(tmp_path, data, originals)
