"""A model that PRISM holds for a session; all of it is called in the one thread that calls Java."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bridge import jvm
from bridge.built import BuiltAsDiagrams, BuiltByPrism, BuiltExplicitly, StateVector, prism_call
from bridge.java_thread import JAVA
from engines.errors import BridgeError
from engines.model.environment import SolverEnvironment
from engines.model.progress import Progress, SweepReport
from engines.model.result import SolveResult
from prism_hooks.answers import SWITCHBOARD
from prism_hooks.backend import EngineBackend
from prism_hooks.options import HookOptions

Constant = bool | int | float | str
NO_VALUES = np.empty(0)

FOREIGN_JVM = (
    "this process has a JVM that prism-gpu did not start, and PRISM is not on its class path: open "
    "the first model before that JVM is started, and use the one that prism-gpu starts "
    "(jpype.addClassPath still adds to its class path), or open models in another process"
)


@dataclass(frozen=True)
class CheckResult:
    """The outcome of a property.

    Parameters
    ----------
    property
        The property's text.
    value
        What PRISM prints as the result: a number, a truth value, or a text, such as ``[0.0,0.5]``
        for the range over several initial states.
    vector
        Shape (states,), float64, int64 or bool: the property's value in every state, which is one
        and the same for a filter that gives a single value; None for a range.
    accuracy
        PRISM's remark on the value's accuracy, such as "+/- 1e-6 estimated"; empty for none.
    error
        The largest absolute error of the value, where PRISM has checked it and knows one.
    proven
        Whether that is a bound; else it is an estimate.
    solves
        What the engines have solved for it, where PRISM has checked it; without values.
    """

    property: str
    value: float | bool | str
    vector: StateVector | None
    accuracy: str
    error: float | None = None
    proven: bool = False
    solves: tuple[SolveResult, ...] = ()


class SessionBackend(EngineBackend):
    """The engines of a session; a solve that nobody waits for any more ends."""

    def __init__(self, options: HookOptions) -> None:
        super().__init__(options)
        self.solves: list[SolveResult] = []
        """What was solved for the property that is being checked."""

    def solve(self, problem: Any) -> None:
        """Solve a `prismgpu.Problem`; see `EngineBackend.solve`."""
        JAVA.stop_if_abandoned()
        super().solve(problem)

    def _progress(self, problem: Any, ending: Any) -> Progress:
        told = super()._progress(problem, ending)

        def follow(report: SweepReport) -> None:
            JAVA.stop_if_abandoned()
            told(report)

        return follow

    def _finish(
        self,
        problem: Any,
        result: SolveResult,
        environment: SolverEnvironment,
        ending: Any,
        lines: Any = None,
    ) -> SolveResult:
        finished = super()._finish(problem, result, environment, ending, lines)
        # Without the arrays: PRISM has the values.
        self.solves.append(replace(finished, values=NO_VALUES, bounds=None, exactly=None))
        return finished


def start_jvm(prism_dir: str | None, max_memory: str | None) -> None:
    """Start the JVM of this process, unless it runs.

    Parameters
    ----------
    prism_dir
        PRISM's folder; None to find it.
    max_memory
        Java's largest heap; None for the default.

    Raises
    ------
    BridgeError
        When PRISM or Java is missing or unusable, or a JVM of the user's has not our classes.
    """
    import jpype

    if not jpype.isJVMStarted():
        JAVA.starts_jvm = True
        try:
            runtime = jvm.find_runtime(prism_dir)
            options = jvm.default_options()
            if max_memory is not None:
                options = replace(options, max_memory=max_memory)
            jvm.start(runtime, options, embedded=True)
            # Its first thread would be waited for when the JVM ends.
            jvm.java_class("java.lang.Thread").detach()
        finally:
            JAVA.starts_jvm = False
    elif max_memory is not None:
        raise BridgeError("this process has a JVM already: its memory cannot be set any more")
    try:
        jvm.java_class("prismgpu.Hooks")
    except TypeError:
        raise BridgeError(FOREIGN_JVM) from None


class OpenedModel:
    """A model from its opening to its end.

    Parameters
    ----------
    path
        The model's file.
    constants
        Values of its open constants.
    options
        What the engines are to use.
    log
        Whether PRISM's log goes to standard output.
    symbolic
        Whether PRISM builds the model as a decision diagram.
    """

    _with_diagrams: ClassVar[OpenedModel | None] = None
    """The open model that is a decision diagram: all of them share PRISM's one library."""

    def __init__(
        self,
        path: Path,
        constants: dict[str, Constant],
        options: HookOptions,
        *,
        log: bool,
        symbolic: bool,
    ) -> None:
        self.path = path
        self._constants = constants
        self._options = options
        self._log, self._symbolic = log, symbolic
        self._backend: SessionBackend | None = None
        self.prism: Any = None
        """PRISM's Java object; None while the model is not open."""
        self._modules: Any = None
        self._built: BuiltByPrism | None = None

    def open(self) -> None:
        """Have PRISM parse and build the model.

        Raises
        ------
        InvalidModelError
            With PRISM's own message.
        BridgeError
            For a second model that is built as a decision diagram.
        """
        other = OpenedModel._with_diagrams
        if self._symbolic and other is not None:
            raise BridgeError(
                f"PRISM holds one model as a decision diagram at a time, and {other.path} is open: "
                "close that session first, or open one of them with symbolic=False"
            )
        self._backend = SessionBackend(self._options)
        SWITCHBOARD.turn_to(self._backend)
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def _build(self) -> None:
        if self._log:
            output = jvm.java_class("prism.PrismFileLog")("stdout")
        else:
            output = jvm.java_class("prism.PrismDevNullLog")()
        prism = self.prism = jvm.java_class("prismgpu.GpuPrism")(output)
        prism.setEngine(prism.SPARSE if self._symbolic else prism.EXPLICIT)
        prism_call(prism.initialise)
        file = jvm.java_class("java.io.File")(str(self.path))
        self._modules = prism_call(prism.parseModelFile, file)
        prism_call(prism.loadPRISMModel, self._modules)
        values = jvm.java_class("prism.UndefinedConstants")(self._modules, None)
        prism_call(values.defineUsingConstSwitch, const_switch(self._constants))
        prism_call(prism.setPRISMModelConstants, values.getMFConstantValues())
        if self._symbolic:
            OpenedModel._with_diagrams = self
        prism_call(prism.buildModel)
        if self._symbolic:
            self._built = BuiltAsDiagrams(jvm.java_class("prismgpu.BuiltDiagrams")(prism))
        else:
            self._built = BuiltExplicitly(jvm.java_class("prismgpu.BuiltModel")(prism))

    def close(self) -> None:
        """Have PRISM and the engines forget the model."""
        if self.prism is not None:
            SWITCHBOARD.turn_to(self._backend)
            self.prism.closeDown(False)
            SWITCHBOARD.turn_to(None)
        if OpenedModel._with_diagrams is self:
            OpenedModel._with_diagrams = None
        self.prism = self._modules = self._built = self._backend = None

    @property
    def built(self) -> BuiltByPrism:
        """What PRISM has built.

        Raises
        ------
        BridgeError
            When the model is closed.
        """
        if self._built is None:
            raise BridgeError("the session is closed")
        SWITCHBOARD.turn_to(self._backend)
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
            prism_call(self.prism.setTermCritParam, epsilon)
        if self.built and max_iterations is not None:
            prism_call(self.prism.setMaxIters, max_iterations)

    def check(self, text: str, constants: Mapping[str, Constant]) -> CheckResult:
        """Check a property; see `bridge.session.Session.check`.

        Parameters
        ----------
        text
            One property.
        constants
            Values of constants that it leaves open.
        """
        built, prism, backend = self.built, self.prism, self._backend
        assert backend is not None, "a model that is open has its engines"
        backend.solves.clear()
        properties = prism_call(prism.parsePropertiesString, prism.getModelInfo(), text)
        count = int(properties.getNumProperties())
        if count != 1:
            raise ValueError(f"one property is wanted, but the text holds {count}")
        prop = properties.getPropertyObject(0)
        values = jvm.java_class("prism.UndefinedConstants")(self._modules, properties, prop)
        switch = const_switch({**self._constants, **constants})
        prism_call(values.defineUsingConstSwitch, switch)
        prism_call(properties.setSomeUndefinedConstants, values.getPFConstantValues())
        # PRISM keeps the values of all states by a filter of its own, and no longer sees the filter
        # below that makes one value of them.
        single = bool(prop.getExpression().returnsSingleValue())
        prism.setStoreVector(not single)
        result = prism_call(prism.modelCheck, properties, prop)
        found = result.getResult()
        value = _python_value(found)
        vector: StateVector | None = None
        if not single:
            vector = built.vector(result.getVector(), str(prop.getType()))
        elif not isinstance(value, str):
            vector = np.full(built.num_states, value)
        accuracy = result.getAccuracy()
        error, proven = (None, False) if accuracy is None else _error(accuracy, found)
        return CheckResult(
            property=text,
            value=value,
            vector=vector,
            accuracy="" if accuracy is None else str(accuracy.toString(found)),
            error=error,
            proven=proven,
            solves=tuple(backend.solves),
        )


def const_switch(constants: Mapping[str, Constant]) -> str:
    """Return constants in the form of PRISM's -const switch.

    Parameters
    ----------
    constants
        Their values.
    """
    texts = {True: "true", False: "false"}
    return ",".join(
        f"{name}={texts[value] if isinstance(value, bool) else value}"
        for name, value in constants.items()
    )


def _error(accuracy: Any, found: Any) -> tuple[float | None, bool]:
    """Return the absolute error of a number, or of a range's ends, and whether it is proven."""
    is_range = isinstance(found, jvm.java_class("prism.Interval"))
    ends = (found.lower, found.upper) if is_range else (found,)
    numbers = [_python_value(end) for end in ends]
    if not all(isinstance(number, float) for number in numbers):
        return None, False
    error = max(float(accuracy.getAbsoluteErrorBound(number)) for number in numbers)
    return error, str(accuracy.getLevel()) in ("EXACT", "BOUNDED")


def _python_value(value: Any) -> float | bool | str:
    text = str(value)
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
