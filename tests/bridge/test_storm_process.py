"""Storm in a process of its own: missing, stopped, crashed, out of memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bridge import storm
from bridge.model import CheckableModel
from bridge.storm import process
from engines.errors import BridgeError, DeviceMemoryError

pytest.importorskip("stormpy", reason="needs stormpy")

SMALL = "dtmc module m x:[0..3]; [] true -> (x'=0); endmodule"


def build(tmp_path: Path) -> CheckableModel:
    """Build a small model."""
    file = tmp_path / "model.prism"
    file.write_text(SMALL, encoding="utf-8")
    return storm.build_model(file, {}, log=print)


def test_nothing_of_storm_is_loaded_into_this_process():
    code = "import sys, bridge.storm as s; s.unavailable(); sys.exit('stormpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("version", [None, "1.9.0"])
def test_a_missing_storm_is_named_with_the_command_that_gets_it(version, monkeypatch, tmp_path):
    def find(_: str) -> str:
        if version is None:
            raise process.importlib.metadata.PackageNotFoundError
        return version

    assert storm.unavailable() is None
    monkeypatch.setattr(process.importlib.metadata, "version", find)
    assert 'pip install "prism-gpu[storm]"' in storm.unavailable()
    with pytest.raises(BridgeError, match="stormpy"):
        build(tmp_path)


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", DeviceMemoryError, "memory does not suffice"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", BridgeError, "SIGSEGV"),
        ("import no_such_module", BridgeError, "no_such_module"),
        ('print(\'{"error": "bad_alloc", "memory": true}\')', DeviceMemoryError, "bad_alloc"),
    ],
)
def test_a_process_that_ends_early_is_an_error(code, error, message, monkeypatch, tmp_path):
    worker = tmp_path / "worker.py"
    worker.write_text(f"import os, signal, sys\nsys.stdin.read()\n{code}\n", encoding="utf-8")
    monkeypatch.setattr(process, "_WORKER", worker)
    with pytest.raises(error, match=message):
        build(tmp_path)


ENDLESS = "dtmc module m x:[0..2000000000]; [] x<2000000000 -> (x'=x+1); endmodule"


def has_ended(process_id: str) -> bool:
    """Return whether a process is gone, or dead and only not yet reaped."""
    try:
        state = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state.rpartition(")")[2].split()[0] == "Z"


def test_ctrl_c_stops_storm(tmp_path):
    file = tmp_path / "m.prism"
    file.write_text(ENDLESS, encoding="utf-8")
    code = f"""
from pathlib import Path
from bridge import storm
print("begin", flush=True)
storm.build_model(Path({str(file)!r}), {{}}, log=print)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs this in the background has Ctrl-C ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as running:
        assert "begin" in running.stdout.readline()
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
        if not children.exists():
            running.kill()
            pytest.skip("needs /proc with the children of processes")
        deadline = time.monotonic() + 20
        while not (workers := children.read_text(encoding="utf-8").split()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(0.5)
        begin = time.monotonic()
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors
    assert time.monotonic() - begin < 10
    assert all(has_ended(worker) for worker in workers)


@pytest.mark.slow
def test_a_lack_of_memory_is_said(tmp_path):
    wide = "".join(f" y{number}:[0..2000000000];" for number in range(200))
    file = tmp_path / "m.prism"
    file.write_text(ENDLESS.replace("[]", f"{wide} []", 1), encoding="utf-8")
    code = f"""
import resource
from pathlib import Path
from bridge import storm
from engines.errors import DeviceMemoryError
resource.setrlimit(resource.RLIMIT_AS, (600 * 1024**2,) * 2)
try:
    storm.build_model(Path({str(file)!r}), {{}}, log=lambda line: None)
except DeviceMemoryError as error:
    print(error)
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        timeout=120,
    )
    assert "memory does not suffice" in run.stdout, run.stderr
