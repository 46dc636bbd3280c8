"""Numbers as PRISM prints them."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.check.results import short_text
from bridge.language.text import double_text, seconds_text, value_text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        # What Java's Double.toString gives.
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.0009999999, "9.999999E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (1.25e7, "1.25E7"),
        (-1.5e-10, "-1.5E-10"),
        (1e-300, "1.0E-300"),
        (14957.506076364394, "14957.506076364394"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1e22, "1.0E22"),
        (123456789.0, "1.23456789E8"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_doubles_are_written_as_java_writes_them(number, text):
    assert double_text(number) == text


def test_other_values_are_written_as_java_writes_them():
    assert value_text(True) == "true"
    assert value_text(np.bool_(False)) == "false"
    assert value_text(np.int64(7)) == "7"
    assert value_text((0.0, 0.5)) == "[0.0,0.5]"
    assert seconds_text(0.0124) == "0.012"
    assert seconds_text(0.0) == "0.0"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        # What PRISM's tables of results hold.
        (0.16666650772094727, "0.166666507721"),
        (1.0, "1"),
        (1e-05, "1e-05"),
        (14957.506076364394, "14957.5060764"),
        (3, "3"),
        (True, "true"),
        (float("inf"), "Infinity"),
    ],
)
def test_tables_have_twelve_significant_digits(value, text):
    assert short_text(value) == text
