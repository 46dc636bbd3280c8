"""The functions that expressions may call."""

from __future__ import annotations

# Least and most arguments; None for no limit.
_ARITIES: dict[str, tuple[int, int | None]] = {
    "min": (1, None),
    "max": (1, None),
    "floor": (1, 1),
    "ceil": (1, 1),
    "round": (1, 1),
    "pow": (2, 2),
    "mod": (2, 2),
    "log": (2, 2),
    "multi": (1, None),
}


def fault_in_call(name: str, arguments: int) -> str:
    """Return what is wrong about a call, in PRISM's words; empty for nothing.

    Parameters
    ----------
    name
        The function's name.
    arguments
        How many arguments it is given.
    """
    if name not in _ARITIES:
        return f'Unknown function "{name}"'
    least, most = _ARITIES[name]
    if arguments < least:
        return f'Not enough arguments to "{name}" function'
    if most is not None and arguments > most:
        return f'Too many arguments to "{name}" function'
    return ""
