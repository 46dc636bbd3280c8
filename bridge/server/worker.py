"""The process with a JVM that makes one run after the other: `python -m bridge.server.worker`."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import socket
import sys
import threading
import time
import warnings
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from bridge import ending, jvm
from bridge.arguments import Arguments, parse
from bridge.cli import PRISM_MAIN, call_main, open_gpu_beside
from bridge.devices import header
from bridge.files.names import is_model_file
from bridge.jvm import JvmOptions, Runtime, default_options, find_runtime
from bridge.own_switches import UsageError
from bridge.refusals import error_line, require_gpu, unused_switches
from bridge.server import wire
from bridge.server.circumstances import decides
from bridge.streams import secure_streams
from engines.cuda import driver
from engines.errors import BridgeError, UnsupportedError
from engines.model.environment import DeviceChoice
from engines.process import cache
from engines.process.leftovers import temporary_folder
from engines.process.timeline import TIMELINE
from prism_hooks.exit_gate import GATE
from prism_hooks.options import HookOptions

NOT_SERVED = frozenset(
    (
        *("dir", "timeout", "settings", "ng", "exportiterations", "ltl2datool", "ddsanity"),
        *("dddebug", "ddtrace", "ddtraceall", "ddtracefollowcopies", "dddebugwarnfatal"),
        *("dddebugwarnoff", "javaversion"),
    )
)
"""PRISM's switches that outlast a run, end it from another thread, or look at Java's own idea of
the working folder."""
WARM_UP = (("-explicit",), ("-hybrid",))
"""Switches of the runs that load PRISM's classes."""
MODEL = """
mdp
module m
  x : [0..2] init 0;
  [a] x=0 -> 0.5 : (x'=1) + 0.5 : (x'=2);
  [b] x=0 -> 0.4 : (x'=0) + 0.6 : (x'=2);
  [] x>0 -> true;
endmodule
label "there" = x=1;
rewards "steps" true : 1; endrewards
"""
PROPERTIES = 'Pmax=? [ F "there" ]; Pmin=? [ F<=3 "there" ]; Rmin=? [ F x>0 ]; P>=0.1 [ G x<2 ]'


@dataclass(frozen=True)
class _Limits:
    """What ends a worker: see `bridge.server.supervisor.ServerOptions`."""

    runs: int
    growth_mib: int
    patience_s: float = 2.0


