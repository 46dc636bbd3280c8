"""Which front end a run has: PRISM, or the one that needs neither PRISM nor Java."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bridge.files.names import is_model_file
from bridge.install import find_prism
from bridge.versions import NoPrismError
from engines.errors import BridgeError

if TYPE_CHECKING:
    from bridge.arguments import Arguments


def embedded_reason(arguments: Arguments) -> str | None:
    """Return why a run goes without PRISM, or None where PRISM does it.

    Parameters
    ----------
    arguments
        The command line.

    Raises
    ------
    BridgeError
        Where PRISM is missing, and nothing can stand in for it.
    """
    if arguments.front_end == "builtin":
        return "the embedded front end was named; no PRISM takes part"
    if arguments.hooks.likely is not None:
        if arguments.front_end == "prism":
            raise BridgeError("-gputruncate is not PRISM's: leave -frontend prism out")
        return "only likely states are explored (-gputruncate); no PRISM takes part"
    if arguments.front_end is None and arguments.files and is_model_file(Path(arguments.files[0])):
        return "the model is in explicit files; no PRISM takes part"
    try:
        find_prism(arguments.prism_dir)
    except NoPrismError as error:
        refusal = _why_nothing_stands_in(arguments)
        if refusal is None:
            return "no PRISM was found; the embedded front end takes its place"
        raise BridgeError(f"{error}\nThe embedded front end cannot stand in: {refusal}") from error
    return None


def _why_nothing_stands_in(arguments: Arguments) -> str | None:
    if arguments.front_end == "prism":
        return "-frontend prism was given"
    if arguments.gui:
        return "-gui opens the window of PRISM"
    if not arguments.engines:
        return "-gpuengine off runs nothing but PRISM"
    return None
