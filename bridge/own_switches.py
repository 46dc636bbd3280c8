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


def linear_method(value: str) -> Method:
    """Return the method that a value of `-gpumethod` names.

    Parameters
    ----------
    value
        The value.

    Raises
    ------
    UsageError
        For another word than a method's.
    """
    return GPU_METHODS[one_of(GPU_METHODS, value, "gpumethod")]


def num_devices(value: str) -> int:
    """Return how many GPUs a value of `-gpudevices` stands for, 0 for all.

    Parameters
    ----------
    value
        The value.

    Raises
    ------
    UsageError
        For anything but a number from 1 on, or "all".
    """
    if value == "all":
        return ALL_DEVICES
    return _from_one_on(value, "gpudevices", "a number, or all")


def matrix_format(value: str) -> Format:
    """Return the format that a value of `-gpuformat` names.

    Parameters
    ----------
    value
        The value.

    Raises
    ------
    UsageError
        For another word than a format's.
    """
    return Format(one_of(Format, value, "gpuformat"))


def precision(value: str) -> Precision:
    """Return the precision that a value of `-gpuprecision` names.

    Parameters
    ----------
    value
        The value.

    Raises
    ------
    UsageError
        For another word than a precision's.
    """
    return Precision(one_of(Precision, value, "gpuprecision"))


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
    "gpuformat": ("matrix_format", lambda value, _: matrix_format(value)),
    "gpudevices": ("num_devices", lambda value, _: num_devices(value)),
    "gpumaxmem": ("device_memory", _size),
    "gpuprogress": ("show_progress", on_or_off),
    "maxstates": ("max_states", _positive),
    "gputruncate": ("likely", _probability),
    "gpumethod": ("method", lambda value, _: linear_method(value)),
    "gpuslice": ("slice_size", _positive),
    "gpucolours": ("colours", _positive),
    "gpuprecision": ("precision", lambda value, _: precision(value)),
    "gpusimseed": ("simulation_seed", _seed),
    "gpusimsource": ("simulation_source", lambda value, _: value),
    "gpusimstates": ("simulation_states", _positive),
    "gpusimsync": (
        "simulation_sync",
        lambda value, switch: one_of(SYNCHRONISATIONS, value, switch),
    ),
    "simcluster": ("simulation_cluster", _cluster),
}
"""Of switches with a value: which field of `HookOptions` they set, and what reads the value, given
it and the switch."""
