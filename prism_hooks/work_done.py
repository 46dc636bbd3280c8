"""The line that closes a log: who solved."""

from __future__ import annotations

from collections import Counter

from engines.model.result import SweepCost


class WorkDone:
    """Counts solves by the devices that made them."""

    def __init__(self) -> None:
        self._solves: Counter[str] = Counter()

    def solved(self, cost: SweepCost) -> None:
        """Count a solve.

        Parameters
        ----------
        cost
            Of its sweeps, which says where they were made.
        """
        self._solves[cost.engine.replace("CPU", "the CPU")] += 1

    @property
    def line(self) -> str:
        """Such as "prism-gpu: 3 solves on GPU 0, 1 on the CPU"; empty where nothing was solved."""
        parts = [f"{count} on {where}" for where, count in self._solves.items()]
        if not parts:
            return ""
        number, _, where = parts[0].partition(" ")
        parts[0] = f"{number} solve{'' if number == '1' else 's'} {where}"
        return "prism-gpu: " + ", ".join(parts)
