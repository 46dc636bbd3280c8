"""What a run needs: PRISM, a JDK and a private cache; each refusal is a clear message."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bridge.install import find_java, find_prism
from engines.errors import BridgeError
from prism_hooks.build import HOOKS_JAR

pytestmark = pytest.mark.prism

QUERY = ("-pctl", "P=? [ F d=1 ]")
JRE_MODULES = "java.base,java.desktop,java.logging,java.management,java.sql,java.naming"


@pytest.fixture
def words(prism_examples) -> tuple[object, ...]:
    return (prism_examples / "simple" / "dice" / "dice.pm", *QUERY)


def assert_refused(run, *texts: str) -> None:
    """The run ended with PRISM's form of error and exit code, and without any result."""
    assert run.code == 1
    assert "\nError: " in run.output
    for text in texts:
        assert text in run.output, run.output
    assert "Result" not in run.output
    assert "Traceback" not in run.output + run.errors
    assert run.errors == ""


def test_a_folder_without_prism_is_refused_by_name(prism_gpu, words, tmp_path):
    assert_refused(prism_gpu(*words, PRISM_DIR=str(tmp_path)), str(tmp_path), "holds no PRISM")
    named = prism_gpu(*words, "--prism-dir", tmp_path)
    assert_refused(named, "--prism-dir", str(tmp_path), "holds no PRISM")
    missing = tmp_path / "nowhere"
    assert_refused(prism_gpu(*words, "--prism-dir", missing), str(missing), "not a folder")


def test_without_prism_anywhere_the_places_searched_are_listed(prism_gpu, words, tmp_path):
    bare = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PRISM_DIR": ""}
    try:
        found = find_prism(environ=bare)
    except BridgeError:
        run = prism_gpu(*words, "-frontend", "prism", **bare)
        assert_refused(run, "No PRISM found", "usual places", "--prism-dir", "PRISM_DIR")
    else:
        pytest.skip(f"needs a machine without PRISM in the usual places: it is in {found.root}")


def test_a_prism_that_is_too_old_is_refused_by_its_version(
    prism_gpu, prism_install, words, tmp_path
):
    source = prism_install.class_location
    if not source.is_dir():
        pytest.skip("needs a PRISM built from source, with a folder of classes")
    numbers = prism_install.version.partition("-")[0].encode()
    data = (source / "prism" / "Version.class").read_bytes()
    constant = len(numbers).to_bytes(2, "big") + numbers
    assert data.count(constant) == 1
    (tmp_path / "classes" / "prism").mkdir(parents=True)
    (tmp_path / "classes" / "prism" / "Version.class").write_bytes(
        data.replace(constant, (5).to_bytes(2, "big") + b"4.8.1")
    )
    (tmp_path / "lib").mkdir()
    for library in prism_install.library_path.glob("libprism*"):
        (tmp_path / "lib" / library.name).symlink_to(library)
    run = prism_gpu(*words, "--prism-dir", tmp_path)
    assert_refused(run, "PRISM 4.8.1", str(tmp_path), "is not supported", "4.10")


def test_a_java_home_without_java_is_refused_by_name(prism_gpu, words, tmp_path):
    assert_refused(prism_gpu(*words, JAVA_HOME=str(tmp_path)), "JAVA_HOME", str(tmp_path), "JDK")


def test_a_jre_without_a_compiler_is_refused(prism_gpu, words, tmp_path):
    jlink = find_java().home / "bin" / "jlink"
    if not jlink.is_file():
        pytest.skip(f"needs jlink, which is not in {jlink.parent}")
    jre = tmp_path / "jre"
    subprocess.run(
        [jlink, "--add-modules", JRE_MODULES + ",jdk.unsupported", "--output", jre], check=True
    )
    cache = tmp_path / "cache"
    run = prism_gpu(*words, JAVA_HOME=str(jre), PRISM_GPU_CACHE=str(cache))
    assert_refused(run, "JRE without a compiler", str(jre), "JDK")
    assert not [path.name for path in cache.glob("*") if path.name != "jit"]
    # PRISM untouched needs no compiler.
    untouched = prism_gpu(*words, "-gpuengine", "off", JAVA_HOME=str(jre))
    assert untouched.numbers() == pytest.approx([1 / 6], rel=1e-5)


