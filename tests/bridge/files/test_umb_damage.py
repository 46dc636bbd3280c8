"""UMB files that are damaged or lie: each refused, with the file and the member named."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

from bridge.files.umb import read_umb, write_umb
from engines.errors import InvalidModelError, UnsupportedError
from tests.bridge.files.test_umb import SMALL
from tests.bridge.files.test_umb_samples import pack, unpack

HUGE = 10**12


@contextmanager
def little_memory() -> Iterator[None]:
    """Assert that what runs inside allocates little; an xz stream's own window is 8 MiB."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


@pytest.fixture(params=["", "gz", "xz"], ids=["plain", "gz", "xz"])
def compression(request):
    return request.param


@pytest.fixture
def refused(tmp_path):
    """Return a function that packs changed members and returns how they are refused.

    How an archive is compressed does not matter to what is in it.
    """

    def refuse(members: dict[str, bytes], error: type[Exception] = InvalidModelError) -> str:
        file = pack(members, tmp_path / "bad.umb")
        with little_memory(), pytest.raises(error) as caught:
            read_umb(file)
        assert str(file) in str(caught.value)
        return str(caught.value)

    return refuse


@pytest.fixture
def members(tmp_path):
    """Return a function that returns a small model's members."""

    def small(kind: str) -> dict[str, bytes]:
        write_umb(SMALL[kind](), tmp_path / "good.umb")
        return unpack(tmp_path / "good.umb")

    return small


def with_index(members: dict[str, bytes], change) -> dict[str, bytes]:
    index = json.loads(members["index.json"])
    change(index)
    return {**members, "index.json": json.dumps(index).encode()}


def with_system(members: dict[str, bytes], **fields: object) -> dict[str, bytes]:
    def change(index):
        for key, value in fields.items():
            index["transition-system"][key.replace("n_", "#").replace("_", "-")] = value

    return with_index(members, change)


def with_entry(members: dict[str, bytes], name: str, entry: int, value, dtype) -> dict[str, bytes]:
    array = np.frombuffer(members[name], dtype).copy()
    array[entry] = value
    return {**members, name: array.tobytes()}


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.25, 0.5])
@pytest.mark.parametrize("kind", SMALL)
def test_wrong_probabilities(refused, members, kind, value):
    entry = 2 if value == 0.5 else 1  # the third is a row of its own in the DTMC and the MDP
    damaged = with_entry(members(kind), "branch-to-probability.bin", entry, value, "<f8")
    assert "branch-to-probability.bin" in refused(damaged)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_wrong_exit_rates(refused, members, value):
    damaged = with_entry(members("ctmc"), "state-to-exit-rate.bin", 0, value, "<f8")
    assert "state-to-exit-rate.bin" in refused(damaged)


def test_an_exit_rate_without_branches(refused, members):
    damaged = with_entry(members("ctmc"), "state-to-exit-rate.bin", 1, 2.0, "<f8")
    assert "state 1 has rate 2.0 but no branches" in refused(damaged)


@pytest.mark.parametrize("value", [3, 2**31, 2**32, 2**63, 2**64 - 1])
def test_a_target_out_of_range(refused, members, value):
    damaged = with_entry(members("dtmc"), "branch-to-target.bin", 3, value, "<u8")
    assert f"branch-to-target.bin: branch 3 leads to {value}" in refused(damaged)


@pytest.mark.parametrize("name", ["state-to-choices.bin", "choice-to-branches.bin"])
@pytest.mark.parametrize(("entry", "value"), [(0, 1), (-1, 2), (1, 0), (1, 2**64 - 1), (1, 99)])
def test_wrong_offsets(refused, members, name, entry, value):
    assert name in refused(with_entry(members("mdp"), name, entry, value, "<u8"))


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_a_wrong_reward_leaves_the_rest_of_the_model(members, tmp_path, value):
    name = "annotations/rewards/steps/states/values.bin"
    read = read_umb(pack(with_entry(members("dtmc"), name, 1, value, "<f8"), tmp_path / "m.umb"))
    for structure in read.rewards:
        fault = structure.fault(read.model)
        assert (fault is not None) == (structure.name == "steps")
        assert fault is None or fault.state == 1


def test_a_missing_member(refused, members):
    for kind in SMALL:
        for name in members(kind):
            damaged = members(kind)
            del damaged[name]
            if name == "branch-to-probability.bin" and kind == "mdp":
                continue  # absent probabilities are 1, which the sums then refuse
            assert name in refused(damaged)


