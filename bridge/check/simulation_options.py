"""What the command line says about a simulation without PRISM."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SimulationOptions:
    """How paths are sampled and judged.

    Parameters
    ----------
    words
        The switches of the method, as PRISM names them, with their values.
    path_limit
        ``-simpathlen``, with PRISM's default.
    checked
        Whether probabilities that do not sum to 1 are an error.
    """

    words: tuple[tuple[str, str], ...] = ()
    path_limit: int = 10_000
    checked: bool = True
