"""The constants of a run, and the values that they go through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bridge.language.ast import Identifier, Value
from bridge.language.constants import (
    define_constants,
    experiment_values,
    parse_const_switch,
    undefined_constants,
)
from bridge.language.dependencies import names_in
from bridge.language.properties_file import ConstantDeclaration, PropertiesFile, Property
from bridge.language.text import value_text

Constants = Mapping[str, Value]


@dataclass(frozen=True)
class Experiment:
    """Constants without a definition, and the values that -const gives them.

    Parameters
    ----------
    open_constants
        The constants, in the order of their declaration.
    switch
        The argument of -const.
    declared
        All constants declared beside them.
    where
        Where they are declared, for the message that one has a value already.
    """

    open_constants: tuple[ConstantDeclaration, ...]
    switch: str
    declared: tuple[ConstantDeclaration, ...]
    where: str = ""

    @property
    def ranging(self) -> tuple[str, ...]:
        """Names of the constants that take several values."""
        ranges = parse_const_switch(self.switch)
        return tuple(
            item.name
            for item in self.open_constants
            if len(ranges[item.name].values(item.name, item.type)) > 1
        )

    @property
    def text(self) -> str:
        """The values of all constants as PRISM names them, such as ``k=1:2:9``."""
        ranges = parse_const_switch(self.switch)
        texts = []
        for item in self.open_constants:
            values = ranges[item.name].values(item.name, item.type)
            shown = [value_text(value) for value in values]
            if len(values) > 1:
                shown = [shown[0], value_text(values[1] - values[0]), shown[-1]]
            texts.append(f"{item.name}={':'.join(shown)}")
        return ",".join(texts)

    def assignments(self) -> Iterator[Constants]:
        """Return the choices of values, the last constant varying fastest."""
        defined = tuple(item for item in self.declared if item.value is not None)
        ranges = parse_const_switch(self.switch)
        return experiment_values((*self.open_constants, *defined), ranges, self.where)

    def values(self, model_constants: Constants, given: Constants) -> dict[str, Value]:
        """Return the values of all declared constants that can be known.

        Parameters
        ----------
        model_constants
            The values of the model's constants.
        given
            One of the assignments.

        Raises
        ------
        InvalidModelError
            With PRISM's words, when a definition has a fault.
        """
        known = [item for item in self.declared if item.value is not None or item.name in given]
        names = {item.name for item in known}
        unknown = {item.name for item in self.declared} - names
        while unknown:
            # What is defined by an unknown constant is unknown too.
            unknown = {
                item.name
                for item in known
                if item.value is not None and unknown & set(names_in(item.value, Identifier))
            }
            known = [item for item in known if item.name not in unknown]
        return define_constants(known, given, known=model_constants)


def model_experiment(declared: tuple[ConstantDeclaration, ...], switch: str) -> Experiment:
    """Return the experiment over a model's constants.

    Parameters
    ----------
    declared
        The model's constants.
    switch
        The argument of -const.

    Raises
    ------
    InvalidModelError
        With PRISM's words, for a constant that has no value, or two.
    """
    undefined = tuple(item for item in declared if item.value is None)
    return _checked(Experiment(undefined, switch, declared, " in the model"))


def property_experiment(item: Property, file: PropertiesFile, switch: str) -> Experiment:
    """Return the experiment over the constants that a property needs.

    Parameters
    ----------
    item
        The property.
    file
        Where it is from.
    switch
        The argument of -const.

    Raises
    ------
    InvalidModelError
        With PRISM's words, for a constant that has no value, or two.
    """
    needed = undefined_constants(item.expression, file)
    return _checked(Experiment(needed, switch, file.constants))


def _checked(experiment: Experiment) -> Experiment:
    experiment.assignments()
    return experiment