@pytest.mark.parametrize("change", [-8, -1, 1, 4, 8, 512])
def test_a_member_of_a_wrong_length(refused, members, change):
    for kind in SMALL:
        for name, content in members(kind).items():
            if name != "index.json":
                longer = (content + bytes(512))[: len(content) + change]
                assert name in refused({**members(kind), name: longer})


def test_a_bit_set_with_bits_behind_its_end(refused, members):
    damaged = {**members("dtmc"), "state-is-initial.bin": b"\x09" + bytes(7)}
    assert "state-is-initial.bin: a bit is set behind the last of 3" in refused(damaged)


def test_another_number_of_initial_states(refused, members):
    assert "1 initial states, but 2" in refused(
        with_system(members("dtmc"), **{"n_initial-states": 2})
    )


@pytest.mark.parametrize("field", ["n_states", "n_choices", "n_branches", "n_choice-actions"])
@pytest.mark.parametrize("value", [HUGE, 2**62, 2**63, 10**30, -1, 1.5, "3", None, True])
def test_a_wrong_number_in_the_index(refused, members, field, value):
    damaged = with_system(members("mdp"), **{field: value})
    refused(damaged)


def test_numbers_that_agree_on_a_lie(refused, members):
    damaged = with_system(members("dtmc"), n_states=HUGE, n_choices=HUGE, n_branches=HUGE)
    assert "choice-to-branches.bin has 32 bytes, but by index.json" in refused(damaged)


@pytest.mark.parametrize("value", [8 * HUGE, 2**60])
def test_a_huge_size_in_a_tar_header(tmp_path, members, compression, value):
    archive = io.BytesIO()
    for name, content in members("dtmc").items():
        member = tarfile.TarInfo(name)
        member.size = len(content)
        if name == "branch-to-target.bin":
            member.size = value
        archive.write(member.tobuf(tarfile.GNU_FORMAT))
        archive.write(content + bytes(-len(content) % 512))
    file = tmp_path / "bad.umb"
    opener = {"": open, "gz": gzip.open, "xz": lzma.open}[compression]
    with opener(file, "wb") as stream:
        stream.write(archive.getvalue() + bytes(1024))
    with pytest.raises(InvalidModelError, match=r"branch-to-target\.bin"):
        read_umb(file)


def test_a_compressed_file_cannot_promise_more_than_it_can_hold(tmp_path, members):
    damaged = with_system(members("dtmc"), n_states=HUGE, n_choices=HUGE, n_branches=HUGE)
    archive = io.BytesIO()
    for name, content in damaged.items():
        member = tarfile.TarInfo(name)
        member.size = len(content) if name == "index.json" else 8 * (HUGE + 1)
        archive.write(member.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512))
    for opener in (gzip.open, lzma.open):
        with opener(tmp_path / "bad.umb", "wb") as stream:
            stream.write(archive.getvalue())
        with pytest.raises(InvalidModelError, match="more than the compressed file can hold"):
            read_umb(tmp_path / "bad.umb")


@pytest.mark.parametrize(
    "opener", [partial(gzip.open, compresslevel=1), partial(lzma.open, preset=0)]
)
def test_a_decompression_bomb(tmp_path, members, opener):
    bomb = {**members("dtmc"), "bomb.bin": bytes(2**27)}
    pack(bomb, tmp_path / "plain.umb")
    with opener(tmp_path / "bad.umb", "wb") as stream:
        stream.write((tmp_path / "plain.umb").read_bytes())
    del bomb
    with (
        little_memory(),
        pytest.raises(InvalidModelError, match=r"bomb\.bin of 134217728 bytes"),
    ):
        read_umb(tmp_path / "bad.umb")


@pytest.mark.parametrize("opener", [gzip.open, lzma.open])
def test_a_bomb_behind_the_end_of_the_archive(tmp_path, members, opener):
    pack(members("dtmc"), tmp_path / "plain.umb")
    with opener(tmp_path / "bad.umb", "wb") as stream:
        stream.write((tmp_path / "plain.umb").read_bytes() + bytes(2**24))
    with pytest.raises(InvalidModelError, match="goes on after the archive's end"):
        read_umb(tmp_path / "bad.umb")


