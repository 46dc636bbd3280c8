"""What stands in a model's text: its declarations, without the commands.

Storm builds the model; the names, their order and the rewards' items come from here, as PRISM reads
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bridge.language.ast import Expression
from bridge.language.lexer import PropertySyntaxError, Token, tokenise
from bridge.language.parser import Parser
from bridge.language.properties_file import ConstantDeclaration
from engines.errors import InvalidModelError

MODEL_KINDS = {
    "probabilistic": "dtmc",
    "nondeterministic": "mdp",
    "stochastic": "ctmc",
    **{kind: kind for kind in ("dtmc", "ctmc", "mdp", "pta", "pomdp", "popta")},
    # Other tools' kinds, so that they can be refused by name.
    **{
        kind: kind
        for kind in ("ma", "smg", "csg", "tsg", "stpg", "tptg", "ctmdp", "idtmc", "imdp", "lts")
    },
}
_CONSTANT_TYPES = ("int", "double", "bool")
_CONSTANT_STARTS = ("const", "rate", "prob")


@dataclass(frozen=True)
class RewardItem:
    """A line of a reward structure.

    Parameters
    ----------
    action
        None for a reward of states; else the action, empty for commands without one.
    guard, value
        Which states or transitions earn how much.
    """

    action: str | None
    guard: Expression
    value: Expression


@dataclass(frozen=True)
class RewardOutline:
    """A reward structure: its name, empty where it has none, and its items."""

    name: str
    items: tuple[RewardItem, ...]


@dataclass(frozen=True)
class Span:
    """The tokens of a statement: from `start` up to, and without, `end`."""

    start: int
    end: int


@dataclass(frozen=True)
class ModelOutline:
    """The declarations of a model.

    Parameters
    ----------
    kind
        The model's kind, with today's word for it ("dtmc" for `probabilistic`); None where the text
        names none, which means an MDP.
    constants, formulas, labels
        The declarations, in the order of the text.
    variables
        The variables' names in PRISM's order: the global ones, then module by module.
    modules
        The modules' names.
    rewards
        The reward structures.
    initial
        What `init … endinit` says, or None.
    actions
        The names of the actions, in the order in which they first appear.
    tokens
        The tokens of the text.
    spans
        Where the statements lie among the tokens: "kind", "constants", "formulas", and the heads of
        the "rewards".
    """

    kind: str | None
    constants: tuple[ConstantDeclaration, ...]
    formulas: Mapping[str, Expression]
    labels: Mapping[str, Expression]
    variables: tuple[str, ...]
    modules: tuple[str, ...]
    rewards: tuple[RewardOutline, ...]
    initial: Expression | None
    actions: tuple[str, ...]
    tokens: tuple[Token, ...] = field(repr=False)
    spans: Mapping[str, tuple[Span, ...]] = field(repr=False)

    @property
    def reward_names(self) -> tuple[str, ...]:
        """The reward structures' names, empty where they have none."""
        return tuple(structure.name for structure in self.rewards)


def outline(text: str, source: str) -> ModelOutline:
    """Return the declarations of a model.

    Parameters
    ----------
    text
        The model, in PRISM's language.
    source
        What error messages call it.

    Raises
    ------
    InvalidModelError
        The text breaks the grammar, declares something twice, or renames a module that there is
        not, or has no module or no variable; commands and updates are left to Storm's parser.
    """
    return _Reader(text, source).read()


@dataclass
class _Module:
    """A module as written: its variables and actions, or the module that it renames, and how."""

    variables: list[str] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    base: Token | None = None
    renaming: dict[str, str] = field(default_factory=dict)


