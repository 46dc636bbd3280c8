"""What stands in a model's text: its declarations, and its modules.

Names, their order and the rewards' items are as PRISM reads them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from bridge.language.ast import Expression, Identifier
from bridge.language.lexer import PropertySyntaxError, Token, tokenise
from bridge.language.modules import (
    Module,
    ModuleParser,
    Renaming,
    VariableDeclaration,
    WrittenModule,
)
from bridge.language.properties_file import ConstantDeclaration
from bridge.language.types import TypeChecker, invalid
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
_OUTLINED = ("dtmc", "ctmc", "mdp", "pta")
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
    global_variables, written
        The global variables, and the modules as written.
    resolved
        The modules with renamings carried out.
    has_system
        Whether the modules are composed by `system … endsystem`.
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
    global_variables: tuple[VariableDeclaration, ...]
    written: Mapping[str, WrittenModule] = field(repr=False)
    resolved: tuple[Module, ...] = field(repr=False)
    has_system: bool

    @property
    def declared_variables(self) -> tuple[VariableDeclaration, ...]:
        """The variables' declarations, in PRISM's order."""
        of_modules = (variable for module in self.resolved for variable in module.variables)
        return (*self.global_variables, *of_modules)

    def type_checker(self) -> TypeChecker:
        """Return a checker of the types of expressions in the model."""
        types = {item.name.name: item.type for item in self.declared_variables}
        types |= {item.name: item.type for item in self.constants}
        return TypeChecker(types, self.formulas)

    @property
    def reward_names(self) -> tuple[str, ...]:
        """The reward structures' names, empty where they have none."""
        return tuple(structure.name for structure in self.rewards)


