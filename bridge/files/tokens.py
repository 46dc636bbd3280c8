"""Compiled scanners of the three kinds of lines: rows of numbers, labels of a state, a state."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numba import njit
from numpy.typing import NDArray

LINE_FEED, RETURN, TAB, SPACE, HASH = 10, 13, 9, 32, 35
OPEN, CLOSE, PLUS, COMMA, MINUS, POINT, COLON = 40, 41, 43, 44, 45, 46, 58
ZERO, NINE, UPPER_E, LOWER_E = 48, 57, 69, 101

OK = 0
BAD_INTEGER = 1
TOO_FEW = 2
TOO_MANY = 3
BAD_STATE = 4
BAD_LABEL = 5
BAD_SHAPE = 6
BAD_VALUE = 7
REPEATED = 8
OTHER_TYPE = 9

MOST_DIGITS = 18
EXACT_POWER = 22
LARGEST_POWER = 64
EXACT_INTEGER = 1 << 53

_POWERS = [Fraction(10) ** power for power in range(-LARGEST_POWER, LARGEST_POWER + 1)]
# Powers of ten as unevaluated sums of two doubles, good to about 106 bits.
POWER_HIGH: NDArray[np.float64] = np.array([float(power) for power in _POWERS])
POWER_LOW: NDArray[np.float64] = np.array(
    [float(power - Fraction(float(power))) for power in _POWERS]
)


@njit(cache=True, inline="always")
def _is_gap(character: int) -> bool:
    return character in (SPACE, TAB, RETURN)


@njit(cache=True)
def _token_end(text: NDArray[np.uint8], position: int) -> int:
    while text[position] > SPACE:
        position += 1
    return position


@njit(cache=True)
def _next_token(text: NDArray[np.uint8], position: int) -> int:
    while _is_gap(text[position]):
        position += 1
    return position


@njit(cache=True)
def _line_content(text: NDArray[np.uint8], position: int) -> int:
    """Return the first byte of a line that counts: its end, if there is nothing but a comment."""
    position = _next_token(text, position)
    if text[position] == HASH:
        while text[position] != LINE_FEED:
            position += 1
    return position


@njit(cache=True)
def _integer(text: NDArray[np.uint8], start: int, stop: int) -> int:
    """Return the non-negative integer of a token, or −1."""
    if stop == start or stop - start > MOST_DIGITS:
        return -1
    number = np.int64(0)
    for position in range(start, stop):
        digit = np.int64(text[position]) - ZERO
        if digit < 0 or digit > 9:
            return -1
        number = number * 10 + digit
    return int(number)


@njit(cache=True)
def _decimal(text: NDArray[np.uint8], start: int, stop: int) -> tuple[float, bool]:
    """Return the correctly rounded value of a token, and whether this scanner is sure of it.

    What it is not sure of (many digits, extreme exponents, ties, no number at all) is left to
    Python's `float`. Doubles by Clinger's exact cases, else in double-double arithmetic with
    Ziv's rounding test.
    """
    position = start
    negative = text[position] == MINUS
    if negative or text[position] == PLUS:
        position += 1
    mantissa = np.int64(0)
    digits = 0
    exponent = 0
    seen = False
    point = False
    while position < stop:
        character = text[position]
        if ZERO <= character <= NINE:
            seen = True
            if digits == MOST_DIGITS:
                return 0.0, False
            mantissa = mantissa * 10 + (np.int64(character) - ZERO)
            if mantissa > 0:
                digits += 1
            if point:
                exponent -= 1
        elif character == POINT and not point:
            point = True
        else:
            break
        position += 1
    if not seen:
        return 0.0, False
    if position < stop:
        if text[position] != UPPER_E and text[position] != LOWER_E:
            return 0.0, False
        position += 1
        below = position < stop and text[position] == MINUS
        if position < stop and (below or text[position] == PLUS):
            position += 1
        power = _integer(text, position, stop)
        if power < 0 or power > 9999:
            return 0.0, False
        exponent += -power if below else power
    value = 0.0
    if mantissa == 0:
        value = 0.0
    elif exponent < -LARGEST_POWER or exponent > LARGEST_POWER:
        return 0.0, False
    elif mantissa <= EXACT_INTEGER and 0 <= exponent <= EXACT_POWER:
        value = np.float64(mantissa) * POWER_HIGH[exponent + LARGEST_POWER]
    elif mantissa <= EXACT_INTEGER and -EXACT_POWER <= exponent < 0:
        value = np.float64(mantissa) / POWER_HIGH[LARGEST_POWER - exponent]
    else:
        value, sure = _scaled(int(mantissa), exponent)
        if not sure:
            return 0.0, False
    return (-value if negative else value), True


@njit(cache=True)
def _scaled(mantissa: int, exponent: int) -> tuple[float, bool]:
    high = np.float64(mantissa)
    low = np.float64(mantissa - np.int64(high))
    power_high = POWER_HIGH[exponent + LARGEST_POWER]
    power_low = POWER_LOW[exponent + LARGEST_POWER]
    product = high * power_high
    # Dekker's exact product, with Veltkamp's splitting.
    split = 134217729.0 * high
    a_high = split - (split - high)
    a_low = high - a_high
    split = 134217729.0 * power_high
    b_high = split - (split - power_high)
    b_low = power_high - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    error += high * power_low + low * power_high
    value = product + error
    rest = error - (value - product)
    doubt = abs(rest) * 2.0**-40
    return value, value + (rest - doubt) == value + (rest + doubt)


@njit(cache=True)
def scan_rows(
    text: NDArray[np.uint8],
    keys: NDArray[np.int64],
    values: NDArray[np.float64],
    lines: NDArray[np.int32],
    unsure: NDArray[np.int32],
    actions: NDArray[np.int32],
    slots: NDArray[np.int32],
    hashes: NDArray[np.int64],
    name_offsets: NDArray[np.int64],
    names: NDArray[np.uint8],
    name_lines: NDArray[np.int32],
    num_names: int,
) -> tuple[int, int, int, int, int]:
    """Scan lines of integers, a value and (if `actions` is not empty) perhaps an action.

    Parameters
    ----------
    text
        Whole lines, the last byte a line feed.
    keys
        Filled: shape (integers a row, rows).
    values, lines, actions
        Filled, a row each: the value, the line within the text, the action's number or 0.
    unsure
        Filled: row, first byte and end of the values that are left to the caller.
    slots, hashes, name_offsets, names, name_lines, num_names
        The table of actions met so far: an open-addressing table of numbers (0 is empty), and for
        each number its hash, its bytes, and the line where it was new. Actions count from 1.

    Returns
    -------
    Status, line within the text, rows, unsure values, number of actions.
    """
    integers = len(keys)
    with_actions = len(actions) > 0
    position = 0
    line = 0
    rows = 0
    doubts = 0
    size = len(text)
    while position < size:
        position = _line_content(text, position)
        if text[position] == LINE_FEED:
            position += 1
            line += 1
            continue
        for field in range(integers):
            stop = _token_end(text, position)
            if stop == position:
                wrong = BAD_INTEGER if text[position] != LINE_FEED else TOO_FEW
                return wrong, line, rows, doubts, num_names
            number = _integer(text, position, stop)
            if number < 0:
                return BAD_INTEGER, line, rows, doubts, num_names
            keys[field, rows] = number
            position = _next_token(text, stop)
        stop = _token_end(text, position)
        if stop == position:
            return TOO_FEW, line, rows, doubts, num_names
        value, sure = _decimal(text, position, stop)
        values[rows] = value
        if not sure:
            unsure[0, doubts] = rows
            unsure[1, doubts] = position
            unsure[2, doubts] = stop
            doubts += 1
        position = _next_token(text, stop)
        if with_actions:
            stop = _token_end(text, position)
            number = 0
            if stop > position:
                number, num_names = _intern(
                    text, position, stop, slots, hashes, name_offsets, names, num_names
                )
                if number == num_names and name_lines[number] < 0:
                    name_lines[number] = line
                position = _next_token(text, stop)
            actions[rows] = number
        if text[position] != LINE_FEED:
            return TOO_MANY, line, rows, doubts, num_names
        lines[rows] = line
        rows += 1
        position += 1
        line += 1
    return OK, line, rows, doubts, num_names


@njit(cache=True)
def _intern(
    text: NDArray[np.uint8],
    start: int,
    stop: int,
    slots: NDArray[np.int32],
    hashes: NDArray[np.int64],
    name_offsets: NDArray[np.int64],
    names: NDArray[np.uint8],
    num_names: int,
) -> tuple[int, int]:
    """Return the number of a token, and the number of names with it."""
    code = np.int64(1469598103934665603)
    for position in range(start, stop):
        code = (code ^ np.int64(text[position])) * np.int64(1099511628211)
    mask = len(slots) - 1
    slot = (code ^ (code >> 29)) & mask
    while slots[slot] != 0:
        number = slots[slot]
        if hashes[number] == code:
            first = name_offsets[number]
            if name_offsets[number + 1] - first == stop - start:
                same = True
                for position in range(start, stop):
                    if names[first + position - start] != text[position]:
                        same = False
                        break
                if same:
                    return number, num_names
        slot = (slot + 1) & mask
    number = num_names + 1
    slots[slot] = number
    hashes[number] = code
    first = name_offsets[number]
    for position in range(start, stop):
        names[first + position - start] = text[position]
    name_offsets[number + 1] = first + stop - start
    return number, number


@njit(cache=True)
def _state(text: NDArray[np.uint8], position: int, num_states: int) -> tuple[int, int, int]:
    """Return status and state of a line's head `state:`, and the first byte that counts after."""
    stop = position
    while ZERO <= text[stop] <= NINE:
        stop += 1
    state = _integer(text, position, stop)
    position = _next_token(text, stop)
    if state < 0 or text[position] != COLON:
        return BAD_SHAPE, state, position
    if state >= num_states:
        return BAD_STATE, state, position
    return OK, state, _next_token(text, position + 1)


