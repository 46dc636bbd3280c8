"""The property operators of PRISM's grammar: P, S, R, A, E, strategies and filters."""

from __future__ import annotations

from collections.abc import Callable

from bridge.language.ast import (
    Cumulative,
    Expression,
    Filter,
    InnerFilter,
    Instantaneous,
    LongRun,
    Parentheses,
    Probability,
    Quantifier,
    Reward,
    RewardBody,
    SteadyState,
    Strategy,
    Threshold,
)
from bridge.language.cursor import Cursor
from bridge.language.lexer import PropertySyntaxError
from engines.errors import InvalidModelError

RELATIONS = ("<", "<=", ">", ">=")
_DIRECTIONS = ("min", "max", "minmin", "minmax", "maxmin", "maxmax")
_FILTER_SYMBOLS = {"+": "sum", "&": "forall", "|": "exists"}
_ALL_FILTERS = """
min max argmin argmax count sum avg first range forall exists print printall state store
"""
FILTER_KINDS = frozenset(_ALL_FILTERS.split())


class OperatorParser(Cursor):
    """The operators that only properties have; `bridge.language.parser.Parser` adds the rest."""

    def expression(self, properties: bool = False, paths: bool = False) -> Expression:
        """Return the expression that starts at the next token, and go past it."""
        raise NotImplementedError

    def operator(self, paths: bool) -> Expression | None:
        """Return the property operator that starts at the next token, or None for no such one.

        Parameters
        ----------
        paths
            Whether temporal operators are allowed in its operands that are not in brackets.
        """
        token = self.next
        if token.kind == "symbol" and token.text in ("<<", "[["):
            return self._strategy(paths)
        if token.kind != "identifier" or self._is_primed():
            return None
        if token.text[0] in "PR" and token.text[1:] in ("", *_DIRECTIONS):
            return self._probability() if token.text[0] == "P" else self._reward()
        others: dict[str, Callable[[], Expression]] = {
            "S": lambda: self._steady_state(paths),
            "A": self._quantifier,
            "E": self._quantifier,
            "filter": lambda: self._filter(paths),
        }
        other = others.get(token.text)
        return None if other is None else other()

    def _probability(self) -> Expression:
        begin = self.advance().text
        if begin == "P":
            self._refuse_modifier("P")
        threshold = self._threshold(begin)
        self.expect("[")
        path = self.expression(properties=True, paths=True)
        inner = self._inner_filter()
        self.expect("]")
        return _filtered(Probability(threshold, path, inner), threshold, inner)

    def _steady_state(self, paths: bool) -> Expression:
        self.expect("S")
        self._refuse_modifier("S")
        threshold = self._bounded_threshold() or self._quantitative("")
        self.expect("[")
        operand = self.expression(properties=True, paths=paths)
        inner = self._inner_filter()
        self.expect("]")
        return _filtered(SteadyState(threshold, operand, inner), threshold, inner)

    def _reward(self) -> Expression:
        structure: str | Expression | None = None
        divisor: str | Expression | None = None
        begin = self.advance().text
        if begin == "R":
            self._refuse_modifier("R")
            if self.at("{"):
                structure = self._reward_index()
                if self.accept("/"):
                    divisor = self._reward_index()
        threshold = self._threshold(begin)
        self.expect("[")
        body = self._reward_body()
        inner = self._inner_filter()
        self.expect("]")
        return _filtered(Reward(structure, divisor, threshold, body, inner), threshold, inner)

    def _reward_index(self) -> str | Expression:
        self.expect("{")
        index: str | Expression
        if self.next.kind == "string" or self.at('"'):
            index = self.expect_quoted().text
        else:
            index = self.expression()
        self.expect("}")
        return index

    def _reward_body(self) -> RewardBody:
        if self.at("S"):
            # `S` alone is the long-run average, and the start of an operator where one can follow.
            start = self.position
            try:
                return self._steady_state(paths=True)
            except PropertySyntaxError:
                self.position = start + 1
                return LongRun()
        if self.accept("C"):
            return Cumulative(self.expression()) if self.accept("<=") else Cumulative()
        if self.accept("I"):
            self.expect("=")
            return Instantaneous(self.expression())
        return self.expression(properties=True, paths=True)

    def _threshold(self, begin: str) -> Threshold:
        """Return what follows P or R, where `begin` may hold the direction already: Pmin."""
        if len(begin) > 1:
            return self._quantitative(begin[1:])
        bounded = self._bounded_threshold()
        if bounded is not None:
            return bounded
        direction = ""
        if first := self.accept(*_DIRECTIONS):
            direction = first.text
            if direction in ("min", "max") and (second := self.accept("min", "max")):
                direction += second.text
        return self._quantitative(direction)

    def _bounded_threshold(self) -> Threshold | None:
        relation = self.accept(*RELATIONS)
        return None if relation is None else Threshold("", relation.text, self.expression())

    def _quantitative(self, direction: str) -> Threshold:
        self.expect("=")
        self.expect("?")
        return Threshold(direction)

    def _inner_filter(self) -> InnerFilter | None:
        if not self.accept("{"):
            return None
        states = self.expression(properties=True)
        self.expect("}")
        wanted = set()
        while self.accept("{"):
            wanted.add(self.expect("min", "max").text)
            self.expect("}")
        return InnerFilter(states, "min" in wanted, "max" in wanted)

    def _quantifier(self) -> Expression:
        name = self.advance().text
        self.expect("[")
        path = self.expression(properties=True, paths=True)
        self.expect("]")
        return Quantifier(name, path)

    def _strategy(self, paths: bool) -> Expression:
        existential = self.advance().text == "<<"
        close = ">>" if existential else "]]"
        players = "*" if self.accept("*") else ",".join(self._players(close))
        self.expect(close)
        if self.accept("("):
            operand: Expression = Parentheses(self.expression(properties=True, paths=paths))
            self.expect(")")
        elif self.next.text[:1] in "PR" and self.next.kind == "identifier":
            operand = self.operator(paths) or self.fail()
        else:
            self.fail()
        return Strategy(existential, players, (operand,))

    def _players(self, close: str) -> list[str]:
        players: list[str] = []
        while not (self.at(close) and not players):
            if not self.next.is_name and self.next.kind != "integer":
                self.fail()
            players.append(self.advance().text)
            if not self.accept(","):
                break
        return players

    def _filter(self, paths: bool) -> Expression:
        begin = self.expect("filter")
        self.expect("(")
        written = self.accept("min", "max", *_FILTER_SYMBOLS) or self.expect_name()
        self.expect(",")
        operand = self.expression(properties=True, paths=paths)
        states = self.expression(properties=True, paths=paths) if self.accept(",") else None
        self.expect(")")
        kind = _FILTER_SYMBOLS.get(written.text, written.text)
        symbol = written.text if written.text in _FILTER_SYMBOLS else ""
        node = Filter(kind, operand, states, symbol=symbol)
        if kind not in FILTER_KINDS:
            self.faults.append(self.error_from(begin, f'Unknown filter type "{kind}"', node))
        return node

    def _refuse_modifier(self, operator: str) -> None:
        if self.accept("("):
            modifier = self.expect_name().text
            self.expect(")")
            message = f'Modifier "{modifier}" not supported for {operator} operator'
            self.faults.append(InvalidModelError(message))


def _filtered(
    operator: Probability | SteadyState | Reward, threshold: Threshold, inner: InnerFilter | None
) -> Expression:
    """Return an operator with the filter in its brackets made explicit around it."""
    if inner is None:
        return operator
    if threshold.bound is not None:
        return Filter("forall", operator, inner.states, explicit=False)
    kinds = {(False, False): "state", (True, False): "min", (False, True): "max"}
    kind = kinds.get((inner.minimum, inner.maximum), "range")
    return Filter(kind, operator, inner.states, explicit=False)
