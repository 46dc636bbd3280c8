"""The Python API: a model of PRISM's, opened, read as arrays and checked."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar

from bridge import jvm
from bridge.built import Built, BuiltAsDiagrams, BuiltExplicitly, prism_call
from engines.environment import DeviceChoice
from engines.errors import BridgeError, InvalidModelError
from engines.formats.csr import FloatArray, IndexArray, MaskArray
from engines.model import ExplicitModel, ModelKind, RewardStructure
from prism_hooks.options import HookOptions

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Constant = bool | int | float | str
_lock = threading.Lock()


@dataclass(frozen=True)
class CheckResult:
    """The outcome of a property.

    Parameters
    ----------
    property
        The property's text.
    value
        What PRISM prints as the result: a number, a truth value, or a text.
    vector
        Shape (states,), float64 or bool: the property's value in every state; None where PRISM
        keeps none.
    accuracy
        PRISM's remark on the value's accuracy, such as "+/- 1e-6 estimated"; empty for none.
    """

    property: str
    value: float | bool | str
    vector: FloatArray | MaskArray | None
    accuracy: str


class Labels(Mapping[str, MaskArray]):
    """A model's labels: boolean masks over the states, each computed when first asked for."""

    def __init__(self, built: Built) -> None:
        self._built = built
        self._names = built.label_names()
        self._masks: dict[str, MaskArray] = {}

    def __getitem__(self, name: str) -> MaskArray:
        if name not in self._names:
            raise KeyError(f"no label {name!r}; the model has {', '.join(self._names)}")
        if name not in self._masks:
            self._masks[name] = self._built.label(name)
        return self._masks[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def open_model(
    model: str | PathLike[str],
    constants: Mapping[str, Constant] | None = None,
    *,
    epsilon: float | None = None,
    max_iterations: int | None = None,
    device: str = "auto",
    device_number: int = 0,
    prism_dir: str | None = None,
    java_max_memory: str | None = None,
    log: bool = False,
    symbolic: bool = False,
) -> Session:
    """Open a PRISM model and build it.

    Parameters
    ----------
    model
        The model's file, in the PRISM language.
    constants
        Values of the constants that the model leaves open.
    epsilon, max_iterations
        What the switches -epsilon and -maxiters set; PRISM's defaults if None.
    device
        "auto", "cpu" or "gpu".
    device_number
        Which of several GPUs.
    prism_dir
        PRISM's folder; found as the command does by default.
    java_max_memory
        Java's largest heap, such as "8g"; only the first session of a process can set it.
    log
        Whether PRISM's log goes to standard output.
    symbolic
        Whether PRISM builds the model as a decision diagram, which is faster for most large ones;
        else as arrays, by its explicit engine. States have the same numbers, an MDP's choices may
        not.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    InvalidModelError
        With PRISM's own message, when the model has a fault or a constant has no value.
    BridgeError
        When PRISM or Java is missing or unusable, or for a second model that is built as a
        decision diagram while the first is open.
    """
    path = Path(model)
    if not path.is_file():
        raise FileNotFoundError(f"no model {path}")
    options = HookOptions(
        device=DeviceChoice(device),
        device_number=device_number,
        max_iterations_named=max_iterations is not None,
    )
    _start_jvm(options, prism_dir, java_max_memory)
    session = Session(path, dict(constants or {}), log=log, symbolic=symbolic)
    session.set_termination(epsilon, max_iterations)
    return session


def _start_jvm(options: HookOptions, prism_dir: str | None, max_memory: str | None) -> None:
    import jpype

    with _lock:
        if not jpype.isJVMStarted():
            runtime = jvm.find_runtime(prism_dir)
            jvm_options = jvm.default_options()
            if max_memory is not None:
                jvm_options = replace(jvm_options, max_memory=max_memory)
            jvm.start(runtime, jvm_options)
        elif max_memory is not None:
            raise BridgeError("this process has a JVM already: its memory cannot be set any more")
        jvm.install_engines(options)


class Session:
    """A built model, to be read as arrays and checked; a context manager.

    Parameters
    ----------
    path
        The model's file.
    constants
        Values of its open constants.
    log
        Whether PRISM's log goes to standard output.
    symbolic
        Whether PRISM builds the model as a decision diagram.
    """

    _with_diagrams: ClassVar[weakref.ref[Session] | None] = None
    """The open session whose model is a decision diagram: all of them share PRISM's one library."""

    def __init__(
        self, path: Path, constants: dict[str, Constant], *, log: bool, symbolic: bool = False
    ) -> None:
        self.path: Path = path
        other = None if Session._with_diagrams is None else Session._with_diagrams()
        if symbolic and other is not None:
            raise BridgeError(
                f"PRISM holds one model as a decision diagram at a time, and {other.path} is open: "
                "close that session first, or open one of them with symbolic=False"
            )
        self.constants = constants
        file = jvm.java_class("java.io.File")(str(path))
        if log:
            output = jvm.java_class("prism.PrismFileLog")("stdout")
        else:
            output = jvm.java_class("prism.PrismDevNullLog")()
        self._prism = jvm.java_class("prismgpu.GpuPrism")(output)
        prism = self._prism
        prism.setEngine(prism.SPARSE if symbolic else prism.EXPLICIT)
        prism_call(prism.initialise)
        self._modules = prism_call(prism.parseModelFile, file)
        prism_call(prism.loadPRISMModel, self._modules)
        values = jvm.java_class("prism.UndefinedConstants")(self._modules, None)
        prism_call(values.defineUsingConstSwitch, _const_switch(constants))
        prism_call(prism.setPRISMModelConstants, values.getMFConstantValues())
        prism.setStoreVector(True)
        prism_call(prism.buildModel)
        self._built: Built
        if symbolic:
            Session._with_diagrams = weakref.ref(self)
            self._built = BuiltAsDiagrams(jvm.java_class("prismgpu.BuiltDiagrams")(prism))
        else:
            self._built = BuiltExplicitly(jvm.java_class("prismgpu.BuiltModel")(prism))

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let PRISM forget the model."""
        if Session._with_diagrams is not None and Session._with_diagrams() is self:
            Session._with_diagrams = None
        if self._prism is not None:
            self._prism.closeDown(False)
            self._prism = None

    def set_termination(
        self, epsilon: float | None = None, max_iterations: int | None = None
    ) -> None:
        """Set what the switches -epsilon and -maxiters set; None leaves a setting as it is.

        Parameters
        ----------
        epsilon
            Convergence threshold.
        max_iterations
            The most sweeps of a solve.
        """
        if epsilon is not None:
            prism_call(self._prism.setTermCritParam, float(epsilon))
        if max_iterations is not None:
            prism_call(self._prism.setMaxIters, int(max_iterations))

    @cached_property
    def model(self) -> ExplicitModel:
        """The model as the engines take it; its arrays are copied from PRISM once."""
        return self._built.model()

    @property
    def kind(self) -> ModelKind:
        """DTMC, CTMC or MDP."""
        return self.model.kind

    @property
    def num_states(self) -> int:
        """Number of states."""
        return self.model.num_states

    @property
    def initial_states(self) -> MaskArray:
        """The initial states, shape (states,)."""
        assert self.model.initial_states is not None
        return self.model.initial_states

    @cached_property
    def labels(self) -> Labels:
        """The labels, "init" and "deadlock" among them, as boolean masks."""
        return Labels(self._built)

    @cached_property
    def rewards(self) -> dict[str, RewardStructure]:
        """The reward structures by name; one without a name goes by its number, from "1" on."""
        structures = self.model.rewards
        return {item.name or str(i): item for i, item in enumerate(structures, start=1)}

    @cached_property
    def rate_matrix(self) -> csr_array:
        """The rates of a CTMC, shape (states, states).

        Raises
        ------
        InvalidModelError
            For a DTMC or an MDP, which have no rates.
        """
        if self.kind is not ModelKind.CTMC:
            raise InvalidModelError(f"a {self.kind} has no rates; see transition_matrix")
        return self._sparse(self.model.matrix.values)

    @cached_property
    def transition_matrix(self) -> csr_array:
        """The transition probabilities: a row a state, or for MDPs a row a choice.

        For a CTMC they are those of its embedded chain; absorbing states have empty rows.
        """
        if self.kind is ModelKind.CTMC:
            from prism_hooks.backend import embedded_chain

            return self._sparse(embedded_chain(self.model).matrix.values)
        return self._sparse(self.model.matrix.values)

    @property
    def row_group_offsets(self) -> IndexArray | None:
        """MDPs: where each state's rows of the transition matrix start, shape (states + 1,)."""
        return self.model.row_group_offsets

    def _sparse(self, values: FloatArray) -> csr_array:
        from scipy.sparse import csr_array

        matrix = self.model.matrix
        shape = (matrix.num_rows, matrix.num_columns)
        return csr_array((values, matrix.columns, matrix.row_offsets), shape=shape)

    def check(
        self, property_text: str, constants: Mapping[str, Constant] | None = None
    ) -> CheckResult:
        """Check a property of the model.

        Parameters
        ----------
        property_text
            One property in PRISM's language.
        constants
            Values of constants that the text declares and leaves open.

        Raises
        ------
        InvalidModelError
            With PRISM's own message, when the property cannot be parsed or checked.
        ValueError
            When the text holds no property, or several.
        """
        prism = self._prism
        if prism is None:
            raise BridgeError("the session is closed")
        info = prism.getModelInfo()
        properties = prism_call(prism.parsePropertiesString, info, property_text)
        count = int(properties.getNumProperties())
        if count != 1:
            raise ValueError(f"one property is wanted, but the text holds {count}")
        prop = properties.getPropertyObject(0)
        constant_values = jvm.java_class("prism.UndefinedConstants")(
            self._modules, properties, prop
        )
        prism_call(
            constant_values.defineUsingConstSwitch,
            _const_switch({**self.constants, **(constants or {})}),
        )
        prism_call(properties.setSomeUndefinedConstants, constant_values.getPFConstantValues())
        result = prism_call(prism.modelCheck, properties, prop)
        accuracy = result.getAccuracy()
        values = result.getVector()
        boolean = str(prop.getType()) == "bool"
        return CheckResult(
            property=property_text,
            value=_python_value(result.getResult()),
            vector=None if values is None else self._built.vector(values, boolean=boolean),
            accuracy="" if accuracy is None else str(accuracy.toString(result.getResult())),
        )


def _const_switch(constants: Mapping[str, Constant]) -> str:
    """Return constants in the form of PRISM's -const switch."""
    texts = {True: "true", False: "false"}
    return ",".join(
        f"{name}={texts[value] if isinstance(value, bool) else value}"
        for name, value in constants.items()
    )


def _python_value(value: Any) -> float | bool | str:
    text = str(value)
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text)
    except ValueError:
        return text