def spoiled(cache: Path, how: str) -> None:
    """Make a cache folder one that cannot be used."""
    if how == "writable":
        cache.mkdir()
        cache.chmod(0o770)
    elif how == "link":
        (cache.parent / "real").mkdir(mode=0o700)
        cache.symlink_to(cache.parent / "real")
    elif how == "file":
        cache.write_text("")
    elif how == "another user's":
        cache.mkdir(mode=0o700)
        os.chown(cache, 12345, 12345)
    else:
        cache.mkdir(mode=0o500)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("how", ["writable", "link", "file", "another user's", "read-only"])
def test_a_cache_that_cannot_be_used_costs_a_line_and_time(prism_gpu, words, tmp_path, how):
    root = os.geteuid() == 0
    if how == ("read-only" if root else "another user's"):
        pytest.skip("root may write anywhere; others cannot give folders away")
    cache, spare = tmp_path / "cache", tmp_path / "temporary"
    spoiled(cache, how)
    where = {"PRISM_GPU_CACHE": str(cache), "TMPDIR": str(spare)}
    run = prism_gpu(*words, **where)
    assert run.numbers() == pytest.approx([1 / 6], rel=1e-5)
    (line,) = run.errors.splitlines()
    assert line.startswith(f"prism-gpu: the cache folder {cache} ")
    assert str(spare) in line
    again = prism_gpu(*words, **where)
    assert again.results() == run.results()
    if cache.is_dir():
        assert not any(cache.iterdir())


DAMAGES = ("removed", "changed", "manifest")


def cached_classes(cache: Path) -> dict[str, bytes]:
    jars = {str(p.relative_to(cache)): zipfile.ZipFile(p) for p in sorted(cache.rglob("*.jar"))}
    return {(name, each): jar.read(each) for name, jar in jars.items() for each in jar.namelist()}


@pytest.mark.parametrize(
    "damage",
    ["truncated", *(pytest.param(d, marks=pytest.mark.slow) for d in DAMAGES)],
)
def test_damaged_classes_are_built_again_in_silence(prism_gpu, words, tmp_path, damage):
    cache = tmp_path / "cache"
    first = prism_gpu(*words, PRISM_GPU_CACHE=str(cache))
    whole = cached_classes(cache)
    assert len(whole) > 10
    (victim,) = cache.rglob(HOOKS_JAR)
    if damage == "truncated":
        victim.write_bytes(victim.read_bytes()[:1000])
    elif damage == "removed":
        victim.unlink()
    elif damage == "changed":
        victim.write_bytes(victim.read_bytes()[:-1] + b"\0")
    else:
        next(cache.rglob("manifest.json")).write_text("{")
    second = prism_gpu(*words, PRISM_GPU_CACHE=str(cache))
    assert second.code == 0
    assert second.errors == ""
    assert second.results() == first.results()
    assert cached_classes(cache) == whole


def test_two_first_runs_at_once_both_succeed(prism_install, words, tmp_path):
    cache = tmp_path / "cache"
    environment = {
        **os.environ,
        "PRISM_DIR": str(prism_install.root),
        "PRISM_GPU_CACHE": str(cache),
    }
    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "bridge", *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(3)
    ]
    for run in runs:
        output, errors = run.communicate(timeout=120)
        assert run.returncode == 0, output + errors
        assert errors == ""
        assert re.search(r"^Result: 0\.16666", output, re.MULTILINE)
    left = [path.name for path in cache.iterdir() if path.name.startswith(("build", "writ"))]
    assert left == []


def test_the_version_of_java_is_told_in_place_of_a_run(prism_gpu):
    told = prism_gpu("missing.pm", "-javaversion")
    assert told.code == 0
    assert told.output == ""
    assert "version" in told.errors
