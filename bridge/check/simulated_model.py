"""The program of a model in PRISM's language, for the simulation without PRISM.

What `prismgpu.ProgramText` writes from PRISM's trees is written here from the model's text: modules
with their commands, renamed ones written out, and rewards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from bridge.check.words import Names
from bridge.language.ast import Expression, Value
from bridge.language.constants import constant_value, define_constants
from bridge.language.lexer import Token
from bridge.language.model_outline import ModelOutline, RewardOutline, outline
from bridge.language.parser import Parser
from engines.errors import InvalidModelError, UnsupportedError

KINDS = {"dtmc": "dtmc", "mdp": "dtmc", "ctmc": "ctmc"}
"""What paths are sampled as: the choices of an MDP are resolved uniformly, as PRISM's simulator
resolves them, and so are those of a DTMC."""


@dataclass(frozen=True)
class _Variable:
    name: str
    type: str
    low: Expression | None
    high: Expression | None
    initial: Expression | None


@dataclass(frozen=True)
class _Command:
    action: str
    guard: Expression
    updates: tuple[tuple[Expression | None, tuple[tuple[str, Expression], ...]], ...]


@dataclass
class _Module:
    """A module as written, or what it renames and how."""

    variables: list[_Variable] = field(default_factory=list)
    commands: list[_Command] = field(default_factory=list)
    base: str = ""
    renaming: dict[str, str] = field(default_factory=dict)


class SimulatedModel:
    """A model's text, ready to become a program for any values of its open constants.

    Parameters
    ----------
    text
        The model, in PRISM's language.
    source
        What error messages call it.

    Raises
    ------
    InvalidModelError
        If the text breaks the grammar.
    UnsupportedError
        For constructs that paths cannot be sampled of.
    """

    def __init__(self, text: str, source: str) -> None:
        self.outline: ModelOutline = outline(text, source)
        self.kind = self.outline.kind or "mdp"
        if self.kind not in KINDS:
            raise UnsupportedError(f"simulation of a model of type {self.kind.upper()}")
        reader = _Reader(list(self.outline.tokens), source)
        reader.read()
        self._globals, self._modules = reader.globals, reader.modules
        if reader.has_system:
            raise UnsupportedError("simulation of a model with a system definition")
        if self.outline.initial is not None:
            raise UnsupportedError("simulation from initial states that init … endinit describes")

    def constants(self, given: Mapping[str, Value]) -> dict[str, Value]:
        """Return the values of all constants; raises as `define_constants` does."""
        outline_ = self.outline
        return define_constants(outline_.constants, given, formulas=outline_.formulas)

    def names(self, constants: Mapping[str, Value]) -> Names:
        """Return what names in properties stand for."""
        places = {name: i for i, name in enumerate(self.outline.variables)}
        return Names(places, constants, self.outline.formulas, self.outline.labels)

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
            "kind": KINDS[self.kind],
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
    def _variables(self) -> list[tuple[_Variable, int, tuple[Mapping[str, str], ...]]]:
        """The variables in PRISM's order, each with its module and the renamings above it."""
        found: list[tuple[_Variable, int, tuple[Mapping[str, str], ...]]] = [
            (variable, -1, ()) for variable in self._globals
        ]
        for number, name in enumerate(self._modules):
            written, renamings = self._resolved(name)
            found += [(variable, number, renamings) for variable in written.variables]
        return found

    def _resolved(self, name: str) -> tuple[_Module, tuple[Mapping[str, str], ...]]:
        """Return the module that is written out, and what renames it on the way."""
        renamings: list[Mapping[str, str]] = []
        module = self._modules[name]
        while module.base:
            renamings.insert(0, module.renaming)
            module = self._modules[module.base]
        return module, tuple(renamings)

    def _variable(
        self,
        variable: _Variable,
        module: int,
        constants: Mapping[str, Value],
        renamings: tuple[Mapping[str, str], ...],
    ) -> dict[str, Any]:
        names = Names({}, constants, self.outline.formulas, renamings=renamings)
        name = names.renamed(variable.name)

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

    def _command(self, command: _Command, names: Names) -> dict[str, Any]:
        updates: list[list[Any]] = []
        for weight, assignments in command.updates:
            update: list[Any] = [[1.0] if weight is None else names.words(weight)]
            for target, value in assignments:
                place = names.variables.get(names.renamed(target))
                if place is None:
                    raise InvalidModelError(f'Unknown variable "{target}" in update')
                update.append([place, names.words(value)])
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


class _Reader(Parser):
    """Reads variables and modules; the rest of a text that `outline` has read is passed over."""

    def __init__(self, tokens: list[Token], source: str) -> None:
        super().__init__(tokens, source=source)
        self.globals: list[_Variable] = []
        self.modules: dict[str, _Module] = {}
        self.has_system = False

    def read(self) -> None:
        while self.next.kind != "end":
            if self.accept("global"):
                self.globals.append(self._variable())
            elif self.accept("module"):
                name = self.expect_name().text
                self.modules[name] = self._module()
            else:
                self.has_system |= self.at("system")
                self.advance()
        self.raise_faults()

    def _variable(self) -> _Variable:
        name = self.expect_name().text
        self.expect(":")
        low = high = None
        if self.accept("["):
            kind, low = "int", self.expression()
            self.expect("..")
            high = self.expression()
            self.expect("]")
        elif self.at("bool", "int"):
            kind = self.advance().text
        else:
            raise UnsupportedError(f"simulation of a variable of the type {self.next.text}")
        initial = self.expression() if self.accept("init") else None
        self.expect(";")
        return _Variable(name, kind, low, high, initial)

    def _module(self) -> _Module:
        module = _Module()
        if self.accept("="):
            module.base = self.expect_name().text
            self.expect("[")
            while not self.accept("]"):
                old = self.advance().text
                self.expect("=")
                module.renaming[old] = self.advance().text
                self.accept(",")
            self.expect("endmodule")
            return module
        while not self.accept("endmodule"):
            if self.at("["):
                module.commands.append(self._command())
            elif self.at("invariant"):
                raise UnsupportedError("simulation of a module with an invariant")
            else:
                module.variables.append(self._variable())
        return module

    def _command(self) -> _Command:
        self.expect("[")
        action = "" if self.at("]") else self.expect_name().text
        self.expect("]")
        guard = self.expression()
        self.expect("->")
        updates = [self._weighted_update()]
        while self.accept("+"):
            updates.append(self._weighted_update())
        self.expect(";")
        if len(updates) > 1 and any(weight is None for weight, _ in updates):
            self.fail()
        return _Command(action, guard, tuple(updates))

    def _weighted_update(self) -> tuple[Expression | None, tuple[tuple[str, Expression], ...]]:
        if self._at_update():
            return None, self._update()
        weight = self.expression()
        self.expect(":")
        return weight, self._update()

    def _at_update(self) -> bool:
        """Whether assignments come next, and no probability."""
        if self.at("true"):
            return self.at(";", "+", "&", ahead=1)
        return self.at("(") and self.peek(1).is_name and self.at("'", ahead=2)

    def _update(self) -> tuple[tuple[str, Expression], ...]:
        if self.accept("true"):
            return ()
        assignments = []
        while True:
            self.expect("(")
            name = self.advance()
            if not name.is_name:
                self.fail()
            self.expect("'")
            self.expect("=")
            assignments.append((name.text, self.expression()))
            self.expect(")")
            if not self.accept("&"):
                return tuple(assignments)
