"""Sweeps of Gauss-Seidel against the number of colours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bridge.reproduce.tasks.models import built
from bridge.reproduce.worker import Partial, Record
from engines.model.environment import DeviceChoice, Method, SolverEnvironment
from engines.model.result import SolveResult, Status
from engines.questions.steady_state import solve_steady_state


def measure(parameters: Mapping[str, Any], partial: Partial) -> Record:
    """Return the sweeps to epsilon for each number of colours.

    Two colourings: by the level at which a state could be swept, and by the number of the slice
    that it lies in, as in section 4.2 of the thesis. Each distribution is compared with the first.

    Parameters
    ----------
    parameters
        "family", "size" (a CTMC with one recurrent class), "colours" (a list), "slice_size",
        "device", "front_end".
    partial
        Takes the points that are there.
    """
    model = built(parameters["family"], parameters["size"], parameters["front_end"])
    everywhere = np.ones(model.num_states, np.bool_)
    points: list[dict[str, Any]] = []
    first: SolveResult | None = None
    wrong: list[str] = []
    for colouring, slice_size in (("levels", None), ("slices", int(parameters["slice_size"]))):
        for colours in parameters["colours"]:
            settings = SolverEnvironment(
                method=Method.GAUSS_SEIDEL,
                max_iterations=50_000,
                max_iterations_named=True,
                omega=1.0,
                device=DeviceChoice(parameters["device"]),
                slice_size=slice_size,
                colours=int(colours),
            )
            found = solve_steady_state(model, everywhere, settings)
            ended = found.status in (Status.CONVERGED, Status.CHANGE_ONLY)
            if ended and first is None:
                first = found
            if ended and first is not None:
                apart = float(np.abs(found.values - first.values).sum())
                # In the 1-norm.
                if not apart <= 1e-3:
                    wrong.append(f"{colours} colours by {colouring} differ by {apart:.1e}")
            points.append(
                {
                    "colouring": colouring,
                    "colours": int(colours),
                    "sweeps": found.iterations if ended else None,
                    "seconds": found.seconds,
                    "note": found.note,
                }
            )
            partial({"states": model.num_states, "points": points})
    record: Record = {"states": model.num_states, "points": points}
    return record | ({"status": "wrong", "wrong": "; ".join(wrong)} if wrong else {})
