"""Probabilistic model checking in Python: build or open a Markov model, ask it questions.

    import prism_gpu as pg

    ruin = pg.dtmc([[1, 0, 0], [0.6, 0, 0.4], [0, 0, 1]], labels={"broke": 0}, initial=1)
    print(ruin.check('P=? [ F "broke" ]').value)

Models come from matrices (`dtmc`, `ctmc`, `mdp`), from graphs (`from_networkx`) or from files
(`open`); properties are written in PRISM's language. What is not named here is internal.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
"""As in `typing`, which takes longer to load than this module."""

if TYPE_CHECKING:
    from typing import Any

    from bridge.views import Labels
    from engines.errors import (
        BridgeError,
        ConvergenceError,
        InvalidModelError,
        UnsupportedError,
    )
    from prism_gpu.blocks import Block, Instance, Solution, solve_blocks
    from prism_gpu.matrices import ctmc, dtmc, mdp
    from prism_gpu.model import Model
    from prism_gpu.networks import from_networkx
    from prism_gpu.opening import open
    from prism_gpu.paths import Paths
    from prism_gpu.result import Result, Results
    from prism_gpu.settings import Settings
    from prism_gpu.sweeps import sweep

    __version__: str

__all__ = [
    "Block",
    "BridgeError",
    "ConvergenceError",
    "Instance",
    "InvalidModelError",
    "Labels",
    "Model",
    "Paths",
    "Result",
    "Results",
    "Settings",
    "Solution",
    "UnsupportedError",
    "__version__",
    "ctmc",
    "dtmc",
    "from_networkx",
    "mdp",
    "open",
    "solve_blocks",
    "sweep",
]

_HOMES = {
    **dict.fromkeys(
        ("BridgeError", "ConvergenceError", "InvalidModelError", "UnsupportedError"),
        "engines.errors",
    ),
    **dict.fromkeys(("ctmc", "dtmc", "mdp"), "prism_gpu.matrices"),
    **dict.fromkeys(("Block", "Instance", "Solution", "solve_blocks"), "prism_gpu.blocks"),
    "Labels": "bridge.views",
    "Model": "prism_gpu.model",
    **dict.fromkeys(("Result", "Results"), "prism_gpu.result"),
    "Paths": "prism_gpu.paths",
    "Settings": "prism_gpu.settings",
    "from_networkx": "prism_gpu.networks",
    "open": "prism_gpu.opening",
    "sweep": "prism_gpu.sweeps",
}
"""The module of each public name; it is loaded when the name is first used."""


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from bridge.versions import OWN_VERSION

        found: Any = OWN_VERSION
    elif name in _HOMES:
        found = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return list(__all__)
