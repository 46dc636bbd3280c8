"""
Sampled paths beside exact distributions
========================================

``simulate`` samples paths of a chain; ``transient`` computes the distribution that they sample.
"""

import matplotlib.pyplot as plt
import numpy as np

import prism_gpu as pg

# A particle on a ring of 40 places goes on with probability 0.6, and back with 0.4.
places = 40
P = 0.6 * np.roll(np.eye(places), 1, axis=1) + 0.4 * np.roll(np.eye(places), -1, axis=1)
ring = pg.dtmc(P, initial=places // 2)

paths = ring.simulate(60, paths=2000, seed=1)
print(paths.states.shape)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.plot(paths.states[:8].T, linewidth=0.8)
left.set(xlabel="step", ylabel="place", title="eight of the paths")
counts = np.bincount(paths.states[:, -1], minlength=places) / len(paths.states)
right.bar(np.arange(places), counts, color="0.75", label="2,000 paths")
right.plot(np.arange(places), ring.transient(60), "C0.", label="exact")
right.set(xlabel="place after 60 steps", ylabel="probability")
right.legend()
plt.show()
