"""What a command and a server are compared in."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from bridge.server.circumstances import circumstances, decides, difference

LISTED = """
import os, sys
from bridge.server.circumstances import circumstances
sys.stdout.buffer.write(b"\\0".join(circumstances()))
"""


def of_child(**changes) -> list[bytes]:
    """Return the circumstances of a process that is started otherwise than this one."""
    # What a library has set in this process is no variable that Python knows.
    changes.setdefault("env", dict(os.environ))
    run = subprocess.run([sys.executable, "-c", LISTED], capture_output=True, check=True, **changes)
    return run.stdout.split(b"\0")


@pytest.fixture(scope="module")
def usual() -> list[bytes]:
    return of_child()


def test_a_process_started_alike_has_the_same_circumstances(usual):
    assert difference(usual, of_child()) is None
    assert difference(usual, of_child(start_new_session=True, stdin=subprocess.DEVNULL)) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("PRISM_JAVAMAXMEM", "1g"), ("_JAVA_OPTIONS", "-Xint"), ("PRISM_GPU_CACHE", "/nowhere")),
        *(("CUDA_VISIBLE_DEVICES", "7"), ("LD_LIBRARY_PATH", "/nowhere"), ("LC_ALL", "C.UTF-8")),
        *(
            ("OMP_NUM_THREADS", "3"),
            ("COLUMNS", "33"),
            ("PYTHONHASHSEED", "3"),
            ("TZ", "Asia/Tokyo"),
        ),
    ],
)
def test_a_variable_that_is_read_at_start_differs(usual, name, value):
    assert os.environ.get(name) != value
    found = of_child(env={**os.environ, name: value})
    assert difference(usual, found) == f"the variable {name}"
    assert difference(found, usual) == f"the variable {name}"


def test_variables_of_terminals_and_shells_do_not(usual):
    changed = {"TERM": "dumb", "SHLVL": "9", "PWD": "/elsewhere", "N": "3", "PRISM_GPU_SERVER": ""}
    assert not any(decides(name.encode()) for name in changed)
    assert difference(usual, of_child(env={**os.environ, **changed})) is None


def test_commands_are_compared_by_where_they_are_found(usual, tmp_path):
    path = os.environ["PATH"]
    empty = of_child(env={**os.environ, "PATH": f"{tmp_path}:{path}"})
    assert difference(usual, empty) is None
    java = tmp_path / "java"
    java.write_text("")
    java.chmod(0o755)
    found = of_child(env={**os.environ, "PATH": f"{tmp_path}:{path}"})
    assert difference(usual, found) == "java on the PATH"


def test_a_folder_is_compared_by_where_it_leads(tmp_path):
    link = tmp_path / "prism"
    found = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / name)
        found.append(of_child(env={**os.environ, "PRISM_DIR": str(link)}))
    assert difference(*found) == "where PRISM_DIR leads"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("Umask", lambda: os.umask(0o027)),
        ("Max core file size", lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0))),
        ("priority", lambda: os.nice(3)),
        ("Cpus_allowed", lambda: os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])),
    ],
)
def test_limits_and_rights_differ(usual, name, change):
    found = of_child(preexec_fn=change)
    if found == usual:
        pytest.skip("is so in this process already")
    assert difference(usual, found) == name


def test_there_are_no_zero_bytes_in_it():
    assert not any(b"\0" in each for each in circumstances())
