"""The values of constants: their definitions, and those that the user gives them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from bridge.language.ast import Expression, Identifier, Label, Value
from bridge.language.dependencies import dependency_order
from bridge.language.evaluate import constant_value
from bridge.language.properties_file import ConstantDeclaration, PropertiesFile
from bridge.language.ranges import Range, parse_const_switch
from bridge.language.text import value_text
from bridge.language.types import TypeChecker, type_of_value
from engines.errors import InvalidModelError

__all__ = [
    "Range",
    "constant_value",
    "define_constants",
    "experiment_values",
    "parse_const_switch",
    "undefined_constants",
]


def define_constants(
    declarations: Sequence[ConstantDeclaration],
    given: Mapping[str, Value],
    known: Mapping[str, Value] | None = None,
    formulas: Mapping[str, Expression] | None = None,
) -> dict[str, Value]:
    """Return the values of constants, in the order of their declarations.

    Parameters
    ----------
    declarations
        The constants; they may refer to each other in any order.
    given
        The values of those without a definition; other names are passed over.
    known
        Values of further constants that definitions may refer to.
    formulas
        The definitions of formulas that definitions may refer to.

    Raises
    ------
    InvalidModelError
        With PRISM's words: for a constant without a value, or with two; a cycle; a wrong type; an
        unknown name; a value that cannot be computed.
    """
    known, formulas = known or {}, formulas or {}
    for item in declarations:
        if item.value is not None and item.name in given:
            raise InvalidModelError(f'Constant "{item.name}" has already been defined')
    _require_all(declarations, given)
    definitions = {item.name: item.value for item in declarations if item.value is not None}
    what = dict.fromkeys(formulas, "definition of formula")
    what.update(dict.fromkeys(definitions, "definition of constant"))
    order = dependency_order({**formulas, **definitions}, Identifier, what)

    declared = {item.name: item.type for item in declarations}
    types = TypeChecker(
        {name: type_of_value(value) for name, value in known.items()} | declared, formulas
    )
    values = dict(known)
    for item in declarations:
        if item.value is None:
            values[item.name] = _as_declared(item, given[item.name])
    for name in order:
        if name in definitions:
            found = types.type_of(definitions[name])
            if found != declared[name] and (declared[name], found) != ("double", "int"):
                raise InvalidModelError(f'Type mismatch in definition of constant "{name}"')
            value = constant_value(definitions[name], values, formulas)
            values[name] = float(value) if declared[name] == "double" else value
    return {item.name: values[item.name] for item in declarations}


def experiment_values(
    declarations: Sequence[ConstantDeclaration], ranges: Mapping[str, Range], where: str = ""
) -> Iterator[dict[str, Value]]:
    """Return the assignments to the constants without a definition; the last one varies fastest.

    PRISM goes through the model's constants first, and for each of their assignments through those
    of the property.

    Parameters
    ----------
    declarations
        The constants; those with a definition must not be given.
    ranges
        What `parse_const_switch` returned; names that are not declared are passed over.
    where
        Where the constants are declared, for the message that one is given a second value.

    Raises
    ------
    InvalidModelError
        With PRISM's words, before the first assignment: for a constant without a value, or with
        two; a value that is none of the constant's type; a range that makes no sense. The first
        fault of the switch counts, then a missing value.
    """
    declared = {item.name: item for item in declarations}
    given: dict[str, Sequence[Value]] = {}
    for name in (name for name in ranges if name in declared):
        if declared[name].value is not None:
            raise InvalidModelError(f'Constant "{name}" has already been defined{where}')
        given[name] = ranges[name].values(name, declared[name].type)
    _require_all(declarations, given)
    names = [item.name for item in declarations if item.value is None]
    choices = [given[name] for name in names]
    return (dict(zip(names, values, strict=True)) for values in product(*choices))


def undefined_constants(
    expression: Expression,
    file: PropertiesFile,
    labels: Mapping[str, Expression] | None = None,
    formulas: Mapping[str, Expression] | None = None,
) -> tuple[ConstantDeclaration, ...]:
    """Return the file's constants without a definition that a property needs, as declared.

    Parameters
    ----------
    expression
        The property.
    file
        Where it is from.
    labels, formulas
        Those of the model.
    """
    quoted = {
        **(labels or {}),
        **file.labels,
        **{item.name: item.expression for item in file.properties if item.name},
    }
    plain = {
        **(formulas or {}),
        **{item.name: item.value for item in file.constants if item.value is not None},
    }
    met: set[Identifier | Label] = set()
    waiting: list[Expression] = [expression]
    while waiting:
        for node in waiting.pop().walk():
            if isinstance(node, Identifier | Label) and node not in met:
                met.add(node)
                definition = (plain if isinstance(node, Identifier) else quoted).get(node.name)
                if definition is not None:
                    waiting.append(definition)
    return tuple(
        item for item in file.constants if item.value is None and Identifier(item.name) in met
    )


def _require_all(declarations: Sequence[ConstantDeclaration], given: Mapping[str, object]) -> None:
    missing = [
        f'"{item.name}"' for item in declarations if item.value is None and item.name not in given
    ]
    if len(missing) == 1:
        raise InvalidModelError(f"Undefined constant {missing[0]} must be defined")
    if missing:
        names = f"{', '.join(missing[:-1])} and {missing[-1]}"
        raise InvalidModelError(f"Undefined constants {names} must be defined")


def _as_declared(item: ConstantDeclaration, value: Value) -> Value:
    found = type_of_value(value)
    if found == item.type:
        return value
    if (item.type, found) == ("double", "int"):
        return float(value)
    what = {"int": "integer", "double": "double", "bool": "Boolean"}[item.type]
    raise InvalidModelError(
        f"Value {value_text(value)} for constant {item.name} is not a valid {what}"
    )
