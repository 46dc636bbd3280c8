"""The process that Storm runs in: it parses and builds one model, and writes it as UMB.

It is run by its path and imports nothing of ours. A process of its own can be stopped at any time,
may run out of memory or crash without taking others along, and keeps what Storm prints apart.
The request comes as JSON from standard input, the answer goes as JSON to standard output; whatever
Storm prints goes to standard error.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
from typing import Any

NOT_ONE = "to one for "  # "… do not sum to one for command …"; Storm has another spelling of it too


def build(request: dict[str, Any]) -> dict[str, Any]:
    """Build the model of a request, and return the answer.

    Parameters
    ----------
    request
        "model": the model's file; "constants": the values of its undefined constants; "umb": the
        file to write.

    Returns
    -------
    Empty, or "error" and whether it is one of "memory".
    """
    try:
        import stormpy
        from stormpy import io

        program = io.parse_prism_program(request["model"], prism_compatibility=True, simplify=False)
        program, _ = io.instantiate_constants(program, request["constants"])
        model = build_checked(stormpy, program)
        del program
        export = io.UmbExportOptions()
        export.compression = io.CompressionMode.NO_COMPRESSION
        io.export_to_umb(model, request["umb"], options=export)
    except MemoryError as error:
        return {"error": str(error), "memory": True}
    except Exception as error:  # whatever Storm raises is the answer
        return {"error": str(error) or type(error).__name__, "memory": False}
    return {}


def build_checked(stormpy: Any, program: Any) -> Any:
    """Return a program's model, its updates and probabilities checked.

    Sums of probabilities that rounding keeps from 1 are refused by Storm; whether they are 1 is
    then found out by building the model with rational numbers.

    Parameters
    ----------
    stormpy
        The package.
    program
        A program without undefined constants.
    """
    options = stormpy.BuilderOptions()
    options.set_build_all_labels()
    options.set_build_all_reward_models()
    options.set_build_state_valuations()
    options.set_build_choice_labels()
    options.set_exploration_checks()
    try:
        return stormpy.build_model(program, options=options)
    except RuntimeError as error:
        if NOT_ONE not in str(error):
            raise
    check = stormpy.BuilderOptions()
    check.set_exploration_checks()
    stormpy.build_model[stormpy.Rational](program, options=check)
    options.set_exploration_checks(False)
    return stormpy.build_model(program, options=options)


def die_with_the_parent() -> None:
    """Ask the system to end this process when the one that started it ends."""
    if sys.platform == "linux":
        set_death_signal = 1
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    die_with_the_parent()
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    json.dump(build(json.load(sys.stdin)), answer)
    answer.flush()
    # Storm's and Python's clean-up would only take time.
    os._exit(0)
