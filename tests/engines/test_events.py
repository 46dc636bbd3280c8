"""What a log tells of a solve's events."""

from dataclasses import replace

import numpy as np
import pytest

from engines.model.events import Event, Kind, told
from engines.model.result import SolveResult


def test_the_words_hold_the_details():
    event = Kind.FAILED(method="elimination", reason="the factors would fill up")
    assert str(event) == "elimination failed: the factors would fill up"
    assert event == Event(
        Kind.FAILED, (("method", "elimination"), ("reason", "the factors would fill up"))
    )


def test_numbers_are_rounded_in_the_words_alone():
    event = Kind.BOUNDS_AT_REST(width=1.23456e-7, epsilon=1e-8)
    assert str(event) == "rounding leaves the bounds 1.2e-07 apart, more than epsilon 1.0e-08"
    assert dict(event.details)["width"] == 1.23456e-7


@pytest.mark.parametrize(
    ("colours", "states", "words"),
    [(1, 4, "in 1 colour, slices of 4 states"), (3, 1, "in 3 colours, slices of 1 state,")],
)
def test_plurals(colours, states, words):
    event = Kind.COLOURED(order="forwards", colours=colours, states=states, percent=50.0)
    assert words in str(event)


def test_an_event_without_one_of_its_details_is_refused_where_it_is_made():
    with pytest.raises(KeyError, match="reason"):
        Kind.FAILED(method="elimination")


def test_each_is_told_once():
    refused = Kind.GPU_REFUSED(reason="no driver")
    solved = Kind.STATES_SOLVED(states=3, by="elimination")
    assert told((refused, solved, refused)) == (
        "GPU not used: no driver; 3 states solved by elimination"
    )
    assert told(()) == ""


def test_a_result_of_several_solves_has_the_events_of_all():
    exact = SolveResult.exact(np.zeros(2), "Jacobi")
    first, second = (Kind.STATES_SOLVED(states=n, by="elimination") for n in (1, 2))
    parts = [replace(exact, events=(event,)) for event in (first, second, first)]
    both = SolveResult.combined(np.zeros(2), parts, 0.0)
    assert both.events == (first, second, first)
    assert both.note == "1 state solved by elimination; 2 states solved by elimination"
