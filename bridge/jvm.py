"""The JVM: started once, with PRISM's options and our classes in front of PRISM's own."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge import ending
from bridge.archive import ClassArchive
from bridge.install import JavaInstall, PrismInstall, find_java, find_prism, require_compiler
from bridge.versions import supported_release
from engines.errors import BridgeError
from prism_hooks.answers import SWITCHBOARD
from prism_hooks.build import hook_classes
from prism_hooks.loading import LoadedBeside
from prism_hooks.options import HookOptions

if TYPE_CHECKING:
    from prism_hooks.record import RunRecord

DEFAULT_STACK = "4m"
LEAST_HEAP = 16 << 20
"""Bytes of the smallest heap in which PRISM and our engines start, and in which Java can still say
that it is full."""

COMPILER = "-XX:CompileThresholdScaling=5"
"""Java compiles a method after five times as many calls as by default. Most runs are over before
what is compiled at their start repays that; long ones took no longer in any case seen."""

EMBEDDED = ("-XX:-StackTraceInThrowable",)
"""JPype never frees the Python frames that it makes of the stack of an exception."""

_MEMORY = re.compile(r"([0-9]+)([kmg]?)")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True)
class JvmOptions:
    """What PRISM's start script takes for the JVM.

    Parameters
    ----------
    max_memory
        Java's largest heap, such as "4g"; None for Java's own default.
    stack
        Stack of PRISM's main thread, such as "4m".
    extra
        Further options, such as "-XX:+UseSerialGC".
    headless
        Whether there is no screen to draw on.
    """

    max_memory: str | None = None
    stack: str = DEFAULT_STACK
    extra: tuple[str, ...] = ()
    headless: bool = True

    @property
    def stack_bytes(self) -> int:
        """The stack's size in bytes."""
        return memory_bytes(self.stack)


def memory_bytes(text: str) -> int:
    """Return the bytes that a size such as "512m" or "4g" stands for.

    Raises
    ------
    ValueError
        For anything that PRISM's start script would not take.
    """
    match = _MEMORY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no size of memory: a whole number, then k, m or g")
    return int(match[1]) * _UNITS[match[2]]


def default_options(environ: Mapping[str, str] = os.environ) -> JvmOptions:
    """Return the options that PRISM's environment variables set.

    Parameters
    ----------
    environ
        The environment: `PRISM_JAVAMAXMEM`, `PRISM_JAVASTACKSIZE`, `PRISM_JAVA_PARAMS`,
        `PRISM_HEADLESS`.

    Raises
    ------
    BridgeError
        Naming the variable that holds no size.
    """
    sizes: dict[str, str | None] = {}
    for variable in ("PRISM_JAVAMAXMEM", "PRISM_JAVASTACKSIZE"):
        sizes[variable] = environ.get(variable) or None
        try:
            memory_bytes(sizes[variable] or "1")
        except ValueError as error:
            raise BridgeError(f"Environment variable {variable} is invalid: {error}") from error
    return JvmOptions(
        max_memory=sizes["PRISM_JAVAMAXMEM"],
        stack=sizes["PRISM_JAVASTACKSIZE"] or DEFAULT_STACK,
        extra=tuple(environ.get("PRISM_JAVA_PARAMS", "").split()),
        headless=environ.get("PRISM_HEADLESS", "true") != "false",
    )


@dataclass(frozen=True)
class Runtime:
    """What a run needs, found and in order.

    Parameters
    ----------
    prism, java
        The installations.
    classpath
        Jars, our classes' ahead of PRISM's, then folders; for PRISM untouched, its own.
    hooked
        Whether our classes are on it.
    """

    prism: PrismInstall
    java: JavaInstall
    classpath: tuple[Path, ...]
    hooked: bool


def find_runtime(prism_dir: str | None = None, *, with_engines: bool = True) -> Runtime:
    """Find PRISM and Java, and make our classes ready; no JVM is started in this process.

    Parameters
    ----------
    prism_dir
        PRISM's folder, if the user named one.
    with_engines
        Whether our classes are wanted.

    Raises
    ------
    BridgeError
        Saying what is missing and how to get it.
    """
    prism = find_prism(prism_dir)
    java = find_java()
    if not with_engines:
        return Runtime(prism, java, prism.classpath, hooked=False)
    release = supported_release(prism.version, prism.root)
    require_compiler(java)
    ours, prisms = hook_classes(
        prism.class_location,
        prism.classpath,
        java.home,
        java.version,
        release.hooks,
        release.constructors,
        release.statics,
    )
    others = [path for path in prism.classpath if path != prism.class_location]
    # An archive of classes holds for jars, and for what begins with those it was made with.
    others.sort(key=Path.is_dir)
    return Runtime(prism, java, (ours, prisms, *others), hooked=True)


