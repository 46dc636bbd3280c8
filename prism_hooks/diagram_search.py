"""Fixpoints over sets of states in PRISM's diagrams, round by round as PRISM makes them.

Each round's set is PRISM's, so that there are as many rounds. What is not: choices are forgotten
before the first round where it does not matter which one leads on, and a product with the
transitions is never made (see `prism_hooks.cudd`).
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from prism_hooks.cudd import Bdd, FullError, LateError, Library, Space, opened

STEPS_OF_A_ROUND = 100
"""What is around a round takes as long as looking so many results up."""

DIAGRAMS = ("transitions", "within", "through", "goal", "mask", "no")
"""What a search is given, by the names of the fields of `prismgpu.SearchInput`."""


class DiagramSearch(ABC):
    """A search that can be left and gone on with; what it is asked is a `prismgpu.SearchInput`.

    Parameters
    ----------
    library
        CUDD.
    asked
        The Java object: diagrams by their addresses, 0 for none, and indices of variables.
    """

    def __init__(self, library: Library, asked: Any) -> None:
        self._library = library
        self._rounds, self._steps = 0, 0.0
        self._complete = self._failed = self._begun = False
        self._space = Space(library, tuple(asked.rows), tuple(asked.columns))
        self._choice_numbers = None if asked.choices is None else tuple(asked.choices)
        self._choices: Bdd | None = None
        self._given = {name: int(getattr(asked, name)) for name in DIAGRAMS}
        self._goal_nodes = () if asked.goals is None else tuple(int(node) for node in asked.goals)

    def run(self, steps: float) -> bool:
        """Make rounds until the fixpoint or the limit of steps; return whether it is the fixpoint.

        Parameters
        ----------
        steps
            The limit; infinite for none.
        """
        if steps <= 0.0:
            return self._complete
        end, seen = self._steps + steps, self._library.looked_up()
        try:
            with self._library.limited(steps):
                if not self._begun:
                    given = {
                        name: self._space.of(node) for name, node in self._given.items() if node
                    }
                    if self._choice_numbers is not None:
                        self._choices = self._space.variables(self._choice_numbers)
                    self._begin(given)
                    self._begun = True
                while not self._complete and self._steps < end:
                    self._complete = self._round()
                    self._rounds += 1
                    before, seen = seen, self._library.looked_up()
                    self._steps += seen - before + STEPS_OF_A_ROUND
        except LateError:
            self._steps = end
            # The round begins anew next time; what it has computed the library still knows.
            return False
        except FullError:
            self._failed = True
        return self._complete

    def steps(self) -> float:
        """Return how many steps were made: results that CUDD looked up, and some for each round."""
        return self._steps

    def failed(self) -> bool:
        """Return whether the library had no memory left for the search."""
        return self._failed

    def rounds(self) -> int:
        """Return how many rounds were made."""
        return self._rounds

    def result(self) -> int:
        """Return the address of what was searched for, a referenced diagram; 0 where it failed."""
        try:
            return self._result().diagram()
        except FullError:
            self._failed = True
            return 0

    def clear(self) -> None:
        """Give up what the search holds."""
        self._space.clear()

    def _before(self, relation: Bdd, states: Bdd) -> Bdd:
        """Return what some edge of a relation leads from to one of the states."""
        space = self._space
        return relation.meeting(space.swapped(states), space.columns)

    def _after(self, relation: Bdd, states: Bdd) -> Bdd:
        """Return what some edge of a relation leads to from one of the states."""
        space = self._space
        return space.swapped(relation.meeting(states, space.rows))

    def _without_choices(self, relation: Bdd) -> Bdd:
        if self._choices is None:
            return relation
        return relation.without(self._choices)

    @abstractmethod
    def _begin(self, given: dict[str, Bdd]) -> None: ...

    @abstractmethod
    def _round(self) -> bool: ...

    @abstractmethod
    def _result(self) -> Bdd: ...


class Unreaching(DiagramSearch):
    """The states within a set that need not reach the goal on a way through other states.

    Where a mask of what is no choice is given, each choice has to lead on, else some.
    """

    def _begin(self, given: dict[str, Bdd]) -> None:
        self._within, self._through, self._goal = given["within"], given["through"], given["goal"]
        self._is_choice = ~given["mask"] if "mask" in given else None
        self._transitions = given["transitions"]
        if self._is_choice is None:
            self._transitions = self._without_choices(self._transitions)
        self._reaching = self._goal

    def _round(self) -> bool:
        leading = self._before(self._transitions, self._reaching)
        if self._is_choice is not None and self._choices is not None:
            leading = ~self._is_choice.meeting(~leading, self._choices)
        following = self._goal | (self._through & leading)
        same = following.is_same(self._reaching)
        self._reaching = following
        return same

    def _result(self) -> Bdd:
        return self._within & ~self._reaching


class Sure(DiagramSearch):
    """The states from which some strategy reaches the goal with probability 1."""

    def _begin(self, given: dict[str, Bdd]) -> None:
        self._through, self._goal = given["through"], given["goal"]
        self._transitions = given["transitions"]
        self._nothing = self._goal & ~self._goal
        self._stay(given["within"] & ~given["no"])

    def _stay(self, states: Bdd) -> None:
        """Begin anew with the choices that never leave a set of states."""
        unsafe = self._before(self._transitions, ~states)
        safe = self._without_choices(self._transitions & ~unsafe)
        self._staying, self._safe, self._reaching = states, safe, self._nothing

    def _round(self) -> bool:
        leading = self._before(self._safe, self._reaching)
        following = self._goal | (self._through & leading)
        same = following.is_same(self._reaching)
        if same and not following.is_same(self._staying):
            self._stay(following)
            return False
        self._reaching = following
        return same

    def _result(self) -> Bdd:
        return self._reaching


class Recurring(DiagramSearch):
    """The states of a set that some strategy stays in, seeing each of several sets again and again.

    With probability 1, that is: the greatest set from which each goal in it is reached by choices
    that never leave it. Every end component in which all goals lie is part of it, and what is in
    none of them surely reaches one. Its rounds are no search of PRISM's.
    """

    def _begin(self, given: dict[str, Bdd]) -> None:
        self._transitions = given["transitions"]
        self._goals = [self._space.of(node) for node in self._goal_nodes]
        self._next_goal = self._settled = 0
        self._stay(given["within"])

    def _stay(self, states: Bdd) -> None:
        """Go on with the choices that never leave a set of states, towards the next goal."""
        unsafe = self._before(self._transitions, ~states)
        self._safe = self._without_choices(self._transitions & ~unsafe)
        self._staying = states
        self._aim()

    def _aim(self) -> None:
        goal = self._goals[self._next_goal] & self._staying
        self._aimed = goal & self._safe.without(self._space.columns)
        self._reaching = self._aimed

    def _round(self) -> bool:
        leading = self._staying & self._before(self._safe, self._reaching)
        following = self._aimed | leading
        if not following.is_same(self._reaching):
            self._reaching = following
            return False
        self._next_goal = (self._next_goal + 1) % len(self._goals)
        if not following.is_same(self._staying):
            self._settled = 0
            self._stay(following)
            return False
        self._settled += 1
        if self._settled == len(self._goals):
            return True
        self._aim()
        return False

    def _result(self) -> Bdd:
        return self._staying


class Reached(DiagramSearch):
    """The states that some path leads to from the goal, where a set is given through that alone."""

    def _begin(self, given: dict[str, Bdd]) -> None:
        self._within = given.get("within")
        self._transitions = self._without_choices(given["transitions"])
        self._reached = given["goal"]

    def _round(self) -> bool:
        after = self._after(self._transitions, self._reached)
        if self._within is not None:
            after = self._within & after
        following = self._reached | after
        same = following.is_same(self._reached)
        self._reached = following
        return same

    def _result(self) -> Bdd:
        return self._reached


class Unreached(Reached):
    """The states within a set that no path in it leads to from the goal."""

    def _result(self) -> Bdd:
        assert self._within is not None, "a set to search"
        return self._within & ~self._reached


class Trimmed(DiagramSearch):
    """The states of a set that lie between others of it: some of it leads there, some is led to."""

    def _begin(self, given: dict[str, Bdd]) -> None:
        self._states = given["within"]
        self._transitions = self._without_choices(given["transitions"])

    def _round(self) -> bool:
        states = self._states
        leaving = states & self._before(self._transitions, states)
        self._states = leaving & self._after(self._transitions, states)
        return self._states.is_same(states)

    def _result(self) -> Bdd:
        return self._states


SEARCHES: dict[str, type[DiagramSearch]] = {
    "unreaching": Unreaching,
    "sure": Sure,
    "recurring": Recurring,
    "unreached": Unreached,
    "reached": Reached,
    "trimmed": Trimmed,
}
"""The searches by the names that `prismgpu.SearchInput` gives them."""

METHODS_OF_JAVA = ("run", "failed", "rounds", "steps", "result", "clear")


def search_for_java(asked: Any) -> Any:
    """Return a search as a `prismgpu.DiagramSearch`; None where PRISM's library hides CUDD.

    Parameters
    ----------
    asked
        A `prismgpu.SearchInput`.
    """
    library = _library(str(asked.folders), int(asked.manager))
    return None if library is None else _for_java(str(asked.kind))(library, asked)


@lru_cache(maxsize=1)
def _library(folders: str, manager: int) -> Library | None:
    return opened([Path(folder) for folder in folders.split(os.pathsep) if folder], manager)


@cache
def _for_java(kind: str) -> Callable[[Library, Any], Any]:
    """Return a search's class as one that Java can call."""
    import jpype

    search = SEARCHES[kind]
    methods = {name: jpype.JOverride(getattr(search, name)) for name in METHODS_OF_JAVA}
    implement: Callable[[type], Callable[[Library, Any], Any]]
    implement = jpype.JImplements("prismgpu.DiagramSearch")
    return implement(type(f"Java{search.__name__}", (search,), methods))
