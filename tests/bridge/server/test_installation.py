"""Changes on the disk that a warm process must not overlook."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from bridge.server import installation
from bridge.server.installation import Installation


@pytest.fixture
def place(tmp_path, monkeypatch):
    for name in ("bridge/server", "engines", "prism_hooks", "classes/prism", "lib", "java"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_text("1")
    (tmp_path / "java" / "release").write_text("17")
    monkeypatch.setattr(installation, "_PROGRAM", tmp_path)
    return tmp_path


def installed(place: Path, monkeypatch, **how) -> Installation:
    runtime = SimpleNamespace(
        java=SimpleNamespace(home=place / "java", jvm_library=place / "java" / "file"),
        prism=SimpleNamespace(class_location=place / "classes", library_path=place / "lib"),
        classpath=(place / "lib" / "file",),
    )
    monkeypatch.setattr(installation, "find_prism", lambda: runtime.prism)
    monkeypatch.setattr(installation, "find_java", lambda: runtime.java)
    return Installation(runtime, **how)


def overwrite(path: Path) -> None:
    # Size and place stay: the time of change alone tells.
    path.write_text("2")
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))


@pytest.mark.parametrize("told", [True, False], ids=["told", "looked"])
@pytest.mark.parametrize(
    "change",
    [
        lambda place: overwrite(place / "bridge/server/file"),
        lambda place: overwrite(place / "classes/prism/file"),
        lambda place: overwrite(place / "java/release"),
        lambda place: (place / "engines/new.py").write_text(""),
        lambda place: (place / "lib/file").unlink(),
        lambda place: (place / "classes").rename(place / "elsewhere"),
    ],
)
def test_a_change_is_seen_at_once(place, change, told, monkeypatch):
    if not told:
        monkeypatch.setattr(installation, "_watched", lambda _: None)
    found = installed(place, monkeypatch, longest_s=60.0 if told else 0.0)
    assert not found.has_changed()
    change(place)
    assert found.has_changed()


def test_what_python_compiles_is_no_change(place, monkeypatch):
    found = installed(place, monkeypatch)
    (place / "bridge/__pycache__").mkdir()
    (place / "bridge/__pycache__/file.pyc").write_text("")
    assert not found.has_changed()


def test_reading_is_no_change_and_is_not_looked_at(place, monkeypatch):
    found = installed(place, monkeypatch, longest_s=60.0)
    (place / "lib/file").read_text()
    monkeypatch.setattr(Installation, "_stamp", lambda _: pytest.fail("files were looked at"))
    assert not found.has_changed()


def test_another_prism_that_would_be_found_is_a_change(place, monkeypatch):
    found = installed(place, monkeypatch, longest_s=0.0)
    assert not found.has_changed()
    monkeypatch.setattr(installation, "find_prism", lambda: None)
    assert found.has_changed()