def _shown(token: Token) -> Identifier:
    """Return the name that a token is; in quotation marks it starts behind the first."""
    return Identifier(token.text).at((token.line, token.column + (token.kind == "string")))


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
        not, or has no module or no variable.
    UnsupportedError
        For probabilities that are intervals.
    """
    return _Reader(text, source).read()


class _Reader(ModuleParser):
    """Walks over the statements of a model."""

    def __init__(self, text: str, source: str) -> None:
        super().__init__(tokenise(text, source), source=source)
        self._declared: defaultdict[str, list[Token]] = defaultdict(list)
        self._places: dict[str, tuple[int, int]] = {}  # Of the modules.
        self._uses: dict[str, str] = {}
        self._kind: str | None = None
        self._constants: list[ConstantDeclaration] = []
        self._formulas: dict[str, Expression] = {}
        self._labels: dict[str, Expression] = {}
        self._globals: list[VariableDeclaration] = []
        self._modules: dict[str, WrittenModule] = {}
        self._rewards: list[RewardOutline] = []
        self._reward_actions: dict[str, tuple[Token, str]] = {}
        self._initial: Expression | None = None
        self._has_system = False

    def read(self) -> ModelOutline:
        while (token := self.next).kind != "end":
            read = _STATEMENTS.get(token.text) if token.kind == "identifier" else None
            if read is None:
                self.fail()
            read(self)
        if not self._modules:
            raise InvalidModelError("There must be at least one module")
        modules, declared = self._with_names_checked()
        variables = tuple(variable.name.name for variable in declared)
        if not variables and self._is_outlined:
            raise InvalidModelError("There must be at least one variable")
        found = [command.action for module in modules for command in module.commands]
        actions = tuple(dict.fromkeys(action for action in found if action))
        for action, (begin, text) in self._reward_actions.items():
            if self._is_outlined and action not in actions:
                what = f"Unknown action name {action} in reward structure item"
                raise PropertySyntaxError(what, text, begin.line, begin.column, self.source)
        return ModelOutline(
            kind=self._kind,
            constants=tuple(self._constants),
            formulas=self._formulas,
            labels=self._labels,
            variables=variables,
            modules=tuple(self._modules),
            rewards=tuple(self._rewards),
            initial=self._initial,
            actions=actions,
            global_variables=tuple(self._globals),
            written=self._modules,
            resolved=modules,
            has_system=self._has_system,
        )

    @property
    def _is_outlined(self) -> bool:
        return self._kind is None or self._kind in _OUTLINED

    def _skip_past(self, text: str) -> None:
        while not self.at(text):
            if self.next.kind == "end":
                self.fail()
            self.advance()
        self.advance()

    def _invalid(self, what: str, token: Token) -> PropertySyntaxError:
        return PropertySyntaxError(what, token.text, token.line, token.column, self.source)

    def _name_of(self, use: str) -> str:
        """Go past the name of a formula or constant."""
        token = self.expect_name()
        self._declared[use].append(token)
        return token.text

    def _with_names_checked(self) -> tuple[tuple[Module, ...], tuple[VariableDeclaration, ...]]:
        """Return the modules and variables; each name is declared once, in PRISM's order."""
        named = self._declared
        self._use("formula", [(token.text, _shown(token)) for token in named["formula"]])
        modules = tuple(self._resolved(name, ()) for name in self._modules)
        self._require_distinct(
            "label", 'Name of label "{}" is already used for a label in the model'
        )
        self._require_distinct("module", 'Duplicated module name "{}"')
        self._use("constant", [(token.text, _shown(token)) for token in named["constant"]])
        declared = (*self._globals, *(v for module in modules for v in module.variables))
        self._use("variable", [(variable.name.name, variable.shown) for variable in declared])
        self._require_distinct("rewards", 'Duplicated reward structure name "{}"')
        return modules, declared

    def _use(self, use: str, names: Iterable[tuple[str, Identifier]]) -> None:
        for name, shown in names:
            if name in self._uses:
                what = f"Name of {use} {name} is already used for a {self._uses[name]}"
                raise invalid(f"{what} in the model", shown)
            self._uses[name] = use

    def _require_distinct(self, use: str, message: str) -> None:
        met = set()
        for token in self._declared[use]:
            if token.text in met:
                if use == "rewards":  # Their whole text is what PRISM finds too long to show.
                    place = f"(line {token.line}, column {token.column})"
                    raise InvalidModelError(f"{message.format(token.text)} {place}")
                raise invalid(message.format(token.text), _shown(token))
            met.add(token.text)

    def _read_kind(self) -> None:
        token = self.advance()
        if self._kind is not None:
            raise self._invalid("There were multiple model type declarations", token)
        self._kind = MODEL_KINDS[token.text]

    def _read_constant(self) -> None:
        declared = "double"
        if self.advance().text == "const":
            written = self.accept(*_CONSTANT_TYPES)
            declared = written.text if written else "int"
        name = self._name_of("constant")
        value = self.expression() if self.accept("=") else None
        self.expect(";")
        self._constants.append(ConstantDeclaration(name, declared, value))

    def _read_formula(self) -> None:
        self.advance()
        name = self._name_of("formula")
        self.expect("=")
        self._formulas[name] = self.expression()
        self.expect(";")

    def _read_label(self) -> None:
        self.advance()
        if self.next.is_name:
            raise self._invalid("Label names must be enclosed in double-quotes", self.next)
        token = self.expect_quoted()
        self._declared["label"].append(token)
        self.expect("=")
        self._labels[token.text] = self.expression()
        self.expect(";")

    def _read_global(self) -> None:
        self.advance()
        self._globals.append(self.variable())

    def _read_module(self) -> None:
        place = self.advance().place
        name = self.expect_name()
        self._places[name.text] = place
        self._declared["module"].append(name)
        if self._is_outlined:
            self._modules[name.text] = self.module_content()
        else:
            # What other kinds have in them is not read.
            self._skip_past("endmodule")
            self._modules[name.text] = WrittenModule()

    def _resolved(self, name: str, above: tuple[str, ...]) -> Module:
        written = self._modules[name]
        if written.base is None:
            content = tuple(written.variables), tuple(written.commands), written.invariant
            return Module(name, *content)
        base = written.base.text
        if base not in self._modules or base in (*above, name):
            what = f'No such module {base} in renamed module "{name}"'
            raise self._invalid(what, written.base)
        for old in written.renaming:
            if old in self._formulas:
                what = "cannot be renamed since formulas are expanded before module renaming"
                shown = Identifier(old).at(written.places[old])
                raise invalid(f'Formula "{old}" {what}', shown)
        source = self._resolved(base, (*above, name))
        for variable in source.variables:
            if variable.name.name not in written.renaming:
                what = f'Definition of module "{name}" must rename variable "{variable.name.name}"'
                place = "line {}, column {}".format(*self._places[name])
                raise InvalidModelError(f"{what} ({place})")
        return Renaming(written.renaming, self._formulas).module(source, name)

    def _read_rewards(self) -> None:
        begin = self.advance()
        name = ""
        if self.next.kind == "string":
            name = self.expect_quoted().text
            self._declared["rewards"].append(replace(begin, text=name))
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
        self.advance()
        again, self._initial = self._initial is not None, self.expression()
        if again:
            message = "There were multiple init...endinit constructs"
            raise invalid(message, self._initial)
        self.expect("endinit")

    def _read_system(self) -> None:
        self._has_system = True
        self._skip_past("endsystem")


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
    "system": _Reader._read_system,
}