def test_a_file_cut_anywhere(tmp_path, members, compression):
    content = pack(members("dtmc"), tmp_path / "good.umb", compression).read_bytes()
    needed = len(content)
    if not compression:  # up to the first block of zeros; what follows is padding
        needed = sum(512 + len(c) + -len(c) % 512 for c in members("dtmc").values()) + 511
    for length in {*range(0, needed, max(needed // 60, 1)), needed - 1}:
        (tmp_path / "bad.umb").write_bytes(content[:length])
        with pytest.raises(InvalidModelError, match=r"bad\.umb"):
            read_umb(tmp_path / "bad.umb")


@pytest.mark.parametrize("name", ["../x.bin", "/etc/x.bin", "a/../../x.bin", "..\\x.bin"])
def test_a_path_that_leaves_the_archive(refused, members, name):
    assert "leaves the archive" in refused({**members("dtmc"), name: b""})


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (tarfile.LNKTYPE, "a hard link"),
        (tarfile.SYMTYPE, "a symbolic link"),
        (tarfile.CHRTYPE, "a character device"),
        (tarfile.FIFOTYPE, "a FIFO"),
        (tarfile.GNUTYPE_SPARSE, "a sparse file"),
        (b"?", "not a plain file"),
    ],
)
def test_a_member_that_is_no_file(tmp_path, members, kind, what):
    file = pack(members("dtmc"), tmp_path / "bad.umb")
    content = bytearray(file.read_bytes())
    member = tarfile.TarInfo("branch-to-target.bin")
    member.type = kind
    member.linkname = "/etc/passwd"
    place = content.index(b"branch-to-target.bin\0")
    content[place : place + 512] = member.tobuf()[:512]
    file.write_bytes(content)
    with pytest.raises(InvalidModelError, match=f"'branch-to-target.bin' is {what}"):
        read_umb(file)


def test_a_member_there_twice(tmp_path, members):
    file = tmp_path / "bad.umb"
    with tarfile.open(file, "w") as archive:
        for _ in range(2):
            for name, content in members("dtmc").items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    with pytest.raises(InvalidModelError, match="is there twice"):
        read_umb(file)


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_extended_headers_folders_and_other_members_are_read_over(tmp_path, members, form):
    file = tmp_path / "good.umb"
    with tarfile.open(file, "w", format=form) as archive:
        for name, content in {**members("dtmc"), "x" * 300: b"other"}.items():
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(content)
            member.pax_headers = {"comment": "ü"}
            archive.addfile(member, io.BytesIO(content))
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
    assert read_umb(file).model.num_states == 3


def test_the_index_may_come_last_in_a_plain_file(tmp_path, members):
    later = members("dtmc")
    later["index.json"] = later.pop("index.json")
    assert read_umb(pack(later, tmp_path / "plain.umb")).model.num_states == 3
    with pytest.raises(InvalidModelError, match="must be a compressed file's first member"):
        read_umb(pack(later, tmp_path / "gz.umb", "gz"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"time": "stochastic", "exit-rate-type": {"type": "double"}, "n_players": 1}, "CTMDP"),
        ({"time": "urgent-stochastic", "n_players": 1}, "Markov automaton"),
        ({"n_players": 2}, "2 players"),
        ({"n_observations": 2}, "POMDP"),
        ({"branch-probability-type": None}, "LTS"),
        ({"branch-probability-type": {"type": "rational", "size": 128}}, "type rational"),
        ({"branch-probability-type": {"type": "double-interval"}}, "type double-interval"),
    ],
)
def test_models_and_values_not_supported_are_named(refused, members, fields, message):
    assert message in refused(with_system(members("mdp"), **fields), UnsupportedError)


@pytest.mark.parametrize("kind", ["rational", "double-interval", "int"])
def test_reward_types_not_supported_are_named(refused, members, kind):
    def change(index):
        index["annotations"]["rewards"]["steps"]["type"] = {"type": kind}

    assert f"rewards of type {kind}" in refused(
        with_index(members("dtmc"), change), UnsupportedError
    )


def test_a_later_version_is_not_supported(refused, members):
    damaged = with_index(members("dtmc"), lambda index: index.update({"format-version": 2}))
    assert "version 2" in refused(damaged, UnsupportedError)


