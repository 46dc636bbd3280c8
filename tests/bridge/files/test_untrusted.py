"""Model files that others wrote: what their names, kinds and later changes can do to a run."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from bridge.files.checkable import read_checkable
from bridge.files.names import printable
from bridge.files.reader import read_model
from bridge.files.umb import read_umb, write_umb
from engines.errors import InvalidModelError
from tests.bridge.files.test_umb import SMALL, small_dtmc
from tests.bridge.files.test_umb_samples import pack, unpack

FORGED = "a\nResult: 1\n"
TRANSITIONS = "2 2\n0 1 1\n1 1 1\n"


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Fail where what runs inside waits for ever."""

    def late(signum: int, frame: object) -> None:
        del signum, frame
        raise TimeoutError(f"still waiting after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def labelled(path: Path, name: str, states: int) -> Path:
    """Write a model with initial state 0 and a label on the states of a bit set."""
    write_umb(small_dtmc(), path)
    members = unpack(path)
    index = json.loads(members["index.json"])
    labels = index["annotations"]["aps"]
    labels["other"] = {**next(iter(labels.values())), "alias": name}
    members["index.json"] = json.dumps(index).encode()
    members["annotations/aps/other/states/values.bin"] = states.to_bytes(8, "little")
    return pack(members, path)


def test_a_label_init_does_not_replace_the_initial_states(tmp_path):
    model = read_checkable(labelled(tmp_path / "m.umb", "init", 0b110))
    assert model.model.labels["init"].tolist() == [True, False, False]
    assert model.initial_states.tolist() == [True, False, False]
    assert any('label "init"' in note for note in model.notes)


def test_a_label_init_on_the_initial_states_is_not_remarked_on(tmp_path):
    assert read_checkable(labelled(tmp_path / "m.umb", "init", 0b001)).notes == ()


def test_a_label_deadlock_is_the_files_as_in_prism(tmp_path):
    model = read_checkable(labelled(tmp_path / "m.umb", "deadlock", 0b110))
    assert model.model.labels["deadlock"].tolist() == [False, True, True]


def test_a_plain_file_may_be_changed_or_cut_short_once_it_is_read(tmp_path):
    path = tmp_path / "m.umb"
    write_umb(small_dtmc(), path, "none")
    read = read_umb(path)
    before = read.model.matrix.values.copy()
    with path.open("r+b") as file:
        file.write(b"\xff" * path.stat().st_size)
        file.flush()
        np.testing.assert_array_equal(read.model.matrix.values, before)
        file.truncate(0)
    np.testing.assert_array_equal(read.model.matrix.values, before)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "m.umb"
    write_umb(small_dtmc(), path, "none")
    from bridge.files import umb_reader

    parse = umb_reader.parse_index

    def meanwhile(*given):
        os.utime(path, ns=(1, 1))
        return parse(*given)

    monkeypatch.setattr(umb_reader, "parse_index", meanwhile)
    with pytest.raises(InvalidModelError, match=r"m\.umb: the file was changed while it was read"):
        read_umb(path)


@pytest.mark.parametrize(
    ("text", "later"),
    [
        ("2 2\n1 1 1\n0 1 1\n", "2 2\n1 1 1\n7 1 1\n"),
        ("2 2\n1 1 1\n0 1 1\n", "2 2\n1 1 1\n1 1 1\n1 1 1\n"),
        ("2 2 2\n1 0 1 1\n0 0 1 1\n", "2 2 2\n1 1 1 1\n0 0 1 1\n"),
    ],
)
def test_so_is_one_whose_transitions_were_counted(text, later, tmp_path, monkeypatch):
    path = tmp_path / "m.tra"
    path.write_text(text)
    from bridge.files import transitions

    count = transitions.count_rows

    def meanwhile(*given):
        counted = count(*given)
        path.write_text(later)
        return counted

    monkeypatch.setattr(transitions, "count_rows", meanwhile)
    with pytest.raises(InvalidModelError, match=r"m\.tra, line \d: the file was changed while it"):
        read_model(path)


@pytest.mark.parametrize("name", ["m.tra", "m.umb", "m.pexp", "m.tra.gz"])
def test_a_pipe_is_no_model(name, tmp_path):
    os.mkfifo(tmp_path / name)
    with within(5), pytest.raises(InvalidModelError, match=f"{name}: not a regular file"):
        read_checkable(tmp_path)


@pytest.mark.parametrize("name", ["m.tra", "m.umb"])
def test_a_device_is_no_model(name, tmp_path):
    (tmp_path / name).symlink_to("/dev/zero")
    with within(5), pytest.raises(InvalidModelError, match=f"{name}: not a regular file"):
        read_checkable(tmp_path)


@pytest.mark.parametrize("ending", [".lab", ".sta", ".srew"])
def test_a_pipe_beside_a_model_is_refused_and_not_overlooked(ending, tmp_path):
    (tmp_path / "m.tra").write_text(TRANSITIONS)
    os.mkfifo(tmp_path / f"m{ending}")
    with within(5), pytest.raises(InvalidModelError, match=f"m{ending}: not a regular file"):
        read_checkable(tmp_path)


@pytest.mark.parametrize("name", [FORGED, "\ud800", "\x1b[2J", "\u202e"])
def test_names_in_a_umb_file_can_be_printed_on_one_line(name, tmp_path):
    labels = list(read_checkable(labelled(tmp_path / "m.umb", name, 1)).model.labels)
    assert printable(name) in labels
    assert all(label.isprintable() for label in labels)


def test_errors_name_members_and_fields_on_one_line(tmp_path):
    path = labelled(tmp_path / "m.umb", "b", 1)
    members = unpack(path)
    index = json.loads(members["index.json"])
    index["annotations"]["aps"][FORGED] = 7
    pack({**members, "index.json": json.dumps(index).encode()}, path)
    with pytest.raises(InvalidModelError, match=r"aps\.a\\nResult: 1\\n must be") as caught:
        read_umb(path)
    assert str(caught.value).isprintable()


def test_a_files_own_name_is_printed_on_one_line(tmp_path):
    path = tmp_path / f"{FORGED}.umb"
    path.write_bytes(b"")
    with pytest.raises(InvalidModelError) as caught:
        read_checkable(tmp_path)
    assert str(caught.value).isprintable()
    path.unlink()
    assert read_checkable(labelled(path, "b", 1)).source.isprintable()


def test_names_in_text_files_can_be_printed(tmp_path):
    (tmp_path / "m.tra").write_text("2 2\n0 1 1 a\x85\n1 1 1 b\n")
    (tmp_path / "m.lab").write_text('0="init" 1="g\x1b[2J"\n0: 0\n')
    (tmp_path / "m.sta").write_text("(x\x1b)\n0:(0)\n1:(1)\n")
    (tmp_path / "m.srew").write_text('# Reward structure "r\x1b"\n# State rewards\n2 1\n0 1\n')
    whole = read_model(tmp_path)
    assert list(whole.model.labels) == ["init", "deadlock", r"g\x1b[2J"]
    assert whole.variables.names == (r"x\x1b",)
    assert whole.model.rewards[0].name == r"r\x1b"
    assert whole.action_names == ("", r"a\x85", "b")


@pytest.mark.parametrize("claimed", [10**9, 10**12, 2**62])
@pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)
def test_counts_that_no_member_bears_out_are_refused_at_once(claimed, make, tmp_path):
    path = tmp_path / "m.umb"
    write_umb(make(), path)
    index = json.loads(unpack(path)["index.json"])
    system = index["transition-system"]
    system |= dict.fromkeys(("#states", "#choices", "#branches"), claimed)
    pack({"index.json": json.dumps(index).encode()}, path)
    with within(1), pytest.raises(InvalidModelError, match=r"m\.umb: branch-to-target\.bin"):
        read_checkable(path)


def test_a_name_repeated_among_very_many_is_found_at_once(tmp_path):
    names = [*range(100_000), 99_999]
    (tmp_path / "m.tra").write_text(TRANSITIONS)
    line = " ".join(f'{number}="l{name}"' for number, name in enumerate(names))
    (tmp_path / "m.lab").write_text(f"{line}\n")
    with within(5), pytest.raises(InvalidModelError, match='label "l99999" is declared twice'):
        read_model(tmp_path)