@njit(cache=True)
def scan_labels(text: NDArray[np.uint8], masks: NDArray[np.bool_]) -> tuple[int, int]:
    """Set the masks, shape (labels, states), from lines `state: label label …`.

    Returns
    -------
    Status, line within the text.
    """
    num_labels, num_states = masks.shape
    position = 0
    line = 0
    size = len(text)
    while position < size:
        position = _line_content(text, position)
        if text[position] != LINE_FEED:
            status, state, position = _state(text, position, num_states)
            if status != OK:
                return status, line
            while text[position] != LINE_FEED:
                stop = _token_end(text, position)
                label = _integer(text, position, stop)
                if label < 0 or label >= num_labels:
                    return BAD_LABEL, line
                masks[label, state] = True
                position = _next_token(text, stop)
        position += 1
        line += 1
    return OK, line


@njit(cache=True)
def scan_states(
    text: NDArray[np.uint8],
    values: NDArray[np.int32],
    kinds: NDArray[np.int8],
    seen: NDArray[np.bool_],
) -> tuple[int, int]:
    """Set the variables' values, shape (states, variables), from lines `state:(value,…)`.

    `kinds` holds what each variable is: 0 not known yet, 1 an integer, 2 true or false.

    Returns
    -------
    Status, line within the text.
    """
    num_states, num_variables = values.shape
    position = 0
    line = 0
    size = len(text)
    while position < size:
        position = _line_content(text, position)
        if text[position] != LINE_FEED:
            status, state, position = _state(text, position, num_states)
            if status != OK:
                return status, line
            if seen[state]:
                return REPEATED, line
            seen[state] = True
            if text[position] != OPEN:
                return BAD_SHAPE, line
            for variable in range(num_variables):
                position = _next_token(text, position + 1)
                kind, value, position = _variable(text, position)
                if kind == 0:
                    return BAD_VALUE, line
                if kinds[variable] == 0:
                    kinds[variable] = kind
                if kinds[variable] != kind:
                    return OTHER_TYPE, line
                values[state, variable] = value
                position = _next_token(text, position)
                last = variable == num_variables - 1
                if text[position] != (CLOSE if last else COMMA):
                    return (TOO_MANY if last else TOO_FEW), line
            position = _next_token(text, position + 1)
            if text[position] != LINE_FEED:
                return TOO_MANY, line
        position += 1
        line += 1
    return OK, line


@njit(cache=True)
def _variable(text: NDArray[np.uint8], position: int) -> tuple[int, int, int]:
    """Return kind (0: neither), value and end of an integer, `true` or `false`."""
    stop = position
    while text[stop] > SPACE and text[stop] != COMMA and text[stop] != CLOSE:
        stop += 1
    if stop - position == 4 and text[position] == 116:
        if text[position + 1] == 114 and text[position + 2] == 117 and text[position + 3] == 101:
            return 2, 1, stop
        return 0, 0, stop
    if stop - position == 5 and text[position] == 102:
        if (
            text[position + 1] == 97
            and text[position + 2] == 108
            and text[position + 3] == 115
            and text[position + 4] == 101
        ):
            return 2, 0, stop
        return 0, 0, stop
    negative = text[position] == MINUS
    number = _integer(text, position + 1 if negative else position, stop)
    if number < 0 or number > 2147483647:
        return 0, 0, stop
    return 1, (-number if negative else number), stop
