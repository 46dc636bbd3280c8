"""Tokens: what they are, and where."""

import pytest

from bridge.language import lexer
from bridge.language.lexer import KEYWORDS, PropertySyntaxError, Token, tokenise


def _kinds(text):
    return [(token.kind, token.text) for token in tokenise(text, "")[:-1]]


def test_the_longest_token_wins():
    assert _kinds("a<=>b<-1=>[[x]]->") == [
        ("identifier", "a"),
        ("symbol", "<=>"),
        ("identifier", "b"),
        ("symbol", "<-"),
        ("integer", "1"),
        ("symbol", "=>"),
        ("symbol", "[["),
        ("identifier", "x"),
        ("symbol", "]]"),
        ("symbol", "->"),
    ]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("0", [("integer", "0")]),
        ("120", [("integer", "120")]),
        ("00", [("double", "00")]),
        ("1.5e-3", [("double", "1.5e-3")]),
        ("1e5", [("double", "1e5")]),
        (".5", [("double", ".5")]),
        ("1..2", [("integer", "1"), ("symbol", ".."), ("integer", "2")]),
        ("1.5.2", [("double", "1.5"), ("double", ".2")]),
        ("2e", [("integer", "2"), ("identifier", "e")]),
    ],
)
def test_numbers(text, tokens):
    assert _kinds(text) == tokens


def test_keywords_are_identifiers_that_are_no_names():
    keyword, name = tokenise("module modules", "")[:2]
    assert keyword.kind == name.kind == "identifier"
    assert keyword.text in KEYWORDS
    assert (keyword.is_name, name.is_name) == (False, True)


def test_a_name_in_quotation_marks_is_one_token_with_blanks_or_without():
    assert _kinds('"a" " b\n" "c d"') == [
        ("string", "a"),
        ("string", "b"),
        ("symbol", '"'),
        ("identifier", "c"),
        ("identifier", "d"),
        ("symbol", '"'),
    ]


def test_lines_and_columns_with_tabs_comments_and_all_ends_of_lines():
    tokens = tokenise("a\tb // c\nd\r\n\te\rf", "")
    assert [(token.text, token.line, token.column) for token in tokens] == [
        ("a", 1, 1),
        ("b", 1, 9),
        ("d", 2, 1),
        ("e", 3, 9),
        ("f", 4, 1),
        ("", 4, 1),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n  %", 'Syntax error ("%", line 2, column 3)'),
        ("1.", 'Syntax error (".", line 1, column 2)'),
        ("#x#", 'Syntax error ("#x#", line 1, column 1)'),
        ("#x", 'Syntax error ("#", line 1, column 1)'),
    ],
)
def test_what_starts_no_token_is_an_error(text, message):
    with pytest.raises(PropertySyntaxError) as raised:
        tokenise(text, "")
    assert str(raised.value) == message


def test_tokens_are_dropped_where_memory_runs_out(monkeypatch):
    def few(text, _source):
        yield Token("identifier", text, 1, 1)
        raise MemoryError

    monkeypatch.setattr(lexer, "_tokens", few)
    with pytest.raises(MemoryError) as caught:
        tokenise("x = 1", "big.sm")
    (entry,) = (entry for entry in caught.traceback if entry.name == "tokenise")
    assert entry.frame.f_locals["tokens"] == []
