"""Modules of a model's text: variables and commands, as written and with renamings carried out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bridge.language.ast import Expression, Function, Identifier
from bridge.language.lexer import Token
from bridge.language.parser import Parser
from bridge.language.tree import Node, rebuilt
from engines.errors import UnsupportedError

Assignments = tuple["Assignment", ...]


@dataclass(frozen=True)
class VariableDeclaration:
    """A declared variable.

    Parameters
    ----------
    name
        Its name, at its place in the text.
    type
        "int", "bool", or a type that only other kinds of model have, such as "clock".
    low, high
        The bounds of an integer; None where it has none.
    initial
        Its first value, or None for the default.
    place
        Line and column of its type.
    """

    name: Identifier
    type: str
    low: Expression | None
    high: Expression | None
    initial: Expression | None
    place: tuple[int, int]

    @property
    def shown(self) -> Identifier:
        """The declaration as PRISM shows it, at its place in the text."""
        kind = self.type if self.low is None else f"[{self.low}..{self.high}]"
        start = "" if self.initial is None else f" init {self.initial}"
        return Identifier(f"{self.name.name} : {kind}{start}").at(self.name.position)


@dataclass(frozen=True)
class Assignment:
    """The new value of a variable, which is named at its place in the text."""

    variable: Identifier
    value: Expression

    def __str__(self) -> str:
        return f"({self.variable}'={self.value})"


@dataclass(frozen=True)
class Update:
    """Assignments, and their probability or rate; None for 1."""

    weight: Expression | None
    assignments: Assignments

    def __str__(self) -> str:
        assignments = " & ".join(map(str, self.assignments)) or "true"
        return assignments if self.weight is None else f"{self.weight} : {assignments}"


@dataclass(frozen=True)
class Command:
    """A command; its action is empty where it has none, its place that of its updates.

    PRISM shows a command by the text of its updates.
    """

    action: str
    guard: Expression
    updates: tuple[Update, ...]
    place: tuple[int, int]

    def __str__(self) -> str:
        return " + ".join(map(str, self.updates))


@dataclass(frozen=True)
class Module:
    """A module without renaming."""

    name: str
    variables: tuple[VariableDeclaration, ...]
    commands: tuple[Command, ...]
    invariant: Expression | None = None


@dataclass
class WrittenModule:
    """A module as written: its content, or the module that it renames, and how.

    Parameters
    ----------
    variables, commands, invariant
        The content.
    base
        The module that it renames, or None.
    renaming
        New names for old ones.
    places
        Line and column of each old name.
    """

    variables: list[VariableDeclaration] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    invariant: Expression | None = None
    base: Token | None = None
    renaming: dict[str, str] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Renaming:
    """A renaming of a module's names; formulas are written out before it.

    Parameters
    ----------
    names
        New names for old ones.
    formulas
        The definitions of the model's formulas.
    """

    names: Mapping[str, str]
    formulas: Mapping[str, Expression]

    def module(self, module: Module, name: str) -> Module:
        """Return a module under another name, with other names in it."""
        return Module(
            name,
            tuple(self._variable(variable) for variable in module.variables),
            tuple(self._command(command) for command in module.commands),
            self._expression(module.invariant),
        )

    def _variable(self, variable: VariableDeclaration) -> VariableDeclaration:
        return replace(
            variable,
            name=self._identifier(variable.name),
            low=self._expression(variable.low),
            high=self._expression(variable.high),
            initial=self._expression(variable.initial),
        )

    def _command(self, command: Command) -> Command:
        updates = tuple(
            Update(
                self._expression(update.weight),
                tuple(
                    Assignment(self._identifier(item.variable), self.renamed(item.value))
                    for item in update.assignments
                ),
            )
            for update in command.updates
        )
        action = self.names.get(command.action, command.action)
        return Command(action, self.renamed(command.guard), updates, command.place)

    def _identifier(self, name: Identifier) -> Identifier:
        return Identifier(self.names.get(name.name, name.name)).at(name.position)

    def _expression(self, expression: Expression | None) -> Expression | None:
        return None if expression is None else self.renamed(expression)

    def renamed(self, expression: Expression) -> Expression:
        """Return an expression with other names, its formulas written out."""

        def change(node: Node) -> Node:
            if isinstance(node, Identifier) and node.name in self.formulas:
                return self.renamed(self.formulas[node.name])
            if isinstance(node, Identifier | Function) and node.name in self.names:
                return replace(node, name=self.names[node.name])
            return node

        found: Expression = rebuilt(expression, change)
        return found


class ModuleParser(Parser):
    """A parser of what stands in modules."""

    def variable(self) -> VariableDeclaration:
        """Return the declaration of a variable, and go past it."""
        token = self.expect_name()
        name = Identifier(token.text).at(token.place)
        self.expect(":")
        place = self.next.place
        low = high = None
        if self.accept("["):
            kind, low = "int", self.expression()
            self.expect("..")
            high = self.expression()
            self.expect("]")
        else:
            kind = self.expect("bool", "int", "clock").text
        initial = self.expression() if self.accept("init") else None
        self.expect(";")
        return VariableDeclaration(name, kind, low, high, initial, place)

    def module_content(self) -> WrittenModule:
        """Return what stands between a module's name and its end, and go past that."""
        module = WrittenModule()
        if self.accept("="):
            module.base = self.expect_name()
            self._renaming(module)
            self.expect("endmodule")
            return module
        while not self.at("[", "invariant", "endmodule"):
            module.variables.append(self.variable())
        if self.accept("invariant"):
            module.invariant = self.expression()
            self.expect("endinvariant")
        while not self.accept("endmodule"):
            module.commands.append(self._command())
        return module

    def _renaming(self, module: WrittenModule) -> None:
        self.expect("[")
        while True:
            # Functions can be renamed too.
            old = self.accept("min", "max") or self.expect_name()
            self.expect("=")
            new = self.accept("min", "max") or self.expect_name()
            if old.text in module.renaming:
                message = f'Identifier "{old.text}" is renamed more than once in a module'
                raise self.error_from(old, message, Identifier(old.text))
            module.renaming[old.text], module.places[old.text] = new.text, old.place
            if not self.accept(","):
                break
        self.expect("]")

    def _command(self) -> Command:
        self.expect("[")
        action = "" if self.at("]") else self.expect_name().text
        self.expect("]")
        guard = self.expression()
        self.expect("->")
        place = self.next.place
        if self._at_update():
            updates = [Update(None, self._assignments())]
        else:
            updates = [self._weighted()]
            while self.accept("+"):
                updates.append(self._weighted())
        self.expect(";")
        return Command(action, guard, tuple(updates), place)

    def _weighted(self) -> Update:
        if self.at("["):
            raise UnsupportedError("probabilities that are intervals are not supported")
        weight = self.expression()
        self.expect(":")
        return Update(weight, self._assignments())

    def _at_update(self) -> bool:
        """Whether assignments come next, and no probability."""
        if self.at("true"):
            return self.at(";", "&", ahead=1)
        return self.at("(") and self.peek(1).is_name and self.at("'", ahead=2)

    def _assignments(self) -> Assignments:
        if self.accept("true"):
            return ()
        found = []
        while True:
            self.expect("(")
            name = self.advance()
            if not name.is_name:
                self.fail()
            self.expect("'")
            self.expect("=")
            found.append(Assignment(Identifier(name.text).at(name.place), self.expression()))
            self.expect(")")
            if not self.accept("&"):
                return tuple(found)
