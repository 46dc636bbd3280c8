"""A model that is open for a session without PRISM: built and checked here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bridge.check.checker import Checker
from bridge.check.checker import CheckResult as CheckedProperty
from bridge.check.experiment import model_experiment, property_experiment
from bridge.check.filters import has_one_value
from bridge.check.meaning import require_meaningful
from bridge.check.outcome import everywhere
from bridge.check.sources import TextSource
from bridge.check.switches import read_switches
from bridge.language.ast import Expression, Value
from bridge.language.properties_file import PropertiesFile, Property, parse_properties
from bridge.language.text import value_text
from bridge.model import CheckableModel, StateVector
from bridge.opened import CheckResult, Constant, const_switch
from bridge.refusals import require_gpu
from engines.arrays import MaskArray
from engines.errors import BridgeError, InvalidModelError
from engines.model.environment import BuildingPlace, DeviceChoice
from engines.model.explicit import ExplicitModel
from prism_hooks.options import HookOptions


@dataclass(frozen=True)
class BuiltHere:
    """A model that was built without PRISM; see `bridge.built.Built`."""

    checkable: CheckableModel

    @property
    def num_states(self) -> int:
        """Number of states."""
        return self.checkable.model.num_states

    def model(self) -> ExplicitModel:
        """Return its arrays.

        Raises
        ------
        InvalidModelError
            For a reward that no engine takes.
        """
        for item in self.checkable.rewards:
            if item.fault is not None:
                raise InvalidModelError(item.fault.words)
        rewards = tuple(item.expected for item in self.checkable.rewards)
        return replace(self.checkable.model, labels={}, rewards=rewards).check()

    def label_names(self) -> list[str]:
        """Return the names of its labels, "init" and "deadlock" first."""
        return list(self.checkable.model.labels)

    def label(self, name: str) -> MaskArray:
        """Return the states that have a label; see `bridge.built.Built.label`."""
        return self.checkable.model.labels[name]


class ModelOpenedHere:
    """A model from its opening to its end, without PRISM.

    Parameters
    ----------
    path
        The model's file.
    constants
        Values of its open constants.
    options
        What the engines are to use.
    log
        Whether the report goes to standard output.
    """

    def __init__(
        self, path: Path, constants: dict[str, Constant], options: HookOptions, *, log: bool
    ) -> None:
        self.path = path
        self._constants, self._options = constants, options
        self._log: Callable[[str], None] = print if log else _nothing
        self._environment = read_switches((), options).environment
        place = BuildingPlace(options.device, options.device_number, options.device_memory)
        self._source = TextSource(path, fix_deadlocks=True, place=place)
        self._built: BuiltHere | None = None

    def open(self) -> None:
        """Parse and build the model.

        Raises
        ------
        InvalidModelError
            With PRISM's words, when the model has a fault or a constant has no value.
        UnsupportedError
            For what is not built without PRISM.
        BridgeError
            When the GPU that was asked for is missing.
        """
        if self._options.device is DeviceChoice.GPU:
            require_gpu(self._options.device_number)
        experiment = model_experiment(self._source.constants, const_switch(self._constants))
        given = list(experiment.assignments())
        if len(given) != 1:
            raise ValueError("a session is about one model: give each constant one value")
        model = self._source.build(given[0], self._log)
        for note in model.notes:
            self._log(f"\nWarning: {note}")
        self._built = BuiltHere(model)

    def close(self) -> None:
        """Forget the model."""
        self._built = None

    @property
    def built(self) -> BuiltHere:
        """What was built.

        Raises
        ------
        BridgeError
            When the model is closed.
        """
        if self._built is None:
            raise BridgeError("the session is closed")
        return self._built

    def set_termination(self, epsilon: float | None, max_iterations: int | None) -> None:
        """Set what the switches -epsilon and -maxiters set; None leaves a setting as it is.

        Parameters
        ----------
        epsilon
            Convergence threshold.
        max_iterations
            The most sweeps of a solve.
        """
        if self.built and epsilon is not None:
            self._environment = replace(self._environment, epsilon=epsilon)
        if self.built and max_iterations is not None:
            self._environment = replace(self._environment, max_iterations=max_iterations)

    def check(self, text: str, constants: Mapping[str, Constant]) -> CheckResult:
        """Check a property; see `bridge.session.Session.check`.

        Parameters
        ----------
        text
            One property.
        constants
            Values of constants that it leaves open.
        """
        model = self.built.checkable
        properties = parse_properties(text, "", self._source.names)
        require_meaningful(properties, self._source.declared)
        if len(properties.properties) != 1:
            count = len(properties.properties)
            raise ValueError(f"one property is wanted, but the text holds {count}")
        (asked,) = properties.properties
        given = {**self._constants, **constants}
        checker = Checker(
            model,
            self._environment,
            properties=properties,
            constants=values_of_constants(asked, properties, model, given),
            log=self._log,
        )
        result = checker.check(asked.expression)
        value = result.value
        return CheckResult(
            property=text,
            value=value_text(value) if isinstance(value, tuple) else value,
            vector=values_of_states(result, asked.expression, model.model.num_states),
            accuracy=result.remark,
        )


def values_of_constants(
    asked: Property,
    properties: PropertiesFile,
    model: CheckableModel,
    given: Mapping[str, Constant],
) -> dict[str, Value]:
    """Return the values of the constants that a property needs.

    Parameters
    ----------
    asked
        The property.
    properties
        The list that it is from.
    model
        The model that it is about.
    given
        Values of constants; those of other names are passed over.

    Raises
    ------
    InvalidModelError
        With PRISM's words, for a constant without a value or with a wrong one.
    ValueError
        For several values of a constant.
    """
    experiment = property_experiment(asked, properties, const_switch(given))
    assignments = list(experiment.assignments())
    if len(assignments) != 1:
        raise ValueError("a check has one result: give each constant one value")
    return experiment.values(model.constants, assignments[0])


def values_of_states(
    result: CheckedProperty, expression: Expression, num_states: int
) -> StateVector | None:
    """Return a property's value in every state, shape (states,); None for a range of values.

    Parameters
    ----------
    result
        What a checker has found.
    expression
        The property.
    num_states
        How many states the model has.
    """
    if not has_one_value(expression):
        return result.vector
    return None if isinstance(result.value, tuple) else everywhere(result.value, num_states)


def _nothing(_: str) -> None:
    """Print nothing."""
