"""A place in a list of tokens, and how a parser moves on from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from bridge.language.lexer import KEYWORDS, PropertySyntaxError, Token, syntax_error
from bridge.language.tree import Node
from engines.errors import InvalidModelError

# Deep enough for any text that a person reads, and far from the end of Python's stack.
MAX_NESTING = 100


class Cursor:
    """Where a parser is.

    Parameters
    ----------
    tokens
        What `bridge.language.lexer.tokenise` returns.
    position
        Index of the token that is next.
    source
        What the text is called.

    Attributes
    ----------
    faults
        What is wrong in spite of the grammar, in the order of the text; PRISM looks for that after
        it has read the whole text.
    """

    def __init__(self, tokens: Sequence[Token], position: int = 0, source: str = "") -> None:
        self.tokens = tokens
        self.position = position
        self.source = source
        self.faults: list[InvalidModelError] = []
        self._nesting = 0

    @property
    def next(self) -> Token:
        """The token that is next; at the end, the last token stays."""
        return self.peek(0)

    def peek(self, ahead: int) -> Token:
        """Return the token that comes `ahead` tokens after the next one."""
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)]

    def at(self, *texts: str, ahead: int = 0) -> bool:
        """Whether the next token is one of these symbols or keywords."""
        token = self.peek(ahead)
        return token.kind in ("symbol", "identifier") and token.text in texts

    def advance(self) -> Token:
        """Return the next token, and go past it."""
        token = self.next
        self.position += 1
        return token

    def accept(self, *texts: str) -> Token | None:
        """Go past the next token if it is one of these symbols or keywords."""
        return self.advance() if self.at(*texts) else None

    def expect(self, *texts: str) -> Token:
        """Go past the next token, which must be one of these symbols or keywords.

        Raises
        ------
        PropertySyntaxError
            For any other one.
        """
        return self.accept(*texts) or self.fail()

    def expect_name(self) -> Token:
        """Go past the next token, which must be an identifier and no keyword.

        Raises
        ------
        PropertySyntaxError
            For any other one.
        """
        if not self.next.is_name or self._is_primed():
            self.fail()
        return self.advance()

    def expect_quoted(self, *keywords: str) -> Token:
        """Go past the next token, which must be a name in quotation marks.

        Parameters
        ----------
        keywords
            Those that may be names here.

        Raises
        ------
        PropertySyntaxError
            For any other token.
        """
        token = self.next
        if token.kind != "string":
            self._fail_in_quotes()
        if token.text in KEYWORDS and token.text not in keywords:
            raise syntax_error(token.text, token.line, token.column + 1, self.source)
        return self.advance()

    def expect_end(self) -> None:
        """Check that the text ends here.

        Raises
        ------
        PropertySyntaxError
            Where it goes on.
        """
        if self.next.kind != "end":
            self.fail()

    def fail(self) -> NoReturn:
        """Raise the error for a token that must not be next."""
        token = self.next
        text = '"' if token.kind == "string" else token.text
        if self._is_primed():
            text += "'"
        elif self.position and self._is_primed(behind=1):
            # A name and a prime right after it are one token of PRISM's.
            token = self.tokens[self.position - 1]
            text = f"{token.text}'"
        raise syntax_error(text, token.line, token.column, self.source)

    def _fail_in_quotes(self) -> NoReturn:
        # PRISM takes the quotation marks and the name apart, and says which of them is wrong.
        if self.accept('"') and self.next.is_name:
            self.advance()
        self.fail()

    def raise_faults(self) -> None:
        """Raise the first of the faults, if there are any."""
        if self.faults:
            raise self.faults[0]

    def error_from(self, begin: Token, message: str, node: Node) -> PropertySyntaxError:
        """Return the error for a node that is no syntax error, and wrong all the same.

        Parameters
        ----------
        begin
            Where it starts.
        message
            What is wrong.
        node
            What is shown.
        """
        return PropertySyntaxError(message, str(node), begin.line, begin.column, self.source)

    @contextmanager
    def nested(self) -> Iterator[None]:
        """One more expression inside another.

        Raises
        ------
        PropertySyntaxError
            When there are more than `MAX_NESTING`.
        """
        if self._nesting == MAX_NESTING:
            raise self._too_deep()
        self._nesting += 1
        try:
            yield
        except RecursionError:
            # The caller's own stack was deep already.
            if self._nesting == 1:
                raise self._too_deep() from None
            raise
        finally:
            self._nesting -= 1

    def _too_deep(self) -> PropertySyntaxError:
        token = self.next
        message = f"Syntax error: expressions nested more than {MAX_NESTING} deep"
        return PropertySyntaxError(message, token.text, token.line, token.column, self.source)

    def _is_primed(self, behind: int = 0) -> bool:
        name, prime = self.peek(-behind), self.peek(1 - behind)
        return (
            name.kind == "identifier"
            and (prime.kind, prime.text, prime.line) == ("symbol", "'", name.line)
            and prime.column == name.column + len(name.text)
        )
