"""The commands `export`, `solve` and `report`, from their words to the exit code."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from bridge.arguments import Arguments, parse
from bridge.exchange.words import (
    OUTPUT,
    Group,
    groups,
    joined,
    require_exportable,
    require_output_only,
    require_texts,
    taken_apart,
    with_absolute_files,
)
from bridge.own_switches import READERS, UsageError, on_or_off
from bridge.refusals import error_line, require_gpu, unused_switches
from engines.errors import BridgeError, ConvergenceError, InvalidModelError, UnsupportedError
from engines.model.environment import DeviceChoice, Method, SolverEnvironment

USAGE = {
    "export": """Usage: prism-gpu export <model-file> <properties-file> -to <dir> [options]

Write what the properties ask of the model to a folder, for another machine to solve.

-to <dir> .............................. The folder, which must not exist or be empty
-text .................................. Write the model as text files instead of UMB
-force ................................. Replace an export that is in the folder
and PRISM's switches, -const and -epsilon among them.""",
    "solve": """Usage: prism-gpu solve <dir> [options]

Solve what was exported to a folder; neither PRISM nor Java is needed.

-gpu, -nogpu ........................... Solve on the GPU, or on the CPU
-gpudevice <k> ......................... Solve on GPU number k [default: 0]
-gpuformat <name> ...................... Lay matrices out on the GPU as auto, csr, values,
                                         patterns, segments or panels [default: auto]
-gpumethod <name> ...................... Chains: by power, jacobi, jor, gs, bgs, sor, bsor,
                                         multilevel or gmres
-gpudevices <n> ........................ Share each solve out among n GPUs, or all
-gpumaxmem <x> ......................... Take no more of a GPU's memory than that, such as 4g
-gpuslice <n>, -gpucolours <n> ......... Gauss-Seidel: by slices, in so many colours
-gpuprecision <name> ................... Sweep in double, single or mixed precision
-gpuinfo ............................... Print a line on each solve
-gpuprogress <on|off> .................. Show the progress of long solves, on a terminal
-epsilon <x>, -maxiters <n> ............ Solve otherwise than the export says;
-absolute, -relative, -omega <x> ....... so do these
-power, -jacobi, -jor, -gs, -bgs, ...... and these
-sor, -bsor""",
    "report": """Usage: prism-gpu report <dir> [options]

Let PRISM report on what was exported to a folder and solved elsewhere.

-exportresults <file> .................. Export the results, as in PRISM
-exportvector <file> ................... Export their values in all states, as in PRISM
and PRISM's other switches that write something out. What the export was told of files other than
the model's and the properties', and of Java, is said again here: the folder does not decide it.""",
}
Change = Callable[[SolverEnvironment], SolverEnvironment]
_Setting = Callable[[str, SolverEnvironment], SolverEnvironment]
_AS_IN_A_RUN = (
    *("gpudevice", "gpuformat", "gpumethod", "gpudevices", "gpumaxmem"),
    *("gpuslice", "gpucolours", "gpuprecision"),
)


def _as_in_a_run(switch: str) -> _Setting:
    name, read = READERS[switch]
    return lambda text, given: replace(given, **{name: read(text, switch)})  # type: ignore[arg-type]


def _with_method(method: Method) -> _Setting:
    return lambda _, given: replace(given, method=method)


# What a switch of `solve` makes of the settings, from its value.
_SWITCHES: dict[str, _Setting] = {
    "gpu": lambda _, given: replace(given, device=DeviceChoice.GPU),
    "nogpu": lambda _, given: replace(given, device=DeviceChoice.CPU),
    **{switch: _as_in_a_run(switch) for switch in _AS_IN_A_RUN},
    **dict.fromkeys(("absolute", "abs"), lambda _, given: replace(given, absolute=True)),
    **dict.fromkeys(("relative", "rel"), lambda _, given: replace(given, absolute=False)),
    **dict.fromkeys(("epsilon", "e"), lambda text, given: replace(given, epsilon=float(text))),
    "omega": lambda text, given: replace(given, omega=float(text)),
    "maxiters": lambda text, given: replace(
        given, max_iterations=int(text), max_iterations_named=True
    ),
    **dict.fromkeys(("power", "pow", "pwr"), _with_method(Method.POWER)),
    **dict.fromkeys(("jacobi", "jac"), _with_method(Method.JACOBI)),
    "jor": _with_method(Method.JOR),
    **dict.fromkeys(("gaussseidel", "gs"), _with_method(Method.GAUSS_SEIDEL)),
    **dict.fromkeys(("bgaussseidel", "bgs"), _with_method(Method.BACKWARDS_GAUSS_SEIDEL)),
    "sor": _with_method(Method.SOR),
    "bsor": _with_method(Method.BACKWARDS_SOR),
}
_OWN = {"to", "text", "force"}
COMMANDS = ("export", "solve", "report")


def is_command(words: list[str]) -> bool:
    """Return whether a command line is one of export, solve or report.

    Parameters
    ----------
    words
        The command line. Where a file has the name of a command, it is the model, unless the
        other words are what the command takes.
    """
    if not words or words[0] not in COMMANDS:
        return False
    if not Path(words[0]).is_file():
        return True
    if words[0] == "export":
        return any(word in ("-to", "--to") for word in words)
    return any(Path(word).is_dir() for word in words[1:])


