"""Properties over ranges of constants."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from math import prod
from os import PathLike
from typing import Any, Unpack, cast

from engines.errors import InvalidModelError
from prism_gpu.model import Model, plain_constants
from prism_gpu.opening import model_path, open_constants
from prism_gpu.opening import open as open_model
from prism_gpu.progress import bar_type, is_shown
from prism_gpu.result import Constant, Result, Results
from prism_gpu.settings import Settings

Ranges = dict[str, list[Constant]]


def sweep(
    model: Model | str | PathLike[str],
    properties: str | Sequence[str],
    constants: Mapping[str, Constant | Iterable[Constant]],
    *,
    front_end: str = "builtin",
    **settings: Unpack[Settings],
) -> Results:
    """Check properties for every combination of values of constants.

    Parameters
    ----------
    model
        A model, of whose properties the constants are; or a model's file, which is opened anew
        for every combination of values of its own constants.
    properties
        A property, or a sequence of properties, as in `Model.check`.
    constants
        A value, or several, for each constant: ``{"N": range(2, 6), "T": [0.5, 1.0]}``. Every
        property is checked for all combinations of the values of its own; of several constants
        the last one varies fastest.
    front_end
        As in `open`, for a file.
    **settings
        How to check; see `Settings`.

    Returns
    -------
    Results
        Each with its `constants`, by model, then by property; ``sweep(…).frame()`` makes a pandas
        DataFrame of them.

    Raises
    ------
    ValueError
        For a constant without values.
    Exception
        As `open` and `Model.check`.

    Examples
    --------
    >>> import prism_gpu as pg
    >>> die = pg.dtmc([[0.5, 0.5], [0, 1]])
    >>> [round(item.value, 3) for item in pg.sweep(die, "P=? [ F<=k x=1 ]", {"k": range(3)})]
    [0.0, 0.5, 0.75]
    """
    if not isinstance(constants, Mapping):
        raise TypeError(f"constants must be given by name, not as {constants!r}")
    if not isinstance(properties, Iterable):
        raise TypeError(f"properties must be a text or a sequence of texts, not {properties!r}")
    texts = [properties] if isinstance(properties, str) else list(properties)
    ranges = {name: _values(name, values) for name, values in constants.items()}
    own = [] if isinstance(model, Model) else open_constants(model_path(model))
    of_model: Ranges = {name: values for name, values in ranges.items() if name in own}
    of_texts = {name: values for name, values in ranges.items() if name not in own}
    for name in of_texts:
        if not any(_mentions(text, name) for text in texts):
            raise InvalidModelError(f"neither the model nor a property has a constant {name}")
    asked = [(text, _of(text, of_texts)) for text in texts]
    points = sum(prod(map(len, its.values())) for _, its in asked)
    results = Results()
    with _bar(points * prod(map(len, of_model.values())), settings) as bar:
        for given in _combinations(of_model):
            for found in _checked(model, given, asked, front_end, settings):
                results.append(found)
                bar.update()
    return results


def _checked(
    model: Model | str | PathLike[str],
    given: Mapping[str, Constant],
    asked: Sequence[tuple[str, Ranges]],
    front_end: str,
    settings: Settings,
) -> Iterator[Result]:
    """Return the results of all properties of a model, one after the other."""
    with ExitStack() as ending:
        if not isinstance(model, Model):
            opened = open_model(model, given, front_end=front_end, **settings)
            model = ending.enter_context(opened)
        for text, ranges in asked:
            for values in _combinations(ranges):
                found = model.check(text, values, **settings)
                yield replace(found, constants=plain_constants({**given, **values}))


def _of(text: str, ranges: Ranges) -> Ranges:
    return {name: values for name, values in ranges.items() if _mentions(text, name)}


def _combinations(ranges: Ranges) -> Iterator[dict[str, Constant]]:
    for values in product(*ranges.values()):
        yield dict(zip(ranges, values, strict=True))


def _mentions(text: str, name: str) -> bool:
    return name in re.findall(r"\w+", text)


def _bar(points: int, settings: Settings) -> Any:
    shown = is_shown(settings.get("progress"))
    return bar_type()(total=points, unit=" points", leave=False, delay=1.0, disable=not shown)


def _values(name: str, values: Any) -> list[Constant]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        # What is no constant, the check refuses.
        return [cast(Constant, values)]
    found = list(values)
    if not found:
        raise ValueError(f"constant {name} has no values")
    return found
