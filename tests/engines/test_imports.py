"""Importing our modules touches neither the GPU nor the JVM, and stays light."""

from __future__ import annotations

import ast
import functools
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import bridge
import engines
import prism_gpu
import prism_hooks


def modules_of(package):
    # An editable installation has the examples beside the package's own folder.
    folder = str(Path(package.__file__).parent)
    names = [package.__name__]
    names += [m.name for m in pkgutil.walk_packages([folder], package.__name__ + ".")]
    return [name for name in names if not name.endswith("__main__")]


def loaded_after(*names):
    """The top-level packages that a fresh interpreter has loaded after importing the names."""
    lines = [f"import {name}" for name in names]
    lines += [
        "import sys, json",
        "print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("package", [engines, bridge, prism_hooks, prism_gpu])
def test_importing_everything_loads_neither_cupy_nor_jpype(package):
    loaded = loaded_after(*modules_of(package))
    assert not loaded & {"cupy", "cupyx", "cupy_backends", "jpype"}


def test_importing_the_public_package_loads_nothing_else():
    assert not loaded_after("prism_gpu") & {"numpy", "scipy", "tqdm", "bridge", "engines"}


def test_choosing_a_backend_is_light():
    assert not loaded_after("engines.devices.choice") & {"scipy", "cupy"}


def test_the_solvers_do_not_load_scipy_before_they_need_it():
    assert not loaded_after("engines.questions.reachability", "engines.questions.steady_state") & {
        "scipy"
    }


ROOMS = (
    *("errors", "arrays", "process", "host.compiled", "model", "systems", "formats", "automata"),
    *("diagrams", "program", "host", "cuda", "devices", "exploration", "montecarlo"),
    *("graph", "proofs", "methods", "solve", "questions"),
)
"""The folders and files of `engines`, lowest first: each imports those before it, and itself."""


class OwnImports(ast.NodeVisitor):
    """The imports of our own modules in a file: the module, and whether it is within a function."""

    def __init__(self, source: str) -> None:
        self.found: list[tuple[str, bool]] = []
        self._within = 0
        self.visit(ast.parse(source))

    def visit_FunctionDef(self, node):
        self._within += 1
        self.generic_visit(node)
        self._within -= 1

    def visit_If(self, node):
        if getattr(node.test, "id", "") != "TYPE_CHECKING":
            self.generic_visit(node)

    def visit_Import(self, node):
        self._note([name.name for name in node.names])

    def visit_ImportFrom(self, node):
        self._note([f"{node.module}.{name.name}" for name in node.names])

    def _note(self, names):
        ours = [name for name in names if name.split(".")[0] in PACKAGES]
        self.found += [(name, self._within > 0) for name in ours]


PACKAGES = {package.__name__: package for package in (engines, prism_hooks, bridge, prism_gpu)}
"""Lowest first."""


@functools.cache
def imports_of(package):
    """The imports of each module of a package by its name, as `OwnImports` has them."""
    folder = Path(package.__file__).parent
    return {
        ".".join(path.relative_to(folder.parent).with_suffix("").parts): OwnImports(
            path.read_text()
        ).found
        for path in sorted(folder.rglob("*.py"))
    }


def room_of(module: str) -> int:
    """Return the place of a module of `engines` among the rooms."""
    inside = module.removeprefix("engines.")
    fitting = [room for room in ROOMS if f"{inside}.".startswith(f"{room}.")]
    return ROOMS.index(max(fitting, key=len))


def test_packages_import_only_those_below_them():
    order = list(PACKAGES)
    for package in PACKAGES.values():
        for name, imported in imports_of(package).items():
            for target, _ in imported:
                below = order.index(target.split(".")[0]) <= order.index(name.split(".")[0])
                assert below, f"{name} imports {target}"


def test_rooms_of_the_engines_import_only_those_below_them():
    for name, imported in imports_of(engines).items():
        if name.endswith("__init__"):
            continue
        for target, _ in imported:
            if target == "engines.host" or target == "engines.host.__path__":
                continue  # The folder that the library lies in.
            assert room_of(target) <= room_of(name), f"{name} imports {target}"


def test_within_functions_of_the_engines_only_devices_import_and_only_cuda():
    """Importing `engines.cuda` takes a second that a run on the CPU need not wait for."""
    for name, imported in imports_of(engines).items():
        for target, within in imported:
            if within:
                assert name.startswith("engines.devices."), f"{name} imports {target}"
                assert target.startswith("engines.cuda."), f"{name} imports {target}"


def test_no_module_imports_itself_through_others():
    known = {name for package in PACKAGES.values() for name in imports_of(package)}

    def module_of(target):
        return target if target in known else target.rpartition(".")[0]

    imports = {
        name: {module_of(target) for target, _ in imported}
        for package in PACKAGES.values()
        for name, imported in imports_of(package).items()
    }
    done: set[str] = set()

    def follow(name, path):
        assert name not in path, " -> ".join([*path[path.index(name) :], name])
        if name not in done:
            for target in sorted(imports.get(name, ())):
                follow(target, [*path, name])
            done.add(name)

    for name in sorted(imports):
        follow(name, [])
