"""Results outlive interruptions and go from machine to machine; only whole ones count."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from bridge.reproduce.jobs import Job, Kind, Subject
from bridge.reproduce.store import Store, locked
from engines.errors import BridgeError

IDENTITY = {
    "device": "gpu",
    "front_end": "prism",
    "processor": "some",
    "cores": 2,
    "device_name": "one",
    "versions": {"prism-gpu": "1", "PRISM": "4.10"},
}
JOB = Job(Subject.TANDEM, "tandem 3, ours", Kind.OURS, {"size": 3})
PEER = Job(Subject.TANDEM, "tandem 3, PRISM", Kind.PEER, {"size": 3})


def changed(**what):
    return {**IDENTITY, **what}


def test_what_was_put_is_there_for_the_next_run(tmp_path):
    Store(tmp_path, IDENTITY).put(JOB, {"status": "done", "value": 0.1})
    found = Store(tmp_path, IDENTITY).get(JOB)
    assert (found["status"], found["value"]) == ("done", 0.1)
    assert Store(tmp_path, IDENTITY).get(PEER) is None


@pytest.mark.parametrize(
    "identity",
    [changed(device="cpu"), changed(versions={"prism-gpu": "2", "PRISM": "4.10"})],
)
def test_another_kind_of_device_or_version_measures_ours_again_but_not_prism(tmp_path, identity):
    store = Store(tmp_path, IDENTITY)
    for job in (JOB, PEER):
        store.put(job, {"status": "done"})
    other = Store(tmp_path, identity)
    assert other.get(JOB) is None
    assert other.get(PEER)["status"] == "done"
    assert Store(tmp_path, changed(versions={"PRISM": "4.11"})).get(PEER) is None


def test_another_machine_goes_on_and_each_result_says_where_it_is_from(tmp_path):
    Store(tmp_path, IDENTITY).put(JOB, {"status": "done"})
    elsewhere = Store(tmp_path, changed(device_name="two", processor="other", cores=64))
    found = elsewhere.get(JOB)
    assert found["where"] == {"device_name": "one", "processor": "some", "cores": 2}
    assert found["versions"] == IDENTITY["versions"]


def test_a_result_of_another_commit_does_not_count_where_both_are_known(tmp_path):
    def at(commit):
        versions = {"prism-gpu": "1", "PRISM": "4.10"} | ({"commit": commit} if commit else {})
        return Store(tmp_path, changed(versions=versions))

    at("aaa").put(JOB, {"status": "done"})
    at("aaa").put(PEER, {"status": "done"})
    assert at("bbb").get(JOB) is None
    assert at("bbb").get(PEER) is not None
    # An installed package knows no commit.
    assert at("").get(JOB) is not None


@pytest.mark.parametrize("length", [0, 1, 20, -3])
def test_a_truncated_file_is_no_result_and_no_crash(tmp_path, length):
    store = Store(tmp_path, IDENTITY)
    store.put(JOB, {"status": "done"})
    (file,) = (tmp_path / "rows").iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:length])
    assert store.get(JOB) is None
    assert store.damaged == [file]
    store.put(JOB, {"status": "done"})
    written, before = json.loads(file.read_bytes()), json.loads(whole)
    assert {**written, "measured": before["measured"]} == before
    assert store.get(JOB) == written


def test_other_content_is_no_result(tmp_path):
    store = Store(tmp_path, IDENTITY)
    store.put(JOB, {"status": "done"})
    (file,) = (tmp_path / "rows").iterdir()
    whole = {"status": "done", "name": JOB.name}
    for record in ([], {}, {**whole, "name": "another"}, {**whole, "versions": ["1"]}):
        file.write_text(json.dumps(record))
        assert store.get(JOB) is None
    for text in ("[" * 100_000, "NaN"):
        file.write_text(text)
        assert store.get(JOB) is None


def test_links_in_the_folder_are_not_followed(tmp_path):
    store, outside = Store(tmp_path / "x", IDENTITY), tmp_path / "outside"
    outside.write_text("mine")
    store.put(JOB, {"status": "done"})
    (file,) = (tmp_path / "x" / "rows").iterdir()
    file.unlink()
    file.symlink_to(outside)
    store.put(JOB, {"status": "done"})
    (tmp_path / "x" / ".lock").symlink_to(outside)
    with pytest.raises(BridgeError, match="cannot be written to"), locked(tmp_path / "x"):
        pass
    assert (outside.read_text(), store.get(JOB)["status"]) == ("mine", "done")


def test_what_is_forgotten_is_measured_again(tmp_path):
    store = Store(tmp_path, IDENTITY)
    store.put(JOB, {"status": "done"})
    store.forget(JOB)
    assert store.get(JOB) is None
    store.forget(JOB)


def test_a_second_run_in_the_same_folder_is_refused(tmp_path):
    folder = tmp_path / "made" / "here"
    with locked(folder):
        with pytest.raises(BridgeError, match=rf"process {os.getpid()}.*--into"), locked(folder):
            pass
        code = (
            "import sys; from pathlib import Path; from bridge.reproduce.store import locked\n"
            "with locked(Path(sys.argv[1])): pass"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=False
        )
        assert done.returncode != 0
        assert "another prism-gpu reproduce" in done.stderr
    with locked(folder):
        pass


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BridgeError, match="file cannot be written to"), locked(tmp_path / "file"):
        pass
