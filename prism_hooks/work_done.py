"""The lines that close a log: who solved, and what PRISM's own lines had no place for."""

from __future__ import annotations

from collections import Counter

from engines.model.events import Event
from engines.model.result import SweepCost


class WorkDone:
    """Counts solves by the devices that made them, and those that ended far from a solution."""

    def __init__(self) -> None:
        self._solves: Counter[str] = Counter()
        # In the order they came: of two that are as bad the log names the same one in each run.
        self._misled: dict[Event, None] = {}

    def solved(self, cost: SweepCost) -> None:
        """Count a solve.

        Parameters
        ----------
        cost
            Of its sweeps, which says where they were made.
        """
        self._solves[cost.engine.replace("CPU", "the CPU")] += 1

    def misled(self, event: Event) -> None:
        """Note a solve whose method stopped far from the solution, of which no warning was printed.

        Parameters
        ----------
        event
            What happened, of kind `Kind.CHANGE_MISLEADS`.
        """
        self._misled[event] = None

    @property
    def lines(self) -> str:
        """The closing line, and one on the worst of the solves that ended far from a solution."""
        lines = [self.line] if self.line else []
        if self._misled:
            worst = max(self._misled, key=lambda event: float(dict(event.details)["error"]))
            number = len(self._misled)
            of_several = f" (the worst of {number} such solves)" if number > 1 else ""
            lines.append(f"prism-gpu: {worst}{of_several}")
        return "\n".join(lines)

    @property
    def line(self) -> str:
        """Such as "prism-gpu: 3 solves on GPU 0, 1 on the CPU"; empty where nothing was solved."""
        parts = [f"{count} on {where}" for where, count in self._solves.items()]
        if not parts:
            return ""
        number, _, where = parts[0].partition(" ")
        parts[0] = f"{number} solve{'' if number == '1' else 's'} {where}"
        return "prism-gpu: " + ", ".join(parts)
