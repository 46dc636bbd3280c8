"""The archive of Java's classes: made by the first run, used by the next, never needed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bridge import archive as archives
from bridge.archive import ARCHIVE, OLDEST_JAVA, ClassArchive
from bridge.install import find_java, find_prism
from engines.errors import BridgeError
from engines.process.cache import CACHE_VARIABLE

MODEL = """dtmc
module m
  x : [0..2];
  [] x=0 -> 0.5 : (x'=1) + 0.5 : (x'=2);
endmodule
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run a model with an empty cache, made once; give what is printed, and the archive."""
    try:
        find_prism()
        java = find_java()
    except BridgeError as error:
        pytest.skip(f"needs PRISM: {error}")
    if java.major < OLDEST_JAVA:
        pytest.skip(f"Java {java.version} keeps no archives of classes")
    folder = tmp_path_factory.mktemp("archive")
    (folder / "m.pm").write_text(MODEL)

    def ran(*words, loaded=False, **environ):
        notes = folder / "loaded.txt"
        notes.unlink(missing_ok=True)
        environ[CACHE_VARIABLE] = str(folder / "cache")
        if loaded:
            environ["PRISM_JAVA_PARAMS"] = f"-Xlog:class+load:file={notes}"
        command = [sys.executable, "-m", "bridge", str(folder / "m.pm"), "-pf", "P=?[F x=1]"]
        done = subprocess.run(
            [*command, *words], env={**os.environ, **environ}, capture_output=True, text=True
        )
        assert done.stderr == ""
        assert done.returncode == 0
        assert "Result: 0.5" in done.stdout
        assert "[cds" not in done.stdout
        if not loaded:
            return done.stdout
        return notes.read_text().count("prism.PrismCL source: shared objects file")

    ran.folder = folder / "cache"
    ran.archives = lambda: list(ran.folder.glob(f"archive-*/{ARCHIVE}"))
    assert not ran.archives()
    ran()
    return ran


def test_the_first_run_makes_it_and_the_next_uses_it(run):
    (archive,) = run.archives()
    written = archive.stat().st_mtime_ns
    assert run(loaded=True) == 1
    assert archive.stat().st_mtime_ns == written


@pytest.mark.slow
def test_a_damaged_one_is_made_again(run):
    (archive,) = run.archives()
    whole = archive.read_bytes()
    archive.write_bytes(whole[: len(whole) // 2])
    # A run that makes none does without.
    assert run(loaded=True) == 0
    run()
    assert run(loaded=True) == 1
    assert run.archives() == [archive]


def test_an_unfit_one_is_left_alone(run):
    # Java compresses no pointers in so large a heap, and says nothing of it.
    (archive,) = run.archives()
    written = archive.stat().st_mtime_ns
    run("-javamaxmem", "40g")
    assert archive.stat().st_mtime_ns == written
    assert run(loaded=True) == 1


def test_none_is_begun_where_there_is_no_room_for_it(run, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(run.folder))
    archive = ClassArchive(find_java(), [])
    monkeypatch.setattr(archives, "ROOM", 1 << 62)
    assert archive.options(make=True) == []
    monkeypatch.setattr(archives, "ROOM", 1 << 10)
    (writing, quiet) = archive.options(make=True)
    assert writing.startswith("-XX:ArchiveClassesAtExit=")
    assert quiet == archives.QUIET
