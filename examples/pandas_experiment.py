"""An experiment from Python: properties over a range of constants, as a table.

    python examples/pandas_experiment.py

The tandem queue of Hermanns, Meyer-Kayser and Siegle (1999): how long its customers wait for a
place, for growing capacities. With pandas the table is a data frame, without it its rows are
printed as they are. Needs neither PRISM nor Java.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import prism_gpu as pg

TANDEM = Path(__file__).resolve().parent / "models" / "tandem.sm"
CUSTOMERS = 'R{"customers"}=? [ S ]'
FULL = "S=? [ first=c & second=c ]"
CAPACITIES = (3, 7, 15, 31)


def main() -> None:
    """Print how many customers there are in the long run, and how often both queues are full."""
    results = pg.sweep(TANDEM, [CUSTOMERS, FULL], {"c": CAPACITIES}, epsilon=1e-10)
    if importlib.util.find_spec("pandas") is not None:
        table = results.frame().pivot(index="c", columns="property", values="value")
        table["filled"] = table[CUSTOMERS] / (2 * table.index)
        print(table.to_string())
        return
    print("pandas is not installed (pip install pandas); the rows:")
    for row in results.rows():
        print(f"{row['c']:>4} {row['value']:14.8g}  {row['property']}")


if __name__ == "__main__":
    main()
