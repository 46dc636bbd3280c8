"""What remains to be satisfied of a formula after a letter has been read.

A state is a Boolean function of the atoms that hold now and of the formulas that must hold from
the next letter on. It is kept as a reduced ordered binary decision diagram, so that equivalent
states are the same number; there are finitely many, because no temporal formula is ever made that
is not a subformula of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engines.automata import ltl
from engines.automata.ltl import Formula, Operator

FALSE_STATE = 0
TRUE_STATE = 1


class DecisionDiagrams:
    """Reduced ordered binary decision diagrams that share their nodes.

    A diagram is the number of its root: 0 is false, 1 is true. Variables are numbered from 0, and
    lower ones are tested first.

    Source: R. E. Bryant, "Graph-Based Algorithms for Boolean Function Manipulation", 1986.
    """

    def __init__(self) -> None:
        # Variable, diagram where it is true, diagram where it is false; constants test last of all.
        last = 2**62
        self._nodes: list[tuple[int, int, int]] = [(last, 0, 0), (last, 1, 1)]
        self._numbers: dict[tuple[int, int, int], int] = {}
        self._choices: dict[tuple[int, int, int], int] = {}

    def variable(self, number: int) -> int:
        """Return the diagram of a variable."""
        return self._node(number, TRUE_STATE, FALSE_STATE)

    def _node(self, variable: int, high: int, low: int) -> int:
        if high == low:
            return high
        node = (variable, high, low)
        number = self._numbers.get(node)
        if number is None:
            number = self._numbers[node] = len(self._nodes)
            self._nodes.append(node)
        return number

    def choose(self, condition: int, then: int, otherwise: int) -> int:
        """Return the diagram of ``(condition & then) | (!condition & otherwise)``."""
        if condition == TRUE_STATE or then == otherwise:
            return then
        if condition == FALSE_STATE:
            return otherwise
        if (then, otherwise) == (TRUE_STATE, FALSE_STATE):
            return condition
        key = (condition, then, otherwise)
        result = self._choices.get(key)
        if result is None:
            nodes = [self._nodes[diagram] for diagram in key]
            top = min(variable for variable, _, _ in nodes)
            split = [
                (high, low) if variable == top else (diagram, diagram)
                for diagram, (variable, high, low) in zip(key, nodes, strict=True)
            ]
            high, low = (self.choose(*side) for side in zip(*split, strict=True))
            result = self._choices[key] = self._node(top, high, low)
        return result

    def both(self, left: int, right: int) -> int:
        """Return the conjunction."""
        return self.choose(left, right, FALSE_STATE)

    def either(self, left: int, right: int) -> int:
        """Return the disjunction."""
        return self.choose(left, TRUE_STATE, right)

    def complement(self, diagram: int) -> int:
        """Return the negation."""
        return self.choose(diagram, FALSE_STATE, TRUE_STATE)

    def substitute(
        self, diagram: int, replacement: Callable[[int], int], known: dict[int, int]
    ) -> int:
        """Return the diagram with every variable replaced.

        Parameters
        ----------
        diagram
            Where to replace.
        replacement
            From a variable to the diagram that takes its place.
        known
            Results of earlier calls with the same replacement; it is added to.
        """
        if diagram <= TRUE_STATE:
            return diagram
        result = known.get(diagram)
        if result is None:
            variable, high, low = self._nodes[diagram]
            result = known[diagram] = self.choose(
                replacement(variable),
                self.substitute(high, replacement, known),
                self.substitute(low, replacement, known),
            )
        return result

    def support(self, diagram: int) -> frozenset[int]:
        """Return the variables that the function depends on."""
        seen: set[int] = set()
        variables: set[int] = set()
        pending = [diagram]
        while pending:
            node = pending.pop()
            if node > TRUE_STATE and node not in seen:
                seen.add(node)
                variable, high, low = self._nodes[node]
                variables.add(variable)
                pending += (high, low)
        return frozenset(variables)


class Progression:
    """States of formulas, and their successors by letters.

    Source: the "after" function of J. Esparza, J. Křetínský, S. Sickert, "From LTL to
    Deterministic Automata", Formal Methods in System Design 49, 2016, here on formulas that are
    unfolded to the next letter, which makes more of them equal.

    Parameters
    ----------
    atoms
        Names of the atoms. A letter is an integer: bit i tells whether ``atoms[i]`` holds.
    """

    def __init__(self, atoms: Sequence[str]) -> None:
        self._diagrams = DecisionDiagrams()
        self._bits = {name: i for i, name in enumerate(atoms)}
        # A variable is an atom, which holds now, or another formula, which holds next. They are
        # numbered as they are met: atoms beside the formulas that they decide make small diagrams.
        self._meanings: list[str | Formula] = []
        self._variables: dict[str | Formula, int] = {}
        self._unfolded: dict[Formula, int] = {}
        self._successors: dict[int, dict[int, int]] = {}

    def unfold(self, formula: Formula) -> int:
        """Return the state of a formula."""
        state = self._unfolded.get(formula)
        if state is None:
            state = self._unfolded[formula] = self._unfold(formula)
        return state

    def _unfold(self, formula: Formula) -> int:
        diagrams = self._diagrams
        if formula.operator in (Operator.UNTIL, Operator.RELEASE):
            left, right = map(self.unfold, formula.operands)
            again = self._next(formula)
            if formula.operator is Operator.UNTIL:
                return diagrams.either(right, diagrams.both(left, again))
            return diagrams.both(right, diagrams.either(left, again))
        if formula.operator is Operator.NEXT:
            return self._next(formula.operands[0])
        if formula.is_literal:
            positive = self._variable(formula.name)
            return positive if formula.operator is Operator.ATOM else diagrams.complement(positive)
        return self._combine(formula, self.unfold)

    def _next(self, formula: Formula) -> int:
        """Return the state of X `formula`, with X pushed down to what a promise can be."""
        if formula.operator in (Operator.UNTIL, Operator.RELEASE, Operator.ATOM):
            return self._variable(formula)
        if formula.operator is Operator.NEGATED_ATOM:
            return self._diagrams.complement(self._variable(ltl.negation(formula)))
        if formula.operator is Operator.NEXT:
            innermost = formula
            while innermost.operator is Operator.NEXT:
                innermost = innermost.operands[0]
            # X X !a is !(X X a): one variable for both.
            if innermost.operator is Operator.NEGATED_ATOM:
                return self._diagrams.complement(self._variable(ltl.negation(formula)))
            return self._variable(formula)
        return self._combine(formula, self._next)

    def _variable(self, meaning: str | Formula) -> int:
        variable = self._variables.get(meaning)
        if variable is None:
            variable = self._variables[meaning] = len(self._meanings)
            self._meanings.append(meaning)
        return self._diagrams.variable(variable)

    def _combine(self, formula: Formula, convert: Callable[[Formula], int]) -> int:
        """Return the state of a Boolean constant, conjunction or disjunction."""
        if formula.operator in (Operator.TRUE, Operator.AND):
            return self.all_of([convert(part) for part in formula.operands])
        state = FALSE_STATE
        for part in formula.operands:
            state = self._diagrams.either(state, convert(part))
        return state

    def all_of(self, states: Sequence[int]) -> int:
        """Return the conjunction of states."""
        result = TRUE_STATE
        for state in states:
            result = self._diagrams.both(result, state)
        return result

    def implies(self, stronger: int, weaker: int) -> bool:
        """Tell whether `stronger` implies `weaker` as a Boolean function."""
        return self._diagrams.both(stronger, weaker) == stronger

    def after(self, state: int, letter: int) -> int:
        """Return the state after a letter."""

        def by_letter(variable: int) -> int:
            meaning = self._meanings[variable]
            if isinstance(meaning, str):
                return letter >> self._bits[meaning] & 1
            return self.unfold(meaning)

        known = self._successors.setdefault(letter, {})
        return self._diagrams.substitute(state, by_letter, known)

    def promises(self, state: int) -> tuple[Formula, ...]:
        """Return the formulas that the state depends on, each to hold from the next letter on."""
        meanings = [self._meanings[variable] for variable in sorted(self._diagrams.support(state))]
        return tuple(meaning for meaning in meanings if isinstance(meaning, Formula))

    def rewrite(self, state: int, change: Callable[[Formula], Formula]) -> int:
        """Return the state with every promised formula changed."""

        def changed(variable: int) -> int:
            meaning = self._meanings[variable]
            if isinstance(meaning, str):
                return self._diagrams.variable(variable)
            return self._next(change(meaning))

        return self._diagrams.substitute(state, changed, {})
