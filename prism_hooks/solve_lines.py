"""What PRISM's log says of solves once they have ended; each remark and warning once a run."""

from __future__ import annotations

from typing import Any

from engines.model.events import Kind
from engines.model.result import NOTHING_SWEPT, SolveResult
from prism_hooks.engine_lines import ANSWERS_TO_SWITCHES, warning_of
from prism_hooks.own_lines import Once
from prism_hooks.report import Ending, iterations_line, note_and_warnings
from prism_hooks.told_solve import EngineLines
from prism_hooks.work_done import WorkDone

ESTIMATED_IN_SPITE = "has no bounds here: the error of this result is estimated, in spite of -ii"


class SolveLines:
    """Prints lines to the logs of `prismgpu.Problem`s.

    Parameters
    ----------
    all_remarks
        Whether those are printed, too, that PRISM's own lines have no place for.
    work
        Told, in place of the log, of methods that PRISM would not warn of.
    """

    def __init__(self, all_remarks: bool, work: WorkDone) -> None:
        self._all_remarks = all_remarks
        self._work = work
        self._once = Once()

    def say(self, problem: Any, text: str) -> None:
        """Print a remark of ours, unless it was printed before.

        Parameters
        ----------
        problem
            Whose log is printed to.
        text
            The remark.
        """
        self._once.tell(f"prism-gpu: {text}", problem.say)

    def report(self, problem: Any, result: SolveResult, ending: Ending) -> None:
        """Print how a solve went, in lines of ours.

        Parameters
        ----------
        problem, result
            What was solved.
        ending
            What ended its sweeps.
        """
        swept = result.iterations > 0 or result.cost != NOTHING_SWEPT
        if swept and ending is Ending.TIME:
            problem.say(f"\n{result.method}: {result.note}")
        if swept:
            problem.say(f"\n{iterations_line(result)}")
        if ending is not Ending.TIME:
            note, warnings = note_and_warnings(result)
            if note:
                self.say(problem, note)
            for warning in warnings:
                self._once.tell(warning, problem.warn)
        estimated = not result.two_sided and ending is not Ending.STEPS
        if swept and estimated and problem.intervals is not None:
            self.say(problem, f"{result.method} {ESTIMATED_IN_SPITE}")

    def report_as_prism(self, problem: Any, result: SolveResult, lines: EngineLines) -> None:
        """Print how a solve went, in PRISM's own lines.

        Parameters
        ----------
        problem, result
            What was solved.
        lines
            PRISM's lines on it.
        """
        after = lines.after(result)
        if after:
            problem.say(after)
        for event in dict.fromkeys(result.events):
            if warning_of(event):
                if event.kind is Kind.CHANGE_MISLEADS and not self._all_remarks:
                    self._work.misled(event)
                else:
                    self._once.tell(str(event), problem.warn)
            elif self._all_remarks or event.kind in ANSWERS_TO_SWITCHES:
                self.say(problem, str(event))
