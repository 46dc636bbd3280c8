"""
The gambler's ruin, and its closed form
=======================================

Who bets one of 50 coins again and again, with a chance of 0.45 each time: how likely is it to end
with 100? A chain from a NumPy matrix answers for every start at once.

With r = (1 − p) / p the probability from i of n coins is (rⁱ − 1) / (rⁿ − 1) (Feller 1968,
chapter XIV).
"""

import matplotlib.pyplot as plt
import numpy as np

import prism_gpu as pg

up, n = 0.45, 100
P = np.diag(np.full(n, up), 1) + np.diag(np.full(n, 1 - up), -1)
P[0], P[n] = np.eye(n + 1)[0], np.eye(n + 1)[n]
ruin = pg.dtmc(P, labels={"rich": n, "over": [0, n]}, rewards={"bets": np.ones(n + 1)}, initial=50)
ruin

# %%
# ``check`` returns the value in the initial state, in every state, and what is known of its error.

rich = ruin.check('P=? [ F "rich" ]')
bets = ruin.check('R{"bets"}=? [ F "over" ]')
rich

# %%
ratio = (1 - up) / up
coins = np.arange(n + 1)
closed_form = (ratio**coins - 1) / (ratio**n - 1)
print(f"largest relative distance: {np.max(np.abs(rich.vector[1:] / closed_form[1:] - 1)):.1e}")

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
left.plot(coins, closed_form, color="0.6", linewidth=4, label="closed form")
left.plot(coins, rich.vector, color="C0", label="prism_gpu")
left.set(yscale="log", ylim=(1e-9, 1), xlabel="coins at first", ylabel="probability to have 100")
left.legend()
right.plot(coins, bets.vector, color="C1")
right.set(xlabel="coins at first", ylabel="expected number of bets")
plt.show()
