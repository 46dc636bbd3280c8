"""
A model in PRISM's language, over two constants
===============================================

The workstation cluster of Haverkort, Hermanns and Katoen (2000), a file of `examples/models`. It is
opened anew for each number of workstations; PRISM is not needed.
"""

from pathlib import Path

import matplotlib.pyplot as plt

import prism_gpu as pg

here = Path.cwd()
folder = next(folder for folder in (here, *here.parents) if (folder / "examples/models").is_dir())
model = folder / "examples" / "models" / "cluster.sm"
cluster = pg.open(model, {"N": 8})
cluster

# %%
# The states are an array with a field for each variable of the model.

print(cluster.states[:3])
print(cluster.states.dtype.names)

# %%
# ``sweep`` checks a property for all combinations of values; ``.frame()`` makes a pandas data frame
# of the results, ``.rows()`` a list of dictionaries.

results = pg.sweep(model, 'P=? [ F<=T !"minimum" ]', {"N": [2, 4, 8], "T": range(0, 101, 20)})
print(results.rows()[1])

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for size in (2, 4, 8):
    curve = [(item.constants["T"], item.value) for item in results if item.constants["N"] == size]
    axes.plot(*zip(*curve, strict=True), marker="o", label=f"{size} workstations a side")
axes.set(xlabel="hours", ylabel="probability to fall below the minimum")
axes.legend()
plt.show()
