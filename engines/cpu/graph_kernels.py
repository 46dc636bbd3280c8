"""The worklist algorithms, compiled by numba; imported only when a model is large enough."""

from __future__ import annotations

from types import FunctionType, ModuleType, SimpleNamespace

from numba import njit

from engines.cpu import graph_closures, graph_components, graph_labels, graph_order


def compiled_functions(module: ModuleType) -> SimpleNamespace:
    """Return a module's functions compiled, so that they call each other compiled."""
    namespace = dict(vars(module))
    for name, value in vars(module).items():
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            # The copy looks names up in `namespace`, where the compiled functions are.
            copy = FunctionType(value.__code__, namespace, name, value.__defaults__)
            namespace[name] = njit(cache=True, error_model="numpy")(copy)
    return SimpleNamespace(**namespace)


closures = compiled_functions(graph_closures)
components = compiled_functions(graph_components)
labels = compiled_functions(graph_labels)
order = compiled_functions(graph_order)