class _Reader(Parser):
    """Walks over the statements of a model."""

    def __init__(self, text: str, source: str) -> None:
        super().__init__(tokenise(text, source), source=source)
        self._uses: dict[str, str] = {}
        self._kind: str | None = None
        self._constants: list[ConstantDeclaration] = []
        self._formulas: dict[str, Expression] = {}
        self._labels: dict[str, Expression] = {}
        self._globals: list[str] = []
        self._modules: dict[str, _Module] = {}
        self._rewards: list[RewardOutline] = []
        self._reward_actions: dict[str, tuple[Token, str]] = {}
        self._initial: Expression | None = None
        self._spans: dict[str, list[Span]] = {
            "kind": [],
            "constants": [],
            "formulas": [],
            "rewards": [],
        }

    def read(self) -> ModelOutline:
        while (token := self.next).kind != "end":
            read = _STATEMENTS.get(token.text) if token.kind == "identifier" else None
            if read is None:
                self.fail()
            read(self)
        if not self._modules:
            raise InvalidModelError("There must be at least one module")
        modules = {name: self._resolved(name, ()) for name in self._modules}
        variables = (*self._globals, *(v for module in modules.values() for v in module.variables))
        twice = [name for name, count in Counter(variables).items() if count > 1]
        if twice:
            raise InvalidModelError(
                f"Name of variable {twice[0]} is already used for a variable in the model"
            )
        if not variables:
            raise InvalidModelError("There must be at least one variable")
        found = [action for module in modules.values() for action in module.actions]
        actions = tuple(dict.fromkeys(found))
        for action, (begin, text) in self._reward_actions.items():
            if action not in actions:
                what = f"Unknown action name {action} in reward structure item"
                raise PropertySyntaxError(what, text, begin.line, begin.column, self.source)
        return ModelOutline(
            kind=self._kind,
            constants=tuple(self._constants),
            formulas=self._formulas,
            labels=self._labels,
            variables=variables,
            modules=tuple(modules),
            rewards=tuple(self._rewards),
            initial=self._initial,
            actions=actions,
            tokens=tuple(self.tokens),
            spans={what: tuple(spans) for what, spans in self._spans.items()},
        )

    def _skip_past(self, text: str) -> None:
        while not self.at(text):
            if self.next.kind == "end":
                self.fail()
            self.advance()
        self.advance()

    def _invalid(self, what: str, token: Token) -> PropertySyntaxError:
        return PropertySyntaxError(what, token.text, token.line, token.column, self.source)

    def _name_of(self, use: str) -> str:
        """Go past the name of a formula, constant or variable, which must be a new one."""
        token = self.expect_name()
        if token.text in self._uses:
            what = f"Name of {use} {token.text} is already used for a {self._uses[token.text]}"
            raise self._invalid(f"{what} in the model", token)
        self._uses[token.text] = use
        return token.text

    def _keep_span(self, what: str, start: int) -> None:
        self._spans[what].append(Span(start, self.position))

    def _read_kind(self) -> None:
        token = self.advance()
        if self._kind is not None:
            raise self._invalid("There were multiple model type declarations", token)
        self._kind = MODEL_KINDS[token.text]
        self._keep_span("kind", self.position - 1)

    def _read_constant(self) -> None:
        start = self.position
        declared = "double"
        if self.advance().text == "const":
            written = self.accept(*_CONSTANT_TYPES)
            declared = written.text if written else "int"
        name = self._name_of("constant")
        value = self.expression() if self.accept("=") else None
        self.expect(";")
        self._constants.append(ConstantDeclaration(name, declared, value))
        self._keep_span("constants", start)

    def _read_formula(self) -> None:
        start = self.position
        self.advance()
        name = self._name_of("formula")
        self.expect("=")
        self._formulas[name] = self.expression()
        self.expect(";")
        self._keep_span("formulas", start)

    def _read_label(self) -> None:
        self.advance()
        if self.next.is_name:
            raise self._invalid("Label names must be enclosed in double-quotes", self.next)
        token = self.expect_quoted()
        if token.text in self._labels:
            what = f'Name of label "{token.text}" is already used for a label in the model'
            raise self._invalid(what, token)
        if token.text == "deadlock":
            what = 'Cannot define a label called "deadlock" - this is a built-in label'
            raise self._invalid(what, token)
        self.expect("=")
        self._labels[token.text] = self.expression()
        self.expect(";")

    def _read_global(self) -> None:
        self.advance()
        self._globals.append(self._variable())

    def _variable(self) -> str:
        name = self._name_of("variable")
        self.expect(":")
        self._skip_past(";")
        return name

    def _read_module(self) -> None:
        self.advance()
        name = self.expect_name()
        if name.text in self._modules:
            raise self._invalid(f'Duplicated module name "{name.text}"', name)
        module = self._modules[name.text] = _Module()
        if self.accept("="):
            module.base = self.expect_name()
            self._read_renaming(module)
            self.expect("endmodule")
            return
        while not self.accept("endmodule"):
            if self.accept("["):
                if not self.at("]"):
                    module.actions.append(self.expect_name().text)
                self.expect("]")
                self._skip_past(";")
            elif self.accept("invariant"):
                self._skip_past("endinvariant")
            else:
                module.variables.append(self._variable())

    def _read_renaming(self, module: _Module) -> None:
        self.expect("[")
        while True:
            # Functions can be renamed too.
            old = self.accept("min", "max") or self.expect_name()
            self.expect("=")
            new = self.accept("min", "max") or self.expect_name()
            module.renaming[old.text] = new.text
            if not self.accept(","):
                break
        self.expect("]")

    def _resolved(self, name: str, above: tuple[str, ...]) -> _Module:
        module = self._modules[name]
        if module.base is None:
            return module
        base = module.base.text
        if base not in self._modules or base in (*above, name):
            what = f'No such module {base} in renamed module "{name}"'
            raise self._invalid(what, module.base)
        source = self._resolved(base, (*above, name))

        def renamed(names: list[str]) -> list[str]:
            return [module.renaming.get(old, old) for old in names]

        return _Module(renamed(source.variables), renamed(source.actions))

    def _read_rewards(self) -> None:
        start = self.position
        self.advance()
        name = ""
        if self.next.kind == "string":
            name = self.expect_quoted().text
        self._keep_span("rewards", start)
        if name and any(structure.name == name for structure in self._rewards):
            what = f'Duplicated reward structure name "{name}"'
            raise self._invalid(what, self.tokens[start + 1])
        items = []
        while not self.accept("endrewards"):
            begin, action = self.next, None
            if self.accept("["):
                action = "" if self.at("]") else self.expect_name().text
                self.expect("]")
            guard = self.expression()
            self.expect(":")
            value = self.expression()
            self.expect(";")
            items.append(RewardItem(action, guard, value))
            if action:
                self._reward_actions.setdefault(action, (begin, f"[{action}] {guard} : {value};"))
        self._rewards.append(RewardOutline(name, tuple(items)))

    def _read_initial(self) -> None:
        token = self.advance()
        if self._initial is not None:
            raise self._invalid("There were multiple init...endinit constructs", token)
        self._initial = self.expression()
        self.expect("endinit")


_STATEMENTS: dict[str, Callable[[_Reader], None]] = {
    **dict.fromkeys(MODEL_KINDS, _Reader._read_kind),
    **dict.fromkeys(_CONSTANT_STARTS, _Reader._read_constant),
    "formula": _Reader._read_formula,
    "label": _Reader._read_label,
    "global": _Reader._read_global,
    "module": _Reader._read_module,
    "rewards": _Reader._read_rewards,
    "init": _Reader._read_initial,
    "observables": lambda reader: reader._skip_past("endobservables"),
    "observable": lambda reader: reader._skip_past(";"),
    "player": lambda reader: reader._skip_past("endplayer"),
    "system": lambda reader: reader._skip_past("endsystem"),
}
