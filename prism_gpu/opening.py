"""Models from files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Unpack

from bridge.check.experiment import model_experiment
from bridge.check.sources import model_source
from bridge.files.names import is_model_file, is_text_model
from bridge.known import path_of, require_known
from bridge.opened import const_switch
from engines.errors import InvalidModelError, UnsupportedError
from engines.model.environment import BuildingPlace
from engines.model.explicit import ModelKind
from prism_gpu.built import BuiltHere
from prism_gpu.model import Model, plain_constants
from prism_gpu.result import Constant
from prism_gpu.settings import Settings, number_of, read_settings

FRONT_ENDS = ("builtin", "prism")


def open(
    path: str | PathLike[str],
    constants: Mapping[str, Constant] | None = None,
    *,
    front_end: str = "builtin",
    kind: str | None = None,
    likely: float | None = None,
    **settings: Unpack[Settings],
) -> Model:
    """Open a model in a file.

    Parameters
    ----------
    path
        A model in PRISM's language (``.prism``, ``.pm``, ``.sm``, ``.nm``, …); a ``.umb``; a
        ``.tra`` with its companions ``.lab``, ``.sta``, ``.srew``, ``.trew``; a ``.pexp``; or a
        folder with one of these.
    constants
        The values of the constants that a model in PRISM's language leaves open.
    front_end
        For models in PRISM's language. "builtin": prism-gpu parses, builds and checks. "prism":
        an installed PRISM does, by its explicit engine with ours inside; a check can then change
        `epsilon` alone. States have the same numbers.
    kind
        For a ``.tra`` whose header does not say it: "DTMC", "CTMC" or "MDP".
    likely
        For models in PRISM's language that are too large or have no end: explore only states that
        are reached with at least this estimated probability, between 0 and 1, and at most 10
        million of them. Then values are pairs of bounds that are right whatever the others do, of
        P and R alone, and the states that were met and not explored have the label "unexplored".
    **settings
        Settings of all checks of this model, such as ``epsilon=1e-8``, ``bounds=True``, or
        ``device="gpu"`` (large models are built there too); see `Settings`.

    Returns
    -------
    Model
        To be checked, sampled and read.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    InvalidModelError
        When the model has a fault; the message names the place. When a constant has no value, or
        one has a value that the model does not declare.
    UnsupportedError
        For what is not built, such as PTAs and POMDPs, and for a GPU that is missing.
    BridgeError
        When PRISM was asked for, and it or Java is missing or unusable.
    TypeError, ValueError
        For settings that are unknown or out of range.

    Examples
    --------
    >>> import prism_gpu as pg
    >>> cluster = pg.open("cluster.sm", constants={"N": 4})  # doctest: +SKIP
    >>> cluster.check('S=? [ "premium" ]', epsilon=1e-10).value  # doctest: +SKIP
    0.9999212408513793
    """
    file = model_path(path)
    require_known(front_end, FRONT_ENDS, "value of front_end")
    if kind is not None:
        require_known(kind, [item.value for item in ModelKind], "kind")
        if not (file.is_dir() or is_text_model(file)):
            raise ValueError(f"{file}: the kind of a model is given for explicit text files alone")
    if likely is not None and not 0.0 < number_of({"likely": likely}, "likely", 0.0) < 1.0:
        raise ValueError(f"likely={likely}: a probability between 0 and 1 is wanted")
    if likely is not None and front_end == "prism":
        raise ValueError("likely: PRISM explores all states; leave front_end out")
    read_settings(settings)
    given = plain_constants(constants)
    if front_end == "prism":
        if is_model_file(file):
            raise UnsupportedError(f"{file}: models in explicit files are read without PRISM")
        return _held_by_prism(file, given, settings)
    return _built_here(file, given, None if kind is None else ModelKind(kind), likely, settings)


def model_path(path: str | PathLike[str]) -> Path:
    """Return where a model is.

    Parameters
    ----------
    path
        What the user has named.

    Raises
    ------
    FileNotFoundError
        When there is no such file or folder; the empty text names none.
    """
    file = path_of(path, "path")
    if not (fspath(path) and file.exists()):
        raise FileNotFoundError(f"no model {fspath(path) or 'without a name'}")
    return file


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Have errors about a model's text name its file: PRISM's words leave that to the log.

    Parameters
    ----------
    path
        The file.
    """
    try:
        yield
    except InvalidModelError as error:
        if str(path) in str(error):
            raise
        raise InvalidModelError(f"{path}: {error}") from error


def open_constants(path: Path) -> list[str]:
    """Return the names of the constants that a model leaves open.

    Parameters
    ----------
    path
        A model's file or folder, which must be there.

    Raises
    ------
    InvalidModelError
        For a model with a syntax error.
    """
    if is_model_file(path):
        return []
    with _naming(path):
        source = model_source(path, kind=None, fix_deadlocks=True)
        return [item.name for item in source.constants if item.value is None]


def _built_here(
    path: Path,
    constants: Mapping[str, Constant],
    kind: ModelKind | None,
    likely: float | None,
    settings: Settings,
) -> Model:
    environment = read_settings(settings).environment
    place = BuildingPlace(environment.device, environment.device_number, environment.device_memory)
    with _naming(path):
        source = model_source(path, kind=kind, fix_deadlocks=True, place=place, likely=likely)
        declared = {item.name for item in source.constants}
    left_open = [item.name for item in source.constants if item.value is None]
    for name in constants:
        if name not in declared:
            require_known(name, left_open, "constant of the model", InvalidModelError)
    experiment = model_experiment(source.constants, const_switch(constants))
    (values,) = experiment.assignments()
    meanings = source.declared
    with _naming(path):
        checkable = source.build(values, _nothing)
    return Model(BuiltHere(checkable, source.names, meanings, constants), settings)


def _held_by_prism(path: Path, constants: dict[str, Constant], settings: Settings) -> Model:
    from bridge.session import open_model
    from prism_gpu.held import OF_A_MODEL, HeldByPrism

    refused = set(settings) - OF_A_MODEL
    if refused:
        raise UnsupportedError(
            f"{', '.join(sorted(refused))}: not for a model that PRISM holds, which takes "
            f"{', '.join(sorted(OF_A_MODEL))}"
        )
    passed: dict[str, Any] = {**settings}
    session = open_model(path, constants, front_end="prism", **passed)
    return Model(HeldByPrism(session, read_settings(settings)), settings)


def _nothing(_: str) -> None:
    """Print nothing."""
