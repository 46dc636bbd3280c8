"""What our own switches say, and how their values are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from bridge.jvm import memory_bytes
from engines.errors import UnsupportedError
from engines.model.choice import Format
from engines.model.environment import ALL_DEVICES, DeviceChoice, Method, Precision
from engines.montecarlo.cluster_client import local_workers
from prism_hooks.options import SYNCHRONISATIONS


class UsageError(Exception):
    """A switch of ours, or of the start script, was misused; the text is PRISM's kind of text."""


GPU_METHODS = {
    "auto": Method.AUTO,
    "power": Method.POWER,
    "jacobi": Method.JACOBI,
    "jor": Method.JOR,
    "gs": Method.GAUSS_SEIDEL,
    "bgs": Method.BACKWARDS_GAUSS_SEIDEL,
    "sor": Method.SOR,
    "bsor": Method.BACKWARDS_SOR,
    "multilevel": Method.MULTILEVEL,
    "gmres": Method.GMRES,
}


def one_of(words: Iterable[str], value: str, switch: str) -> str:
    """Return a value that must be one of some words.

    Parameters
    ----------
    words
        Which.
    value
        The value.
    switch
        Whose value it is.

    Raises
    ------
    UsageError
        For another word.
    """
    known = list(words)
    if value not in known:
        named = " or ".join(known) if len(known) == 2 else f"one of {', '.join(known)}"
        raise UsageError(f'Invalid value "{value}" for -{switch} switch: {named}')
    return value


def _method(value: str, switch: str) -> Method:
    return GPU_METHODS[one_of(GPU_METHODS, value, switch)]


def _format(value: str, switch: str) -> Format:
    return Format(one_of(Format, value, switch))


def _precision(value: str, switch: str) -> Precision:
    return Precision(one_of(Precision, value, switch))


def _num_devices(value: str, switch: str) -> int:
    if value == "all":
        return ALL_DEVICES
    return _from_one_on(value, switch, "a number, or all")


def _from_one_on(value: str, switch: str, wanted: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise UsageError(f'Invalid value "{value}" for -{switch} switch: {wanted}')
    return int(value)


def on_or_off(value: str, switch: str) -> bool:
    """Return whether a value is "on"; the parameters and errors are those of `one_of`."""
    return one_of(("on", "off"), value, switch) == "on"


def _positive(value: str, switch: str) -> int:
    return _from_one_on(value, switch, "a number from 1 on")


def _size(value: str, switch: str) -> int:
    try:
        return memory_bytes(value)
    except ValueError as error:
        raise UsageError(f"Invalid value for -{switch} switch: {error}") from error


def _probability(value: str, switch: str) -> float:
    try:
        probability = float(value)
    except ValueError:
        probability = math.nan
    if not 0.0 < probability < 1.0:
        raise UsageError(f'Invalid value "{value}" for -{switch} switch: a number between 0 and 1')
    return probability


def _seed(value: str, switch: str) -> int:
    if not value.isdecimal() or int(value) >= 1 << 63:
        raise UsageError(f'Invalid value "{value}" for -{switch} switch: a number from 0 to 2^63-1')
    return int(value)


def _cluster(value: str, switch: str) -> str:
    try:
        local_workers(value)
    except UnsupportedError as error:
        raise UsageError(f"Invalid value for -{switch} switch: {error}") from error
    return value


def _synchronisation(value: str, switch: str) -> str:
    return one_of(SYNCHRONISATIONS, value, switch)


def _as_it_is(value: str, _: str) -> str:
    return value


def _device_number(value: str, switch: str) -> int:
    if not value.isdecimal():
        raise UsageError(f'Invalid value "{value}" for -{switch} switch: a number, counted from 0')
    return int(value)


SETTINGS: dict[str, tuple[str, object]] = {
    "gpu": ("device", DeviceChoice.GPU),
    "nogpu": ("device", DeviceChoice.CPU),
    "gpuinfo": ("show_solves", True),
}
"""Of switches without a value: which field of `HookOptions` they set, and to what."""

READERS: dict[str, tuple[str, Callable[[str, str], object]]] = {
    "gpudevice": ("device_number", _device_number),
    "gpuformat": ("matrix_format", _format),
    "gpudevices": ("num_devices", _num_devices),
    "gpumaxmem": ("device_memory", _size),
    "gpuprogress": ("show_progress", on_or_off),
    "maxstates": ("max_states", _positive),
    "gputruncate": ("likely", _probability),
    "gpumethod": ("method", _method),
    "gpuslice": ("slice_size", _positive),
    "gpucolours": ("colours", _positive),
    "gpuprecision": ("precision", _precision),
    "gpusimseed": ("simulation_seed", _seed),
    "gpusimsource": ("simulation_source", _as_it_is),
    "gpusimstates": ("simulation_states", _positive),
    "gpusimsync": ("simulation_sync", _synchronisation),
    "simcluster": ("simulation_cluster", _cluster),
}
"""Of switches with a value: which field of `HookOptions` they set, and what reads the value, given
it and the switch; it raises `UsageError`. A field of how to solve is one of `SolverEnvironment`."""
