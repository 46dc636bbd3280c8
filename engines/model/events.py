"""What happens in a solve that its log tells, as data; the words are made of it here alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from string import Formatter
from typing import Any

Detail = str | int | float

_SUMMED = "q.t = {rate:.6g} x {time:.6g} = {product:.6g}, "
_CUT_OFF = ", truncation below {truncation:.1e}, rounding {measure} {rounding:.1e}"
_IN_SINGLE = "{sweeps} sweeps in single precision: the {error_kind} error "
_CERTIFIED = "sweeps are too slow here ({sweeps} made): proven bounds of a direct solution"
_APART = "{width:.1e} apart, more than epsilon {epsilon:.1e}"


class Kind(Enum):
    """What may happen, and the log's words for it: in braces are the details that an event has."""

    # Where a solve runs.
    GPU_REFUSED = "GPU not used: {reason}"
    MOVED_TO_CPU = "{reason}; solving on the CPU"
    BEGAN_ON_CPU = (
        "{sweeps} sweeps on the CPU, {microseconds:.2f} us each, then on {place}, "
        "{microseconds_there:.2f} us each"
    )
    SHARED_OUT = (
        "shared out among {gpus} GPUs, which send each other {mebibytes:.2f} MiB a sweep and meet "
        "by {way}"
    )
    NOT_SHARED_OUT = "not shared out among {gpus} GPUs: {reason}"
    SWEEPS_ALONE = "without a matrix, GPU {gpu} sweeps alone"
    SPLIT = (
        "the matrix is split into {blocks} blocks, {travelling} of which ({gibibytes:.2f} GiB) "
        "travel from the host's memory in each sweep"
    )
    SEARCHED_ON_CPU = "the CPU looks for the recurrent class: {reason}"
    COLOURED_ON_CPU = "colours found on the CPU: {reason}"

    # What is swept, and how.
    FORMAT_REFUSED = "-gpuformat {format}: {reason}; swept as csr"
    FORMAT_FAILED = "format {format}: {reason}"
    NO_ROOM_FOR_FORMATS = "no memory is left to look for a better format than csr"
    SINGLE_AS_CSR = "-gpuformat {format}: the CPU sweeps in single precision as csr"
    NOT_IN_FORMAT = "not swept as {format}: {reason}"
    COLOURED = (
        "{order} in {colours} colour{colours:s}, slices of {states} state{states:s}, "
        "{percent:.0f} % of entries see fresh values"
    )
    TURNED = "these sweeps swing: after {sweeps} on {order}"
    RELAXED = "these sweeps {why}: after {sweeps} on with omega {omega}"
    COMPONENTS = (
        "{components} strongly connected components, {several} of several states, the largest of "
        "{largest}"
    )
    COMPONENTS_ON_GPU = (
        "{components} of them, {swept} of {states} states, on the GPU; the others are too small "
        "for it"
    )
    TOGETHER = "{what} are of all strongly connected components together"
    LOOPS_LEFT = "zero-reward loops are left at no cost ({loops} found)"
    POLICIES = "{policies} policies, each swept by {method}"
    POWERS_SUMMED = _SUMMED + "terms {left} to {right}" + _CUT_OFF
    POWERS_SQUARED = (
        _SUMMED + "terms 0 to {right} of 1/2^{squarings} of the time, squared" + _CUT_OFF
    )

    # Precision.
    DOUBLE_INSTEAD = "-gpuprecision {precision}: {reason}; computed in double precision"
    SINGLE_STALLED = (
        "what single precision left does not fall: swept again, all in double precision"
    )
    SINGLE_THEN_DOUBLE = "{single} sweeps in single precision, then {double} in double"
    SINGLE = _IN_SINGLE + "to expect is {error:.1e}, {rounding:.1e} of it a bound on all roundings"
    SINGLE_BUT = SINGLE + ", but unknown of values below {least:.0e}"
    SINGLE_UNKNOWN = _IN_SINGLE + "is unknown; all roundings make at most {rounding:.1e} of it"
    SINGLE_AT_END = "further sweeps come no closer to epsilon {epsilon:.1e}"

    # What took over.
    SUBSTITUTED = (
        "no state leads back to itself through others: after {sweeps} sweeps solved by "
        "substitution, each state after those that it leads to"
    )
    COLOURS_TOOK_OVER = (
        "{method} contracts slowly here: after {sweeps} sweeps on by Gauss-Seidel, " + COLOURED
    )
    TOOK_OVER = (
        "{method} contracts too slowly here ({sweeps} sweeps, expected error still {error:.1e}): "
        "solved by {by}"
    )
    ENDED_BY = "{by}"
    STATES_SOLVED = "{states} states solved by {by}"
    CLASSES_SOLVED = "{states} states of {classes} recurrent classes solved by {by}"
    COMPONENTS_SOLVED = "{components} of them, where sweeps contract too slowly, solved by {by}"
    CERTIFIED = _CERTIFIED
    CERTIFIED_APART = _CERTIFIED + "; they are " + _APART
    FAILED = "{method} failed: {reason}"
    FAILED_BY_ROUNDING = "{method} failed: rounding leaves an error of {error:.1e}"
    NO_ROOM_FOR_COLOURS = "no room for sweeps in colours: {reason}"

    # How good the values are.
    CHANGE_MISLEADS = (
        "{method} stopped because a sweep changes less than {epsilon:.2g}, but its sweeps contract "
        "slowly here: the {error_kind} error to expect is {error:.1e}"
    )
    BOUNDS_AT_REST = "rounding keeps the bounds " + _APART
    NO_GUESS_VERIFIED = "no guess of an upper bound was verified"
    UNCONFIRMED = "the error is estimated from the last sweeps alone: {reason}"

    def __call__(self, **details: Detail) -> Event:
        """Return an event of this kind.

        Parameters
        ----------
        details
            What the words name, and whatever else is known.

        Raises
        ------
        KeyError
            If a detail is missing.
        """
        _WORDS.vformat(self.value, (), details)
        return Event(self, tuple(details.items()))


@dataclass(frozen=True)
class Event:
    """Something that happened in a solve.

    Parameters
    ----------
    kind
        What.
    details
        Numbers, reasons and names, each with its name.
    """

    kind: Kind
    details: tuple[tuple[str, Detail], ...] = ()

    def __str__(self) -> str:
        """Return the log's words."""
        return _WORDS.vformat(self.kind.value, (), dict(self.details))


Events = tuple[Event, ...]
"""What happened in a solve, in its order."""


class _Words(Formatter):
    """Fills in details; of a number, the format `s` is the ending of a plural."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "s" and not isinstance(value, str):
            return "" if value == 1 else "s"
        return str(super().format_field(value, format_spec))


_WORDS = _Words()


def told(events: Iterable[Event]) -> str:
    """Return what the log says of events: each once.

    Parameters
    ----------
    events
        What happened, in its order.
    """
    return "; ".join(dict.fromkeys(map(str, events)))
