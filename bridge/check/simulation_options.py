"""What the command line says about a simulation without PRISM."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_PATH_LIMIT = 10_000
"""PRISM's, of its switch `-simpathlen`."""


@dataclass(frozen=True)
class SimulationOptions:
    """How paths are sampled and judged.

    Parameters
    ----------
    words
        The switches of the method, as PRISM names them, with their values.
    path_limit
        ``-simpathlen``.
    checked
        Whether probabilities that do not sum to 1 are an error.
    """

    words: tuple[tuple[str, str], ...] = ()
    path_limit: int = DEFAULT_PATH_LIMIT
    checked: bool = True