@pytest.mark.parametrize("compress", [bz2.compress, lambda c: b"\x28\xb5\x2f\xfd" + c])
def test_other_compressions_are_named(tmp_path, compress):
    (tmp_path / "m.umb").write_bytes(compress(b"content"))
    with pytest.raises(UnsupportedError, match=r"compressed with (bzip2|zstd)"):
        read_umb(tmp_path / "m.umb")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\xfe",
        b"{",
        b"[]",
        b"null",
        b"3",
        b"{}",
        b'{"format-version": NaN}',
        b'{"format-version": 1, "format-version": 1}',
        b'{"format-version": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"format-version": 1, "transition-system": []}',
        b'{"format-version": 1, "transition-system": {"time": "never"}}',
    ],
)
def test_an_index_that_is_not_what_it_should_be(refused, members, text):
    assert "index.json" in refused({**members("dtmc"), "index.json": text})


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.update(aps=[]),
        lambda a: a["aps"].update(goal=3),
        lambda a: a["aps"]["goal"].update(alias=["goal"]),
        lambda a: a["aps"]["goal"].update({"applies-to": "states"}),
        lambda a: a["aps"]["goal"].update({"applies-to": [{}]}),
        lambda a: a["aps"]["goal"].update({"applies-to": ["states", "states"]}),
        lambda a: a["aps"]["goal"].update(type="bool"),
        lambda a: a["aps"]["goal"].update(type={"type": "double"}),
        lambda a: a["aps"]["goal"].update(type={"type": "bool", "size": 8}),
        lambda a: a["aps"].update({"../goal": a["aps"]["goal"]}),
        lambda a: a["aps"].update({"goal2": a["aps"]["goal"]}),
        lambda a: a["rewards"]["steps"].update(type={"type": "double", "size": 32}),
        lambda a: a["rewards"]["steps"].update({"applies-to": ["choices"]}),
    ],
)
def test_annotations_that_are_not_what_they_should_be(refused, members, change):
    refused(with_index(members("dtmc"), lambda index: change(index["annotations"])))


@pytest.mark.parametrize(
    "valuations",
    [
        [],
        {"states": 3},
        {"states": {"classes": 3}},
        {"states": {"classes": [3]}},
        {"states": {"classes": [{"variables": [{"name": "x"}]}]}},
        {"states": {"classes": [{"variables": [{"type": {"type": "int", "size": 3}}]}]}},
        {
            "states": {
                "classes": [{"variables": [{"name": "x", "type": {"type": "int", "size": 65}}]}]
            }
        },
        {"states": {"classes": [{"variables": [{"padding": HUGE}]}]}},
        {"states": {"classes": [{"variables": [{"padding": 8}]}]}},
    ],
)
def test_valuations_that_are_not_what_they_should_be(refused, members, valuations):
    refused(with_index(members("dtmc"), lambda index: index.update(valuations=valuations)))


def test_actions_that_are_not_what_they_should_be(refused, members):
    actions = {
        "actions/branches/string-mapping.bin": np.array([0, 1, 2], "<u8").tobytes(),
        "actions/branches/strings.bin": b"ab",
        "actions/branches/values.bin": np.array([0, 1, 0, 1, 0], "<u4").tobytes(),
    }
    good = {**with_system(members("dtmc"), **{"n_branch-actions": 2}), **actions}
    refused(with_entry(good, "actions/branches/values.bin", 0, 2, "<u4"))
    refused(with_entry(good, "actions/branches/string-mapping.bin", 1, 3, "<u8"))
    refused(with_entry(good, "actions/branches/string-mapping.bin", 0, 1, "<u8"))
    refused({**good, "actions/branches/strings.bin": b"\xff\xff"})
    del good["actions/branches/strings.bin"]
    refused(good)


def test_what_is_not_read_is_named(tmp_path, members):
    def change(index):
        index["annotations"]["colours"] = {"c": {"applies-to": ["states"], "type": {"type": "int"}}}
        index["annotations"]["aps"]["goal"]["applies-to"] = ["states", "choices"]
        index["valuations"] = {"states": {"unique": True, "classes": [{"variables": []}] * 2}}

    file = read_umb(pack(with_index(members("dtmc"), change), tmp_path / "m.umb"))
    assert len(file.left_out) == 3
    assert "colours" in str(file.left_out)
    assert file.valuations is None


def test_a_missing_file_and_a_folder(tmp_path):
    for path in (tmp_path / "absent.umb", tmp_path):
        with pytest.raises(OSError, match=r"absent|directory"):
            read_umb(path)
