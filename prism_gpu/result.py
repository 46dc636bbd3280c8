"""What a check has found."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bridge.model import StateVector
from engines.arrays import IndexArray

Value = bool | int | float | tuple[float, float]
Constant = bool | int | float


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Result:
    """The result of a property.

    ``float(result)`` is its number; a result of a Boolean property is true or false itself.

    Parameters
    ----------
    property
        The property's text, as it was given to `Model.check`.
    value
        The value in the initial state: a `float`, an `int` (counts), or a `bool` (properties with
        a bound); the smallest and the largest value, as a pair, where there are several initial
        states, or the model was opened with `likely`.
    vector
        Shape (states,), float64, int64 or bool: the value in every state; None for the range of
        values that a filter gives.
    error
        The largest absolute error of `value`; 0 where it is exact but for rounding; None where no
        error is known, or there is none to know (a Boolean, a count).
    proven
        Whether `error`, or the pair of bounds, is proven, rounding included; else it is an
        estimate.
    iterations
        Iterations of all solves that the property took; 0 where the graph, elimination or
        substitution gave the values.
    seconds
        Wall-clock seconds of the check.
    device
        Where the longest solve was made: "CPU" or "GPU 0".
    method
        The methods, as the log names them; empty where nothing was solved.
    strategy
        Where it was asked for, shape (states,): the row of `Model.transition_matrix` that an
        optimal strategy chooses in each state, −1 where any choice will do; else None.
    constants
        The values that the check was given for constants.
    """

    property: str
    value: Value
    vector: StateVector | None
    error: float | None = None
    proven: bool = False
    iterations: int = 0
    seconds: float = 0.0
    device: str = "CPU"
    method: str = ""
    strategy: IndexArray | None = None
    constants: Mapping[str, Constant] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Result {self.value} {self.accuracy}".rstrip() + f" of {self.property}>"

    def __float__(self) -> float:
        if isinstance(self.value, tuple):
            raise TypeError(
                f"the value is a range, {self.value}: there are several initial states, or states "
                "that were not explored"
            )
        return float(self.value)

    def __bool__(self) -> bool:
        if not isinstance(self.value, bool):
            raise TypeError(f"the result is a number, {self.value}; compare its value")
        return self.value

    @builtins.property
    def accuracy(self) -> str:
        """The error in words, such as "± 1e-08 (estimated)"; empty where none is known."""
        if self.error is None:
            return ""
        if self.error == 0.0:
            return "exact" if self.proven else "exact but for rounding"
        return f"± {self.error:.2g} ({'proven' if self.proven else 'estimated'})"

    def _repr_html_(self) -> str:
        from prism_gpu.html import table

        return table(
            {
                "property": self.property,
                **{name: str(value) for name, value in self.constants.items()},
                "value": f"{self.value} {self.accuracy}".strip(),
                "iterations": f"{self.iterations:,}",
                "seconds": f"{self.seconds:.3g}",
                "solved on": f"{self.device}{self.method and ', ' + self.method}",
            }
        )


class Results(list[Result]):
    """Results in the order that they were asked for; a list, and a table."""

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each result, to be printed or made a table of.

        Returns
        -------
        list of dict
            The values of constants by their names, then "property", "value", "error" and "proven"
            (see `Result`), "iterations", and "seconds" by the wall clock.
        """
        return [
            {
                **item.constants,
                "property": item.property,
                "value": item.value,
                "error": item.error,
                "proven": item.proven,
                "iterations": item.iterations,
                "seconds": item.seconds,
            }
            for item in self
        ]

    def frame(self) -> Any:
        """Return the rows as a pandas DataFrame, a column for each of their names.

        Raises
        ------
        ModuleNotFoundError
            Where pandas is not installed; `rows` needs nothing.
        """
        return data_frame(self.rows())

    def _repr_html_(self) -> str:
        from prism_gpu.html import grid

        return grid(self.rows())


def data_frame(content: Any) -> Any:
    """Return a pandas DataFrame.

    Parameters
    ----------
    content
        What its constructor takes.

    Raises
    ------
    ModuleNotFoundError
        Saying what to install, where pandas is missing.
    """
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "data frames need pandas: pip install pandas", name="pandas"
        ) from error
    return pandas.DataFrame(content)
