"""Results travel in one file: the better of two is kept, and nothing else is read."""

from __future__ import annotations

import json
import zipfile

import pytest

from bridge.reproduce.archive import ARCHIVE, pack, take_in
from bridge.reproduce.jobs import Job, Kind, Subject
from bridge.reproduce.store import Store
from engines.errors import BridgeError

JOB = Job(Subject.TANDEM, "tandem 3, ours", Kind.OURS, {"size": 3})
OTHER = Job(Subject.TANDEM, "tandem 7, ours", Kind.OURS, {"size": 7})
ON_GPU = {"device": "gpu", "device_name": "a GPU", "versions": {"prism-gpu": "1"}}
ELSEWHERE = {
    "device": "gpu",
    "device_name": "a GPU of another host",
    "versions": {"prism-gpu": "1"},
}


def carried(source, target):
    """Carry the archive of one folder to another."""
    target.mkdir(exist_ok=True)
    (target / ARCHIVE).write_bytes(pack(source).read_bytes())
    return take_in(target)


def test_another_machine_goes_on_from_the_archive(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    Store(one, ON_GPU).put(JOB, {"status": "done", "value": 0.5})
    assert carried(one, two) == 1
    found = Store(two, ELSEWHERE).get(JOB)
    assert (found["value"], found["where"]["device_name"]) == (0.5, "a GPU")
    # And back, with what was measured there.
    Store(two, ELSEWHERE).put(OTHER, {"status": "done"})
    assert carried(two, one) == 1
    assert Store(one, ON_GPU).get(OTHER) is not None


@pytest.mark.parametrize("ours", ["done", "stopped"])
def test_a_whole_result_counts_more_than_a_later_one_that_was_stopped(tmp_path, ours):
    one, two = tmp_path / "one", tmp_path / "two"
    Store(one, ON_GPU).put(JOB, {"status": "done", "value": 1})
    later = {"status": ours, "value": 2, "measured": "2999-01-01 00:00:00 +0000"}
    Store(two, ON_GPU).put(JOB, later)
    carried(one, two)
    assert Store(two, ON_GPU).get(JOB)["value"] == (2 if ours == "done" else 1)


def test_a_cut_off_result_here_is_replaced(tmp_path):
    Store(tmp_path, ON_GPU).put(JOB, {"status": "done"})
    pack(tmp_path)
    (file,) = (tmp_path / "rows").iterdir()
    file.write_text(file.read_text()[:20])
    assert take_in(tmp_path) == 1
    assert json.loads(file.read_text())["status"] == "done"


@pytest.mark.parametrize(
    "name", ["../out.json", "rows/../../out.json", "rows/a.txt", "/rows/a.json"]
)
def test_other_members_are_refused(tmp_path, name):
    with zipfile.ZipFile(tmp_path / ARCHIVE, "w") as archive:
        archive.writestr(name, "{}")
    with pytest.raises(BridgeError, match="is no result"):
        take_in(tmp_path)
    assert not (tmp_path.parent / "out.json").exists()


def test_what_is_no_archive_is_named(tmp_path):
    (tmp_path / ARCHIVE).write_text("no zip")
    with pytest.raises(BridgeError, match=r"rows\.zip is no archive of results"):
        take_in(tmp_path)


@pytest.mark.parametrize("damage", ["content", "password", "compression"])
def test_a_damaged_archive_is_named(tmp_path, damage):
    packed = zipfile.ZIP_LZMA if damage == "compression" else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(tmp_path / ARCHIVE, "w", packed) as archive:
        archive.writestr("rows/a.json", json.dumps({"status": list(range(100))}))
    data = bytearray((tmp_path / ARCHIVE).read_bytes())
    if damage == "content":
        data[45:60] = bytes(15)
    elif damage == "password":
        for header, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
            data[data.index(header) + flags] |= 1
    (tmp_path / ARCHIVE).write_bytes(data)
    with pytest.raises(BridgeError, match=r"rows\.zip (is no archive of results|holds)"):
        take_in(tmp_path)


def test_an_empty_folder_has_no_archive(tmp_path):
    assert pack(tmp_path) is None
    assert take_in(tmp_path) == 0
