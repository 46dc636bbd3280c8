"""Tokens of PRISM's language, as its grammar defines them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from engines.errors import InvalidModelError

_ALL_KEYWORDS = """
A bool clock const ctmc C double dtmc E endinit endinvariant endmodule endobservables endrewards
endsystem false formula filter func F global G init invariant I int label maxmax maxmin max mdp
minmax minmin min module X nondeterministic observable observables Pmaxmax Pmaxmin Pmax Pminmax
Pminmin Pmin P pomdp popta probabilistic prob pta rate rewards Rmaxmax Rmaxmin Rmax Rminmax Rminmin
Rmin R S stochastic system true U W
"""
KEYWORDS = frozenset(_ALL_KEYWORDS.split())

_BLANK = r"(?:[ \t\r\n]|//[^\r\n]*)"
_NAME = r"[_a-zA-Z][_a-zA-Z0-9]*"
# Of two matches the longer one wins, and "01" is a double: so numbers are told apart afterwards.
_TOKEN = re.compile(
    rf"""(?P<blank>{_BLANK}+)
    |(?P<string>"{_BLANK}*(?P<label>{_NAME}){_BLANK}*")
    |(?P<number>[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)
    |(?P<identifier>{_NAME})
    |(?P<symbol><=>|=>|->|<-|<=|>=|<<|>>|!=|\.\.|\[\[|\]\]|[!&|:;,()\[\]{{}}=<>+\-*/^'?"])""",
    re.VERBOSE,
)
_INTEGER = re.compile(r"0|[1-9][0-9]*")
_LINE_END = re.compile(r"\r\n|\r|\n")
_TAB = 8


class PropertySyntaxError(InvalidModelError):
    """A text that PRISM's grammar does not allow; the message is PRISM's.

    Parameters
    ----------
    message
        What is wrong.
    text
        The piece of text that is not right; PRISM shows it where it is short.
    line, column
        Where it starts, both from 1; a tab reaches to the next multiple of 8.
    source
        What the whole text is called; PRISM's message leaves that to the lines around it.
    """

    def __init__(self, message: str, text: str, line: int, column: int, source: str = "") -> None:
        quoted = f'"{text}", ' if len(text) < 20 else ""
        super().__init__(f"{message} ({quoted}line {line}, column {column})")
        self.line = line
        self.column = column
        self.source = source


@dataclass(frozen=True)
class Token:
    """A piece of the text.

    Parameters
    ----------
    kind
        "identifier" (keywords too), "integer", "double", "string" (a name in quotation marks),
        "symbol", or "end".
    text
        The piece itself; of a "string", the name between the quotation marks.
    line, column
        Where it starts, both from 1; a tab reaches to the next multiple of 8.
    """

    kind: str
    text: str
    line: int
    column: int

    @property
    def place(self) -> tuple[int, int]:
        """Its line and column."""
        return self.line, self.column

    @property
    def is_name(self) -> bool:
        """Whether it is an identifier and no keyword."""
        return self.kind == "identifier" and self.text not in KEYWORDS


class _Position:
    """The line and the column of growing offsets into a text, counted as PRISM counts them."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._offset = 0
        self.line = 1
        self.column = 1

    def move_to(self, offset: int) -> None:
        passed = self._text[self._offset : offset]
        self._offset = offset
        lines = _LINE_END.split(passed)
        if len(lines) > 1:
            self.line += len(lines) - 1
            self.column = 1
        if "\t" not in lines[-1]:
            self.column += len(lines[-1])
            return
        for character in lines[-1]:
            if character == "\t":
                self.column += _TAB - (self.column - 1) % _TAB
            else:
                self.column += 1


def tokenise(text: str, source: str = "") -> list[Token]:
    """Return the tokens of a text, without its comments; the last one is of kind "end".

    Parameters
    ----------
    text
        A model, a list of properties, or a part of one.
    source
        What the text is called in error messages: a file's name.

    Raises
    ------
    PropertySyntaxError
        At a character that starts no token.

    Notes
    -----
    Source: the token definitions of PRISM's grammar, `parser/PrismParser.jj`.
    """
    tokens: list[Token] = []
    try:
        tokens.extend(_tokens(text, source))
    except MemoryError:
        # Whoever tells of it needs some.
        tokens.clear()
        raise
    return tokens


def _tokens(text: str, source: str) -> Iterator[Token]:
    position = _Position(text)
    offset = 0
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        position.move_to(offset)
        if match is None:
            raise syntax_error(_wrong_piece(text, offset), position.line, position.column, source)
        kind = str(match.lastgroup)
        if kind != "blank":
            piece = match["label"] if kind == "string" else match[0]
            if kind == "number":
                kind = "integer" if _INTEGER.fullmatch(piece) else "double"
            yield Token(kind, piece, position.line, position.column)
        offset = match.end()
    yield Token("end", "", *_end_of(text, position))


def syntax_error(text: str, line: int, column: int, source: str = "") -> PropertySyntaxError:
    """Return the error for a piece of text that must not stand where it stands.

    Parameters
    ----------
    text, line, column, source
        As of `PropertySyntaxError`.
    """
    return PropertySyntaxError("Syntax error", text, line, column, source)


def _wrong_piece(text: str, offset: int) -> str:
    """Return the character that starts no token, or a whole command of PRISM's preprocessor."""
    end = text.find("#", offset + 1) if text[offset] == "#" else -1
    return text[offset] if end < 0 else text[offset : end + 1]


def _end_of(text: str, position: _Position) -> tuple[int, int]:
    """Return where PRISM says that the text ends: at its last character, which a tab fills up."""
    if not text:
        return 0, 0
    position.move_to(len(text) - 1)
    if text[-1] == "\t":
        return position.line, position.column + _TAB - 1 - (position.column - 1) % _TAB
    return position.line, position.column
