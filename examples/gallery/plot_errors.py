"""
What the error of a result is worth
===================================

An iterative solver must stop somewhere. On a chain that forgets slowly, the change of an iteration
is far smaller than the error that is left. ``bounds=True`` computes a lower and an upper bound,
rounding included; without it the error is an estimate.
"""

import matplotlib.pyplot as plt
import numpy as np

import prism_gpu as pg

n = 400
P = np.diag(np.full(n, 0.5), 1) + np.diag(np.full(n, 0.5), -1)
P[0], P[n] = np.eye(n + 1)[0], np.eye(n + 1)[n]
walk = pg.dtmc(P, labels={"end": n}, initial=n // 2, max_iterations=10_000_000)

# %%
# The exact value is 1/2.

settings = {
    "power method, which stops on the change": {"method": "power"},
    "the default": {},
    "proven bounds": {"bounds": True},
}
errors = {name: [] for name in settings}
epsilons = [1e-4, 1e-5, 1e-6, 1e-7]
for epsilon in epsilons:
    for name, chosen in settings.items():
        result = walk.check('P=? [ F "end" ]', epsilon=epsilon, **chosen)
        errors[name].append(max(abs(result.value - 0.5), 1e-17))
        print(f"{epsilon:.0e}  {name:40} {result.value:.12f}  {result.accuracy}")

# %%
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for name, values in errors.items():
    axes.plot(epsilons, values, marker="o", label=name)
axes.plot(epsilons, epsilons, color="0.5", linestyle=":", label="epsilon")
axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="error of the value")
axes.legend()
plt.show()
