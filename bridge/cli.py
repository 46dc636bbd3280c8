"""The command `prism-gpu`."""

from __future__ import annotations

import os
import resource
import sys
import threading
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from bridge.arguments import Arguments
    from prism_hooks.record import RunRecord

PRISM_MAIN = "prism.PrismCL"
GUI_MAIN = "userinterface.GUIPrism"
LEAST_ADDRESS_SPACE = 512 << 20
"""Bytes in which the libraries of a run without PRISM can be loaded; a JVM takes more."""
LEAST_OPEN_FILES = 64
"""That a run with PRISM has at a time, jars and libraries among them."""


def main(argv: list[str] | None = None) -> NoReturn:
    """Run PRISM with our engines, or one of our own commands.

    Parameters
    ----------
    argv
        The arguments, without the program's name; those of the process by default.
    """
    from bridge import ending
    from bridge.streams import secure_streams

    # Before anything is opened: it would take the place of a stream that is closed.
    secure_streams()
    ending.watch()
    _require_address_space()
    words = sys.argv[1:] if argv is None else argv
    # A file that has the name of a command is a model.
    asked = words[0] if words and words[0] in ("doctor", "regress", "reproduce", "server") else ""
    if asked and Path(asked).is_file():
        asked = ""
    if asked == "doctor":
        _doctor(words[1:])
    if asked == "reproduce":
        from bridge.reproduce.command import command

        command.main(args=words[1:], prog_name="prism-gpu reproduce")
    if asked == "server":
        from bridge.server.command import command as server

        server.main(args=words[1:], prog_name="prism-gpu server")
    if words and words[0] in ("export", "solve", "report"):
        from bridge.exchange.commands import is_command
        from bridge.exchange.commands import main as exchange

        if is_command(words):
            exchange(words[0], words[1:])
    if asked == "regress":
        from bridge.regress.command import main as regress

        regress(words[1:])
    from bridge.arguments import parse
    from bridge.front_end import embedded_reason
    from bridge.own_switches import UsageError
    from bridge.refusals import unused_switches
    from engines.errors import BridgeError, UnsupportedError

    try:
        arguments = parse(words, os.environ)
        _require_model_or_command(arguments.files)
        if arguments.own_help:
            print(arguments.own_help)
            sys.exit(0)
        record = None
        if arguments.plot is not None:
            from bridge.plot import plot_record

            record = plot_record(arguments)
        reason = embedded_reason(arguments)
        remark = unused_switches(arguments.hooks) if arguments.engines else None
        if remark is not None:
            print(remark, flush=True)
        if reason is None:
            _run(arguments, record)
        _run_embedded(arguments, words, reason, record)
    except (UsageError, BridgeError, UnsupportedError) as error:
        _fail(error)


def _require_model_or_command(files: tuple[str, ...]) -> None:
    """Raise `UsageError` for an empty word, and for no file that is almost one of our commands."""
    from bridge.own_switches import UsageError

    if files and not files[0]:
        # As a path it would be the folder where the command runs.
        raise UsageError('File "" not found')
    if not files or not files[0].isalpha() or Path(files[0]).exists():
        return
    from difflib import get_close_matches

    from bridge.server.client import OWN_COMMANDS

    near = get_close_matches(files[0], OWN_COMMANDS, 1)
    if near:
        raise UsageError(f'There is no file "{files[0]}"; type "prism-gpu {near[0]}" for a command')


def _run_embedded(
    arguments: Arguments, words: list[str], reason: str, record: RunRecord | None
) -> NoReturn:
    """Check without PRISM; see `bridge.check.run`."""
    from bridge import ending
    from bridge.refusals import require_gpu
    from engines.errors import InvalidModelError
    from engines.model.environment import DeviceChoice

    if arguments.help:
        print("Usage: prism-gpu [options] <model-file> [<properties-file>]")
    if arguments.help_on:
        print(f"Sorry - no help available for switch -{arguments.help_on} without PRISM")
        sys.exit(0)
    if arguments.at_the_end:
        print(arguments.at_the_end)
        sys.exit(0)
    hooks = arguments.hooks
    if hooks.device is DeviceChoice.GPU:
        require_gpu(hooks.device_number)
    from bridge.check.run import run

    try:
        with ending.first(record.finish) if record is not None else nullcontext():
            code = run(arguments.prism, hooks, words, reason, record)
    except (InvalidModelError, MemoryError, OSError) as error:
        _fail(error)
    sys.stdout.flush()
    sys.exit(code)