def main(command: str, words: list[str]) -> NoReturn:
    """Run a command to the end of the process.

    Parameters
    ----------
    command
        "export", "solve" or "report".
    words
        The words after it.
    """
    from bridge.exchange.prism_run import end

    if not words or {"-help", "--help", "-h", "-?"} & set(words):
        print(USAGE[command])
        end(0 if words else 1)
    run = {"export": _export, "solve": _solve, "report": _report}[command]
    try:
        code = run(words)
    except (
        *(UsageError, BridgeError, UnsupportedError, InvalidModelError, ConvergenceError),
        *(MemoryError, OSError),
    ) as error:
        print(error_line(error), flush=True)
        code = 1
    end(code)


def _export(words: list[str]) -> int:
    from bridge.exchange.export import Collector, require_target, write_export
    from bridge.exchange.prism_run import run_prism

    parts = list(groups(words, {"to"}))
    own = [part for part in parts if part.name in _OWN]
    targets = [part.value for part in own if part.name == "to"]
    if len(targets) != 1 or not targets[0]:
        raise UsageError("Say once where to export: -to <dir>")
    folder = Path(targets[0])
    asked = {part.name for part in own}
    kept = with_absolute_files([part for part in parts if part.name not in _OWN])
    require_exportable(kept)
    require_texts(joined(kept))
    replayed, again = taken_apart(kept)
    arguments = _prism_arguments(joined([part for part in kept if part.name not in OUTPUT]))
    require_target(folder, force="force" in asked)
    collector = Collector(arguments.hooks)
    version = run_prism(arguments, collector)
    words_of_report, whole = joined(replayed), joined(kept)
    manifest = write_export(
        folder,
        collector,
        words_of_report,
        version,
        command_line=shlex.join(whole),
        text="text" in asked,
        force="force" in asked,
    )
    asks = len(manifest.questions)
    print(
        f"\nprism-gpu: {asks} operator{'' if asks == 1 else 's'} on {manifest.provenance['model']} "
        f"exported to {folder}\nOn the machine that is to solve: prism-gpu solve {folder}"
    )
    if again:
        print(f"Afterwards, say again: prism-gpu report {folder} {shlex.join(joined(again))}")
    return 0


def _prism_arguments(words: tuple[str, ...]) -> Arguments:
    arguments = parse(list(words), os.environ)
    if not arguments.engines or arguments.front_end not in (None, "prism"):
        raise UsageError("PRISM with our engines inside exports and reports, and nothing else")
    if arguments.plot is not None:
        raise UsageError("-gpuplot draws the solves of a whole run, not those of an export")
    hooks = arguments.hooks
    symbolic = f"work of the {hooks.symbolic_engine} engine" if hooks.symbolic_engine else ""
    if hooks.left_to_prism or symbolic:
        raise UnsupportedError(
            f"{hooks.left_to_prism or symbolic} cannot be done on another machine: name no engine, "
            "or -explicit"
        )
    # Nothing is solved here, whatever the command line says of GPUs.
    return replace(arguments, hooks=replace(arguments.hooks, device=DeviceChoice.CPU))


def _folder_and_rest(words: list[str], with_value: set[str]) -> tuple[Path, list[Group]]:
    parts = list(groups(words, with_value))
    folders = [part for part in parts if part.name is None]
    if len(folders) != 1:
        raise UsageError("Name one folder, the one that was exported to")
    return Path(folders[0].words[0]), [part for part in parts if part.name is not None]


def _report(words: list[str]) -> int:
    from bridge.exchange.manifest import load_manifest
    from bridge.exchange.prism_run import run_prism
    from bridge.exchange.report import Answers, matching_results
    from bridge.exchange.schema import require_plain_file

    folder, added = _folder_and_rest(words, set())
    require_output_only(added)
    manifest = load_manifest(folder)
    for part in groups(manifest.command, set()):
        if part.name is None:
            with suppress(FileNotFoundError):
                require_plain_file(Path(part.words[0]))
    results = matching_results(folder, manifest)
    answers = Answers(folder, manifest, results)
    run_prism(_prism_arguments((*joined(added), *manifest.command)), answers)
    return 1 if answers.incomplete else 0


def _solve(words: list[str]) -> int:
    from bridge.exchange.solve import Solver

    folder, parts = _folder_and_rest(words, set())
    changes = list(_settings_changes(parts))

    def changed(settings: SolverEnvironment) -> SolverEnvironment:
        for change in changes:
            settings = change(settings)
        return settings

    asked = changed(SolverEnvironment())
    if asked.device is DeviceChoice.GPU:
        require_gpu(asked.device_number)
    if (remark := unused_switches(asked)) is not None:
        print(remark, flush=True)
    showing = [on_or_off(part.value, "gpuprogress") for part in parts if part.name == "gpuprogress"]
    return Solver(
        folder,
        changed,
        show_solves=any(part.name == "gpuinfo" for part in parts),
        show_progress=showing[-1:] != [False],
    ).run()


def _settings_changes(parts: list[Group]) -> Iterator[Change]:
    """Yield what each switch of `solve` changes in the settings."""
    for part in parts:
        name = part.name or ""
        if name in ("gpuinfo", "gpuprogress"):
            continue
        if name not in _SWITCHES:
            raise UsageError(f"Unknown switch {part.words[0]} for solve; see -help")
        change = partial(_SWITCHES[name], part.value)
        try:
            # Refuses what no solve can have, such as a negative epsilon.
            change(SolverEnvironment())
        except ValueError as error:
            raise UsageError(f"Invalid value for -{name} switch") from error
        yield change
