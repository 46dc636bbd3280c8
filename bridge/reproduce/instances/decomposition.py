"""CAV 2014: tables 1 and 2. Strong components and maximal end components of ten graphs."""

from __future__ import annotations

from bridge.reproduce.graph_families import GENERATED, MODELS
from bridge.reproduce.host import Host
from bridge.reproduce.jobs import Job, Kind, Scale, Subject
from bridge.reproduce.published import components_2014

SUBJECTS = (Subject.SCC, Subject.MEC)
SCALES = {Scale.SMALL: 0.002, Scale.PAPER: 1.0, Scale.MAX: 1.0}
"""Of the generated graphs: 1 is the size in the paper."""

SETS = {Scale.SMALL: "one", Scale.PAPER: "large", Scale.MAX: "paper"}
"""Which of PRISM's models join them."""


def jobs(subjects: set[Subject], scale: Scale, host: Host) -> list[Job]:
    """Return a job a graph; both tables are made of the same.

    Parameters
    ----------
    subjects
        What is wanted.
    scale
        How large.
    host
        Unused: PRISM's models of the same names are rows wherever its examples are.
    """
    del host
    chosen = [subject for subject in SUBJECTS if subject in subjects]
    if not chosen:
        return []
    found = [*_generated(chosen[0], scale)]
    return [*found, *_models(chosen[0], SETS[scale])]


def _generated(subject: Subject, scale: Scale) -> list[Job]:
    size = SCALES[scale]
    paper = components_2014()
    found = []
    for family in GENERATED:
        # The graph, its reverse, and the working arrays of the searches, on the host.
        needed = int(24 * paper[family].transitions * size) if size >= 0.1 else 0
        name = f"{family} at {size:g} of the published size, components"
        parameters = {"family": family, "scale": size}
        found.append(Job(subject, name, Kind.COMPONENTS, parameters, 0, needed))
    return found


def _models(subject: Subject, name: str) -> list[Job]:
    return [
        Job(
            subject,
            f"{model.name}, components",
            Kind.COMPONENTS,
            {"family": model.family, "set": name, "model": number, "title": model.name},
        )
        for number, model in enumerate(MODELS[name])
    ]
