"""Compiled scanners of text: a plain reader in Python is the oracle."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engines.host.compiled.text import (
    LineStatus,
    NameTable,
    count_lines,
    scan_labels,
    scan_rows,
    scan_states,
)

GAPS = b" \t\r"
INTEGER = re.compile(rb"[0-9]{1,18}")
DECIMAL = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
STATE = re.compile(rb"([0-9]{0,99})[ \t\r]*(:?)[ \t\r]*(.*)", re.DOTALL)
LARGEST = 2**31 - 1


def array(text: bytes):
    return np.frombuffer(text, dtype=np.uint8)


def lines_of(text: bytes):
    """Yield number and content of each line that holds more than a comment."""
    for number, line in enumerate(text[:-1].split(b"\n") if text else []):
        content = line.strip(GAPS)
        if content and not content.startswith(b"#"):
            yield number, content


def first_token(text: bytes) -> tuple[bytes, bytes]:
    """Return what comes before the first blank or control character, and what counts behind it."""
    end = next((place for place, byte in enumerate(text) if byte <= 32), len(text))
    return text[:end], text[end:].lstrip(GAPS)


def is_readable(token: bytes) -> bool:
    """Tell whether a token is a decimal number whose nearest double is neither infinite nor 0."""
    if not DECIMAL.fullmatch(token):
        return False
    mantissa = re.split(rb"[eE]", token)[0]
    is_zero = not mantissa.strip(b"+-0.")
    return is_zero or 0 < abs(float(token)) < float("inf")


def plain_row(content: bytes, integers: int, named: bool):
    """Return status, keys, the value's token and the name of a row."""
    keys, rest = [], content
    for _ in range(integers):
        token, behind = first_token(rest)
        if not token:
            return (LineStatus.BAD_INTEGER if rest else LineStatus.TOO_FEW), keys, b"", b""
        if not INTEGER.fullmatch(token):
            return LineStatus.BAD_INTEGER, keys, b"", b""
        keys.append(int(token))
        rest = behind
    value, rest = first_token(rest)
    if not value:
        return LineStatus.TOO_FEW, keys, b"", b""
    name = b""
    if named:
        name, rest = first_token(rest)
    return (LineStatus.TOO_MANY if rest else LineStatus.OK), keys, value, name


def check_rows(text: bytes, integers: int, named: bool) -> None:
    table = NameTable() if named else None
    found = scan_rows(array(text), integers, table)
    names, row, unread = [b""], 0, []
    status, line = LineStatus.OK, text.count(b"\n")
    for number, content in lines_of(text):
        status, keys, value, name = plain_row(content, integers, named)
        if name and name not in names:
            names.append(name)
            assert table.line_of(len(names) - 1) == number
        if status is not LineStatus.OK:
            line = number
            break
        assert found.keys[row].tolist() == keys
        assert found.lines[row] == number
        if named:
            assert found.actions[row] == names.index(name)
        if is_readable(value):
            assert found.values[row].tobytes() == np.float64(float(value)).tobytes()
        else:
            unread.append((row, value))
        row += 1
    assert (found.status, found.line) == (status, line)
    assert len(found.keys) == len(found.values) == len(found.lines) == row
    assert [(r, text[start:stop]) for r, start, stop in found.unread.tolist()] == unread
    if named:
        assert [table[number] for number in range(1, table.count + 1)] == names[1:]


NUMBERS = st.sampled_from(
    [
        *(b"0 1 2 00 1.5 .5 5. . -1 +1 ++1 +-1 -+1 --1 -0 -0.0 1e 1e+ e1 1e5 1E-5 1e+-1".split()),
        *(b"1e1.0 1..2 1.2.3 inf -inf nan -nan NaN Infinity nan(1) INF 0x10 0x1p3 1_0".split()),
        *(b"1e308 1.8e308 1e400 -1e400 1e-400 -1e-400 0e-400 0e999999999999999999999".split()),
        *(b"1e99999999999999999999 1e-99999999999999999999 4.9e-324 2.4e-324 2.5e-324".split()),
        *(b"2.2250738585072011e-308 1e-320 9007199254740993 1/3 2/0 [0.1,0.2] 1,5 #".split()),
        b"9007199254740992.99999999999999999999999999",
        b"9" * 18,
        b"9" * 19,
        b"0" * 17 + b"1",
        b"0" * 18 + b"1",
        b"1" * 1000,
        b"1" + b"0" * 400 + b"e-400",
        b"0." + b"0" * 400 + b"1e400",
        "\N{ARABIC-INDIC DIGIT ONE}".encode(),
        b"\xff",
        b"1\x00",
        b"\x0b",
    ]
)
WORDS = st.one_of(
    NUMBERS,
    st.floats().map(lambda number: repr(number).encode()),
    st.floats(min_value=0, allow_infinity=False).map(lambda number: b"%.25e" % number),
    st.integers(0, 2**64).map(lambda number: b"%d" % number),
    st.tuples(st.integers(2**53, 2**54), st.integers(-30, 30)).map(lambda two: b"%d1e%d" % two),
    st.text("0123456789.eE+-", min_size=1, max_size=9).map(str.encode),
    st.sampled_from([b"a", b"b", b"ab", b"\xc3\xa9"]),
)
BLANKS = st.sampled_from([b" ", b" ", b" ", b"  ", b"\t", b" \t\r ", b"\x0b", b"\x00"])
ENDS = st.sampled_from([b"\n", b"\n", b"\r\n", b" \n", b"\n\n", b"\n # no row\n", b"\n#\n", b"\r"])


