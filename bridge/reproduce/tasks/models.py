"""Models as arrays, built by PRISM or by the embedded front end."""

from __future__ import annotations

import tempfile
from functools import lru_cache
from pathlib import Path

from bridge.reproduce.families import FAMILIES
from engines.model.explicit import ExplicitModel


@lru_cache(maxsize=2)
def built(family: str, size: int, front_end: str) -> ExplicitModel:
    """Return the model of a family, after a look at its states and transitions.

    Parameters
    ----------
    family, size
        Which model.
    front_end
        "prism" or "builtin".

    Raises
    ------
    ValueError
        If it has other states or transitions than are known of it.
    """
    with tempfile.TemporaryDirectory(prefix="prism-gpu-") as folder:
        path, constants = FAMILIES[family].model(size, Path(folder))
        model = _build(path, constants, front_end)
    counts = FAMILIES[family].counts(size)
    found = model.num_states, model.matrix.num_entries
    if counts is not None and found != counts:
        raise ValueError(
            f"{family} {size} has {found[0]:,} states and {found[1]:,} transitions; "
            f"{counts[0]:,} and {counts[1]:,} were expected"
        )
    return model


def _build(path: Path, constants: dict[str, int], front_end: str) -> ExplicitModel:
    if front_end == "prism":
        import bridge

        with bridge.open(path, constants, device="cpu", symbolic=True) as session:
            return session.model
    from bridge.check.explored import explored_model

    text = path.read_text(encoding="utf-8")
    return explored_model(text, str(path), constants, log=lambda _: None).model
