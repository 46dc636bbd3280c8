"""Functions that run plainly on lists, compiled by numba; imported only for large systems."""

from __future__ import annotations

from types import FunctionType, ModuleType, SimpleNamespace

from numba import njit

from engines.cpu import graph_components as components

__all__ = ["compiled_functions", "components"]


def compiled_functions(module: ModuleType) -> SimpleNamespace:
    """Return a module's functions compiled, so that they call each other compiled."""
    namespace = dict(vars(module))
    for name, value in vars(module).items():
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            # The copy looks names up in `namespace`, where the compiled functions are.
            copy = FunctionType(value.__code__, namespace, name, value.__defaults__)
            namespace[name] = njit(cache=True, error_model="numpy")(copy)
    return SimpleNamespace(**namespace)
