"""What PRISM refuses of a model before it is built: unknown names, wrong types, misplaced updates.

Source: `parser/ast/ModulesFile.java`, `parser/visitor/ModulesFileSemanticCheck.java` and
`TypeCheck.java` of PRISM; the faults are looked for in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bridge.language.ast import Expression, Identifier, Value
from bridge.language.constants import constant_value
from bridge.language.dependencies import CyclicDefinitionError, dependency_order, names_behind
from bridge.language.evaluate import deep_definitions_refused
from bridge.language.model_outline import ModelOutline, outline
from bridge.language.modules import Command, Module, Update, VariableDeclaration
from bridge.language.types import (
    BOOL,
    DOUBLE,
    INT,
    invalid,
)

CHECKED = (None, "dtmc", "ctmc", "mdp")


def checked_outline(text: str, source: str) -> ModelOutline:
    """Return what stands in a model's text; refuse a text with a fault that can be seen in it.

    Parameters
    ----------
    text, source
        As of `outline`.

    Raises
    ------
    InvalidModelError
        With PRISM's words and the place of the fault; and as of `outline`.
    UnsupportedError
        As of `outline`, and for formulas that refer to formulas more than about a hundred levels
        deep.
    """
    with deep_definitions_refused():
        model = outline(text, source)
        if model.kind not in CHECKED:
            return model  # It is refused by its name.
        _ModelChecker(model).check()
        return model


def check_with_constants(model: ModelOutline, constants: Mapping[str, Value]) -> None:
    """Refuse what PRISM refuses once the constants are known.

    Which is a variable that an update sets twice, one without two values, and a first value that
    is out of range.

    Parameters
    ----------
    model
        The model.
    constants
        The values of its constants.

    Raises
    ------
    InvalidModelError
        With PRISM's words, and for a bound that cannot be computed.
    """
    _check_updates(model)
    for variable in model.declared_variables:
        if variable.low is not None and variable.high is not None:
            _check_range(variable, variable.low, variable.high, model, constants)


def _check_updates(model: ModelOutline) -> None:
    for module in model.resolved:
        for command in module.commands:
            for update in command.updates:
                _check_set_once(update)


def _check_set_once(update: Update) -> None:
    names = [item.variable.name for item in update.assignments]
    for place, item in enumerate(update.assignments):
        if item.variable.name in names[:place]:
            message = f'Variable "{item.variable.name}" is set twice in the same update'
            raise invalid(message, item.variable)


def _check_range(
    variable: VariableDeclaration,
    low: Expression,
    high: Expression,
    model: ModelOutline,
    constants: Mapping[str, Value],
) -> None:
    least = constant_value(low, constants, model.formulas)
    largest = constant_value(high, constants, model.formulas)
    name, start = variable.name.name, variable.initial
    if least >= largest:
        shown = Identifier(f"[{low}..{high}]").at(variable.place)
        raise invalid(f'Invalid range ({least}-{largest}) for variable "{name}"', shown)
    if start is not None:
        first = constant_value(start, constants, model.formulas)
        if not least <= first <= largest:
            raise invalid(f"Value {first} out of range for variable {name}", start)


class _ModelChecker:
    def __init__(self, model: ModelOutline) -> None:
        self._model = model
        self._variables = {item.name.name: item for item in model.declared_variables}
        self._types = model.type_checker()
        self._definitions = {item.name: item.value for item in model.constants}
        self._known_names = {*self._variables, *self._definitions}

    def check(self) -> None:
        """Raise for the first fault, in PRISM's order."""
        self._check_cycles(self._model.formulas, "formula")
        values = {name: value for name, value in self._definitions.items() if value is not None}
        self._check_cycles(values, "constant")
        for module in self._model.resolved:
            for command in module.commands:
                self._check_targets(command)
        self._check_meaning()
        self._check_types()
        if all(constant.value is not None for constant in self._model.constants):
            # Where constants are to come, PRISM looks for this when they are there.
            _check_updates(self._model)

    def _check_cycles(self, definitions: Mapping[str, Expression], what: str) -> None:
        try:
            dependency_order(
                definitions, Identifier, dict.fromkeys(definitions, f"definition of {what}")
            )
        except CyclicDefinitionError as error:
            raise invalid(str(error), definitions[error.name]) from None

    def _check_targets(self, command: Command) -> None:
        for update in command.updates:
            for item in update.assignments:
                if item.variable.name not in self._variables:
                    message = f'Unknown variable "{item.variable.name}" in update'
                    raise invalid(message, item.variable)

    # What is wrong whatever the types are.

    def _check_meaning(self) -> None:
        model = self._model
        self._check_names(model.labels.values())
        if "deadlock" in model.labels:
            message = 'Cannot define a label called "deadlock" - this is a built-in label'
            raise invalid(message, model.labels["deadlock"])
        self._check_names(value for value in self._definitions.values() if value is not None)
        for name, value in self._definitions.items():
            if value is not None and not self._is_constant(value):
                raise invalid(f'Definition of constant "{name}" is not constant', value)
        for variable in model.global_variables:
            self._check_declaration(variable)
        for module in model.resolved:
            self._check_module(module)
        for structure in model.rewards:
            for item in structure.items:
                self._check_names((item.guard, item.value))
        if model.initial is not None:
            self._check_names((model.initial,))
            for variable in self._variables.values():
                if variable.initial is not None:
                    message = 'Cannot use both "init...endinit" and initial values for variables'
                    raise invalid(message, variable.initial)

    def _check_module(self, module: Module) -> None:
        for variable in module.variables:
            self._check_declaration(variable)
        if module.invariant is not None:
            self._check_names((module.invariant,))
        for command in module.commands:
            self._check_names((command.guard,))
            for update in command.updates:
                if update.weight is not None:
                    self._check_names((update.weight,))
                self._check_names(item.value for item in update.assignments)
                self._check_owner(update, command, module)

    def _check_declaration(self, variable: VariableDeclaration) -> None:
        low, high, start = variable.low, variable.high, variable.initial
        self._check_names(bound for bound in (low, high) if bound is not None)
        if variable.type not in (INT, BOOL):
            kind = (self._model.kind or "mdp").upper()
            shown = Identifier(variable.type).at(variable.place)
            raise invalid(f"Clock variables are not allowed in {kind} models", shown)
        if low is not None and not self._is_constant(low):
            raise invalid(f'Integer range lower bound "{low}" is not constant', low)
        if high is not None and not self._is_constant(high):
            # PRISM names the lower bound here.
            raise invalid(f'Integer range upper bound "{low}" is not constant', low or high)
        if start is not None:
            self._check_names((start,))
            if not self._is_constant(start):
                name = variable.name.name
                raise invalid(f'Initial variable value of variable "{name}" is not constant', start)

    def _check_owner(self, update: Update, command: Command, module: Module) -> None:
        own = {variable.name.name for variable in module.variables}
        shared = {variable.name.name for variable in self._model.global_variables}
        for item in update.assignments:
            name = item.variable.name
            if name not in own | shared:
                message = f'Module "{module.name}" is not allowed to modify variable "{name}"'
                raise invalid(message, item.variable)
            if name not in own and command.action:
                raise invalid("Synchronous command cannot modify global variable", item.variable)

    def _check_names(self, expressions: Iterable[Expression]) -> None:
        """Raise for a name that is not declared, in formulas too."""
        for expression in expressions:
            for node in expression.walk_up():
                if not isinstance(node, Identifier) or node.name in self._known_names:
                    continue
                if node.name not in self._model.formulas:
                    raise invalid("Undeclared identifier", node)
                self._check_names((self._model.formulas[node.name],))
                self._known_names.add(node.name)

    def _is_constant(self, expression: Expression) -> bool:
        """Whether no variable is in an expression, nor in the formulas that it names."""
        return names_behind(expression, self._model.formulas) <= self._definitions.keys()

    # Types.

    def _check_types(self) -> None:
        model = self._model
        for formula in model.formulas.values():
            self._types.type_of(formula)
        self._types_of(model.labels.values())
        for name, label in model.labels.items():
            self._types.require(label, (BOOL,), f'Type error: Label "{name}" is not Boolean')
        self._types_of(value for value in self._definitions.values() if value is not None)
        for constant in model.constants:
            if constant.value is not None:
                message = f'Type mismatch in definition of constant "{constant.name}"'
                self._types.require_fit(constant.value, constant.type, message)
        for variable in model.global_variables:
            self._check_variable(variable)
        for module in model.resolved:
            for variable in module.variables:
                self._check_variable(variable)
            for command in module.commands:
                self._check_command(command)
        for structure in model.rewards:
            for item in structure.items:
                self._types_of((item.guard, item.value))
                where = "Type error in reward struct item"
                self._types.require(item.guard, (BOOL,), f"{where}: guard must be Boolean")
                message = f"{where}: value must be an int or double"
                self._types.require(item.value, (INT, DOUBLE), message)
        if model.initial is not None:
            message = "Type error: Initial states definition must be Boolean"
            self._types.require(model.initial, (BOOL,), message)

    def _check_variable(self, variable: VariableDeclaration) -> None:
        self._types_of(item for item in (variable.low, variable.high) if item is not None)
        for which, bound in (("lower", variable.low), ("upper", variable.high)):
            if bound is not None:
                message = f'Type error: Integer range {which} bound "{bound}" is not an integer'
                self._types.require(bound, (INT,), message)
        if variable.initial is not None:
            name = variable.name.name
            message = f'Type error: Initial value of variable "{name}" does not match'
            self._types.require_fit(variable.initial, variable.type, message)

    def _check_command(self, command: Command) -> None:
        self._types.type_of(command.guard)
        for update in command.updates:
            if update.weight is not None:
                self._types.type_of(update.weight)
            self._types_of(item.value for item in update.assignments)
            for item in update.assignments:
                name = item.variable.name
                message = f'Type error in update to variable "{name}"'
                self._types.require_fit(item.value, self._variables[name].type, message)
        for update in command.updates:
            if update.weight is not None:
                found = self._types.type_of(update.weight)
                message = f"Type error: Update probability/rate cannot have type {found}"
                self._types.require(update.weight, (INT, DOUBLE), message)
        self._types.require(command.guard, (BOOL,), "Type error: Guard is not Boolean")

    def _types_of(self, expressions: Iterable[Expression]) -> None:
        for expression in expressions:
            self._types.type_of(expression)