def _doctor(words: list[str]) -> NoReturn:
    import click

    from bridge.doctor import doctor

    @click.command(
        name="prism-gpu doctor", context_settings={"help_option_names": ["--help", "-help"]}
    )
    @click.option("--prism-dir", metavar="DIR", help="Use the PRISM in this folder.")
    def command(prism_dir: str | None) -> None:
        """Tell what was found, what is missing and the command that gets it."""
        sys.exit(doctor(prism_dir))

    command.main(args=words, prog_name="prism-gpu doctor")
    raise SystemExit(0)


def _require_address_space() -> None:
    """End where the limit of ``ulimit -v`` leaves no room for the libraries.

    They are not made for it: with less, some abort while they are loaded, and others try for ever.
    """
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESS_SPACE:
        print(
            f"\nError: The address space is limited to {limit >> 20} MiB (ulimit -v): "
            f"{LEAST_ADDRESS_SPACE >> 20} MiB are needed.",
            flush=True,
        )
        sys.exit(1)


def _fail(error: Exception) -> NoReturn:
    """End as PRISM ends on an error: its form of text on standard output, exit code 1."""
    from bridge.refusals import error_line

    print(error_line(error), flush=True)
    sys.exit(1)


def _run(arguments: Arguments, record: RunRecord | None) -> NoReturn:
    from bridge import jvm, large_models
    from bridge.devices import header
    from bridge.refusals import require_gpu
    from engines.cuda import driver
    from engines.devices.opening import MODELS
    from engines.model.environment import DeviceChoice
    from engines.process.timeline import STARTING_JAVA, TIMELINE
    from prism_hooks.exit_gate import GATE

    _require_text(arguments.prism)
    _require_open_files()
    if not {"-javaversion", "--javaversion"}.isdisjoint(arguments.prism):
        _tell_java_version()
    runtime = jvm.find_runtime(arguments.prism_dir, with_engines=arguments.engines)
    hooks = arguments.hooks
    if arguments.engines and hooks.device is DeviceChoice.GPU:
        # It is opened while PRISM parses and builds.
        require_gpu(hooks.device_number, opened=False)
    window, device = arguments.gui, hooks.device
    may_use_gpu = arguments.engines and device is not DeviceChoice.CPU and driver.driver_present()
    if may_use_gpu:
        large = device is DeviceChoice.GPU or large_models.is_known(arguments)
        open_gpu_beside(hooks.device_number, at_once=large)
    with TIMELINE.part(STARTING_JAVA):
        archive = jvm.start(runtime, arguments.jvm, window=window, make_archive=not window)
    if arguments.engines:
        if record is not None:
            GATE.close_at_end(record.finish)
        if arguments.at_the_end:
            jvm.java_class("prismgpu.Ending").printFirst(arguments.at_the_end)
    sys.stdout.flush()
    sys.stderr.flush()
    jvm.tell_of_signals(with_engines=arguments.engines)
    if arguments.engines:
        # Last: from here on a thread that loads them shares the interpreter with this one.
        jvm.install_engines(hooks, record, header(arguments.words, hooks.device))
    main_class = GUI_MAIN if arguments.gui else PRISM_MAIN
    code = call_main(main_class, arguments)
    if code < 0:
        # PRISM went through all of its work: what it loaded is what other runs load.
        sys.stdout.flush()
        archive.keep()
    if may_use_gpu and MODELS.has_large:
        large_models.note(arguments)
    GATE.end(max(code, 0))


def _tell_java_version() -> NoReturn:
    """Have Java tell its version, as the script that starts PRISM does."""
    import subprocess

    from bridge.install import find_java

    java = find_java().home / "bin" / "java"
    sys.exit(subprocess.run([str(java), "-version"], check=False).returncode)