class _Watch:
    """Ends or suspends this process when its client asks for it, or is gone, during a run."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._is_over = False
        threading.Thread(target=self._listen, name="client", daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                fields, _ = wire.receive(self._connection)
            except OSError:
                fields = []
            with self._lock:
                if self._is_over:
                    return
                if fields[:1] == [wire.SUSPEND]:
                    os.kill(os.getpid(), signal.SIGSTOP)
                    continue
                asked = fields[:1] == [wire.SIGNAL]
                os.kill(os.getpid(), int(fields[1]) if asked else signal.SIGTERM)
                # The lock is held: the run does not end in another way.
                threading.Event().wait()

    def close(self) -> None:
        """Listen no more: the run is over."""
        with self._lock:
            self._is_over = True
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RD)


class Worker:
    """Makes runs that a supervisor hands over.

    Parameters
    ----------
    control
        The connection to the supervisor.
    limits
        What ends the worker.
    """

    def __init__(self, control: socket.socket, limits: _Limits) -> None:
        self._control = control
        self._limits = limits
        self._runs = 0
        self._jvm: JvmOptions = default_options(os.environ)
        self._runtime: Runtime = find_runtime()
        jvm.start(self._runtime, self._jvm)
        jvm.tell_of_signals(with_engines=True)
        self._between: Any = jvm.java_class("prismgpu.BetweenRuns")
        self._between.keepFirstState(self._own_classes())
        self._warm_up()
        if not cache.is_as_named():
            raise BridgeError("the cache folder cannot be used")
        self._memory = _resident_mib()
        self._files = _open_files()
        # What is loaded by now stays: collections of garbage need not look at it again.
        gc.collect()
        gc.freeze()

    def serve(self) -> NoReturn:
        """Make runs until this process may make no more, or the supervisor is gone."""
        goes_on = self._tell(wire.READY)
        while goes_on:
            try:
                fields, descriptors = wire.receive(self._control)
            except OSError:
                fields = []
            goes_on = bool(fields) and self._serve(fields, descriptors)
        GATE.end(0)

    def _tell(self, *fields: bytes) -> bool:
        """Tell the supervisor something; return whether it is there."""
        try:
            wire.send(self._control, fields)
        except OSError:
            return False
        return True

    def _own_classes(self) -> Any:
        import jpype

        with zipfile.ZipFile(self._runtime.classpath[0]) as jar:
            files = [name for name in jar.namelist() if name.startswith("prismgpu/")]
        names = [name.removesuffix(".class").replace("/", ".") for name in sorted(files)]
        return jpype.JArray(jpype.JString)(names)

    def _warm_up(self) -> None:
        """Make a few small runs that nobody sees.

        Raises
        ------
        BridgeError
            If one fails.
        """
        with temporary_folder() as folder:
            model, properties = folder / "model.nm", folder / "model.props"
            model.write_text(MODEL, encoding="ascii")
            properties.write_text(PROPERTIES, encoding="ascii")
            for switches in WARM_UP:
                words = (str(model), str(properties), *switches, "-nogpu")
                code = self._run(parse(list(words), os.environ))
                if code != 0:
                    raise BridgeError(f"a small run of PRISM ended with exit code {code}")

    def _serve(self, fields: list[bytes], descriptors: list[int]) -> bool:
        """Make a run of a client; return whether this process makes more."""
        connection = socket.socket(fileno=descriptors[0])
        arguments_at = 1 + int(fields[0])
        _set_variables(fields[1:arguments_at])
        words = [os.fsdecode(each) for each in fields[arguments_at:]]
        with connection:
            reason, asked = self._taken(words, connection, descriptors[4])
            if asked is not None:
                for number, given in enumerate(descriptors[1:4]):
                    os.dup2(given, number)
            for number in descriptors[1:]:
                os.close(number)
            if asked is None:
                os.chdir("/")
                return self._tell(wire.REFUSED, reason.encode(errors="replace"))
            watch = _Watch(connection)
            code = self._run(asked)
            watch.close()
            self._give_back()
            self._runs += 1
            goes_on = code == 0 and self._is_as_before()
            told = (wire.ENDED, b"%d" % code, b"%d" % goes_on)
            if not self._tell(*told):
                # The supervisor was killed meanwhile.
                wire.send(connection, told[:2])
                goes_on = False
        return goes_on

    def _taken(
        self, words: list[str], connection: socket.socket, folder: int
    ) -> tuple[str, Arguments | None]:
        """Go to the client's folder and agree on a run: why it is not made here, or its words."""
        try:
            os.fchdir(folder)
            # JPype takes no other text.
            " ".join(words).encode()
            arguments = parse(words, os.environ)
            reason = self._refusal(arguments)
            if reason is not None:
                return reason, None
            connection.setblocking(True)
            connection.settimeout(self._limits.patience_s)
            wire.send(connection, [wire.OFFERED, b"%d" % os.getpid()])
            answer, _ = wire.receive(connection)
            connection.settimeout(None)
        except (OSError, ValueError, UsageError, BridgeError, UnsupportedError) as error:
            return f"{type(error).__name__}: {error}", None
        return "the command is gone", arguments if answer == [wire.GO] else None

    def _refusal(self, arguments: Arguments) -> str | None:
        """Return why a command line is not for this process, or None."""
        if arguments.gui or arguments.plot is not None:
            return "-gui or -gpuplot"
        if not arguments.engines or arguments.front_end == "builtin":
            return "a run without our engines, or without PRISM"
        if arguments.files and is_model_file(Path(arguments.files[0])):
            return "a run without PRISM"
        named = arguments.prism_dir
        if named is not None and Path(named).resolve() != self._runtime.prism.root:
            return "another PRISM"
        if arguments.jvm != self._jvm:
            return "other options of the JVM"
        if arguments.hooks.simulation_cluster:
            return "-simcluster"
        switches = {
            word.lstrip("-").partition(":")[0] for word in arguments.prism if word[:1] == "-"
        }
        kept = sorted(switches & NOT_SERVED)
        return f"-{kept[0]}" if kept else None

    def _run(self, arguments: Arguments) -> int:
        """Make a run on the standard streams of this process; return its exit code."""
        TIMELINE.restart(time.perf_counter())
        _open_streams()
        self._between.begin()
        with warnings.catch_warnings():
            try:
                return self._made(arguments)
            except UnsupportedError as error:
                print(error_line(error), flush=True)
                return 1
            except SystemExit as error:
                return error.code if isinstance(error.code, int) else 1

    def _made(self, arguments: Arguments) -> int:
        hooks: HookOptions = arguments.hooks
        remark = unused_switches(hooks)
        if remark is not None:
            print(remark, flush=True)
        if hooks.device is DeviceChoice.GPU:
            require_gpu(hooks.device_number, opened=False)
        jvm.install_engines(hooks, header=header(arguments.words, hooks.device))
        if arguments.at_the_end:
            jvm.java_class("prismgpu.Ending").printFirst(arguments.at_the_end)
        if hooks.device is DeviceChoice.GPU:
            open_gpu_beside(hooks.device_number, at_once=True)
        return max(0, call_main(PRISM_MAIN, arguments))

    def _give_back(self) -> None:
        """Print what is still held, and let go of the client's files and folder."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, SystemExit):
                stream.flush()
        ctypes.CDLL(None).fflush(None)
        os.chdir("/")
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nowhere, number)
        os.close(nowhere)
        # What could not be written is nothing for the next client.
        ctypes.CDLL(None).fflush(None)
        _open_streams()

    def _is_as_before(self) -> bool:
        """Return whether nothing is left of the runs so far that the next could notice."""
        most_left_open = 64
        return (
            self._runs < self._limits.runs
            # Who has used a GPU begins its next solve there; who has opened one holds its memory.
            and not (driver.is_used() or "cupy" in sys.modules)
            and cache.is_as_named()
            and _resident_mib() - self._memory < self._limits.growth_mib
            and _open_files() - self._files < most_left_open
            and all(thread.daemon for thread in threading.enumerate()[1:])
            and bool(self._between.isAlone())
        )


def _set_variables(pairs: list[bytes]) -> None:
    """Set the variables that only children of a run read to those of its client."""
    wanted = dict(pair.split(b"=", 1) for pair in pairs)
    for name in [name for name in os.environb if not decides(name) and name not in wanted]:
        del os.environb[name]
    for name, value in wanted.items():
        if os.environb.get(name) != value:
            os.environb[name] = value


def _open_streams() -> None:
    """Make Python's and C's standard streams anew, as at the start of a process."""
    encoding = sys.stdout.encoding
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - they stay open
    sys.stdout = sys.__stdout__ = open(1, "w", encoding=encoding, closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", encoding=encoding, closefd=False)  # type: ignore[misc]  # noqa: SIM115
    secure_streams()
    fully, by_lines = 0, 1
    library = ctypes.CDLL(None)
    output = ctypes.c_void_p.in_dll(library, "stdout")
    library.setvbuf(output, None, by_lines if os.isatty(1) else fully, 1 << 12)


def _resident_mib() -> int:
    return int(Path("/proc/self/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def main() -> NoReturn:
    """Start the JVM, then make runs."""
    for number in ending.SIGNALS:
        # Whoever started the server may have ignored them.
        signal.signal(number, signal.SIG_DFL)
    secure_streams()
    ending.watch()
    descriptor, runs, growth = map(int, sys.argv[1:])
    os.set_inheritable(descriptor, False)
    control = socket.socket(fileno=descriptor)
    try:
        worker = Worker(control, _Limits(runs, growth))
    except (BridgeError, OSError) as error:
        with suppress(OSError):
            wire.send(control, [wire.FAILED, str(error).encode()])
        GATE.end(1)
    worker.serve()


if __name__ == "__main__":
    main()
