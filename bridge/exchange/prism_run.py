"""PRISM's own run of a command line, its operators taken down or answered."""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from typing import Any, NoReturn

from bridge import jvm
from bridge.arguments import Arguments, without_blockwise_methods
from bridge.java_thread import jvm_runs
from bridge.refusals import fault_text
from engines.arrays import MaskArray
from engines.errors import BridgeError, UnsupportedError
from prism_hooks.exit_gate import GATE
from prism_hooks.extract import mask

PRISM_MAIN = "prism.PrismCL"
_SET = re.compile(r'"\?(\d+)"')


class Exchange(ABC):
    """The Python side of `prismgpu.Exchange`; its faults become PRISM's."""

    @abstractmethod
    def collects(self) -> bool:
        """Return whether operators are taken down; else they are answered."""

    @abstractmethod
    def take_model(self, problem: Any, built: Any) -> None:
        """Take in the model that a property is about.

        Parameters
        ----------
        problem
            A `prismgpu.Problem` with the settings.
        built
            The `prismgpu.BuiltModel`.
        """

    @abstractmethod
    def take_operator(self, operator: Any) -> None:
        """Take down a `prismgpu.Operator`, or fill in its answer."""

    def model(self, problem: Any, built: Any) -> None:
        """Take in a model for Java."""
        try:
            self.take_model(problem, built)
        except Exception as error:
            problem.error = fault_text(error)

    def operator(self, operator: Any) -> None:
        """Take down or answer an operator for Java."""
        try:
            self.take_operator(operator)
        except Exception as error:
            operator.error = fault_text(error)
            operator.fatal = True


def masks(operator: Any, num_states: int) -> list[MaskArray]:
    """Return the sets of states of a `prismgpu.Operator`, each of shape (states,)."""
    return [mask(words, num_states) for words in operator.sets]


def with_labels(operator: Any, names: list[str]) -> str:
    """Return an operator's text with labels in the places of its sets of states."""
    return _SET.sub(lambda found: f'"{names[int(found[1])]}"', str(operator.text))


def run_prism(arguments: Arguments, exchange: Exchange) -> str:
    """Run PRISM to its end, and return PRISM's version.

    PRISM itself ends the process where it finds a fault in a command line or a file.

    Parameters
    ----------
    arguments
        The command line.
    exchange
        What is done with the operators.

    Raises
    ------
    BridgeError
        When PRISM or Java is missing, or PRISM failed.
    UnsupportedError
        When the exchange or our classes refused; the text says what.
    """
    import jpype

    runtime = jvm.find_runtime(arguments.prism_dir)
    jvm.start(runtime, arguments.jvm)
    jvm.install_engines(arguments.hooks)
    jvm.java_class("prismgpu.Hooks").exchange = _java_exchange(exchange)
    words = arguments.prism
    if not arguments.hooks.engine_named:
        words = without_blockwise_methods(words)
    jvm.tell_of_signals(with_engines=True)
    sys.stdout.flush()
    array = jpype.JArray(jpype.JString)(list(words))
    try:
        launcher = jvm.java_class("prismgpu.Launcher")
        code = int(launcher.run(PRISM_MAIN, array, arguments.jvm.stack_bytes))
    except jpype.JException as error:
        jvm.java_class("java.lang.System").out.flush()
        if isinstance(error, jpype.JClass("prismgpu.Refusal")):
            raise UnsupportedError(str(error.getMessage())) from None
        raise BridgeError(f"PRISM failed: {error}") from error
    if code >= 0:
        end(code)
    return runtime.prism.version


def end(code: int) -> NoReturn:
    """End the process; a JVM that runs is not taken down.

    Parameters
    ----------
    code
        The exit code.
    """
    if jvm_runs():
        GATE.end(code)
    sys.exit(code)


def _java_exchange(exchange: Exchange) -> Any:
    import jpype

    def forward(name: str) -> Any:
        method = getattr(exchange, name)
        return jpype.JOverride(lambda _, *given: method(*given))

    methods = {name: forward(name) for name in ("collects", "model", "operator")}
    return jpype.JImplements("prismgpu.Exchange")(type("JavaExchange", (), methods))()
