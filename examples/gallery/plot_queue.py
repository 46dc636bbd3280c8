"""
A queue: how it fills, and what it comes to
===========================================

Customers come at rate 0.9 a minute, one at a time is served at rate 1, and there is room for 30.
The states of a CTMC are the numbers of customers; its rates make a matrix of SciPy's.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

import prism_gpu as pg

room, comes, served = 30, 0.9, 1.0
R = sparse.diags_array(
    [np.full(room, comes), np.full(room, served)], offsets=[1, -1], shape=(room + 1, room + 1)
)
queue = pg.ctmc(
    R, labels={"full": room}, rewards={"customers": np.arange(room + 1.0)}, epsilon=1e-10
)

# %%
# The long run, as properties in PRISM's language and as a distribution over the states.

for text in ('S=? [ "full" ]', 'R{"customers"}=? [ S ]', 'P=? [ F<=60 "full" ]'):
    print(f"{text:24} {queue.check(text).value:.8f}")

powers = (comes / served) ** np.arange(room + 1)
long_run = queue.steady_state()
print(f"distance to the closed form: {np.abs(long_run - powers / powers.sum()).max():.1e}")

# %%
# The distribution after a time, from an empty queue.

customers = np.arange(room + 1)
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for minutes, colour in ((5, "C0"), (20, "C1"), (80, "C2")):
    axes.plot(customers, queue.transient(minutes), color=colour, label=f"after {minutes} minutes")
axes.plot(customers, long_run, color="0.3", linestyle="--", label="in the long run")
axes.set(xlabel="customers", ylabel="probability", yscale="log", ylim=(1e-5, 1))
axes.legend()
plt.show()
