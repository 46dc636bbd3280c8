"""The program of a model in PRISM's language, without PRISM.

What `prismgpu.ProgramText` writes from PRISM's trees is written here from the model's text: modules
with their commands, renamed ones written out, and rewards; for building also labels and initial
states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bridge.check.words import Names, Words
from bridge.language.ast import Expression, Value
from bridge.language.constants import constant_value, define_constants
from bridge.language.evaluate import deep_definitions_refused
from bridge.language.model_check import checked_outline
from bridge.language.model_outline import ModelOutline, RewardOutline
from bridge.language.modules import Command, Module, VariableDeclaration
from bridge.language.simplify import Simplifier
from engines.errors import UnsupportedError
from engines.program.program import Program
from prism_hooks.program import make_program

KINDS = ("dtmc", "ctmc", "mdp")


class ModelText:
    """A model's text, ready to become a program for any values of its open constants.

    Parameters
    ----------
    text
        The model, in PRISM's language.
    source
        What error messages call it.
    purpose
        What the program is for, as refusals call it: "building", say.

    Raises
    ------
    InvalidModelError
        If the text breaks the grammar.
    UnsupportedError
        For constructs that programs have no form for.
    """

    def __init__(self, text: str, source: str, purpose: str = "building") -> None:
        self.source = source
        self.outline: ModelOutline = checked_outline(text, source)
        self.kind = self.outline.kind or "mdp"
        if self.kind not in KINDS:
            raise _needs_prism(f"{purpose} of a model of type {self.kind.upper()}")
        if self.outline.has_system:
            raise _needs_prism(f"{purpose} of a model with a system definition")
        if any(module.invariant is not None for module in self.outline.resolved):
            raise _needs_prism(f"{purpose} of a module with an invariant")

    def constants(self, given: Mapping[str, Value]) -> dict[str, Value]:
        """Return the values of all constants; raises as `define_constants` does."""
        outline_ = self.outline
        return define_constants(outline_.constants, given, formulas=outline_.formulas)

    def names(self, constants: Mapping[str, Value]) -> Names:
        """Return what names in properties stand for."""
        places = {name: i for i, name in enumerate(self.outline.variables)}
        return Names(places, constants, self.outline.formulas, self.outline.labels)

    def simplifier(self, constants: Mapping[str, Value]) -> Simplifier:
        """Return what simplifies the expressions of modules and rewards, as PRISM does."""
        return Simplifier(self.outline.type_checker(), constants, self.outline.formulas)

    @property
    def is_unbounded(self) -> bool:
        """Whether a variable has no range, so that there may be no end of states."""
        declared = self.outline.declared_variables
        return any(item.type == "int" and item.low is None for item in declared)

    @property
    def variable_types(self) -> dict[str, str]:
        """The variables' types, "int" or "bool"."""
        return {item.name.name: item.type for item in self.outline.declared_variables}

    def state_text(self, values: Sequence[int]) -> str:
        """Return a state as PRISM prints it."""
        shown = (
            str(bool(value)).lower() if kind == "bool" else str(value)
            for value, kind in zip(values, self.variable_types.values(), strict=True)
        )
        return f"({','.join(shown)})"

    def built_program(self, constants: Mapping[str, Value], *, checked: bool) -> Program:
        """Return the program to build a model of: with its labels and initial states.

        Parameters
        ----------
        constants, checked
            As of `program`.

        Raises
        ------
        InvalidModelError, UnsupportedError
            As `program` does.
        """
        found = self.program(constants, checked=checked)
        names, simplifier = self.names(constants), self.simplifier(constants)

        def words(expression: Expression) -> Words:
            return names.words(simplifier.simplified(expression))

        with deep_definitions_refused():
            found["labels"] = [[name, words(label)] for name, label in self.outline.labels.items()]
            if self.outline.initial is not None:
                found["init"] = words(self.outline.initial)
        return make_program(found)

    def program(self, constants: Mapping[str, Value], *, checked: bool) -> dict[str, Any]:
        """Return the program as `prism_hooks.program.read_program` takes it, but for JSON.

        Parameters
        ----------
        constants
            The values of all constants.
        checked
            Whether probabilities that do not sum to 1 are an error.

        Raises
        ------
        InvalidModelError
            For unknown names, and ranges and initial values that cannot be computed.
        UnsupportedError
            For what programs have no form for.
        """
        with deep_definitions_refused():
            return self._program(constants, checked)

    def _program(self, constants: Mapping[str, Value], checked: bool) -> dict[str, Any]:
        writer = _Writer(self.outline, self.names(constants), self.simplifier(constants))
        outline = self.outline
        owners = [-1] * len(outline.global_variables)
        for number, module in enumerate(outline.resolved):
            owners += [number] * len(module.variables)
        return {
            "kind": self.kind,
            "checked": checked,
            "variables": [
                writer.variable(variable, owner)
                for variable, owner in zip(outline.declared_variables, owners, strict=True)
            ],
            "actions": list(outline.actions),
            "modules": [writer.module(module) for module in outline.resolved],
            "rewards": [writer.rewards(structure) for structure in outline.rewards],
        }