@st.composite
def texts(draw: st.DrawFn, fields: int) -> bytes:
    """Return lines of about so many fields."""
    parts = []
    for _ in range(draw(st.integers(0, 6))):
        integers = st.integers(0, 12).map(lambda number: b"%d" % number)
        for field in range(fields + draw(st.sampled_from([0, 0, 0, 0, -1, 1]))):
            kind = integers if field < fields - 2 and draw(st.integers(0, 19)) else WORDS
            parts += [draw(kind), draw(BLANKS)]
        parts.append(draw(ENDS))
    return b"".join(parts) + b"\n"


@settings(max_examples=150)
@given(st.integers(1, 3).flatmap(lambda i: st.tuples(texts(i + 2), st.just(i))), st.booleans())
@example((b"", 1), True)
@example((b"\n", 2), False)
@example((b"0 1 0.5 a\n1 0 nan a b\n", 2), True)
@example((b"9" * 18 + b" 1\n", 1), False)
@example((b"0" * 18 + b"1 1\n", 1), False)
@example((b"-1 1\n", 1), False)
@example((b"+1 1\n", 1), False)
def test_rows_are_those_of_a_plain_reader(case: tuple[bytes, int], named: bool):
    check_rows(*case, named)


@settings(max_examples=100)
@given(st.binary(max_size=60), st.integers(1, 3), st.booleans())
def test_noise_is_scanned_like_by_a_plain_reader(noise: bytes, integers: int, named: bool):
    check_rows(noise + b"\n", integers, named)


def test_names_keep_their_numbers_from_text_to_text():
    table, number = NameTable(), {b"": 0}
    random = np.random.default_rng(5)
    for size in (1, 3, 700, 20, 5000):
        names = [b"n%d" % name for name in random.integers(0, 4000, size)]
        for name in names:
            number.setdefault(name, len(number))
        found = scan_rows(array(b"".join(b"0 1 %s\n" % name for name in names)), 1, table)
        assert found.actions.tolist() == [number[name] for name in names]
    assert [table[k] for k in range(1, table.count + 1)] == list(number)[1:]


def test_the_shortest_rows_have_room():
    for integers in (1, 2, 3):
        row = b" ".join([b"7"] * integers) + b" 8\n"
        found = scan_rows(array(row * 500), integers)
        assert found.status is LineStatus.OK
        assert found.keys.tolist() == [[7] * integers] * 500
        assert (found.values == 8).all()


def plain_labels(text: bytes, num_labels: int, num_states: int):
    """Return status, line, and the (label, state) that were set."""
    met = set()
    for number, content in lines_of(text):
        digits, colon, rest = STATE.fullmatch(content).groups()
        if not INTEGER.fullmatch(digits) or not colon:
            return LineStatus.BAD_SHAPE, number, met
        if int(digits) >= num_states:
            return LineStatus.BAD_STATE, number, met
        while rest:
            token, rest = first_token(rest)
            if not INTEGER.fullmatch(token) or int(token) >= num_labels:
                return LineStatus.BAD_LABEL, number, met
            met.add((int(token), int(digits)))
    return LineStatus.OK, text.count(b"\n"), met


STATES = st.sampled_from([b"0", b"1", b"2", b"2", b"3", b"", b"-1", b"+1", b"9" * 19, b"00"])
COLONS = st.sampled_from([b":", b":", b":", b":", b" : ", b"", b"::", b":\x00"])


@settings(max_examples=150)
@given(st.lists(st.tuples(STATES, COLONS, st.lists(st.one_of(STATES, BLANKS)), ENDS), max_size=4))
def test_labels_are_those_of_a_plain_reader(lines):
    text = b"".join(state + colon + b" ".join(labels) + end for state, colon, labels, end in lines)
    masks = np.zeros((4, 3), dtype=np.bool_)
    status, line, met = plain_labels(text + b"\n", 4, 3)
    assert scan_labels(array(text + b"\n"), masks) == (status, line)
    assert set(zip(*map(np.ndarray.tolist, masks.nonzero()), strict=True)) == met


