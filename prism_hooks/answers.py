"""The object that Java calls, and what PRISM is told by the command line alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from engines.model.choice import Format
from engines.process.timeline import LEAVING, TIMELINE
from prism_hooks.exit_gate import GATE
from prism_hooks.options import SIMULATION, HookOptions, only_sampled_here

if TYPE_CHECKING:
    from prism_hooks.record import RunRecord

METHODS_OF_JAVA = (
    *("solve", "build", "buildProduct", "earn", "sample"),
    *("simulationMethod", "simulationWords", "onlySampledHere"),
    *("mayChooseEngine", "putsTogether", "printsAsPrism"),
    *("multipliesByDiagrams", "mostStates"),
    *("smallestGraph", "searchSteps", "bottomSteps", "search"),
    *("showsSolves", "leftToPrism"),
    *("header", "summary", "begin", "ended", "beginPart", "endPart", "closing", "end"),
)
"""The methods of `prismgpu.Backend`."""


class Answers:
    """Answers what PRISM asks that takes no engine.

    Parameters
    ----------
    options
        What the command line says about the engines.
    record
        Keeps what a plot of the run needs; None where none is wanted.
    header
        The line that goes below PRISM's own header; empty for none.
    """

    def __init__(
        self, options: HookOptions, record: RunRecord | None = None, header: str = ""
    ) -> None:
        self.options = options
        self._record = record
        self._header = header

    def header(self) -> str:
        """Return the line that goes below PRISM's own header, or nothing."""
        return self._header

    def summary(self) -> str:
        """Return the lines that close the log, or nothing."""
        return ""

    def mayChooseEngine(self) -> bool:  # noqa: N802 - the name is Java's
        """Return whether PRISM's engine setting may be changed to explicit."""
        return not self.options.engine_named

    def printsAsPrism(self) -> bool:  # noqa: N802 - as above
        """Return whether what is printed behind results is PRISM's."""
        return self.options.repeats_prism and not self.options.show_solves

    def multipliesByDiagrams(self) -> bool:  # noqa: N802 - as above
        """Return whether the user named the format that multiplies by a diagram's blocks."""
        return self.options.matrix_format is Format.HYBRID

    def mostStates(self) -> float:  # noqa: N802 - as above
        """Return how many states a model may have."""
        return math.inf if self.options.max_states is None else self.options.max_states

    def leftToPrism(self) -> str:  # noqa: N802 - as above
        """Return what the user named that PRISM's own code does as a whole, or nothing."""
        left = self.options.left_to_prism
        return "" if left == SIMULATION else left

    def simulationMethod(self) -> str:  # noqa: N802 - as above
        """Return the method of ours that judges simulated paths, or nothing for PRISM's."""
        return self.options.simulation_method

    def simulationWords(self) -> str:  # noqa: N802 - as above
        """Return the method of ours and its parameters as they were typed, or nothing."""
        parameters = (f"-{switch} {value}" for switch, value in self.options.simulation)
        method = self.options.simulation_method
        return " ".join((method, *parameters)) if method else ""

    def onlySampledHere(self) -> str:  # noqa: N802 - as above
        """Return what was asked of a simulation that PRISM does not have, or nothing."""
        return only_sampled_here(self.options)

    def showsSolves(self) -> bool:  # noqa: N802 - as above
        """Return whether the user asked for a line on each solve."""
        return self.options.show_solves

    def begin(self, question: Any, constants: Any) -> None:
        """Note a property that PRISM begins, and the constants, such as ``N=3,T=0.5``."""
        if self._record is not None:
            pairs = (part.partition("=") for part in str(constants).split(",") if part)
            self._record.begin(str(question), [(name, value) for name, _, value in pairs])

    def ended(self, value: Any) -> None:
        """Note the result of the property that was begun last."""
        if self._record is not None:
            self._record.ended(value)

    def beginPart(self, name: str) -> None:  # noqa: N802 - as above
        """Note that a part of the run begins."""
        TIMELINE.begin(str(name))

    def endPart(self) -> None:  # noqa: N802 - as above
        """Note that the part that was begun last ends."""
        TIMELINE.end()

    def closing(self) -> None:
        """Note that PRISM closes down: nothing more will be solved."""
        TIMELINE.turn_to(LEAVING)
        if self._record is not None:
            self._record.finish()

    def end(self, code: int) -> None:
        """End the process with an exit code; return never."""
        GATE.end(int(code))


class Switchboard:
    """The object that Java calls: whatever answers at the moment.

    One object serves all, because one that Java holds lives until Java collects garbage.
    """

    def __init__(self) -> None:
        self._current: Answers | None = None
        self._for_java: Any = None

    def turn_to(self, answers: Answers | None) -> None:
        """Have PRISM's questions answered by another; the JVM must be running.

        Parameters
        ----------
        answers
            Who answers; None for nobody.
        """
        import jpype

        self._current = answers
        if self._for_java is None:
            self._for_java = self._java_object()
        # Who calls PRISM without us may have put other engines there.
        jpype.JClass("prismgpu.Hooks").backend = self._for_java

    def _java_object(self) -> Any:
        import jpype

        def method(name: str) -> Any:
            return jpype.JOverride(lambda _, *given: getattr(self._current, name)(*given))

        methods = {name: method(name) for name in METHODS_OF_JAVA}
        return jpype.JImplements("prismgpu.Backend")(type("JavaBackend", (), methods))()


SWITCHBOARD = Switchboard()
"""That of this process's JVM."""
