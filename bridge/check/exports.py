"""Exports of the built model and of vectors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from bridge.files.atomic import write_text
from bridge.files.checkable import as_file_model, as_umb
from bridge.files.umb import write_umb
from bridge.language.text import value_text
from bridge.model import CheckableModel, StateVector
from engines.errors import UnsupportedError
from engines.process.leftovers import temporary_folder

Log = Callable[[str], None]
PARTS = {"trans": ".tra", "states": ".sta", "labels": ".lab"}
NAMES = {"trans": "model", "states": "reachable states", "labels": "labels and satisfying states"}


def export_model(model: CheckableModel, what: str, target: str, log: Log) -> None:
    """Export a model, or a part of it, as PRISM's switches do.

    Parameters
    ----------
    model
        The built model.
    what
        "model", "trans", "states" or "labels".
    target
        A file, or "stdout". Of a model: `.umb`, `.pexp`, `.all`, or endings such as `.tra,lab`.
    log
        Where the announcement goes.

    Raises
    ------
    UnsupportedError
        For other endings.
    OSError
        If a file cannot be written.
    """
    if what == "model" and target.endswith(".umb"):
        log(f'\nExporting model in UMB format to file "{target}"...')
        write_umb(as_umb(model), target, "gz")
        return
    from bridge.files.writer import write_model

    with temporary_folder() as folder:
        written = write_model(as_file_model(model), folder / "model")
        parts = {path.suffix: path for path in written}
        if what != "model":
            _deliver(parts, PARTS[what], NAMES[what], target, log)
            return
        stem, _, endings = target.rpartition(".")
        if endings == "pexp":
            write_model(as_file_model(model), target, combined=True)
            log(f'\nExporting model in combined format to file "{target}"...')
            return
        wanted = list(parts) if endings == "all" else [f".{part}" for part in endings.split(",")]
        known = {".tra", ".sta", ".lab", ".srew", ".trew"}
        if not set(wanted) <= known | set(parts):
            raise UnsupportedError(
                f'-exportmodel: unknown file ending in "{target}"; known are .all, .umb, .pexp, '
                ".tra, .sta, .lab, .srew and .trew"
            )
        for ending in wanted:
            one = f"{stem}{ending}" if stem != "stdout" else "stdout"
            _deliver(parts, ending, f"model ({ending})", one, log)


def _deliver(parts: dict[str, Path], ending: str, name: str, target: str, log: Log) -> None:
    source = parts.get(ending)
    if source is None:
        log(f"\nThe model has nothing for {ending}; no file is written")
        return
    if target == "stdout":
        log(f"\nExporting {name} in plain text format below:")
        sys.stdout.write(source.read_text(encoding="utf-8"))
        return
    log(f'\nExporting {name} in plain text format to file "{target}"...')
    write_text(Path(target), source.read_text(encoding="utf-8"))


def export_vector(model: CheckableModel, values: StateVector, target: str, log: Log) -> None:
    """Export a property's value in every state, as PRISM's -exportvector does.

    Parameters
    ----------
    model
        The built model, for the states' names.
    values
        Shape (states,).
    target
        A file, which gets a value a line, or "stdout", which gets the states' names too.
    log
        Where the announcement goes.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    texts = map(value_text, values.tolist())
    if target == "stdout":
        log("\nExporting vector of results for all states below:")
        log("\n".join(f"{model.state_line(state)}={text}" for state, text in enumerate(texts)))
        return
    log(f'\nExporting vector of results for all states to file "{target}"...')
    write_text(Path(target), "".join(f"{text}\n" for text in texts))
