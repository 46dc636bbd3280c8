"""Sets of states as binary decision diagrams, in the library and the manager of PRISM's own.

PRISM's searches conjoin a set with the transitions first, and then forget the successors: pairs of
states lie in between, as diagrams of numbers that are only 0 and 1. CUDD, which it makes them with,
can do both in one pass, over diagrams whose complement costs nothing. PRISM has no call for that,
but the library that it has loaded shows CUDD's functions beside its own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

LIBRARIES = ("libprism", "libdd")
"""Where PRISM keeps CUDD: in its only library, or, before 4.10, in one of several."""

SUFFIXES = (".so", ".dylib")

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_NODE, _NUMBERS, _INT = ctypes.c_void_p, ctypes.POINTER(ctypes.c_int), ctypes.c_int
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "Cudd_addBddPattern": (_NODE, (_NODE,)),
    "Cudd_BddToAdd": (_NODE, (_NODE,)),
    "Cudd_bddAnd": (_NODE, (_NODE, _NODE)),
    "Cudd_bddAndAbstract": (_NODE, (_NODE, _NODE, _NODE)),
    "Cudd_bddExistAbstract": (_NODE, (_NODE, _NODE)),
    "Cudd_bddPermute": (_NODE, (_NODE, _NUMBERS)),
    "Cudd_IndicesToCube": (_NODE, (_NUMBERS, _INT)),
    "Cudd_RecursiveDeref": (None, (_NODE,)),
    "Cudd_ReadSize": (_INT, ()),
    "Cudd_ReadErrorCode": (_INT, ()),
    "Cudd_ClearErrorCode": (None, ()),
    "Cudd_ReadCacheLookUps": (ctypes.c_double, ()),
    "Cudd_RegisterTerminationCallback": (None, (_CALLBACK, ctypes.c_void_p)),
    "Cudd_UnregisterTerminationCallback": (None, ()),
}
"""Results and arguments of CUDD's functions, behind the manager, which each of them takes first."""


class FullError(MemoryError):
    """CUDD has no memory left of what -cuddmaxmem allows."""


class LateError(Exception):
    """What an operation may do is used up."""


class Library:
    """CUDD's functions, and the manager of all of PRISM's diagrams.

    Parameters
    ----------
    path
        The library that PRISM has loaded.
    manager
        The manager's address.

    Raises
    ------
    OSError, AttributeError
        When it cannot be opened, or lacks a function.
    """

    def __init__(self, path: Path, manager: int) -> None:
        # A library that the process has loaded before is the same one.
        library = ctypes.CDLL(str(path))
        self._functions: dict[str, Callable[..., Any]] = {}
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, (_NODE, *arguments)
            self._functions[name] = function
        self._ref = library.Cudd_Ref
        self._ref.restype, self._ref.argtypes = None, (_NODE,)
        self._manager = manager

    def call(self, name: str, *arguments: Any) -> Any:
        """Return what a function of CUDD's returns, given the manager and these arguments."""
        return self._functions[name](self._manager, *arguments)

    def made(self, name: str, *arguments: Any) -> int:
        """Return the node that a function of CUDD's makes, referenced.

        Raises
        ------
        LateError
            When the limit of `limited` was reached.
        FullError
            When there was no memory for it.
        """
        node = self.call(name, *arguments)
        if node is None:
            termination = 5  # CUDD_TERMINATION: the operation was told to end.
            late = self.call("Cudd_ReadErrorCode") == termination
            self.call("Cudd_ClearErrorCode")
            raise LateError if late else FullError(name)
        return self.referenced(int(node))

    def referenced(self, node: int) -> int:
        """Return a node once it has one reference more."""
        self._ref(node)
        return node

    def looked_up(self) -> float:
        """Return how many results CUDD has looked for in its cache so far: about what it did."""
        return float(self.call("Cudd_ReadCacheLookUps"))

    @contextmanager
    def limited(self, most: float) -> Iterator[None]:
        """Have operations in the body end with `LateError` once they have done so much.

        Parameters
        ----------
        most
            Results as of `looked_up`, to within some thousand; infinite for no limit.
        """
        if most == float("inf"):
            yield
            return
        end = self.looked_up() + most
        # CUDD asks after every 2,048th result that it did not find, or so.
        told = _CALLBACK(lambda _: int(self.looked_up() > end))
        self.call("Cudd_RegisterTerminationCallback", told, None)
        try:
            yield
        finally:
            self.call("Cudd_UnregisterTerminationCallback")


