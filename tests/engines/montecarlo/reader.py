"""A small reader of PRISM's modelling language, for programs of the tests.

It knows constants, formulas, modules, renaming, labels, rewards and `init`; what it does not know
it refuses. It is a second reader beside the one that goes through PRISM.
"""

from __future__ import annotations

import itertools
import re

from engines.program.evaluate import evaluate
from engines.program.expressions import (
    GREATEST_INT,
    LEAST_INT,
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

TOKEN = re.compile(
    r'\s+|//[^\n]*|(?P<t>"[^"]*"|\d+\.(?!\.)\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\d+|[A-Za-z_]\w*\'?|'
    r"<=>|=>|<=|>=|!=|->|\.\.|[-+*/<>=!&|?:;,()\[\]{}])"
)
KINDS = {
    **dict.fromkeys(("dtmc", "probabilistic"), ModelKind.DTMC),
    **dict.fromkeys(("ctmc", "stochastic"), ModelKind.CTMC),
    **dict.fromkeys(("mdp", "nondeterministic"), ModelKind.MDP),
}
LEVELS = [
    ("<=>",),
    ("=>",),
    ("|",),
    ("&",),
    ("!",),
    ("=", "!="),
    ("<", "<=", ">", ">="),
    ("+", "-"),
    ("*", "/"),
]


def tokens_of(text):
    found, place = [], 0
    while place < len(text):
        match = TOKEN.match(text, place)
        assert match, f"cannot read {text[place : place + 30]!r}"
        if match["t"]:
            found.append(match["t"])
        place = match.end()
    return found


class Reader:
    def __init__(self, tokens, names, formulas):
        self.tokens, self.at = tokens, 0
        self.names, self.formulas = names, formulas

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def take(self, token):
        if self.peek() == token:
            self.at += 1
            return True
        return False

    def expect(self, token):
        assert self.take(token), f"{token} expected: {self.tokens[self.at : self.at + 8]}"

    def expression(self):
        condition = self.level(0)
        if self.take("?"):
            then = self.expression()
            self.expect(":")
            return Conditional(condition, then, self.expression())
        return condition

    def level(self, n):
        if n == len(LEVELS):
            return self.unary()
        if LEVELS[n] == ("!",):
            if self.take("!"):
                return Unary(UnaryOperator.NOT, self.level(n))
            return self.level(n + 1)
        left = self.level(n + 1)
        while self.peek() in LEVELS[n]:
            left = Binary(BinaryOperator(self.next()), left, self.level(n + 1))
        return left

    def unary(self):
        if self.take("-"):
            return Unary(UnaryOperator.MINUS, self.unary())
        if self.take("("):
            inner = self.expression()
            self.expect(")")
            return inner
        token = self.next()
        if token in ("true", "false"):
            return Literal(token == "true")
        if token[0].isdigit():
            return Literal(int(token) if token.isdigit() else float(token))
        if token in list(Function) and self.take("("):
            arguments = [self.expression()]
            while self.take(","):
                arguments.append(self.expression())
            self.expect(")")
            return Call(Function(token), tuple(arguments))
        if token in self.formulas:
            return Reader([*self.formulas[token]], self.names, self.formulas).expression()
        return self.names[token]


def folded(expression):
    return Literal(evaluate(expression, ()))


def sections(text):
    """The declarations of a model as lists of tokens."""
    tokens = tokens_of(text)
    ends = {"module": "endmodule", "rewards": "endrewards", "init": "endinit"}
    found, at = [], 0
    while at < len(tokens):
        end = tokens.index(ends.get(tokens[at], ";"), at)
        if tokens[at] in KINDS:
            end = at
        found.append(tokens[at : end + 1])
        at = end + 1
    return found


def read_model(text, **constants):
    """The program of a model's text, with values for its undefined constants."""
    names, formulas, kind = {}, {}, None
    parts = sections(text)
    for part in parts:
        if part[0] in KINDS:
            kind = KINDS[part[0]]
        elif part[0] == "formula":
            formulas[part[1]] = part[3:-1]
        elif part[0] == "const":
            is_typed = part[1] in ("int", "double", "bool")
            name, rest = part[1 + is_typed], part[2 + is_typed :]
            value = constants.get(name)
            if rest[0] == "=":
                value = folded(Reader(rest[1:-1], names, formulas).expression()).value
            names[name] = Literal(float(value) if part[1] == "double" else value)
    assert kind is not None, "the kind of a model is to be named"
    modules = _renamed([part for part in parts if part[0] == "module"], formulas)
    variables, bodies = [], []
    for part in parts:
        if part[0] == "global":
            _declare(Reader(part[1:], names, formulas), variables, names, part[1])
    for name, tokens in modules:
        reader = Reader(tokens, names, formulas)
        while reader.peek() not in ("[", "endmodule"):
            _declare(reader, variables, names, reader.peek())
        bodies.append((name, reader))
    actions = {}
    read = [_module(name, reader, actions) for name, reader in bodies]
    rewards = [_rewards(Reader(p, names, formulas), actions) for p in parts if p[0] == "rewards"]
    labels = [
        Label(p[1].strip('"'), Reader(p[3:-1], names, formulas).expression())
        for p in parts
        if p[0] == "label"
    ]
    initial = None
    for part in parts:
        if part[0] == "init":
            holds = Reader(part[1:-1], names, formulas).expression()
            every = itertools.product(*(range(x.low, x.high + 1) for x in variables))
            initial = tuple(state for state in every if evaluate(holds, state))
    program = Program(
        kind, tuple(variables), tuple(read), tuple(actions), tuple(rewards), tuple(labels), initial
    )
    return program, lambda words: Reader(tokens_of(words), names, formulas).expression()


def _renamed(parts, formulas):
    """Modules as name and tokens, with renamed ones written out."""
    known = {}
    for part in parts:
        if part[2] == "=":
            pairs = " ".join(part[5:-2]).split(" , ")
            mapping = dict(tuple(pair.split(" = ")) for pair in pairs)
            mapping |= {f"{old}'": f"{new}'" for old, new in mapping.items()}
            expanded = _expanded(known[part[3]], formulas)
            known[part[1]] = [mapping.get(token, token) for token in expanded]
        else:
            known[part[1]] = part[2:]
    return list(known.items())


def _expanded(tokens, formulas):
    """Formulas are renamed by their text, as PRISM does."""
    while any(token in formulas for token in tokens):
        tokens = [
            inner
            for token in tokens
            for inner in (("(", *formulas[token], ")") if token in formulas else (token,))
        ]
    return tokens


def _declare(reader, variables, names, name):
    reader.next()
    reader.expect(":")
    if reader.take("bool"):
        kind, low, high = Type.BOOL, 0, 1
    elif reader.take("int"):
        kind, low, high = Type.INT, LEAST_INT, GREATEST_INT
    else:
        reader.expect("[")
        low = folded(reader.expression()).value
        reader.expect("..")
        high = folded(reader.expression()).value
        reader.expect("]")
        kind = Type.INT
    initial = low if low > LEAST_INT else 0
    if reader.take("init"):
        initial = int(folded(reader.expression()).value)
    reader.expect(";")
    names[name] = Variable(len(variables), kind)
    variables.append(VariableDeclaration(name, kind, low, high, initial))


def _module(name, reader, actions):
    commands = []
    while not reader.take("endmodule"):
        reader.expect("[")
        action = None if reader.peek() == "]" else actions.setdefault(reader.next(), len(actions))
        reader.expect("]")
        guard = reader.expression()
        reader.expect("->")
        updates = [_update(reader)]
        while reader.take("+"):
            updates.append(_update(reader))
        reader.expect(";")
        commands.append(Command(guard, tuple(updates), action))
    return Module(name, tuple(commands))


def _update(reader):
    weight = Literal(1.0)
    starts = reader.peek() == "(" and reader.tokens[reader.at + 1].endswith("'")
    if not starts and not (reader.peek() == "true" and reader.tokens[reader.at + 1] in (";", "+")):
        weight = reader.expression()
        reader.expect(":")
    if reader.take("true"):
        return Update((), weight)
    assignments = []
    while True:
        reader.expect("(")
        variable = reader.names[reader.next().rstrip("'")]
        reader.expect("=")
        assignments.append(Assignment(variable.index, reader.expression()))
        reader.expect(")")
        if not reader.take("&"):
            return Update(tuple(assignments), weight)


def _rewards(reader, actions):
    reader.next()
    name = reader.next().strip('"') if reader.peek().startswith('"') else ""
    states, transitions = [], []
    while not reader.take("endrewards"):
        is_transition, action = reader.take("["), None
        if is_transition and not reader.take("]"):
            action = actions.setdefault(reader.next(), len(actions))
            reader.expect("]")
        guard = reader.expression()
        reader.expect(":")
        value = reader.expression()
        reader.expect(";")
        if is_transition:
            transitions.append(TransitionReward(action, guard, value))
        else:
            states.append(StateReward(guard, value))
    return RewardStructure(name, tuple(states), tuple(transitions))