def _require_text(words: tuple[str, ...]) -> None:
    """Raise `BridgeError` for an argument of bytes that are no text, which Java does not take."""
    from engines.errors import BridgeError

    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise BridgeError(
                f"the argument {word!a} is no text in UTF-8, as Java wants it: "
                "rename the file, or use -frontend builtin"
            ) from None


def call_main(main_class: str, arguments: Arguments) -> int:
    """Call a Java main class; return the exit code of the run, or -1 where it named none.

    Parameters
    ----------
    main_class
        Its name.
    arguments
        The command line.
    """
    import jpype

    from bridge.jvm import java_class
    from engines.process.timeline import PRISM, TIMELINE

    TIMELINE.turn_to(PRISM)
    array = jpype.JArray(jpype.JString)(words_for_prism(arguments))
    code = -1
    try:
        if arguments.engines:
            launcher = java_class("prismgpu.Launcher")
            code = int(launcher.run(main_class, array, arguments.jvm.stack_bytes))
        else:
            java_class(main_class).main(array)
        if main_class == GUI_MAIN and code < 0:
            if arguments.engines:
                for window in java_class("java.awt.Frame").getFrames():
                    window.setTitle(f"{window.getTitle()} with prism-gpu")
            # The GUI's main method returns while its windows are open.
            threading.Event().wait()
    except jpype.JException as error:
        print(f'Exception in thread "main" {error}', file=sys.stderr)
        if isinstance(error, jpype.JClass("java.lang.OutOfMemoryError")):
            print("Try a larger Java heap: -javamaxmem 8g, say.", file=sys.stderr)
        code = 1
    if arguments.engines and arguments.hooks.show_solves:
        print(f"\nprism-gpu: {TIMELINE.told()}", flush=True)
    return code


def words_for_prism(arguments: Arguments) -> list[str]:
    """Return PRISM's words: without parameters of a method of ours, which are not its own's.

    Parameters
    ----------
    arguments
        The command line.
    """
    from bridge.arguments import SIMULATION_SWITCHES

    if not arguments.hooks.simulation_method:
        return list(arguments.prism)
    kept = []
    words = iter(arguments.prism)
    for word in words:
        if word[:1] == "-" and word.lstrip("-") in SIMULATION_SWITCHES:
            next(words, None)
        else:
            kept.append(word)
    return kept


def _require_open_files() -> None:
    """Raise `BridgeError` where the limit of ``ulimit -n`` leaves no room for the JVM's files."""
    from engines.errors import BridgeError

    few, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if few == resource.RLIM_INFINITY or few >= LEAST_OPEN_FILES:
        return
    if most != resource.RLIM_INFINITY and most < LEAST_OPEN_FILES:
        raise BridgeError(
            f"the number of open files is limited to {most} (ulimit -n): {LEAST_OPEN_FILES} are "
            "needed with PRISM"
        )
    # As a JVM does by itself, later.
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def open_gpu_beside(device_number: int, *, at_once: bool) -> None:
    """Open the GPU while PRISM starts, parses and builds, in a thread of its own, if it is used.

    Parameters
    ----------
    device_number
        Which GPU.
    at_once
        Whether it is sure to be used; else it is opened for the first large model.
    """
    from engines.cuda import driver

    if at_once:
        # Already while the libraries of Python are loaded.
        driver.open_context_beside(device_number)
    import jpype

    from engines.devices.opening import MODELS
    from engines.process.timeline import OPENING, TIMELINE

    # So long a thread that loads may keep the interpreter from one that solves.
    sys.setswitchinterval(5e-4)

    def load() -> None:
        if not at_once:
            # A run whose model is small is not held up by loading it: the interpreter serves one
            # thread at a time.
            MODELS.wait_for_large(patience_s=1.5)
        # What cannot be loaded now, in a heap that is full, the solve that wants it tries again.
        with suppress(MemoryError, jpype.JException), TIMELINE.beside(OPENING):
            if not at_once:
                # While CuPy is imported.
                driver.open_context_beside(device_number)
            from engines.devices import choice

            choice.preload(device_number)

    threading.Thread(target=load, name="open-gpu", daemon=True).start()
