"""Events of a solve as data, and the log lines that are made of them: here, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from string import Formatter
from typing import Any

Detail = str | int | float

_SUMMED = "q.t = {rate:.6g} x {time:.6g} = {product:.6g}, "
_CUT_OFF = ", truncation below {truncation:.1e}, rounding {measure} {rounding:.1e}"
_IN_SINGLE = "{sweeps} iterations in single precision: {error_kind} error "
_CERTIFIED = "convergence too slow ({sweeps} iterations): proven bounds of a direct solution"
_APART = "{width:.1e} apart, more than epsilon {epsilon:.1e}"


class Kind(Enum):
    """What may happen, and the log's words for it: in braces are the details that an event has."""

    # Where a solve runs.
    GPU_REFUSED = "GPU not used: {reason}"
    MOVED_TO_CPU = "{reason}; solving on the CPU"
    BEGAN_ON_CPU = (
        "{sweeps} iterations on the CPU, {microseconds:.2f} us each, then on {place}, "
        "{microseconds_there:.2f} us each"
    )
    SHARED_OUT = (
        "shared among {gpus} GPUs: {mebibytes:.2f} MiB exchanged in an iteration, synchronised by "
        "{way}"
    )
    NOT_SHARED_OUT = "not shared among {gpus} GPUs: {reason}"
    SWEEPS_ALONE = "without a matrix, only GPU {gpu} is used"
    SPLIT = (
        "the matrix is split into {blocks} blocks, {travelling} of which ({gibibytes:.2f} GiB) "
        "are copied from the host's memory in each iteration"
    )
    SPLIT_COLOURS = (
        "the colours are split into {parts} parts, {travelling} of which ({gibibytes:.2f} GiB) are "
        "copied from the host's memory in each sweep, x in {segments} segment{segments:s}; sums of "
        "a colour {mebibytes:.2f} MiB"
    )
    SEARCHED_ON_CPU = "recurrent class found on the CPU: {reason}"
    COLOURED_ON_CPU = "colours found on the CPU: {reason}"

    BUILT_ON_GPU = "model built on GPU {gpu}"
    BUILT_ON_CPU = "model built on the CPU: {reason}"
    KEPT_IN_RUNS = (
        "{transitions} transitions kept as {runs} runs of {kinds} kinds of rows: {bytes:.3g} bytes "
        "a state in place of {listed:.0f}"
    )
    BUILT_BY_BYTE_CODE = "model built without compiled code: {reason}"

    # What is swept, and how.
    FORMAT_REFUSED = "-gpuformat {format}: {reason}; csr used"
    FORMAT_FAILED = "format {format}: {reason}"
    COMBINED_ON_CPU = "iterates of GMRES combined on the CPU: no memory left for them on the GPU"
    NO_ROOM_FOR_FORMATS = "csr used: no memory left to choose a better format"
    SINGLE_AS_CSR = "-gpuformat {format}: in single precision the CPU uses csr"
    NOT_IN_FORMAT = "format {format} not used: {reason}"
    COLOURED = (
        "{order} in {colours} colour{colours:s}, slices of {states} state{states:s}, "
        "{percent:.0f} % of entries read new values"
    )
    TURNED = "oscillating: {order} from sweep {sweeps} on"
    RELAXED = "{why}: omega {omega} from sweep {sweeps} on"
    COMPONENTS = (
        "{components} strongly connected components, {several} of several states, the largest of "
        "{largest}"
    )
    COMPONENTS_ON_GPU = (
        "{components} of them, {swept} of {states} states, on the GPU; the others are too small"
    )
    TOGETHER = "{what} of all strongly connected components together"
    LOOPS_LEFT = "zero-reward loops may be left at no cost ({loops} found)"
    POLICIES = "{policies} policies, each evaluated by {method}"
    POWERS_SUMMED = _SUMMED + "terms {left} to {right}" + _CUT_OFF
    STEADY = "PRISM takes iteration {sweep} for the last; all were made"
    POWERS_SQUARED = (
        _SUMMED + "terms 0 to {right} of 1/2^{squarings} of the time, squared" + _CUT_OFF
    )

    # Precision.
    DOUBLE_INSTEAD = "-gpuprecision {precision}: {reason}; computed in double precision"
    SINGLE_STALLED = "single precision stalled; restarted in double precision"
    SINGLE_THEN_DOUBLE = "{sweeps} iterations in single precision, then {double} in double"
    SINGLE = _IN_SINGLE + "about {error:.1e}, {rounding:.1e} of it a bound on rounding"
    SINGLE_BUT = SINGLE + ", unknown for values below {least:.0e}"
    SINGLE_UNKNOWN = _IN_SINGLE + "unknown, at most {rounding:.1e} of it by rounding"
    SINGLE_AT_END = "further iterations come no closer to epsilon {epsilon:.1e}"

    # What took over.
    SUBSTITUTED = "graph is acyclic: solved by back-substitution after {sweeps} iterations"
    PARTS_TOOK_OVER = (
        "{method} converges slowly: solved component by component after {sweeps} iterations"
    )
    COLOURS_TOOK_OVER = (
        "{method} converges slowly; switched to Gauss-Seidel after {sweeps} iterations, " + COLOURED
    )
    TOOK_OVER = (
        "{method} converges too slowly ({sweeps} iterations, expected error still {error:.1e}): "
        "solved by {by}"
    )
    ENDED_BY = "{by}"
    STATES_SOLVED = "{states} state{states:s} solved by {by}"
    CLASSES_SOLVED = (
        "{states} state{states:s} of {classes} recurrent class{classes:es} solved by {by}"
    )
    COMPONENTS_SOLVED = "{components} of them, where convergence is too slow, solved by {by}"
    CERTIFIED = _CERTIFIED
    CERTIFIED_APART = _CERTIFIED + "; they are " + _APART
    FAILED = "{method} failed: {reason}"
    FAILED_BY_ROUNDING = "{method} failed: rounding leaves an error of {error:.1e}"
    NO_ROOM_FOR_COLOURS = "no memory for Gauss-Seidel in colours: {reason}"

    # How good the values are.
    CHANGE_MISLEADS = (
        "{method} stopped because an iteration changed values by less than {epsilon:.2g}, but it "
        "converges slowly: the expected {error_kind} error is {error:.1e}"
    )
    BOUNDS_AT_REST = "rounding leaves the bounds " + _APART
    NO_GUESS_VERIFIED = "no guess of an upper bound was verified"
    UNCONFIRMED = "error estimated from the last iterations alone: {reason}"

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
    """Fills in details; of a number, the formats `s` and `es` are the ending of a plural."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec in ("s", "es") and not isinstance(value, str):
            return "" if value == 1 else format_spec
        return str(super().format_field(value, format_spec))


_WORDS = _Words()


def steady_at(sweep: int) -> Events:
    """Return that PRISM takes a sweep for the last; nothing for sweep 0, which is none.

    Parameters
    ----------
    sweep
        Its number, counted from 1.
    """
    return (Kind.STEADY(sweep=sweep),) if sweep else ()


def told(events: Iterable[Event]) -> str:
    """Return what the log says of events: each once.

    Parameters
    ----------
    events
        What happened, in its order.
    """
    return "; ".join(dict.fromkeys(map(str, events)))
