"""The cache of relinked and compiled classes: private, whole or absent, keyed by content."""

import json
import os
import stat
import threading
import zipfile

import pytest

from bridge.install import find_java
from engines.errors import BridgeError
from engines.process.cache import CACHE_VARIABLE, MANIFEST
from prism_hooks import build


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv(CACHE_VARIABLE, str(folder))
    return folder


@pytest.fixture(scope="module")
def java():
    try:
        found = find_java()
    except BridgeError as error:
        pytest.skip(f"needs a JDK: {error}")
    if not found.has_compiler:
        pytest.skip(f"needs a JDK: {found.home} has no compiler")
    return found


@pytest.fixture(scope="module")
def compile_once():
    """The compiler, which gives what it made of the same sources before."""
    compile_, made = build._compile, {}

    def compiled(source_files, target, classpath, java_home):
        texts = tuple((source.name, source.read_bytes()) for source in source_files)
        if texts not in made:
            compile_(source_files, target, classpath, java_home)
            made[texts] = {
                path.relative_to(target): path.read_bytes() for path in target.rglob("*.class")
            }
        for path, content in made[texts].items():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_bytes(content)

    return compiled


class Project:
    """A class library with one class to relink, and hooks for it."""

    def __init__(self, folder, java, monkeypatch):
        self.classes = folder / "classes"
        self.java = java
        self.sources = {
            "Better.java": b"package hooks; public class Better extends lib.Thing {}",
        }
        monkeypatch.setattr(build, "hook_sources", lambda _: self.sources)
        source = folder / "lib"
        source.mkdir()
        (source / "Thing.java").write_text("package lib; public class Thing {}")
        (source / "Maker.java").write_text(
            "package lib; public class Maker { public Thing make() { return new Thing(); } }"
        )
        self.classes.mkdir()
        build._compile(sorted(source.iterdir()), self.classes, [], java.home)

    def build(self):
        return self.jars(self.classes)[0]

    def jars(self, location):
        return build.hook_classes(
            location,
            [location],
            self.java.home,
            self.java.version,
            "hooks",
            {"lib/Thing": "hooks/Better"},
            {},
        )


@pytest.fixture
def project(tmp_path, java, cache, monkeypatch, compile_once):
    assert cache
    monkeypatch.setattr(build, "_compile", compile_once)
    return Project(tmp_path, java, monkeypatch)


def test_what_is_built_holds_relinked_and_compiled_classes(project):
    jar = project.build()
    with zipfile.ZipFile(jar) as archive:
        assert sorted(archive.namelist()) == ["hooks/Better.class", "lib/Maker.class"]
        assert b"hooks/Better" in archive.read("lib/Maker.class")
    assert sorted(os.listdir(jar.parent)) == ["hooks.jar", MANIFEST]
    assert stat.S_IMODE(jar.parent.stat().st_mode) == 0o700


def test_prism_s_own_classes_lie_in_a_jar(project):
    _, jar = project.jars(project.classes)
    with zipfile.ZipFile(jar) as archive:
        assert archive.namelist() == ["lib/Maker.class", "lib/Thing.class"]
        for name in archive.namelist():
            assert archive.read(name) == (project.classes / name).read_bytes()
    # What is a jar already is not copied.
    assert project.jars(jar)[1] == jar


def test_a_second_run_builds_nothing(project, monkeypatch):
    folder = project.build()
    monkeypatch.setattr(build, "_build", lambda *_: pytest.fail("built again"))
    monkeypatch.setattr(build, "iter_class_files", lambda _: pytest.fail("read again"))
    assert project.build() == folder


def test_other_sources_or_other_classes_make_another_folder(project):
    first = project.build()
    project.sources["Better.java"] += b" // changed"
    second = project.build()
    (project.classes / "Extra.class").write_bytes(
        (project.classes / "lib" / "Thing.class").read_bytes()
    )
    third = project.build()
    assert len({first, second, third}) == 3


@pytest.mark.parametrize("damage", ["truncate", "remove", "add", "no manifest", "bad manifest"])
def test_a_damaged_cache_is_built_again(project, damage):
    jar = project.build()
    whole = jar.read_bytes()
    manifest = jar.parent / MANIFEST
    if damage == "truncate":
        jar.write_bytes(whole[:20])
    elif damage == "remove":
        jar.unlink()
    elif damage == "add":
        (jar.parent / "more.jar").write_bytes(whole)
    elif damage == "no manifest":
        manifest.unlink()
    else:
        manifest.write_text(json.dumps([1, 2]))
    assert project.build() == jar
    with zipfile.ZipFile(jar) as archive:
        assert archive.testzip() is None
        assert "hooks/Better.class" in archive.namelist()
    assert not (jar.parent / "more.jar").exists()


@pytest.mark.parametrize("damage", ["folder", "NULs", "not ASCII", "way out", "pipe"])
def test_a_damaged_hash_of_prism_s_classes_is_made_again(project, cache, damage):
    folder = project.build()
    (key,) = cache.glob("prism-*/key")
    if damage in ("folder", "pipe"):
        key.unlink()
        os.mkfifo(key) if damage == "pipe" else key.mkdir()
    else:
        texts = {"NULs": bytes(64), "not ASCII": b"\xe4" * 64, "way out": b"../" * 21 + b"x"}
        key.write_bytes(texts[damage])
    assert project.build() == folder
    assert len(key.read_text()) == 64


def test_a_compiler_error_leaves_nothing_behind(project, cache):
    project.sources["Better.java"] = b"package hooks; public class Better extends Missing {}"
    with pytest.raises(BridgeError, match=r"Java compiler failed(.|\n)*Missing"):
        project.build()
    assert not [path for path in cache.iterdir() if not path.name.startswith("prism-")]


def test_two_first_runs_at_once_both_succeed(project):
    project.sources["Better.java"] += b" // compiled by none before"
    folders, errors = [], []

    def run():
        try:
            folders.append(project.build())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(folders) == 4
    assert len(set(folders)) == 1
    assert zipfile.is_zipfile(folders[0])
