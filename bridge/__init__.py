"""The bridge to the outside: PRISM, Java, files and the command line; no numerics.

`bridge.open(model, constants=…)` opens a model and is the door to the Python API.
"""

from __future__ import annotations

TYPE_CHECKING = False
"""As in `typing`, which is not loaded: the command comes by here before it listens to signals."""

if TYPE_CHECKING:
    from typing import Any

    from bridge.session import open_model as open

__all__ = ["open"]


def __getattr__(name: str) -> Any:
    # Loaded when first used: the command line does without it.
    if name == "open":
        from bridge.session import open_model

        return open_model
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
