"""A model as NumPy and SciPy objects: open it, look at it, check it, use the whole result vector.

    python examples/python_api.py

The workstation cluster of Haverkort, Hermanns and Katoen (2000), with 8 workstations a side.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import bridge

MODELS = Path(__file__).resolve().parent / "models"


def main() -> None:
    """Print what the arrays hold, and what the properties' values are."""
    with bridge.open(MODELS / "cluster.sm", constants={"N": 8}, epsilon=1e-10) as session:
        rates = session.rate_matrix
        print(f"{session.kind}: {session.num_states} states, {rates.nnz} transitions")
        print(f"labels: {', '.join(session.labels)}; rewards: {', '.join(session.rewards)}")

        # Exit rates differ by many orders of magnitude: that is what makes this model hard.
        exits = rates.sum(axis=1)
        print(f"exit rates from {exits.min():.3g} to {exits.max():.3g} an hour")

        premium = session.check('S=? [ "premium" ]')
        print(f"in the long run, premium quality: {premium.value:.12f}")

        # The vector holds the value in every state, so NumPy can ask what PRISM's filters ask.
        repairs = session.check('R{"num_repairs"}=? [ F "premium" ]')
        below = ~session.labels["premium"]
        worst = int(np.argmax(repairs.vector))
        print(f"repairs until premium quality: {repairs.vector[below].mean():.4f} on average over")
        print(f"the {np.count_nonzero(below)} states below it, at worst")
        print(f"{repairs.vector[worst]:.4f} ({repairs.accuracy}), from state {worst}")


if __name__ == "__main__":
    main()
