"""Commands whose probabilities or rates make no sense, found when a model cannot be built.

PRISM looks at all states that a guard holds in, whether a path reaches them or not; so does this,
over the values of the variables that a command mentions. The messages are PRISM's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from bridge.language.ast import Expression, Identifier, Value
from bridge.language.constants import constant_value
from bridge.language.evaluate import Scope, evaluate
from bridge.language.model_outline import ModelOutline
from bridge.language.modules import Command, Update, VariableDeclaration
from bridge.language.types import InvalidNodeError
from bridge.model import StateVector
from engines.arrays import FloatArray, MaskArray
from engines.errors import InvalidModelError

_TOLERANCE = 1e-5
_GUARD = "Perhaps the guard needs to be strengthened"
_RANGES = (
    "Perhaps some of the updates give out-of-range values. "
    "One possible solution is to strengthen the guard"
)


def command_fault(model: ModelOutline, constants: Mapping[str, Value]) -> InvalidModelError | None:
    """Return PRISM's error about the first command with a fault, or None.

    Parameters
    ----------
    model
        The model.
    constants
        The values of its constants.
    """
    finder = _Finder(model, constants)
    for module in model.resolved:
        for number, command in enumerate(module.commands, start=1):
            try:
                fault = finder.fault(command, f'in command {number} of module "{module.name}"')
            except InvalidNodeError as error:
                return error.placed()
            if fault is not None:
                line, column = command.place
                return InvalidModelError(f"{fault} (line {line}, column {column})")
    return None


class _Finder:
    def __init__(self, model: ModelOutline, constants: Mapping[str, Value]) -> None:
        self._model, self._constants = model, constants
        self._variables = {item.name.name: item for item in model.declared_variables}
        self._of_rates = model.kind == "ctmc"

    def fault(self, command: Command, where: str) -> str | None:
        """Return what PRISM says of a command, without its place."""
        names = self._mentioned(command)
        sizes = [len(self._values(self._variables[name])) for name in names]
        if math.prod(sizes) > 1 << 20:
            # So many combinations of values are not tried.
            return None
        scope = self._scope(names)
        holds = np.broadcast_to(np.asarray(evaluate(command.guard, scope)), scope.num_states)
        scope = Scope(
            int(np.count_nonzero(holds)),
            {name: column[holds] for name, column in scope.variables.items()},
            self._constants,
            self._model.formulas,
        )
        weights = [self._weight(update, scope) for update in command.updates]
        inside = [self._inside(update, scope) for update in command.updates]
        return self._judged(np.array(weights), np.array(inside), where)

    def _judged(self, weights: FloatArray, inside: MaskArray, where: str) -> str | None:
        what = "Rates" if self._of_rates else "Probabilities"
        if weights.size == 0:
            return None
        if np.any(weights < 0):
            return f"{what} {where} are negative ({weights.min()}) for some states.\n{_GUARD}"
        sums = np.where(inside, weights, 0.0).sum(axis=0)
        if np.isnan(sums).any():
            zeros = "Check for zeros in divide or modulo operations. "
            return f"{what} {where} have errors (NaN) for some states. {zeros}{_GUARD}"
        least, largest = float(sums.min()), float(sums.max())
        if self._of_rates:
            if least <= 0:
                return f"{what} {where} sum to zero for some states. {_RANGES}"
            if math.isinf(largest):
                return f"{what} {where} sum to infinity for some states. {_GUARD}"
        elif least < 1 - _TOLERANCE:
            return f"{what} {where} sum to less than one (e.g. {least}) for some states. {_RANGES}"
        elif largest > 1 + _TOLERANCE:
            return f"{what} {where} sum to more than one (e.g. {largest}) for some states. {_GUARD}"
        return None

    def _mentioned(self, command: Command) -> list[str]:
        """Return the variables that decide on a command's probabilities, in the model's order."""
        waiting: list[Expression] = [command.guard]
        for update in command.updates:
            waiting += [item.value for item in update.assignments]
            if update.weight is not None:
                waiting.append(update.weight)
        met: set[str] = set()
        while waiting:
            for node in waiting.pop().walk():
                if isinstance(node, Identifier) and node.name not in met:
                    met.add(node.name)
                    if node.name in self._model.formulas:
                        waiting.append(self._model.formulas[node.name])
        return [name for name in self._variables if name in met]

    def _limits(self, variable: VariableDeclaration) -> tuple[int, int] | None:
        """Return the bounds of a variable's values, or None where it has none."""
        if variable.type == "bool":
            return 0, 1
        if variable.low is None or variable.high is None:
            return None
        low, high = (
            constant_value(bound, self._constants, self._model.formulas)
            for bound in (variable.low, variable.high)
        )
        return int(low), int(high)

    def _values(self, variable: VariableDeclaration) -> range:
        limits = self._limits(variable)
        return range(2**31) if limits is None else range(limits[0], limits[1] + 1)

    def _scope(self, names: list[str]) -> Scope:
        declared = [self._variables[name] for name in names]
        axes = [
            np.array(self._values(item), dtype=bool if item.type == "bool" else np.int64)
            for item in declared
        ]
        grids = [grid.ravel() for grid in np.meshgrid(*axes, indexing="ij")]
        states = len(grids[0]) if grids else 1
        columns: dict[str, StateVector] = dict(zip(names, grids, strict=True))
        return Scope(states, columns, self._constants, self._model.formulas)

    def _weight(self, update: Update, scope: Scope) -> FloatArray:
        value = 1.0 if update.weight is None else evaluate(update.weight, scope)
        return np.broadcast_to(np.asarray(value, dtype=np.float64), scope.num_states)

    def _inside(self, update: Update, scope: Scope) -> MaskArray:
        """Return where no variable leaves its range."""
        inside: MaskArray = np.ones(scope.num_states, dtype=bool)
        for item in update.assignments:
            limits = self._limits(self._variables[item.variable.name])
            if limits is not None:
                value = np.asarray(evaluate(item.value, scope))
                inside &= (value >= limits[0]) & (value <= limits[1])
        return inside
