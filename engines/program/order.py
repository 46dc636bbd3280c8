"""The choices of a state in PRISM's order, whoever evaluates them.

Source: `simulator.Updater.calculateTransitions` of PRISM. First come the commands without an
action, module by module; then action by action the combinations of one enabled command a module.
Of the combinations the commands of the first module change fastest, and so do, within a
combination, the updates of the first module's command.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engines.program.program import Program


@dataclass(frozen=True)
class Alternatives:
    """Choices under one action, or those of one module without an action.

    Parameters
    ----------
    action
        Index of the action; None for none.
    factors
        For each module that takes part, in order, the numbers of its commands among those of the
        whole program. A choice is one enabled command of each.
    """

    action: int | None
    factors: tuple[tuple[int, ...], ...]


def alternatives(program: Program) -> tuple[Alternatives, ...]:
    """Return the choices that a state may have, in PRISM's order.

    Actions that some module blocks for good are left out.

    Parameters
    ----------
    program
        The model.
    """
    by_module: list[dict[int | None, list[int]]] = [{} for _ in program.modules]
    for number, (module, _, command) in enumerate(program.commands()):
        by_module[module].setdefault(command.action, []).append(number)
    found = [Alternatives(None, (tuple(own[None]),)) for own in by_module if None in own]
    for action, modules in enumerate(program.synchronising):
        factors = tuple(tuple(by_module[module].get(action, ())) for module in modules)
        if factors and all(factors):
            found.append(Alternatives(action, factors))
    return tuple(found)


def combinations(factors: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """Yield one item of each factor, that of the first changing fastest.

    Parameters
    ----------
    factors
        What there is to choose from.
    """
    if not factors:
        yield ()
        return
    for last in factors[-1]:
        for others in combinations(factors[:-1]):
            yield (*others, last)