def plain_value(token: bytes):
    """Return kind and value of a variable; kind 0 for neither."""
    if token in (b"true", b"false"):
        return 2, int(token == b"true")
    digits = token.removeprefix(b"-")
    if not INTEGER.fullmatch(digits) or int(digits) > LARGEST:
        return 0, 0
    return 1, int(token)


def plain_states(text: bytes, num_states: int, num_variables: int):
    """Return status, line, values by state, and kinds."""
    values: dict[int, list[int]] = {}
    kinds = [0] * num_variables
    for number, content in lines_of(text):
        digits, colon, rest = STATE.fullmatch(content).groups()
        if not INTEGER.fullmatch(digits) or not colon:
            return LineStatus.BAD_SHAPE, number, values, kinds
        if (state := int(digits)) >= num_states:
            return LineStatus.BAD_STATE, number, values, kinds
        if state in values:
            return LineStatus.REPEATED, number, values, kinds
        values[state] = [0] * num_variables
        if not rest.startswith(b"("):
            return LineStatus.BAD_SHAPE, number, values, kinds
        for variable in range(num_variables):
            rest = rest[1:].lstrip(GAPS)
            token = re.match(rb"[^\x00- ,)]*", rest)[0]
            rest = rest[len(token) :].lstrip(GAPS)
            kind, value = plain_value(token)
            if kind == 0:
                return LineStatus.BAD_VALUE, number, values, kinds
            values[state][variable] = value
            kinds[variable] = kinds[variable] or kind
            if kinds[variable] != kind:
                return LineStatus.OTHER_TYPE, number, values, kinds
            last = variable == num_variables - 1
            if not rest.startswith(b")" if last else b","):
                status = LineStatus.TOO_MANY if last else LineStatus.TOO_FEW
                return status, number, values, kinds
        if rest[1:].lstrip(GAPS):
            return LineStatus.TOO_MANY, number, values, kinds
    return LineStatus.OK, text.count(b"\n"), values, kinds


VALUES = st.one_of(
    st.sampled_from([b"0", b"-3", b"12", b"true", b"false"]),
    st.sampled_from(
        [
            *b"true tru truee True fals falsy - --1 +1 1.0 -2147483647 2147483647".split(),
            *(b"2147483648", b"-2147483648", b"", b" 7 ", b"\x00"),
        ]
    ),
)
BRACKETS = st.sampled_from(
    [(b"(", b")")] * 12 + [(b"", b")"), (b"(", b""), (b"( ", b" )"), (b"(", b")x")]
)


@settings(max_examples=150)
@given(
    st.integers(1, 3),
    st.lists(
        st.tuples(STATES, COLONS, BRACKETS, st.lists(VALUES, min_size=3, max_size=3), ENDS),
        max_size=4,
    ),
    st.sampled_from([0, 0, 0, 0, -1, 1]),
)
@example(2, [(b"0", b":", (b"(", b")"), [b"1", b"true", b""], b"\n")], 0)
def test_states_are_those_of_a_plain_reader(variables: int, lines, more: int):
    text = b"".join(
        state + colon + opening + b",".join(values[: variables + more]) + closing + end
        for state, colon, (opening, closing), values, end in lines
    )
    values = np.zeros((3, variables), dtype=np.int32)
    kinds, seen = np.zeros(variables, dtype=np.int8), np.zeros(3, dtype=np.bool_)
    status, line, expected, expected_kinds = plain_states(text + b"\n", 3, variables)
    assert scan_states(array(text + b"\n"), values, kinds, seen) == (status, line)
    assert {int(state): values[state].tolist() for state in np.flatnonzero(seen)} == expected
    assert kinds.tolist() == expected_kinds


def test_a_text_must_end_with_a_line_feed():
    for text in (b"0 1", b"0 1\n0 1 "):
        with pytest.raises(ValueError, match="line feed"):
            scan_rows(array(text), 1)
        with pytest.raises(ValueError, match="line feed"):
            scan_labels(array(text), np.zeros((1, 1), dtype=np.bool_))


def test_shapes_must_fit():
    values = np.zeros((3, 2), dtype=np.int32)
    kinds, seen = np.zeros(2, dtype=np.int8), np.zeros(3, dtype=np.bool_)
    with pytest.raises(ValueError, match="kinds"):
        scan_states(array(b"\n"), values, kinds[:1], seen)
    with pytest.raises(ValueError, match="states"):
        scan_states(array(b"\n"), values, kinds, seen[:2])


def test_lines_are_counted():
    assert count_lines(array(b"")) == 0
    assert count_lines(array(b"a\n\nb\n" * 100)) == 300
