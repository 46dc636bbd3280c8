"""Figure 5.3 of the thesis of 2013: where the matrices of the models have entries."""

from __future__ import annotations

import numpy as np

from bridge.reproduce.families import FAMILIES
from bridge.reproduce.host import Host
from bridge.reproduce.instances import gauss_seidel
from bridge.reproduce.jobs import Scale
from bridge.reproduce.perform import Results
from bridge.reproduce.plots import style


def draw(scale: Scale, host: Host, results: Results) -> style.Drawing | None:
    """Draw the matrices of the six families.

    Parameters
    ----------
    scale, host
        Unused: the shapes are the same at any size.
    results
        What was measured.
    """
    del scale, host
    found = [(job, results.of(job)) for job in gauss_seidel.shape_jobs()]
    there = [(job, record) for job, record in found if record is not None]
    if not there:
        return None
    from matplotlib.colors import LogNorm

    columns = min(3, len(there))
    lines = -(-len(there) // columns)
    figure, grid = style.subplots(lines, columns, 3.7 * columns, 3.8 * lines)
    largest = max(max(record["fields"]) for _, record in there)
    image = None
    for place, (axes, (job, record)) in enumerate(zip(grid.flat, there, strict=False)):
        bins, states = record["bins"], record["states"]
        fields = np.asarray(record["fields"], dtype=float).reshape(bins, bins)
        # One scale for all, in entries a field; fields without entries stay white.
        image = axes.imshow(
            np.ma.masked_equal(fields, 0),
            norm=LogNorm(1, max(largest, 2)),
            cmap="viridis_r",
            extent=(0, states, states, 0),
            interpolation="nearest",
        )
        label = FAMILIES[job.parameters["family"]].label(job.size)
        axes.set_title(f"{label}: {states:,} states", fontsize=10)
        if place + columns >= len(there):
            axes.set_xlabel("column (target)")
        if place % columns == 0:
            axes.set_ylabel("row (source)")
        axes.tick_params(labelsize=8)
        axes.locator_params(nbins=4)
    for axes in list(grid.flat)[len(there) :]:
        axes.set_visible(False)
    figure.colorbar(image, ax=grid, shrink=0.6, label="entries in a field of the grid")
    return style.Drawing(
        figure,
        "Where the transition matrices have entries, states in PRISM's order, as in Figure 5.3 "
        "of the thesis of 2013; small models, because larger ones of a family look the same.",
    )
