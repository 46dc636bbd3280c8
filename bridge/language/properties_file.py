"""Lists of properties, with the constants and labels that they declare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bridge.language.ast import Expression, Identifier, Label
from bridge.language.dependencies import CyclicDefinitionError, dependency_order
from bridge.language.lexer import PropertySyntaxError, Token, tokenise
from bridge.language.parser import Parser


@dataclass(frozen=True)
class ConstantDeclaration:
    """A declared constant.

    Parameters
    ----------
    name
        Its name.
    type
        "int", "double" or "bool".
    value
        Its definition, or None for one that the user has to give.
    """

    name: str
    type: str
    value: Expression | None


@dataclass(frozen=True)
class Property:
    """A property of a list.

    Parameters
    ----------
    name
        Its name, empty for none.
    expression
        The property itself.
    text
        PRISM's text for it, with its name.
    """

    name: str
    expression: Expression
    text: str


@dataclass(frozen=True)
class PropertiesFile:
    """A list of properties.

    Parameters
    ----------
    properties
        In the order of the text.
    constants
        The declared constants, in that order too.
    labels
        The declared labels.
    formulas
        Always empty: PRISM's grammar has formulas in models alone.
    """

    properties: tuple[Property, ...] = ()
    constants: tuple[ConstantDeclaration, ...] = ()
    labels: Mapping[str, Expression] = field(default_factory=dict)
    formulas: Mapping[str, Expression] = field(default_factory=dict)


def parse_properties(
    text: str, source: str = "", model_names: Mapping[str, str] | None = None
) -> PropertiesFile:
    """Parse a list of properties: a file, or the text after ``-pctl``.

    Parameters
    ----------
    text
        Properties, with or without semicolons after them, and declarations of constants and
        labels, in any order.
    source
        What the text is called in error messages.
    model_names
        The names that the model uses, labels in quotation marks, and what for; an empty text where
        that is not known. None of them can be declared again.

    Raises
    ------
    PropertySyntaxError
        For what PRISM refuses about the text alone: a token that its grammar does not allow, a
        name that is declared twice, constants or properties that are defined by themselves.
    """
    parser = PropertiesParser(tokenise(text, source), source=source, model_names=model_names)
    while parser.next.kind != "end":
        parser.item()
    return parser.finished()


class PropertiesParser(Parser):
    """A parser of lists of properties."""

    def __init__(
        self,
        tokens: Sequence[Token],
        position: int = 0,
        source: str = "",
        model_names: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(tokens, position, source)
        self._model_names = model_names or {}
        self._properties: list[Property] = []
        self._constants: list[ConstantDeclaration] = []
        self._labels: dict[str, Expression] = {}
        # What is declared: where, by which name, and what error messages show.
        self._declared: dict[str, list[tuple[Token, str, str]]] = {
            "label": [],
            "constant": [],
            "property": [],
        }
        self._defined_at: dict[str, Token] = {}

    def item(self) -> None:
        """Parse a property, or a declaration."""
        if self.at("label"):
            self._label()
        elif self.at("const", "rate", "prob"):
            self._constant()
        else:
            self._property()

    def finished(self) -> PropertiesFile:
        """Return what was parsed.

        Raises
        ------
        InvalidModelError
            For a name that is declared twice, constants or properties that are defined by
            themselves, and other faults.
        """
        quoted: dict[str, str] = {}
        self._refuse_duplicates("label", quoted)
        self._refuse_duplicates("constant", {})
        definitions = {item.name: item.value for item in self._constants if item.value is not None}
        self._refuse_cycles(definitions, Identifier, "definition of constant", definitions)
        self._refuse_duplicates("property", quoted)
        named = {item.name: item.expression for item in self._properties if item.name}
        shown = {item.name: item.text for item in self._properties if item.name}
        self._refuse_cycles(named, Label, "property references from property", shown)
        self.raise_faults()
        return PropertiesFile(tuple(self._properties), tuple(self._constants), self._labels)

    def _constant(self) -> None:
        kind = "double"
        if self.expect("const", "rate", "prob").text == "const":
            declared = self.accept("int", "double", "bool")
            kind = "int" if declared is None else declared.text
        name = self.expect_name()
        value = None
        if self.accept("="):
            self._defined_at[name.text] = self.next
            value = self.expression()
        self.expect(";")
        self._declared["constant"].append((name, name.text, name.text))
        self._constants.append(ConstantDeclaration(name.text, kind, value))

    def _label(self) -> None:
        self.expect("label")
        if self.next.is_name:
            message = "Label names must be enclosed in double-quotes"
            raise self.error_from(self.next, message, Identifier(self.next.text))
        name = self.expect_quoted()
        self.expect("=")
        begin, value = self.next, self.expression()
        self.expect(";")
        if name.text == "deadlock":
            message = 'Cannot define a label called "deadlock" - this is a built-in label'
            self.faults.append(self.error_from(begin, message, value))
        self._declared["label"].append((name, f'"{name.text}"', name.text))
        self._labels[name.text] = value

    def _property(self) -> None:
        begin, name = self.next, ""
        if begin.kind == "string" and self.at(":", ahead=1):
            name = self.expect_quoted().text
            self.expect(":")
        expression = self.conditional(properties=True)
        while self.accept(";"):
            pass
        text = f'"{name}": {expression}' if name else str(expression)
        if name:
            self._declared["property"].append((begin, f'"{name}"', text))
            self._defined_at[f'"{name}"'] = begin
        self._properties.append(Property(name, expression, text))

    def _refuse_duplicates(self, use: str, taken: dict[str, str]) -> None:
        for token, name, shown in self._declared[use]:
            where = "model" if name in self._model_names else "properties"
            other = self._model_names.get(name, taken.get(name))
            if other is not None:
                message = f"Name of {use} {name} is already used for a {other}"
                if not other:
                    message = f"Identifier {name} is already used"
                # PRISM points at a label's name, not at the quotation mark before it.
                column = token.column + (use == "label")
                raise PropertySyntaxError(
                    f"{message} in the {where}", shown, token.line, column, self.source
                )
            taken[name] = use

    def _refuse_cycles(
        self,
        definitions: Mapping[str, Expression],
        kind: type[Identifier] | type[Label],
        what: str,
        shown: Mapping[str, Expression | str],
    ) -> None:
        try:
            dependency_order(definitions, kind, dict.fromkeys(definitions, what))
        except CyclicDefinitionError as error:
            name = error.name if kind is Identifier else f'"{error.name}"'
            token, text = self._defined_at[name], str(shown[error.name])
            raise PropertySyntaxError(
                str(error), text, token.line, token.column, self.source
            ) from None
