"""The program of a model in PRISM's language, without PRISM.

What `prismgpu.ProgramText` writes from PRISM's trees is written here from the model's text: modules
with their commands, renamed ones written out, and rewards; for building also labels and initial
states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from bridge.check.words import Names
from bridge.language.ast import Expression, Value
from bridge.language.constants import constant_value, define_constants
from bridge.language.model_check import checked_outline
from bridge.language.model_outline import ModelOutline, RewardOutline
from bridge.language.modules import Command, VariableDeclaration, WrittenModule
from engines.errors import InvalidModelError, UnsupportedError
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
            raise UnsupportedError(f"{purpose} of a model of type {self.kind.upper()}")
        self._globals, self._modules = self.outline.global_variables, self.outline.written
        if self.outline.has_system:
            raise UnsupportedError(f"{purpose} of a model with a system definition")
        if any(module.invariant is not None for module in self._modules.values()):
            raise UnsupportedError(f"{purpose} of a module with an invariant")

    def constants(self, given: Mapping[str, Value]) -> dict[str, Value]:
        """Return the values of all constants; raises as `define_constants` does."""
        outline_ = self.outline
        return define_constants(outline_.constants, given, formulas=outline_.formulas)

    def names(self, constants: Mapping[str, Value]) -> Names:
        """Return what names in properties stand for."""
        places = {name: i for i, name in enumerate(self.outline.variables)}
        return Names(places, constants, self.outline.formulas, self.outline.labels)

    @property
    def is_unbounded(self) -> bool:
        """Whether a variable has no range, so that there may be no end of states."""
        declared = (variable for variable, _, _ in self._variables)
        return any(item.type == "int" and item.low is None for item in declared)

    @property
    def variable_types(self) -> dict[str, str]:
        """The variables' types, "int" or "bool"."""
        types = [variable.type for variable, _, _ in self._variables]
        return dict(zip(self.outline.variables, types, strict=True))

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
        names, found = self.names(constants), self.program(constants, checked=checked)
        found["labels"] = [[name, names.words(x)] for name, x in self.outline.labels.items()]
        if self.outline.initial is not None:
            found["init"] = names.words(self.outline.initial)
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
        names = self.names(constants)
        return {
            "kind": self.kind,
            "checked": checked,
            "variables": [
                self._variable(variable, number, constants, renamings)
                for variable, number, renamings in self._variables
            ],
            "actions": list(self.outline.actions),
            "modules": [self._module(name, names) for name in self._modules],
            "rewards": [self._rewards(structure, names) for structure in self.outline.rewards],
        }

    @cached_property
    def _variables(self) -> list[tuple[VariableDeclaration, int, tuple[Mapping[str, str], ...]]]:
        """The variables in PRISM's order, each with its module and the renamings above it."""
        found: list[tuple[VariableDeclaration, int, tuple[Mapping[str, str], ...]]] = [
            (variable, -1, ()) for variable in self._globals
        ]
        for number, name in enumerate(self._modules):
            written, renamings = self._resolved(name)
            found += [(variable, number, renamings) for variable in written.variables]
        return found

    def _resolved(self, name: str) -> tuple[WrittenModule, tuple[Mapping[str, str], ...]]:
        """Return the module that is written out, and what renames it on the way."""
        renamings: list[Mapping[str, str]] = []
        module = self._modules[name]
        while module.base is not None:
            renamings.insert(0, module.renaming)
            module = self._modules[module.base.text]
        return module, tuple(renamings)

    def _variable(
        self,
        variable: VariableDeclaration,
        module: int,
        constants: Mapping[str, Value],
        renamings: tuple[Mapping[str, str], ...],
    ) -> dict[str, Any]:
        names = Names({}, constants, self.outline.formulas, renamings=renamings)
        name = names.renamed(variable.name.name)

        def value(expression: Expression | None, default: Value | None) -> Value | None:
            if expression is None:
                return default
            words = names.words(expression)
            if len(words) != 1 or isinstance(words[0], str):
                # The error of what cannot be computed.
                return constant_value(expression, constants, self.outline.formulas)
            return words[0]

        low, high = value(variable.low, None), value(variable.high, None)
        is_bool = variable.type == "bool"
        if is_bool:
            low, high = 0, 1
        initial = value(variable.initial, False if is_bool else low or 0)
        for what in (low, high, initial):
            if isinstance(what, float) or (isinstance(what, bool) and not is_bool):
                raise InvalidModelError(f"The range of variable {name} is not one of integers")
        return {
            "name": name,
            "type": variable.type,
            "low": low,
            "high": high,
            "initial": initial,
            "module": module,
        }

    def _module(self, name: str, names: Names) -> dict[str, Any]:
        written, renamings = self._resolved(name)
        inside = Names(names.variables, names.constants, names.formulas, renamings=renamings)
        commands = [self._command(command, inside) for command in written.commands]
        alphabet = dict.fromkeys(entry["action"] for entry in commands if entry["action"])
        return {"name": name, "alphabet": list(alphabet), "commands": commands}

    def _command(self, command: Command, names: Names) -> dict[str, Any]:
        updates: list[list[Any]] = []
        for written in command.updates:
            weight = written.weight
            update: list[Any] = [[1.0] if weight is None else names.words(weight)]
            for item in written.assignments:
                target = names.renamed(item.variable.name)
                if target not in names.variables:
                    raise InvalidModelError(f'Unknown variable "{target}" in update')
                update.append([names.variables[target], names.words(item.value)])
            updates.append(update)
        return {
            "action": self._action(names.renamed(command.action)),
            "guard": names.words(command.guard),
            "updates": updates,
        }

    def _action(self, name: str) -> int:
        return self.outline.actions.index(name) + 1 if name else 0

    def _rewards(self, structure: RewardOutline, names: Names) -> dict[str, Any]:
        states: list[Any] = []
        transitions: list[Any] = []
        for item in structure.items:
            words = [names.words(item.guard), names.words(item.value)]
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
        As `ModelText` does, and for several initial states.
    """

    def __init__(self, text: str, source: str) -> None:
        super().__init__(text, source, "simulation")
        if self.outline.initial is not None:
            raise UnsupportedError("simulation from initial states that init … endinit describes")

    def program(self, constants: Mapping[str, Value], *, checked: bool) -> dict[str, Any]:
        """Return the program of a chain; see `ModelText.program`.

        The choices of an MDP are resolved uniformly, as PRISM's simulator resolves them, and so are
        those of a DTMC.
        """
        kind = "ctmc" if self.kind == "ctmc" else "dtmc"
        return super().program(constants, checked=checked) | {"kind": kind}
