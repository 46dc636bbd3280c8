"""The parser of PRISM's expressions and properties.

Source: the grammar of PRISM, `parser/PrismParser.jj`, with its precedences and its answers to the
ambiguities that its comments name.
"""

from __future__ import annotations

from bridge.language.ast import (
    BINARY_PRECEDENCE,
    Binary,
    Bound,
    Conditional,
    Expression,
    Function,
    Identifier,
    Label,
    Literal,
    Parentheses,
    Temporal,
    Unary,
)
from bridge.language.functions import fault_in_call
from bridge.language.lexer import PropertySyntaxError, Token, tokenise
from bridge.language.operators import OperatorParser
from bridge.language.tree import Precedence
from engines.arrays import INT32_MAX

__all__ = ["Parser", "PropertySyntaxError", "parse_expression", "parse_property"]

_RIGHT_ASSOCIATIVE = ("=>", "^")


class Parser(OperatorParser):
    """A parser of the expression that starts at a token; `position` tells where it ends.

    Parameters
    ----------
    tokens
        What `bridge.language.lexer.tokenise` returns.
    position
        Index of the token to start at.
    source
        What the text is called.
    """

    def expression(self, properties: bool = False, paths: bool = False) -> Expression:
        """Return the expression that starts at the next token, and go past it.

        Parameters
        ----------
        properties
            Whether operators of properties (P, R, filters, labels and so on) are allowed.
        paths
            Whether temporal operators are allowed.

        Raises
        ------
        PropertySyntaxError
            At the token that PRISM's grammar does not allow.
        """
        begin = self.next
        with self.nested():
            left = self._temporal_operand(properties, paths)
            if not self.at("U", "W", "R") or self._is_primed():
                return left
            if not paths:
                self.fail()
            operator = self.advance().text
            bound = self._bound()
            right = self._temporal_operand(properties, paths)
            return Temporal(operator, left, right, bound).at(begin.place)

    def conditional(self, properties: bool = False, paths: bool = False) -> Expression:
        """Return the expression at the next token, which is no temporal operator.

        Parameters
        ----------
        properties, paths
            As of `expression`.

        Raises
        ------
        PropertySyntaxError
            At the token that PRISM's grammar does not allow.
        """
        choices: list[tuple[Token, Expression, Expression]] = []
        while True:
            begin = self.next
            value = self._binary(Precedence.IMPLIES, properties, paths)
            if not self.accept("?"):
                break
            then = self._binary(Precedence.IMPLIES, properties, paths)
            self.expect(":")
            choices.append((begin, value, then))
        for begin, condition, then in reversed(choices):
            value = Conditional(condition, then, value).at(begin.place)
        return value

    def _temporal_operand(self, properties: bool, paths: bool) -> Expression:
        prefixes: list[tuple[Token, Bound | None]] = []
        while self.at("X", "F", "G") and not self._is_primed():
            if not paths:
                self.fail()
            operator = self.advance()
            prefixes.append((operator, self._bound()))
        operand = self.conditional(properties, paths)
        for operator, bound in reversed(prefixes):
            operand = Temporal(operator.text, None, operand, bound).at(operator.place)
            if operator.text == "X" and bound is not None:
                message = "Cannot attach bounds to X operator"
                self.faults.append(self.error_from(operator, message, operand))
        return operand

    def _bound(self) -> Bound | None:
        relation = self.accept("<", "<=", ">", ">=", "[", "=")
        if relation is None:
            return None
        if relation.text == "[":
            lower = self.expression()
            self.expect(",")
            upper = self.expression()
            self.expect("]")
            return Bound(lower=lower, upper=upper)
        if relation.text == "=":
            time = self.expression()
            return Bound(lower=time, upper=time, exact=True)
        # In `F<=t (b)` the time is t: only elsewhere is t(b) a function.
        is_name = self.next.is_name and self.at("(", ahead=1)
        time = Identifier(self.advance().text) if is_name else self.expression()
        strict = len(relation.text) == 1
        if relation.text.startswith("<"):
            return Bound(upper=time, upper_strict=strict)
        return Bound(lower=time, lower_strict=strict)

    def _binary(self, loosest: Precedence, properties: bool, paths: bool) -> Expression:
        """Return an expression of binary operators that bind at least as tightly as `loosest`."""
        begin = self.next
        left = self._operand(loosest, properties, paths)
        while self.next.kind == "symbol" and self.next.text in BINARY_PRECEDENCE:
            operator = self.next.text
            precedence = BINARY_PRECEDENCE[operator]
            if precedence < loosest:
                break
            self.advance()
            if operator in _RIGHT_ASSOCIATIVE:
                with self.nested():
                    right = self._binary(precedence, properties, paths)
            else:
                right = self._binary(Precedence(precedence + 1), properties, paths)
            left = Binary(operator, left, right).at(begin.place)
        return left

    def _operand(self, loosest: Precedence, properties: bool, paths: bool) -> Expression:
        negation = self.next.text if self.at("!", "-") else ""
        if negation == "-" or (negation == "!" and loosest <= Precedence.NOT):
            begin = self.advance()
            binds = Precedence.NOT if negation == "!" else Precedence.MINUS
            with self.nested():
                operand = self._binary(binds, properties, paths)
            return Unary(negation, operand).at(begin.place)
        begin = self.next
        return self._basic(properties, paths).at(begin.place)

    def _basic(self, properties: bool, paths: bool) -> Expression:
        token = self.next
        if token.kind in ("integer", "double"):
            return self._number()
        if self._is_primed():
            self.fail()
        if self.accept("("):
            operand = self.expression(properties, paths)
            self.expect(")")
            return Parentheses(operand)
        if self.accept("true", "false"):
            return Literal(token.text == "true", token.text)
        if token.is_name:
            self.advance()
            if self.accept("("):
                return self._function(token, token.text, properties, paths)
            return Identifier(token.text)
        if self.accept("min", "max"):
            self.expect("(")
            return self._function(token, token.text, properties, paths)
        if self.accept("func"):
            self.expect("(")
            name = (self.accept("min", "max") or self.expect_name()).text
            self.expect(",")
            return self._function(token, name, properties, paths, old_style=True)
        if properties and (token.kind == "string" or self.at('"')):
            return Label(self.expect_quoted("init").text)
        found = self.operator(paths) if properties else None
        return found or self.fail()

    def _number(self) -> Literal:
        token = self.next
        if token.kind == "double":
            return Literal(float(self.advance().text), token.text)
        if len(token.text) > len(str(INT32_MAX)) or int(token.text) > INT32_MAX:
            self.fail()
        return Literal(int(self.advance().text), token.text)

    def _function(
        self, begin: Token, name: str, properties: bool, paths: bool, old_style: bool = False
    ) -> Function:
        arguments = [self.expression(properties, paths)]
        while self.accept(","):
            arguments.append(self.expression(properties, paths))
        self.expect(")")
        function = Function(name, tuple(arguments), old_style)
        message = fault_in_call(name, len(arguments))
        if message:
            self.faults.append(self.error_from(begin, message, function))
        return function


def parse_expression(text: str, source: str = "") -> Expression:
    """Return the tree of an expression without operators of properties.

    Parameters
    ----------
    text
        The expression, and nothing after it.
    source
        What the text is called in error messages.

    Raises
    ------
    PropertySyntaxError
        At the first token that PRISM's grammar does not allow there; or else at a call of an
        unknown function, one with the wrong number of arguments, and the like.
    """
    parser = Parser(tokenise(text, source), source=source)
    expression = parser.expression()
    parser.expect_end()
    parser.raise_faults()
    return expression


def parse_property(text: str, source: str = "") -> Expression:
    """Return the tree of a property without a name.

    Parameters
    ----------
    text
        The property, and nothing after it but semicolons.
    source
        What the text is called in error messages.

    Raises
    ------
    PropertySyntaxError
        At the first token that PRISM's grammar does not allow there; or else at a call of an
        unknown function, one with the wrong number of arguments, and the like.
    """
    parser = Parser(tokenise(text, source), source=source)
    expression = parser.conditional(properties=True)
    while parser.accept(";"):
        pass
    parser.expect_end()
    parser.raise_faults()
    return expression
