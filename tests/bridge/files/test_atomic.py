"""A file is written whole or not at all, and no draft is left."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from bridge.files import atomic
from bridge.files.atomic import replacing, write_text
from bridge.files.writer import write_together
from engines.process import leftovers


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_old_file_is_there_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "values"
    path.write_text("old")
    with replacing(path) as draft:
        draft.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert names(tmp_path) == ["values"]


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file_and_no_draft(tmp_path, fault):
    path = tmp_path / "values"
    path.write_text("old")

    def write() -> None:
        with replacing(path) as draft:
            draft.write_text("half")
            raise fault

    with pytest.raises(type(fault)):
        write()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["values"]


@pytest.mark.parametrize("name", ["values", "/dev/full"])
def test_a_full_disk_is_an_error_that_names_the_file(tmp_path, name):
    path = tmp_path / name

    def write() -> None:
        with replacing(path):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left") as caught:
        write()
    assert caught.value.filename == str(path)


def test_two_writers_of_one_file_do_not_meet(tmp_path):
    path = tmp_path / "values"
    with replacing(path) as one, replacing(path) as other:
        one.write_text("one")
        other.write_text("other")
    assert path.read_text() == "one"
    assert names(tmp_path) == ["values"]


def test_a_draft_that_lies_there_already_is_not_written_to(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic.secrets, "token_hex", lambda _: "0")
    stranger = tmp_path / ".values.0.part"
    stranger.write_text("not ours")
    with pytest.raises(FileExistsError):
        write_text(tmp_path / "values", "new")


def test_the_message_names_the_file_that_was_asked_for(tmp_path):
    path = tmp_path / "nowhere" / "values"
    with pytest.raises(FileNotFoundError) as raised:
        write_text(path, "new")
    assert raised.value.filename == str(path)


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(path.read_text()))
    reader.start()
    write_text(path, "new")
    reader.join(timeout=10)
    assert read == ["new"]
    assert path.is_fifo()


@pytest.mark.parametrize("compression", ["", ".gz", ".xz"])
def test_of_several_files_all_are_written_or_none(tmp_path, compression):
    def failing():
        yield "half"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_together({tmp_path / "a": iter(["whole"]), tmp_path / "b": failing()}, compression)
    assert names(tmp_path) == []
    write_together({tmp_path / "a": iter(["1"]), tmp_path / "b": iter(["2"])}, compression)
    assert names(tmp_path) == [f"a{compression}", f"b{compression}"]
    assert all(path.stat().st_size for path in tmp_path.iterdir())


def test_a_draft_whose_writer_was_killed_goes_with_the_next_write(tmp_path):
    killed, new, running = (tmp_path / f".values.{name}.part" for name in "abc")
    for draft in (killed, new, running):
        draft.write_text("half")
    for draft in (killed, running):
        os.utime(draft, (1, 1))
    with leftovers.in_use(running):
        write_text(tmp_path / "values", "whole")
    assert names(tmp_path) == [new.name, running.name, "values"]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_followed_unless_others_may_have_made_it(tmp_path, there):
    target, link = tmp_path / "target", tmp_path / "link"
    if there:
        target.write_text("old")
    link.symlink_to(target)
    with replacing(link) as draft:
        draft.write_text("new")
    assert (link.is_symlink(), target.read_text()) == (True, "new")
    with replacing(link, follow=False) as draft:
        draft.write_text("newest")
    assert (link.is_symlink(), link.read_text(), target.read_text()) == (False, "newest", "new")
