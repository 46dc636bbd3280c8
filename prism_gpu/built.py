"""Models that are built and checked without PRISM."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

import numpy as np

from bridge.check.checker import Checker, CheckResult, SolveRecord
from bridge.check.meaning import Declared, require_meaningful
from bridge.check.opened import values_of_constants, values_of_states
from bridge.check.sources import declared_by, names_of
from bridge.check.truncated import check_between
from bridge.files.checkable import as_file_model, as_umb
from bridge.files.names import TEXT_ENDINGS, UMB_ENDING
from bridge.files.umb import write_umb
from bridge.files.writer import write_model
from bridge.known import require_known
from bridge.language.ast import (
    Expression,
    Filter,
    Identifier,
    Label,
    Parentheses,
    Probability,
    Reward,
)
from bridge.language.dependencies import names_in
from bridge.language.properties_file import (
    ConstantDeclaration,
    PropertiesFile,
    Property,
    parse_properties,
)
from bridge.language.types import type_of_value
from bridge.model import CheckableModel, NamedRewards, StateVector
from engines.arrays import IndexArray, MaskArray
from engines.errors import InvalidModelError, UnsupportedError
from engines.model.environment import SolverEnvironment
from engines.model.events import Kind
from engines.model.explicit import ExplicitModel, RewardStructure
from engines.model.result import SolveResult, Status
from prism_gpu.progress import progress_bar
from prism_gpu.result import Constant, Result, Results
from prism_gpu.settings import Asked


@dataclass(frozen=True)
class BuiltHere:
    """A model that was built without PRISM; see `prism_gpu.backing.Backing`.

    Parameters
    ----------
    checkable
        The model and its names.
    names
        The names that properties cannot declare.
    declared
        What properties may name.
    constants
        The values that were given for its constants.
    """

    checkable: CheckableModel
    names: Mapping[str, str]
    declared: Declared
    constants: Mapping[str, Constant]

    @classmethod
    def of_parts(
        cls,
        plain: ExplicitModel,
        rewards: tuple[NamedRewards, ...],
        variables: Mapping[str, StateVector],
        actions: Sequence[str] | None = None,
        notes: tuple[str, ...] = (),
    ) -> BuiltHere:
        """Return a model that has no text.

        Parameters
        ----------
        plain
            The model without rewards.
        rewards
            Its reward structures.
        variables
            Their values in every state, shape (states,) each.
        actions
            The names of its choices, shape (choices,); None for none.
        notes
            What was done to it, as `prism_gpu.model.Model.notes` tells.

        Raises
        ------
        InvalidModelError
            As `ExplicitModel.check`.
        """
        explicit = replace(plain, rewards=tuple(item.expected for item in rewards)).check()
        names: tuple[str, ...] = ("",)
        indices = None
        if actions is not None:
            names = tuple(dict.fromkeys(("", *actions)))
            codes = {name: number for number, name in enumerate(names)}
            indices = np.array([codes[name] for name in actions], dtype=np.int32)
        model = CheckableModel(
            explicit,
            rewards,
            variables,
            source="matrices",
            notes=notes,
            action_names=names,
            actions=indices,
        )
        return cls(model, names_of(model), declared_by(model), {})

    def save(self, path: Path) -> None:
        """Write the model to a file; see `prism_gpu.model.Model.save`.

        Parameters
        ----------
        path
            The file.
        """
        if path.suffix == UMB_ENDING:
            write_umb(as_umb(self.checkable), path, "gz")
        elif path.suffix in TEXT_ENDINGS:
            write_model(as_file_model(self.checkable), path, combined=path.suffix == ".pexp")
        else:
            known = ", ".join((UMB_ENDING, *TEXT_ENDINGS))
            raise ValueError(f"{path}: models are written to files that end in {known}")

    def close(self) -> None:
        """Do nothing: what is held is NumPy's."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the model as it was read, a line each."""
        return self.checkable.notes

    @property
    def explicit(self) -> ExplicitModel:
        """The model as the engines take it."""
        return self.checkable.model

    @property
    def rewards(self) -> tuple[RewardStructure, ...]:
        """The reward structures.

        Raises
        ------
        InvalidModelError
            For a reward that no engine takes.
        """
        for item in self.checkable.rewards:
            if (fault := item.fault) is not None:
                words = f'rewards "{item.name}": state {fault.state} has reward {fault.value}'
                raise InvalidModelError(fault.words or words)
        return tuple(item.expected for item in self.checkable.rewards)

    @property
    def reward_names(self) -> list[str]:
        """The names of the reward structures."""
        return [item.name for item in self.checkable.rewards]

    @property
    def label_names(self) -> list[str]:
        """The names of the labels."""
        return list(dict.fromkeys((*self.checkable.model.labels, *self.checkable.labels)))

    def label(self, name: str) -> MaskArray:
        """Return the states that have a label, shape (states,).

        Parameters
        ----------
        name
            One of `label_names`.
        """
        return Checker(self.checkable, SolverEnvironment(), log=_nothing).mask(Label(name))

    @property
    def variables(self) -> Mapping[str, StateVector]:
        """The values of the variables in every state, shape (states,) each."""
        return self.checkable.variables

    @property
    def actions(self) -> tuple[tuple[str, ...], IndexArray] | None:
        """The names of actions, and the name's index for each row of the matrix (MDPs)."""
        actions = self.checkable.actions
        if actions is None or len(actions) != self.explicit.matrix.num_rows:
            return None
        return self.checkable.action_names, actions

    def check(
        self, text: str, source: str, constants: Mapping[str, Constant], asked: Asked
    ) -> Results:
        """Check properties; see `prism_gpu.model.Model.check_all`.

        Parameters
        ----------
        text
            The properties.
        source
            The name of their file; empty for none.
        constants
            Values of constants that they leave open.
        asked
            How to check.
        """
        file = parse_properties(text, source, self.names)
        file = self._with_constants(file, constants)
        self._require_names(file)
        require_meaningful(file, self.declared)
        return Results(self._result(item, file, constants, asked) for item in file.properties)

    def _with_constants(
        self, file: PropertiesFile, constants: Mapping[str, Constant]
    ) -> PropertiesFile:
        """Return a list of properties in which constants that have a value are declared."""
        declared = {item.name for item in file.constants}
        used = {name for item in file.properties for name in names_in(item.expression, Identifier)}
        for definition in (*file.labels.values(), *(item.value for item in file.constants)):
            if definition is not None:
                used |= set(names_in(definition, Identifier))
        added = []
        for name, value in constants.items():
            if name in self.checkable.constants:
                raise InvalidModelError(
                    f"{name} is a constant of the model: give it its value when the model is opened"
                )
            if name in self.declared.types:
                raise InvalidModelError(f"{name} is a variable of the model, and no constant")
            if name in declared:
                continue
            if name not in used:
                raise InvalidModelError(f"no property speaks of the constant {name}")
            added.append(ConstantDeclaration(name, type_of_value(value), None))
        return replace(file, constants=(*file.constants, *added))

    def _require_names(self, file: PropertiesFile) -> None:
        """Refuse an unknown label or reward structure, and suggest one that is known."""
        properties = [item.name for item in file.properties if item.name]
        labels = dict.fromkeys(
            ("init", "deadlock", *self.declared.labels, *file.labels, *properties)
        )
        rewards = [name for name in self.declared.rewards if name]
        constants = [item.name for item in file.constants]
        identifiers = [*self.declared.types, *self.declared.formulas, *constants]
        for expression in (*(item.expression for item in file.properties), *file.labels.values()):
            for node in expression.walk():
                if isinstance(node, Label):
                    require_known(node.name, labels, "label", InvalidModelError)
                elif isinstance(node, Identifier):
                    what = "variable or constant without a value"
                    require_known(node.name, identifiers, what, InvalidModelError)
                elif isinstance(node, Reward) and isinstance(node.structure, str):
                    known = ["", *rewards]
                    require_known(node.structure, known, "reward structure", InvalidModelError)

    def _result(
        self,
        item: Property,
        file: PropertiesFile,
        constants: Mapping[str, Constant],
        asked: Asked,
    ) -> Result:
        started = time.perf_counter()
        known = {**self.constants, **constants}
        values = values_of_constants(item, file, self.checkable, known)
        bar = progress_bar(asked.progress)
        checker = Checker(
            self.checkable,
            asked.environment,
            properties=file,
            constants=values,
            log=_nothing,
            progress=bar,
            want_strategy=asked.strategy,
        )
        vector: StateVector | None = None
        try:
            if self.checkable.unexplored is not None:
                bounded = check_between(checker, item.expression)
                value, error, proven = bounded.value, None, bounded.proven
            else:
                found = checker.check(item.expression)
                value, (error, proven) = found.value, _error(found)
                vector = values_of_states(found, item.expression, self.explicit.num_states)
        finally:
            if bar is not None:
                bar.close()
        solves = [record.result for record in checker.records]
        _warn(item.text, solves, asked)
        return Result(
            property=item.text,
            value=value,
            vector=None if vector is None else vector.copy(),
            error=error,
            proven=proven,
            strategy=_strategy(item.expression, checker.records) if asked.strategy else None,
            seconds=time.perf_counter() - started,
            constants=dict(constants),
            **summary(solves),
        )


