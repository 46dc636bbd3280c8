"""CUDA sources, compiled at run time and cached on disk."""

from __future__ import annotations

from importlib.resources import files

MODULES = ("sweep", "prepare", "uniformise", "two_sided", "graph")
OFFSET_TYPES = ("int", "long long")


def source(module: str) -> str:
    """Return the CUDA source of a module.

    Parameters
    ----------
    module
        One of `MODULES`.
    """
    return files(__name__).joinpath(f"{module}.cu").read_text(encoding="utf-8")


def options(offset_type: str) -> tuple[str, ...]:
    """Return NVRTC's options for a type of row offsets.

    Parameters
    ----------
    offset_type
        One of `OFFSET_TYPES`.
    """
    return ("-std=c++17", f"-DOFFSET={offset_type}", f"-DUNSIGNED_OFFSET=unsigned {offset_type}")
