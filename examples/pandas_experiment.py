"""An experiment from Python: a property over a range of constants, as a table.

    python examples/pandas_experiment.py

The tandem queue of Hermanns, Meyer-Kayser and Siegle (1999): how long its customers wait for a
place, for growing capacities. With pandas the table is a data frame, without it a NumPy array of
records; needs PRISM and a JDK.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np

import bridge

MODELS = Path(__file__).resolve().parent / "models"
CAPACITIES = (3, 7, 15, 31)
COLUMNS = [("capacity", "i8"), ("states", "i8"), ("customers", "f8"), ("full", "f8")]


def measured(capacity: int) -> tuple[int, int, float, float]:
    """Return capacity, states, customers in the long run, and the share of time with both full."""
    with bridge.open(
        MODELS / "tandem.sm", constants={"c": capacity}, epsilon=1e-10, symbolic=True
    ) as session:
        customers = session.check('R{"customers"}=? [ S ]')
        full = session.check("S=? [ first=c & second=c ]")
        return capacity, session.num_states, float(customers.value), float(full.value)


def main() -> None:
    """Print the table, and where in the states the time is spent."""
    rows = np.array([measured(capacity) for capacity in CAPACITIES], dtype=COLUMNS)
    if importlib.util.find_spec("pandas") is not None:
        import pandas

        frame = pandas.DataFrame(rows).set_index("capacity")
        frame["filled"] = frame["customers"] / (2 * frame.index)
        print(frame.to_string())
        return
    print("pandas is not installed (pip install pandas); the same as NumPy records:")
    print(" ".join(f"{name:>12}" for name, _ in COLUMNS), f"{'filled':>12}")
    for row in rows:
        filled = row["customers"] / (2 * row["capacity"])
        cells = (row["capacity"], row["states"], row["customers"], row["full"], filled)
        print(" ".join(f"{cell:12.6g}" for cell in cells))


if __name__ == "__main__":
    main()
