"""Random programs, built of the engines' own parts."""

from __future__ import annotations

from random import Random

from engines.program.expressions import (
    FALSE,
    TRUE,
    Binary,
    BinaryOperator,
    Call,
    Conditional,
    Function,
    Literal,
    Type,
    Unary,
    UnaryOperator,
    Variable,
)
from engines.program.program import (
    Assignment,
    Command,
    Label,
    ModelKind,
    Module,
    Program,
    RewardStructure,
    StateReward,
    TransitionReward,
    Update,
    VariableDeclaration,
)

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
CONNECTIVES = ("&", "|", "=>", "<=>", "=", "!=")


class RandomProgram:
    """Makes the parts of one program.

    Some of its variables are Booleans, some have a range of a single value; its modules may block
    actions; a few of its expressions overflow, leave a range or have no value.
    """

    def __init__(self, seed, *, everything=False):
        self._random = Random(seed)
        self._everything = everything
        self._kind = self._pick(list(ModelKind))
        self._sizes = [self._random.randint(1, 2) for _ in range(self._random.randint(1, 3))]
        self._variables = [self._declaration(i) for i in range(sum(self._sizes))]

    def program(self):
        """The program."""
        modules, first = [], 0
        for m, size in enumerate(self._sizes):
            own = range(first, first + size)
            commands = tuple(self._command(own) for _ in range(self._random.randint(1, 4)))
            blocked = frozenset([0]) if self._one_in(8) else frozenset()
            modules.append(Module(f"m{m}", commands, blocked))
            first += size
        states = tuple(StateReward(self.truth(2), self._reward()) for _ in range(2))
        transitions = tuple(
            TransitionReward(self._action(), self.truth(2), self._reward())
            for _ in range(self._random.randint(0, 3))
        )
        return Program(
            self._kind,
            tuple(self._variables),
            tuple(modules),
            ("a", "b"),
            (RewardStructure("r", states, transitions),),
            (Label("good", self.truth(3)),),
            initial_condition=self._start(),
            probabilities_checked=not self._one_in(3),
        )

    def _start(self):
        # Unbounded variables would have too many values to look at.
        enumerable = all(variable.high < 100 for variable in self._variables)
        return self.truth(3) if self._one_in(4) and enumerable else None

    def _pick(self, items):
        return self._random.choice(items)

    def _one_in(self, number):
        return self._random.randrange(number) == 0

    def _declaration(self, i):
        if self._one_in(4):
            return VariableDeclaration(f"b{i}", Type.BOOL, 0, 1, self._random.randint(0, 1))
        low = self._random.randint(-3, 2)
        if self._everything and self._one_in(5):
            # Commands keep it small nonetheless.
            return VariableDeclaration(f"x{i}", Type.INT, -(2**31), 2**31 - 1, low)
        high = low + self._random.randint(0, 4)
        return VariableDeclaration(f"x{i}", Type.INT, low, high, self._random.randint(low, high))

    def _action(self):
        return self._pick([None, 0, 1])

    def number(self, depth):
        """An integer expression."""
        numbers = [i for i, v in enumerate(self._variables) if v.type is Type.INT]
        if depth == 0 or self._one_in(3):
            if numbers and not self._one_in(3):
                return Variable(self._pick(numbers), Type.INT)
            return Literal(self._random.randint(-4, 4))
        inner = self.number(depth - 1)
        match self._random.randrange(9):
            case 0:
                return Call(Function.MIN, (inner, self.number(depth - 1)))
            case 1:
                return Call(Function.MAX, (inner, self.number(depth - 1), self.number(0)))
            case 2:
                divisor = self.number(0) if self._one_in(6) else Literal(3)
                return Call(Function.MOD, (inner, divisor))
            case 3:
                most = 40 if self._one_in(10) else 3
                return Call(Function.POW, (inner, Literal(self._random.randint(0, most))))
            case 4:
                return Unary(UnaryOperator.MINUS, inner)
            case 5:
                rounding = self._pick([Function.FLOOR, Function.CEIL, Function.ROUND])
                return Call(rounding, (half(inner),))
            case 6:
                return Conditional(self.truth(depth - 1), inner, self.number(depth - 1))
            case _:
                sign = BinaryOperator(self._pick("+-*"))
                return Binary(sign, inner, self.number(depth - 1))

    def truth(self, depth):
        """A Boolean expression."""
        truths = [i for i, v in enumerate(self._variables) if v.type is Type.BOOL]
        if depth == 0:
            if truths and self._one_in(2):
                return Variable(self._pick(truths), Type.BOOL)
            return FALSE if self._one_in(8) else TRUE
        match self._random.randrange(6):
            case 0:
                return Unary(UnaryOperator.NOT, self.truth(depth - 1))
            case 1:
                connective = BinaryOperator(self._pick(CONNECTIVES))
                return Binary(connective, self.truth(depth - 1), self.truth(depth - 1))
            case 2:
                return Conditional(*(self.truth(depth - 1) for _ in range(3)))
            case 3:
                return self.truth(depth - 1)
        comparison = BinaryOperator(self._pick(COMPARISONS))
        left = self.number(depth - 1)
        right = self.number(0)
        return Binary(comparison, half(left) if self._one_in(3) else left, right)

    def _value(self, declared):
        if declared.type is Type.BOOL:
            return self.truth(2)
        value = self.number(2)
        is_unbounded = declared.high == 2**31 - 1
        if self._one_in(12) and not is_unbounded:
            return value
        size = Literal(5 if is_unbounded else declared.high - declared.low + 1)
        low = Literal(-2 if is_unbounded else declared.low)
        shifted = Binary(BinaryOperator.MINUS, value, low)
        return Binary(BinaryOperator.PLUS, Call(Function.MOD, (shifted, size)), low)

    def _weights(self, count):
        remainder = Call(Function.MOD, (self.number(1), Literal(4)))
        if self._kind is ModelKind.CTMC:
            if self._everything and self._one_in(2):
                return [self._real() for _ in range(count)]
            found = [self._pick([Literal(0.1), Literal(2), remainder]) for _ in range(count)]
            return [Literal(0.7), *found[1:]]
        if count == 1:
            return [Literal(1.0)]
        share = Binary(BinaryOperator.DIVIDE, remainder, Literal(3))
        first = self._pick([Literal(0.1), Literal(0.25), Literal(1), share])
        rest = Binary(BinaryOperator.MINUS, Literal(1.0), first)
        return [first, rest] if count == 2 else [first, half(rest), half(rest)]

    def _real(self):
        """A double that no mathematical library computes: a power or a logarithm."""
        positive = half(Call(Function.MAX, (self.number(1), Literal(1))))
        if self._one_in(2):
            return Call(Function.POW, (positive, half(self.number(0))))
        above_1 = Binary(BinaryOperator.PLUS, positive, Literal(1))
        return Call(Function.LOG, (above_1, Literal(self._pick([2, 3.5, 10]))))

    def _command(self, own):
        updates = []
        for weight in self._weights(self._random.randint(1, 3)):
            chosen = [index for index in own if not self._one_in(3)]
            assignments = [Assignment(i, self._value(self._variables[i])) for i in chosen]
            updates.append(Update(tuple(assignments), weight))
        return Command(self.truth(2), tuple(updates), self._action())

    def _reward(self):
        if self._everything and self._one_in(3):
            return self._real()
        return half(Call(Function.MAX, (self.number(2), Literal(0))))


def half(expression):
    """Half of a number."""
    return Binary(BinaryOperator.DIVIDE, expression, Literal(2))


def random_program(seed, *, everything=False):
    """A program of one to three modules that may synchronise.

    With `everything`, some variables are unbounded, and some weights and rewards are powers and
    logarithms.
    """
    return RandomProgram(seed, everything=everything).program()