class Summary(TypedDict):
    """What solves have come to."""

    iterations: int
    device: str
    method: str


def summary(solves: Sequence[SolveResult]) -> Summary:
    """Return iterations, device and methods of the solves of a property.

    Parameters
    ----------
    solves
        All of them.
    """
    longest = max(solves, key=lambda solve: solve.iterations, default=None)
    methods: list[str] = []
    for solve in solves:
        # What a direct method has solved at once, no iterative one has begun.
        swept = [solve.method] if solve.iterations or not solve.finished_by else []
        methods += [*swept, solve.finished_by]
    return {
        "iterations": sum(solve.iterations for solve in solves),
        "device": "CPU" if longest is None else longest.cost.engine,
        "method": " and ".join(dict.fromkeys(filter(None, methods))),
    }


def _error(found: CheckResult) -> tuple[float | None, bool]:
    """Return the absolute error of a value, and whether it is proven."""
    accuracy = found.accuracy
    number = None if accuracy is None else accuracy.less_known(found.value)
    if accuracy is None or number is None:
        return None, False
    error = float(accuracy.errors(np.array([number]))[0])
    return error, bool(accuracy.guaranteed or number in accuracy.decided)


def _warn(text: str, solves: Sequence[SolveResult], asked: Asked) -> None:
    """Warn of values that are less accurate than was asked for."""
    for solve in solves:
        misled = any(event.kind is Kind.CHANGE_MISLEADS for event in solve.events)
        if solve.status is Status.CHANGE_ONLY or misled:
            proven = "a proven" if solve.two_sided else "an estimated"
            warnings.warn(
                f"{text}: {solve.method} has stopped with {proven} error of "
                f"{solve.error_estimate:.2g}, above epsilon = {asked.environment.epsilon:.2g}",
                stacklevel=2,
            )


def _strategy(expression: Expression, records: Sequence[SolveRecord]) -> IndexArray:
    """Return the strategy of a property's outermost operator, whose solve is the last."""
    while isinstance(expression, Parentheses | Filter):
        expression = expression.operand
    # Where the graph has decided the outermost operator, the last solve is that of one within.
    if records and records[-1].text == str(expression):
        strategy = records[-1].result.strategy
        if isinstance(expression, Probability | Reward) and strategy is not None:
            return strategy
    raise UnsupportedError(
        f"{expression}: strategies are known for P and R of a single operator: U, F, G, W or R "
        "of states, without a bound, and F for rewards"
    )


def _nothing(_: str) -> None:
    """Print nothing: the result says it all."""
