"""Models that the engines have built, and their rewards: an array crosses to PRISM when it is read.

PRISM's own code seldom reads the arrays of a model that the engines solve. Its objects, which hold
a `prismgpu.HeldModel` or a `prismgpu.HeldRewards`, get them as soon as it does, and at the latest
when the engines let go of the model: Java may keep an object that nothing uses for long.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np

from engines.arrays import FloatArray
from engines.exploration.build import ExploredModel
from engines.exploration.rewards import EarnedRewards
from engines.model.explicit import ExplicitModel
from prism_hooks.crossing import java_array

_T = TypeVar("_T")


class HeldRewards:
    """The rewards of a structure.

    Parameters
    ----------
    model
        The model.
    earned
        The rewards.
    """

    METHODS_OF_JAVA: ClassVar = ("ofStates", "ofChoices")

    def __init__(self, model: ExplicitModel, earned: EarnedRewards) -> None:
        self._groups = model.row_group_offsets
        self._earned: EarnedRewards | None = earned

    def ofStates(self) -> Any:  # noqa: N802 - the name is Java's
        """Return those of the states as Java's array."""
        return java_array(self.of_states)

    def ofChoices(self) -> Any:  # noqa: N802 - as above
        """Return those of the choices as Java's array; there must be any."""
        return java_array(_present(_present(self._earned).of_choices))

    @property
    def has_choices(self) -> bool:
        """Whether choices earn anything."""
        of_choices = _present(self._earned).of_choices
        return of_choices is not None and bool(of_choices.any())

    @property
    def of_states(self) -> FloatArray:
        """Those of the states, shape (states,), of a chain with those of its transitions."""
        return _present(self._earned).expected

    @cached_property
    def by_choices(self) -> FloatArray:
        """Those of each choice of an MDP, its state's among them, shape (choices,)."""
        of_choices = _present(self._earned).of_choices
        if of_choices is not None and not self.of_states.any():
            return of_choices
        sums = np.repeat(self.of_states, np.diff(_present(self._groups)))
        return sums if of_choices is None else sums + of_choices

    def let_go(self) -> None:
        """Give the arrays up."""
        self._earned = None
        self.__dict__.pop("by_choices", None)


class HeldArrays:
    """The transitions of a model.

    Parameters
    ----------
    number
        The model's number, as of `prismgpu.ModelSource`.
    model
        The model, without labels and rewards.
    """

    METHODS_OF_JAVA: ClassVar[tuple[str, ...]] = (
        "rowOffsets",
        "groupOffsets",
        "columns",
        "values",
    )

    def __init__(self, number: int, model: ExplicitModel) -> None:
        self._number = number
        self._model: ExplicitModel | None = model

    @property
    def model(self) -> ExplicitModel:
        """The model."""
        return _present(self._model)

    def rowOffsets(self) -> Any:  # noqa: N802 - the name is Java's
        """Return where each row's transitions begin as Java's array."""
        return java_array(self.model.matrix.row_offsets.astype(np.int32, copy=False))

    def groupOffsets(self) -> Any:  # noqa: N802 - as above
        """Return where each state's choices begin as Java's array; there must be choices."""
        groups = _present(self.model.row_group_offsets)
        return java_array(groups.astype(np.int32, copy=False))

    def columns(self) -> Any:
        """Return where each transition leads as Java's array."""
        return java_array(self.model.matrix.columns)

    def values(self) -> Any:
        """Return the probability or rate of each transition as Java's array."""
        return java_array(self.model.matrix.values)

    def let_go(self) -> None:
        """Have PRISM read what it may still want, and give the arrays up."""
        import jpype

        jpype.JClass("prismgpu.Unread").settle(self._number)
        self._model = None


class HeldModel(HeldArrays):
    """A model that was built from its program.

    Parameters
    ----------
    number
        As of `HeldArrays`.
    explored
        The model, without labels and rewards.

    Attributes
    ----------
    rewards
        Its reward structures that were asked for, by their text.
    """

    METHODS_OF_JAVA = (*HeldArrays.METHODS_OF_JAVA, "actions", "states")

    def __init__(self, number: int, explored: ExploredModel) -> None:
        super().__init__(number, explored.model)
        self._explored: ExploredModel | None = explored
        self.rewards: dict[str, HeldRewards] = {}

    @property
    def explored(self) -> ExploredModel:
        """The model and its states."""
        return _present(self._explored)

    def actions(self) -> Any:
        """Return the number of each choice's or transition's action; there must be any."""
        return java_array(_present(self.explored.actions))

    def states(self) -> Any:
        """Return the packed states as Java's array."""
        return java_array(self.explored.states.ravel().view(np.int64))

    def let_go(self) -> None:
        """Have PRISM read what it may still want, and give the arrays up."""
        super().let_go()
        self._explored = None
        for rewards in self.rewards.values():
            rewards.let_go()


@cache
def java_type(kind: type[HeldArrays] | type[HeldRewards]) -> Any:
    """Return one of the classes above as one whose objects Java can call; the JVM must be running.

    Parameters
    ----------
    kind
        The class; Java has an interface of its name.
    """
    import jpype

    methods = {name: jpype.JOverride(getattr(kind, name)) for name in kind.METHODS_OF_JAVA}
    implement = jpype.JImplements(f"prismgpu.{kind.__name__}")
    return implement(type(f"Java{kind.__name__}", (kind,), methods))


def _present(array: _T | None) -> _T:
    if array is None:
        raise ValueError("an array of a model is asked for that is none of its, or was given up")
    return array
