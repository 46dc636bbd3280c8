"""The Python API: a model in PRISM's language, opened, read as arrays and checked."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TypeVar

from bridge.built import Built
from bridge.install import find_prism
from bridge.java_thread import JAVA, jvm_runs
from bridge.opened import CheckResult, Constant, OpenedModel, start_jvm
from bridge.versions import NoPrismError
from bridge.views import Labels, rate_matrix, rewards_by_name, transition_matrix
from engines.arrays import IndexArray, MaskArray
from engines.model.environment import DeviceChoice
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from prism_hooks.options import HookOptions

if TYPE_CHECKING:
    from scipy.sparse import csr_array

T = TypeVar("T")

__all__ = ["CheckResult", "Labels", "Session", "open_model"]


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
    front_end: str | None = None,
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
        not. Without PRISM the arrays are those of its explicit engine.
    front_end
        "prism", or "builtin" for models to be built and checked without PRISM; PRISM where it is
        there if None.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    InvalidModelError
        With PRISM's own message, when the model has a fault or a constant has no value.
    BridgeError
        When the PRISM that was named or Java is missing or unusable, or for a second model that is
        built as a decision diagram while the first is open.
    UnsupportedError
        For models that are not built without PRISM.
    """
    path = Path(model)
    if not path.is_file():
        raise FileNotFoundError(f"no model {path}")
    options = HookOptions(
        device=DeviceChoice(device),
        device_number=device_number,
        max_iterations_named=max_iterations is not None,
    )
    _require_termination(epsilon, max_iterations)
    given = dict(constants or {})
    if _goes_without_prism(front_end, prism_dir):
        from bridge.check.opened import ModelOpenedHere

        session = Session(path, given, ModelOpenedHere(path, given, options, log=log), OneByOne())
    else:
        JAVA.run(partial(start_jvm, prism_dir, java_max_memory))
        opened = OpenedModel(path, given, options, log=log, symbolic=symbolic)
        session = Session(path, given, opened, JAVA)
    session.set_termination(epsilon, max_iterations)
    return session


def _goes_without_prism(front_end: str | None, prism_dir: str | None) -> bool:
    if front_end not in (None, "prism", "builtin"):
        raise ValueError(f"front_end must be prism or builtin, not {front_end}")
    if front_end is not None or jvm_runs():
        return front_end == "builtin"
    try:
        find_prism(prism_dir)
    except NoPrismError:
        return True
    return False


def _require_termination(epsilon: float | None, max_iterations: int | None) -> None:
    if epsilon is not None and not 0.0 <= epsilon < math.inf:
        raise ValueError(f"epsilon must be a number that is not negative, not {epsilon}")
    if max_iterations is not None and not 0 <= int(max_iterations) < 1 << 31:
        raise ValueError(f"max_iterations must be from 0 to 2147483647, not {max_iterations}")


class Opened(Protocol):
    """A model from its opening to its end."""

    def open(self) -> None:
        """Parse and build the model."""

    def close(self) -> None:
        """Forget the model."""

    @property
    def built(self) -> Built:
        """What was built; raises BridgeError when the model is closed."""

    def set_termination(self, epsilon: float | None, max_iterations: int | None) -> None:
        """Set what the switches -epsilon and -maxiters set; None leaves a setting as it is."""

    def check(self, text: str, constants: Mapping[str, Constant]) -> CheckResult:
        """Check a property; see `Session.check`."""


class Worker(Protocol):
    """Does one piece of work after the other."""

    @property
    def usable(self) -> bool:
        """Whether work is still done in this process."""

    def run(self, work: Callable[[], T]) -> T:
        """Return what some work gives."""

    def later(self, work: Callable[[], object]) -> None:
        """Have work done when its turn comes, and wait for nothing."""


class OneByOne:
    """Does each piece of work in the thread that asks for it, one at a time."""

    usable = True

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def run(self, work: Callable[[], T]) -> T:
        """Return what some work gives; see `Worker.run`."""
        with self._lock:
            return work()

    def later(self, work: Callable[[], object]) -> None:
        """Do quick work at once; see `Worker.later`."""
        work()


class Session:
    """A built model, to be read as arrays and checked; a context manager.

    Several threads may use one session, and one process several sessions: what they ask is
    answered one after the other.

    Parameters
    ----------
    path
        The model's file.
    constants
        Values of its open constants.
    opened
        The model, to be opened.
    worker
        Does what is asked of the model.
    """

    def __init__(
        self, path: Path, constants: dict[str, Constant], opened: Opened, worker: Worker
    ) -> None:
        self.path: Path = path
        self.constants = constants
        self._label_masks: dict[str, MaskArray] = {}
        self._opened, self._worker = opened, worker
        # A session that is dropped is closed as well.
        self._end = weakref.finalize(self, worker.later, opened.close)
        self._end.atexit = False
        worker.run(opened.open)

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
        """Forget the model; arrays that were read stay."""
        if self._end.detach() is not None and self._worker.usable:
            self._worker.run(self._opened.close)

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

        Raises
        ------
        ValueError
            For a number that is negative, infinite or none.
        """
        _require_termination(epsilon, max_iterations)
        self._worker.run(partial(self._opened.set_termination, epsilon, max_iterations))

    def _read(self, what: Callable[[Built], T]) -> T:
        return self._worker.run(lambda: what(self._opened.built))

    @property
    def _built(self) -> Built:
        return self._opened.built

    @cached_property
    def model(self) -> ExplicitModel:
        """The model as the engines take it; PRISM's arrays are copied once."""
        return self._read(lambda built: built.model())

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

    @property
    def labels(self) -> Labels:
        """The labels, "init" and "deadlock" among them, as boolean masks."""
        return Labels(self.label_names, self.label_mask)

    @cached_property
    def label_names(self) -> list[str]:
        """The names of the labels, "init" and "deadlock" first."""
        return self._read(lambda built: built.label_names())

    def label_mask(self, name: str) -> MaskArray:
        """Return the states that have a label, shape (states,).

        Parameters
        ----------
        name
            One of `label_names`.
        """
        if name not in self._label_masks:
            self._label_masks[name] = self._read(lambda built: built.label(name))
        return self._label_masks[name]

    @cached_property
    def rewards(self) -> dict[str, RewardStructure]:
        """The reward structures by name; one without a name goes by its number, from "1" on."""
        return rewards_by_name(self.model.rewards)

    @cached_property
    def rate_matrix(self) -> csr_array:
        """The rates of a CTMC, shape (states, states).

        Raises
        ------
        InvalidModelError
            For a DTMC or an MDP, which have no rates.
        """
        return rate_matrix(self.model, copy=False)

    @cached_property
    def transition_matrix(self) -> csr_array:
        """The transition probabilities: a row a state, or for MDPs a row a choice.

        For a CTMC they are those of its embedded chain; absorbing states have empty rows.
        """
        return transition_matrix(self.model, copy=False)

    @property
    def row_group_offsets(self) -> IndexArray | None:
        """MDPs: where each state's rows of the transition matrix start, shape (states + 1,)."""
        return self.model.row_group_offsets

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
        BridgeError
            When the session is closed, or the process was forked from the one that opened it.
        """
        return self._worker.run(partial(self._opened.check, property_text, dict(constants or {})))
