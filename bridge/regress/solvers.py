"""The engines that are compared: PRISM's own, ours, and those that arbitrate."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.own_switches import UsageError


@dataclass(frozen=True)
class Solver:
    """An engine, and what names it on a command line.

    Parameters
    ----------
    name
        As it is shown, and named by ``--engines`` or ``--ours``.
    words
        The switches that choose it.
    ours
        Whether it is ours; else PRISM is left untouched.
    peer
        For ours: PRISM's engine with the same code around the solves.
    replaced
        Switches of the command line whose place `words` take.
    """

    name: str
    words: tuple[str, ...]
    ours: bool = False
    peer: str = ""
    replaced: frozenset[str] = frozenset()

    @property
    def exact(self) -> bool:
        """Whether its values are fractions, free of rounding."""
        return self.name == EXACT


EXACT = "exact"
PRISM_ENGINES = {
    name: Solver(name, (f"-{name}",)) for name in ("explicit", "sparse", "hybrid", "mtbdd", EXACT)
}
_DEVICES = {"cpu": "-nogpu", "gpu": "-gpu"}
_DEFAULT_PEER = "explicit"
OUR_ENGINES = {
    **{name: Solver(name, (word,), True, _DEFAULT_PEER) for name, word in _DEVICES.items()},
    **{
        f"{name}:{engine}": Solver(f"{name}:{engine}", (word, f"-{engine}"), True, engine)
        for name, word in _DEVICES.items()
        for engine in ("explicit", "sparse", "hybrid")
    },
}
DEFAULT_ENGINES = ("explicit", "sparse", "hybrid", EXACT)
DEFAULT_OURS = ("cpu", "cpu:sparse")
DEFAULT_OURS_ON_GPU = ("gpu", "gpu:sparse")

_TERMINATION = frozenset(
    {*("epsilon", "e", "maxiters", "absolute", "abs", "relative", "rel", "ii"), "topological"}
)
_MANY_SWEEPS = ("-maxiters", "10000000")
_BOUNDS = ("-ii", "-epsilon", "1e-08", *_MANY_SWEEPS)
BOUNDS = Solver("bounds", ("-nogpu", "-explicit", *_BOUNDS), True, "explicit", _TERMINATION)
"""Our bounds from both sides, which hold whatever the model."""
BOUNDS_OF_DIAGRAMS = Solver(
    "bounds:sparse", ("-nogpu", "-sparse", *_BOUNDS), True, "sparse", _TERMINATION
)
"""Our bounds from both sides, of models, products and sets that symbolic engines of PRISM build."""


def tight(engine: str = "explicit", *, continuous_time: bool) -> Solver:
    """Return an engine of PRISM's with a threshold far below the usual: not sound, but not ours.

    Parameters
    ----------
    engine
        Its explicit or its sparse engine.
    continuous_time
        Whether the models are CTMCs.
    """
    # PRISM's Fox-Glynn method refuses a threshold below 8e-10.
    epsilon = 1e-9 if continuous_time else 1e-12
    words = (f"-{engine}", "-epsilon", f"{epsilon:g}", *_MANY_SWEEPS)
    name = "tight" if engine == "explicit" else f"tight:{engine}"
    return Solver(name, words, replaced=_TERMINATION)


def named(text: str, known: dict[str, Solver], option: str) -> tuple[Solver, ...]:
    """Return the solvers that an option names.

    Parameters
    ----------
    text
        Names with commas between.
    known
        By name.
    option
        The option, for the message.

    Raises
    ------
    UsageError
        For a name that is unknown, or given twice; or for none.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        what = f'"{unknown[0]}" is no engine' if unknown else "no engine is named"
        raise UsageError(f"{option}: {what}; there are {', '.join(known)}")
    if len(set(names)) < len(names):
        raise UsageError(f"{option}: an engine is named twice in {text}")
    return tuple(known[name] for name in names)
