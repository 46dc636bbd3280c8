"""What the switches that export a model ask for: files and options, in PRISM's form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from bridge.own_switches import UsageError
from engines.errors import UnsupportedError

Compression = Literal["none", "gz", "xz"]

_TRUTH = {"true": True, "false": False}
PARTS = {
    **{ending: (f".{ending}",) for ending in ("tra", "sta", "lab", "srew", "trew")},
    "all": (".tra", ".srew", ".trew", ".sta", ".lab"),
    "rew": (".srew", ".trew"),
}
"""What an ending of -exportmodel stands for, in the order in which the files are written."""
WHOLE = ("umb", "pexp")
"""Endings that are the only one of a file, which has the whole model."""
_COMPRESSIONS: dict[str, Compression] = {
    **{"true": "gz", "gzip": "gz", "gz": "gz"},
    **{"xz": "xz", "false": "none"},
}
_FORMATS = ("explicit", "matlab", "dot", "drn", "umb")
# Options that PRISM has besides, for -exportmodel and for the switches of parts.
_PRISMS = {
    "model": (
        *("rewards", "labels", "states", "obs", "precision", "text", "matlab", "rows"),
        "proplabels",
    ),
    "trans": ("precision",),
    "states": ("precision",),
    "labels": ("precision", "matlab", "proplabels"),
}


@dataclass(frozen=True)
class ModelExport:
    """A model, or a part of it, to be exported.

    Parameters
    ----------
    what
        "model", "trans", "states" or "labels".
    target
        A file, or "stdout"; of a model with endings such as `.tra,lab`.
    headers
        Whether text files begin with lines of `#`; None as -noexportheaders says.
    actions
        Whether the names of actions are written.
    compression
        Of a UMB file: "gz", "xz" or "none".
    """

    what: str
    target: str
    headers: bool | None = None
    actions: bool = True
    compression: Compression = "gz"


def parse_model_export(what: str, text: str) -> ModelExport:
    """Return what the argument of -exportmodel, -exporttrans, … asks for.

    Parameters
    ----------
    what
        "model", "trans", "states" or "labels": the switch without "export".
    text
        A target, or a target, a colon, and options between commas.

    Raises
    ------
    UsageError
        For what is no option, or no value of one, in PRISM's words; for other endings of a model.
    UnsupportedError
        For options that need PRISM.
    """
    target, _, options = text.partition(":")
    request = ModelExport(what, target)
    if what == "model":
        _require_known_endings(target)
    for option in filter(None, options.split(",")):
        request = _with_option(request, option)
    return request


def _require_known_endings(target: str) -> None:
    _, dot, endings = target.rpartition(".")
    if not dot or not (endings in WHOLE or set(endings.split(",")) <= PARTS.keys()):
        raise UsageError(
            f'-exportmodel: unknown file ending in "{target}"; known are .all, .umb, .pexp, '
            ".tra, .sta, .lab, .rew, .srew and .trew"
        )


def _with_option(request: ModelExport, option: str) -> ModelExport:
    name, _, value = option.partition("=")
    switch = f"-export{request.what}"
    if name == "headers":
        return replace(request, headers=_truth(name, value, switch))
    if request.what == "model" and name == "actions":
        return replace(request, actions=_truth(name, value, switch))
    if request.what == "model" and name == "format":
        return _with_format(request, value, option)
    if request.what == "model" and name == "zip":
        known = ", ".join(_COMPRESSIONS)
        if value not in _COMPRESSIONS:
            raise UsageError(
                f'Unknown value "{value}" for "zip" option of {switch} (options are: {known})'
            )
        return replace(request, compression=_COMPRESSIONS[value])
    if name in _PRISMS[request.what]:
        raise _needs_prism(switch, option)
    raise UsageError(f'Unknown option "{name}" for {switch} switch')


def _with_format(request: ModelExport, value: str, option: str) -> ModelExport:
    switch = f"-export{request.what}"
    if value not in _FORMATS:
        known = ", ".join(_FORMATS)
        raise UsageError(
            f'Unknown value "{value}" for "format" option of {switch} (options are: {known})'
        )
    binary = request.target.endswith(".umb")
    if value != ("umb" if binary else "explicit"):
        raise _needs_prism(switch, option)
    return request


def _truth(name: str, value: str, switch: str) -> bool:
    if value not in _TRUTH:
        raise UsageError(
            f'Unknown value "{value}" for "{name}" option of {switch} (expected true or false)'
        )
    return _TRUTH[value]


def _needs_prism(switch: str, option: str) -> UnsupportedError:
    return UnsupportedError(
        f'{switch}: the option "{option}" needs PRISM: install it and name its folder in PRISM_DIR'
    )
