"""What is kept from run to run: private, whole or absent, built again when anything is off."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from engines.errors import BridgeError, CacheError, UnsupportedError
from engines.process import cache as module
from engines.process.cache import CACHE_VARIABLE, cache_folder, kept, private_folder
from engines.process.leftovers import in_use

USER = f"prism-gpu-{os.geteuid()}"


class Maker:
    """Makes an entry of two files, and counts how often."""

    def __init__(self, error=None, fails_below=None):
        self.calls, self.error, self.fails_below = 0, error, fails_below

    def __call__(self, folder: Path) -> None:
        self.calls += 1
        if self.error and (self.fails_below is None or self.fails_below in folder.parents):
            raise self.error
        (folder / "a").write_text("first")
        (folder / "below").mkdir()
        (folder / "below" / "b").write_text("second")


def content(entry: Path) -> str:
    return (entry / "a").read_text() + (entry / "below" / "b").read_text()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return the cache folder of this test, yet to be made; temporary files lie beside it."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(module, "_told", set())
    monkeypatch.setattr(module, "_swept", set())
    return tmp_path / "cache"


@pytest.fixture
def spare(tmp_path):
    return tmp_path / "temporary" / USER


def test_an_entry_is_made_once_and_is_the_user_s_alone(place):
    make = Maker()
    old = os.umask(0)
    try:
        assert kept("entry", make, content) == kept("entry", make, content) == "firstsecond"
    finally:
        os.umask(old)
    assert make.calls == 1
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (place, *place.rglob("*"))}
    assert modes == {0o700, 0o600}
    assert [path.name for path in place.iterdir()] == ["entry"]


def truncate(entry):
    (entry / "a").write_text("fir")


def flip(entry):
    (entry / "a").write_text("fIrst")


def remove(entry):
    (entry / "a").unlink()


def add(entry):
    (entry / "below" / "c").write_text("not in the list")


def link_a_file(entry):
    (entry / "a").rename(entry.parent / "elsewhere")
    (entry / "a").symlink_to(entry.parent / "elsewhere")


def link_a_folder(entry):
    (entry / "below").rename(entry.parent / "elsewhere")
    (entry / "below").symlink_to(entry.parent / "elsewhere")


def open_to_others(entry):
    (entry / "a").chmod(0o666)


def a_file_instead(entry):
    entry.rename(entry.parent / "elsewhere")
    entry.write_text("a file")


def a_dangling_link_instead(entry):
    entry.rename(entry.parent / "elsewhere")
    entry.symlink_to("/nowhere/at/all")


def a_pipe_inside(entry):
    (entry / "a").unlink()
    os.mkfifo(entry / "a")


def a_folder_as_list(entry):
    (entry / "manifest.json").unlink()
    (entry / "manifest.json").mkdir()


def unreadable(entry):
    entry.chmod(0)


def list_of(text):
    def damage(entry):
        (entry / "manifest.json").write_bytes(text)

    return damage


LISTS = {
    "no JSON": b"{",
    "NULs": bytes(64),
    "not ASCII": "äöü".encode("latin-1"),
    "a list": b"[1, 2]",
    "nested deeply": b"[" * 100_000,
    "a name with NUL": json.dumps({"a\0": "x"}).encode(),
    "a way out": json.dumps({"../a": "x"}).encode(),
    "numbers": b'{"a": 1, "below/b": 2}',
    "records of nothing": b'{"a": [], "below/b": []}',
    "records of an older form": b'{"a": "0123", "below/b": "4567"}',
    "empty": b"{}",
}
DAMAGES = [
    *(truncate, flip, remove, add, link_a_file, link_a_folder, open_to_others, a_file_instead),
    *(a_dangling_link_instead, a_pipe_inside, a_folder_as_list, unreadable),
    *(pytest.param(list_of(text), id=name) for name, text in LISTS.items()),
]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.usefixtures("place")
def test_a_damaged_entry_is_made_again(damage, spare, capsys):
    make = Maker()
    damage(kept("entry", make, lambda entry: entry))
    assert kept("entry", make, content) == "firstsecond"
    assert make.calls == 2 or damage is unreadable  # root reads all
    assert kept("entry", make, content) == "firstsecond"
    assert make.calls <= 2
    assert not spare.exists()
    assert capsys.readouterr().err == ""


def no_digest(file):
    raise AssertionError(f"{file.name} is read")


@pytest.mark.usefixtures("place")
def test_what_nobody_wrote_since_is_not_read_again(monkeypatch):
    make = Maker()
    kept("entry", make, content)
    monkeypatch.setattr(module, "SETTLED_NS", -1)
    monkeypatch.setattr(module, "_digest", no_digest)
    assert kept("entry", make, content) == "firstsecond"
    assert make.calls == 1


@pytest.mark.usefixtures("place")
def test_a_file_written_again_is_read_though_its_size_and_time_are_the_old_ones(monkeypatch):
    make = Maker()
    file = kept("entry", make, lambda entry: entry) / "a"
    before = file.stat()
    time.sleep(0.05)  # a step of the kernel's clock for files
    file.write_text("other")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    monkeypatch.setattr(module, "SETTLED_NS", -1)
    assert kept("entry", make, content) == "firstsecond"
    assert make.calls == 2


@pytest.mark.usefixtures("place")
def test_a_copied_entry_is_whole_by_its_digests(tmp_path, monkeypatch):
    make = Maker()
    entry = kept("entry", make, lambda entry: entry)
    entry.rename(tmp_path / "away")
    shutil.copytree(tmp_path / "away", entry)
    monkeypatch.setattr(module, "SETTLED_NS", -1)
    assert kept("entry", make, content) == "firstsecond"
    assert make.calls == 1


@pytest.mark.skipif("os.geteuid() != 0", reason="only root gives files away")
@pytest.mark.usefixtures("place")
def test_a_file_that_another_user_wrote_is_not_used():
    make = Maker()
    os.chown(kept("entry", make, lambda entry: entry) / "a", 12345, -1)
    assert kept("entry", make, content) == "firstsecond"
    assert make.calls == 2


def in_the_way(place):
    place.write_text("a file")
    return "is not a folder of its own"


def a_link(place):
    (place.parent / "real").mkdir(mode=0o700)
    place.symlink_to(place.parent / "real")
    return "is not a folder of its own"


def a_dangling_link(place):
    place.symlink_to("/nowhere/at/all")
    return "is not a folder of its own"


def writable_by_a_group(place):
    place.mkdir()
    place.chmod(0o770)
    return "is writable by others.*chmod 700"


def writable_by_all(place):
    place.mkdir()
    place.chmod(0o702)
    return "is writable by others.*chmod 700"


def below_what_others_may_rename(place):
    place.mkdir(mode=0o700)
    place.parent.chmod(0o777)
    return "lies below .*, where others may rename"


@pytest.mark.parametrize(
    "spoil", [in_the_way, a_link, a_dangling_link, writable_by_a_group, writable_by_all]
)
def test_a_folder_that_is_not_safe_costs_time_and_a_line(place, spare, capsys, spoil):
    reason = spoil(place)
    make = Maker()
    entry = kept("entry", make, lambda entry: entry)
    assert entry == spare / "entry"
    assert kept("entry", make, content) == "firstsecond"
    assert make.calls == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_told", set())
        assert cache_folder() == spare
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2  # one a process
    assert re.search(f"{re.escape(str(place))} {reason}.*; {spare} is used instead", lines[0])


def test_a_folder_that_can_be_swapped_is_not_used(place, tmp_path):
    reason = below_what_others_may_rename(place)
    try:
        assert re.search(reason, module.refusal(place))
        tmp_path.chmod(0o1777)
        assert module.refusal(place) is None
    finally:
        tmp_path.chmod(0o700)


def test_a_folder_of_another_user_is_not_used(place, monkeypatch):
    place.mkdir(mode=0o700)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert f"belongs to another user (number {user})" in module.refusal(place)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
def test_a_folder_that_cannot_be_written_costs_time_and_a_line(place, spare, capsys, number):
    make = Maker(OSError(number, os.strerror(number)), fails_below=place)
    assert kept("entry", make, content) == "firstsecond"
    assert list(place.iterdir()) == []
    assert kept("entry", make, content) == "firstsecond"
    assert make.calls == 3  # the disk had room: nothing but another try tells that this goes on
    assert [path.name for path in spare.iterdir()] == ["entry"]
    assert os.strerror(number) in capsys.readouterr().err


@pytest.mark.usefixtures("place")
def test_a_cache_folder_that_cannot_be_made_is_told_in_each_run(
    spare, tmp_path, monkeypatch, capsys
):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file" / "cache"))
    make = Maker()
    for _ in range(2):
        monkeypatch.setattr(module, "_told", set())  # another process
        assert kept("entry", make, content) == "firstsecond"
        assert f"{spare} is used instead" in capsys.readouterr().err
    assert make.calls == 1


def test_what_lies_elsewhere_is_used_only_while_the_folder_takes_nothing(
    place, spare, tmp_path, monkeypatch
):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file" / "cache"))
    make = Maker()
    for _ in range(2):
        assert kept("entry", make, lambda entry: entry) == spare / "entry"
    assert make.calls == 1
    monkeypatch.setenv(CACHE_VARIABLE, str(place))
    for _ in range(2):
        assert kept("entry", make, lambda entry: entry) == place / "entry"
    assert make.calls == 2


def test_a_compiler_that_fails_on_a_full_disk_is_not_to_blame(place, monkeypatch):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def require(folder):
        if place in folder.parents:
            raise full

    monkeypatch.setattr(module, "_require_room", require)
    make = Maker(UnsupportedError("cc: fatal error"), fails_below=place)
    assert kept("entry", make, content) == "firstsecond"
    monkeypatch.setattr(module, "_require_room", lambda _: None)
    with pytest.raises(UnsupportedError, match="fatal error"):
        kept("other", Maker(UnsupportedError("cc: fatal error")), content)
    assert list(place.iterdir()) == []


def test_an_entry_that_cannot_be_used_where_it_lies_is_kept_elsewhere(place, spare):
    def use(entry):
        if place in entry.parents:
            raise OSError("failed to map segment from shared object")
        return entry

    assert kept("entry", Maker(), use) == spare / "entry"
    assert kept("entry", Maker(), use) == spare / "entry"


@pytest.mark.usefixtures("place")
def test_without_any_folder_one_error_names_each(monkeypatch):
    for number in (errno.ENOSPC, errno.EROFS):
        make = Maker(OSError(number, os.strerror(number)))
        with pytest.raises(CacheError, match=rf"(?s)cache .*{USER}.*{CACHE_VARIABLE}") as caught:
            kept("entry", make, content)
        assert isinstance(caught.value, BridgeError)
        assert isinstance(caught.value, UnsupportedError)
    monkeypatch.setattr(module, "_places", lambda: iter([Path("/proc/nowhere")]))
    with pytest.raises(CacheError, match="/proc/nowhere cannot be made"):
        cache_folder()
    assert private_folder("jit") is None


def test_a_user_without_a_home_needs_none(monkeypatch, tmp_path):
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **__: Path("~/.cache/x"))
    monkeypatch.chdir(tmp_path)
    assert cache_folder() == tmp_path / USER
    assert not (tmp_path / "~").exists()


def test_four_at_once_end_with_one_entry(place):
    found, errors = [], []

    def run():
        try:
            found.append(kept("entry", Maker(), content))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert found == ["firstsecond"] * 4
    assert [path.name for path in place.iterdir()] == ["entry"]


def test_what_an_interrupted_run_left_is_removed_and_what_is_in_use_is_not(place):
    leave_drafts(place)
    with in_use(place / "building-used"):
        kept("entry", Maker(), content)
    left = {path.name for path in place.iterdir()}
    assert left == {"entry", "building-used", "building-new"}


def test_without_locks_what_was_left_is_removed_after_a_day(place, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", fail)
    leave_drafts(place)
    kept("entry", Maker(), content)
    left = {path.name for path in place.iterdir()}
    assert left == {"entry", "building-left", "building-used", "building-new"}


def leave_drafts(place):
    place.mkdir(mode=0o700)
    now = time.time()
    for name, age in (
        ("building-left", 2 * module.STALE_S),
        ("building-used", 2 * module.STALE_S),
        ("building-new", 0.0),
        ("writing-for-days", 2 * module.STALE_WITHOUT_LOCKS_S),
    ):
        (place / name / "content").mkdir(parents=True)
        os.utime(place / name, (now - age, now - age))


def test_what_another_run_finishes_while_one_looks_for_leftovers_is_no_error(place, monkeypatch):
    place.mkdir(mode=0o700)
    listed = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda path: [*listed(path), path / "building-finished"])
    assert kept("entry", Maker(), content) == "firstsecond"


LOOK = """
import os
from engines.cuda.kernel_cache import keep_cupy_private
keep_cupy_private()
print(os.environ["CUPY_CACHE_DIR"])
"""


def compiled_kernels_lie_in(**environment) -> str:
    variables = {**os.environ, **environment}
    return subprocess.check_output([sys.executable, "-c", LOOK], text=True, env=variables).strip()


def test_compiled_kernels_lie_where_nobody_else_can_look(place, spare, tmp_path):
    own, public = tmp_path / "own", tmp_path / "public"
    own.mkdir(mode=0o700)
    public.mkdir()
    public.chmod(0o777)
    # Compiled kernels are loaded without a look.
    (public / "cupy").mkdir()
    where = {"XDG_CACHE_HOME": str(public), "PRISM_GPU_CACHE": str(place)}
    for named, expected in ((public, place / "cuda"), ("", place / "cuda"), (own, own)):
        found = compiled_kernels_lie_in(CUPY_CACHE_DIR=str(named), **where)
        assert found == str(expected)
        assert stat.S_IMODE(expected.stat().st_mode) == 0o700
    place.chmod(0o777)
    assert compiled_kernels_lie_in(CUPY_CACHE_DIR="", **where) == f"{spare}/cuda"