def start(
    runtime: Runtime,
    options: JvmOptions,
    *,
    embedded: bool = False,
    window: bool = False,
    make_archive: bool = False,
) -> ClassArchive:
    """Start the JVM of this process; return the archive of its classes.

    Parameters
    ----------
    runtime
        What `find_runtime` found.
    options
        Heap, stack and further options.
    embedded
        Whether a Python program goes on beside the JVM, whose signals are its own; else SIGINT,
        SIGTERM and SIGHUP end the process through Java, as PRISM's do.
    window
        Whether PRISM's window is opened, whose pictures lie in a folder; no archive is used then.
    make_archive
        Whether an archive of classes is made where there is none; its `keep` is then called at the
        end.

    Raises
    ------
    BridgeError
        When a JVM runs already, or none can be started with these options.
    """
    heap = options.max_memory
    if runtime.hooked and heap is not None and memory_bytes(heap) < LEAST_HEAP:
        raise BridgeError(
            f"a Java heap of {heap} is too small to start in: -javamaxmem must be at least "
            f"{LEAST_HEAP >> 20}m"
        )
    import jpype

    if jpype.isJVMStarted():
        raise BridgeError("this process has a JVM already; its options cannot be changed any more")
    arguments = [
        # Signals are Python's, or the Python program's: the JVM would end the process while we
        # still call it.
        "-Xrs",
        # A file in a folder of all users, which would stay where the process ends by itself.
        "-XX:-UsePerfData",
        f"-Djava.awt.headless={'true' if options.headless else 'false'}",
        f"-Djava.library.path={runtime.prism.library_path}",
        f"-Xss{options.stack}",
    ]
    if options.max_memory is not None:
        arguments.append(f"-Xmx{options.max_memory}")
    if runtime.java.major >= 17:
        arguments.append("--enable-native-access=ALL-UNNAMED")
        arguments.append(COMPILER)
    if embedded:
        arguments.extend(EMBEDDED)
    classpath = runtime.classpath
    archive = ClassArchive(runtime.java, classpath)
    if runtime.hooked and not window:
        classpath = archive.jars
        plain = not options.extra and options.max_memory is None
        arguments.extend(archive.options(make=make_archive and plain))
    arguments.extend(options.extra)
    # PRISM's own code looks for its folder here.
    os.environ["PRISM_DIR"] = str(runtime.prism.root)
    try:
        jpype.startJVM(
            str(runtime.java.jvm_library),
            *arguments,
            classpath=[str(path) for path in classpath],
            convertStrings=False,
            # JPype has no handlers of its own to install: with -Xrs, Java would refuse them.
            interrupt=True,
        )
    except (RuntimeError, OSError, ValueError, TypeError) as error:
        raise BridgeError(
            f"the JVM in {runtime.java.home} could not be started with {' '.join(arguments)}: "
            f"{error}"
        ) from error
    _part_collectors()
    return archive


def _part_collectors() -> None:
    """Keep Python's collections of garbage from starting Java's.

    JPype has each large one of Python's followed by a full one of Java's, for objects that refer
    to each other across the border: 50 ms with a model on Java's heap. Only what lives as long as
    the process does so here.
    """
    import _jpype

    started = getattr(_jpype, "_collect", None)
    gc.callbacks[:] = [callback for callback in gc.callbacks if callback is not started]


def install_engines(
    options: HookOptions, record: RunRecord | None = None, header: str = ""
) -> None:
    """Give PRISM, in the running JVM, our engines, which a thread loads while PRISM starts.

    Parameters
    ----------
    options
        What the command line says about the engines.
    record
        Keeps what a plot of the run needs; None where none is wanted.
    header
        The line below PRISM's own header; empty for none.
    """
    SWITCHBOARD.turn_to(LoadedBeside(options, record, header))


def tell_of_signals(*, with_engines: bool) -> None:
    """Have the running JVM print what it holds before a signal ends the process.

    Parameters
    ----------
    with_engines
        Whether our classes are there.
    """
    from prism_hooks.exit_gate import GATE

    hooks = java_class("prismgpu.Hooks") if with_engines else None
    output = java_class("java.lang.System").out

    def tell() -> None:
        # A JVM that is ending, to write an archive, cannot be called.
        if not GATE.ending:
            GATE.begin_end()
            ending.within(ending.FLUSH_S, output.flush if hooks is None else hooks.beginEnd)
        GATE.close()

    ending.do_first(tell)


def java_class(name: str) -> Any:
    """Return a Java class of the running JVM by its full name."""
    import jpype

    return jpype.JClass(name)