def _needs_prism(what: str) -> UnsupportedError:
    return UnsupportedError(f"{what} is not supported without PRISM")


class _Writer:
    """Writes the parts of a program."""

    def __init__(self, outline: ModelOutline, names: Names, simplifier: Simplifier) -> None:
        self._outline, self._names, self._simplifier = outline, names, simplifier

    def _words(self, expression: Expression) -> Words:
        return self._names.words(self._simplifier.simplified(expression))

    def variable(self, variable: VariableDeclaration, owner: int) -> dict[str, Any]:
        """Return a variable of a module, or a global one where `owner` is -1."""
        is_bool = variable.type == "bool"
        low, high = (0, 1) if is_bool else map(self._value, (variable.low, variable.high))
        initial = self._value(variable.initial)
        if initial is None:
            initial = False if is_bool else low or 0
        return {
            "name": variable.name.name,
            "type": variable.type,
            "low": low,
            "high": high,
            "initial": initial,
            "module": owner,
        }

    def _value(self, expression: Expression | None) -> Value | None:
        if expression is None:
            return None
        return constant_value(expression, self._names.constants, self._outline.formulas)

    def module(self, module: Module) -> dict[str, Any]:
        """Return a module with its alphabet."""
        commands = [self._command(command) for command in module.commands]
        alphabet = dict.fromkeys(entry["action"] for entry in commands if entry["action"])
        return {"name": module.name, "alphabet": list(alphabet), "commands": commands}

    def _command(self, written: Command) -> dict[str, Any]:
        command = self._simplifier.command(written)
        words, places = self._names.words, self._names.variables
        updates: list[list[Any]] = []
        for update in command.updates:
            weight = [1.0] if update.weight is None else words(update.weight)
            assigned = [
                [places[item.variable.name], words(item.value)] for item in update.assignments
            ]
            updates.append([weight, *assigned])
        return {
            "action": self._action(command.action),
            "guard": words(command.guard),
            "updates": updates,
        }

    def _action(self, name: str) -> int:
        return self._outline.actions.index(name) + 1 if name else 0

    def rewards(self, structure: RewardOutline) -> dict[str, Any]:
        """Return a reward structure."""
        states: list[Any] = []
        transitions: list[Any] = []
        for item in structure.items:
            words = [self._words(item.guard), self._words(item.value)]
            if item.action is None:
                states.append(words)
            else:
                transitions.append([self._action(item.action), *words])
        return {"name": structure.name, "states": states, "transitions": transitions}


class SimulatedModel(ModelText):
    """A model's text to sample paths of.

    Parameters
    ----------
    text, source
        As of `ModelText`.

    Raises
    ------
    InvalidModelError, UnsupportedError
        As `ModelText` does.
    """

    def __init__(self, text: str, source: str) -> None:
        super().__init__(text, source, "simulation")

    def named_state_text(self, values: Sequence[int]) -> str:
        """Return a state as PRISM prints it with the names of the variables."""
        values_text = self.state_text(values)[1:-1].split(",")
        pairs = zip(self.variable_types, values_text, strict=True)
        return f"({','.join(f'{name}={value}' for name, value in pairs)})"

    def program(self, constants: Mapping[str, Value], *, checked: bool) -> dict[str, Any]:
        """Return the program of a chain; see `ModelText.program`.

        The choices of an MDP are resolved uniformly, as PRISM's simulator resolves them, and so are
        those of a DTMC.
        """
        kind = "ctmc" if self.kind == "ctmc" else "dtmc"
        return super().program(constants, checked=checked) | {"kind": kind}