def opened(folders: Sequence[Path], manager: int) -> Library | None:
    """Return the library of PRISM's diagrams, or None where it does not show its functions.

    Parameters
    ----------
    folders
        Where PRISM's libraries lie.
    manager
        The address of CUDD's manager.
    """
    for folder in folders:
        for name in LIBRARIES:
            for suffix in SUFFIXES:
                path = folder / f"{name}{suffix}"
                if path.is_file():
                    try:
                        return Library(path, manager)
                    except (OSError, AttributeError):
                        continue
    return None


class Space:
    """The sets and relations of one search; with the space they are all given up.

    Parameters
    ----------
    library
        CUDD.
    rows, columns
        Indices of the variables of states and of their successors, as many of either.
    """

    def __init__(self, library: Library, rows: Sequence[int], columns: Sequence[int]) -> None:
        self.library = library
        self._rows, self._columns = tuple(rows), tuple(columns)
        self._held: dict[int, int] = {}

    @cached_property
    def _swapped(self) -> Any:
        indices = list(range(self.library.call("Cudd_ReadSize")))
        for row, column in zip(self._rows, self._columns, strict=True):
            indices[row], indices[column] = column, row
        return (_INT * len(indices))(*indices)

    @cached_property
    def rows(self) -> Bdd:
        """The variables of states, to be forgotten by `Bdd.without` and `Bdd.meeting`."""
        return self.variables(self._rows)

    @cached_property
    def columns(self) -> Bdd:
        """The variables of successors, to be forgotten."""
        return self.variables(self._columns)

    def variables(self, indices: Sequence[int]) -> Bdd:
        """Return variables, to be forgotten by `Bdd.without` and `Bdd.meeting`."""
        return self.make("Cudd_IndicesToCube", (_INT * len(indices))(*indices), len(indices))

    def of(self, pointer: int) -> Bdd:
        """Return the set, or the relation, that a diagram of PRISM's is 0 outside of."""
        return self.make("Cudd_addBddPattern", pointer)

    def make(self, name: str, *arguments: Any) -> Bdd:
        """Return what a function of CUDD's makes."""
        return self._hold(self.library.made(name, *arguments))

    def complement(self, states: Bdd) -> Bdd:
        """Return what is not in a set."""
        # CUDD marks it in the address.
        return self._hold(self.library.referenced(states.node ^ 1))

    def _hold(self, node: int) -> Bdd:
        self._held[node] = self._held.get(node, 0) + 1
        return Bdd(self, node)

    def swapped(self, states: Bdd) -> Bdd:
        """Return a set of states as one of successors, or the other way round."""
        return self.make("Cudd_bddPermute", states.node, self._swapped)

    def give_up(self, node: int) -> None:
        """Give up a node that is held; no matter once all have been."""
        if node not in self._held:
            return
        self._held[node] -= 1
        if not self._held[node]:
            del self._held[node]
        self.library.call("Cudd_RecursiveDeref", node)

    def clear(self) -> None:
        """Give up all that is held."""
        while self._held:
            self.give_up(next(iter(self._held)))


class Bdd:
    """A set of states, or a relation between them and their successors.

    Parameters
    ----------
    space
        The space that holds it.
    node
        CUDD's node: the same set is always the same node.
    """

    __slots__ = ("_space", "node")

    def __init__(self, space: Space, node: int) -> None:
        self._space, self.node = space, node

    def __del__(self) -> None:
        self._space.give_up(self.node)

    def __and__(self, other: Bdd) -> Bdd:
        return self._space.make("Cudd_bddAnd", self.node, other.node)

    def __or__(self, other: Bdd) -> Bdd:
        return ~(~self & ~other)

    def __invert__(self) -> Bdd:
        return self._space.complement(self)

    def is_same(self, other: Bdd) -> bool:
        """Return whether this is the same set."""
        return self.node == other.node

    def without(self, variables: Bdd) -> Bdd:
        """Return for what other variables there are some of these such that it holds."""
        return self._space.make("Cudd_bddExistAbstract", self.node, variables.node)

    def meeting(self, other: Bdd, variables: Bdd) -> Bdd:
        """Return for what other variables there are some of these such that both hold."""
        return self._space.make("Cudd_bddAndAbstract", self.node, other.node, variables.node)

    def diagram(self) -> int:
        """Return the set as a diagram of PRISM's, 0 or 1, referenced; who asks gives it up."""
        return self._space.library.made("Cudd_BddToAdd", self.node)
