"""A model's text in the order that Storm's parser accepts."""

from __future__ import annotations

import re

from bridge.language.ast import Identifier
from bridge.language.dependencies import dependency_order, names_in
from bridge.language.model_outline import ModelOutline, Span, outline
from bridge.language.modules import Renaming
from bridge.storm.expressions import reads_otherwise, storm_text

_LINE_END = re.compile(r"\r\n|\r|\n")
_VISIBLE = re.compile(r"[^\r\n]")


def for_storm(text: str, source: str, declared: ModelOutline | None = None) -> str:
    """Return a model's text as Storm's parser accepts it.

    Storm wants the kind of the model first, today's words for it and for constants, and constants
    before those that refer to them; of reward structures without a name it keeps only one; some
    expressions it reads otherwise (see `bridge.storm.expressions`). What
    must move goes to the front of the first line, so that line numbers stay.

    Parameters
    ----------
    text
        The model, in PRISM's language.
    source
        What error messages call it.
    declared
        What `outline` returned for this text, if that is there.

    Raises
    ------
    InvalidModelError
        As of `outline`.
    """
    declared = declared or outline(text, source)
    edit = _Edit(text, declared)
    front = []
    moved = _constants_to_move(declared)
    kinds = declared.spans["kind"]
    if moved or not kinds or kinds[0].start != 0 or declared.tokens[0].text != declared.kind:
        front.append(declared.kind or "mdp")
        for span in kinds:
            edit.blank(span)
    for number in moved:
        constant = declared.constants[number]
        span = declared.spans["constants"][number]
        value = ""
        if constant.value is not None:
            written_out = Renaming({}, declared.formulas).renamed(constant.value)
            value = f" = {storm_text(written_out)}"
        front.append(f"const {constant.type} {constant.name}{value};")
        edit.blank(span)
    moved_spans = [declared.spans["constants"][number] for number in moved]
    for span, expression in declared.expressions:
        elsewhere = any(other.start <= span.start < other.end for other in moved_spans)
        if not elsewhere and reads_otherwise(expression):
            edit.replace(span, storm_text(expression))
    for span, name, structure in zip(
        declared.spans["rewards"], storm_reward_names(declared), declared.rewards, strict=True
    ):
        if not structure.items:
            # Storm has no structure without items; it is made up for afterwards.
            edit.blank(Span(span.start, span.end + 1))
        elif name != structure.name:
            edit.replace(span, f'rewards "{name}"')
    return " ".join([*front, ""]) + edit.result() if front else edit.result()


def storm_reward_names(declared: ModelOutline) -> tuple[str, ...]:
    """Return the names that the reward structures have for Storm: each another one.

    Parameters
    ----------
    declared
        The model.
    """
    names = []
    for number, name in enumerate(declared.reward_names):
        if not name and number != declared.reward_names.index(""):
            name = f"unnamed_{number + 1}"
            while name in declared.reward_names:
                name += "_"
        names.append(name)
    return tuple(names)


class _Edit:
    """Changes to a text, given by tokens."""

    def __init__(self, text: str, declared: ModelOutline) -> None:
        self._text = text
        self._tokens = declared.tokens
        self._line_starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
        self._changes: list[tuple[int, int, str]] = []

    def blank(self, span: Span) -> None:
        """Put spaces in the place of tokens and what is between them; lines stay."""
        begin, end = self._begin(span.start), self._end(span.end - 1)
        self._changes.append((begin, end, _VISIBLE.sub(" ", self._text[begin:end])))

    def replace(self, span: Span, by: str) -> None:
        """Put a text of one line in the place of tokens; lines stay."""
        begin, end = self._begin(span.start), self._end(span.end - 1)
        lines = len(_LINE_END.findall(self._text[begin:end]))
        self._changes.append((begin, end, by + "\n" * lines))

    def result(self) -> str:
        """Return the changed text."""
        parts = []
        done = 0
        for begin, end, by in sorted(self._changes):
            parts += [self._text[done:begin], by]
            done = end
        return "".join([*parts, self._text[done:]])

    def _begin(self, number: int) -> int:
        token = self._tokens[number]
        offset = self._line_starts[token.line - 1]
        column = 1
        while column < token.column:
            column += 8 - (column - 1) % 8 if self._text[offset] == "\t" else 1
            offset += 1
        return offset

    def _end(self, number: int) -> int:
        token = self._tokens[number]
        begin = self._begin(number)
        # A name in quotation marks may have blanks inside them.
        return (
            self._text.index('"', begin + 1) + 1
            if token.kind == "string"
            else begin + len(token.text)
        )


def _constants_to_move(declared: ModelOutline) -> list[int]:
    """Return the constants that Storm must find in front, in the order that it must find them."""
    place = {constant.name: number for number, constant in enumerate(declared.constants)}
    values = {item.name: item.value for item in declared.constants if item.value is not None}
    kinds = dict.fromkeys(declared.formulas, "definition of formula")
    kinds.update(dict.fromkeys(values, "definition of constant"))
    definitions = {**declared.formulas, **values}
    order = dependency_order(definitions, Identifier, kinds)
    needed: dict[str, set[str]] = {name: set() for name in place}
    for name in order:
        mentioned = names_in(definitions[name], Identifier)
        constants = {other for other in mentioned if other in place}
        needed[name] = constants.union(*(needed.get(other, ()) for other in mentioned))
    moved: set[str] = set()
    for name, number in place.items():
        first = declared.tokens[declared.spans["constants"][number].start]
        mentioned = names_in(values[name], Identifier) if name in values else []
        if first.text != "const" or any(other in declared.formulas for other in mentioned):
            moved |= {name} | needed[name]
        for other in mentioned:
            if place.get(other, -1) > number:
                moved |= {other} | needed[other]
    undefined = [name for name in place if name not in values]
    return [place[name] for name in (*undefined, *order) if name in moved]
