"""Tables 1 and 2 of CAV 2014: strong components and maximal end components."""

from __future__ import annotations

from bridge.reproduce.forward_backward import VARIANTS as TODAY
from bridge.reproduce.host import Host
from bridge.reproduce.instances import decomposition
from bridge.reproduce.jobs import Job, Scale, Subject
from bridge.reproduce.perform import Results
from bridge.reproduce.published import components_2014, decomposition_2014
from bridge.reproduce.tables.solves import MEASURED, REMARKS
from bridge.reproduce.tables.table import Column, Table, number, origin, ratio, seconds

TITLES = {
    "scc": "Strongly connected components (2014: Table 1)",
    "mec": "Maximal end components (2014: Table 2)",
}
VARIANTS = (("F0,1", "f01"), ("F3,1", "f31"), ("F3,7", "f37"), ("F0,1-nh", "f01_nh"))
"""The paper's other variants for strong components; its GPU's column is F0,7."""
VARIANTS_TODAY = tuple(TODAY)
WORDS = {"scc": "SCCs", "mec": "MECs"}


def tables(subjects: set[Subject], scale: Scale, host: Host, results: Results) -> list[Table]:
    """Return a table a decomposition.

    Parameters
    ----------
    subjects
        What is wanted.
    scale
        How large.
    host
        The machine.
    results
        What was measured.
    """
    jobs = decomposition.jobs(subjects, scale, host)
    return [
        _table(str(subject), jobs, host, results)
        for subject in decomposition.SUBJECTS
        if subject in subjects
    ]


def title_of(job: Job) -> str:
    """Return how the tables name a graph.

    Parameters
    ----------
    job
        Its job.
    """
    made = f"{job.parameters['family']}-like"
    return str(job.parameters.get("title", made))


def _table(what: str, jobs: list[Job], host: Host, results: Results) -> Table:
    paper = decomposition_2014()
    variants = VARIANTS if what == "scc" else ()
    ours = [Column("ours: CPU s"), Column("textbook: CPU s")]
    if host.device == "gpu":
        ours = [
            *(Column("ours: GPU s"), Column("ours: GPU with copy s"), *ours),
            *(Column("textbook : GPU"), Column("ours: GPU memory MB")),
            Column("2|V| + |E| + 1 integers MB"),
            *(Column(f"{name} today s") for name in (VARIANTS_TODAY if what == "scc" else ())),
        ]
    return Table(
        what,
        what,
        TITLES[what],
        f"Ours on {host.device_name}. Textbook: Tarjan's search, and for end components the basic "
        f"algorithm over it; ours on the CPU: a search of our own; both on one core of "
        f"{host.processor}. Memory: what a question takes on the GPU beside the host's copy, next "
        "to the integers of 32 bits that the paper takes for |V| states and |E| edges. The paper's "
        "variants are F i,j: i search iterations a launch, rows interleaved up to out-degree j; nh "
        "is without its kernel of a forward and a backward step; those of today are that algorithm "
        "made anew, on this GPU. "
        "Graphs ending in -like are generated with "
        "the structure and, at scale 1, the size of the published ones; their numbers of "
        "components follow from the construction and are compared before a time is shown, as are "
        "the components of GPU and CPU, state by state. Columns that begin with 2014 are the "
        f"paper's: {paper.source}; on {paper.hardware}.",
        [
            *(Column("graph", text=True), Column("states"), Column("transitions")),
            *(Column("successors a state"), Column(WORDS[what]), *ours),
            *(Column("2014: model", theirs=True, text=True), Column("2014: states", theirs=True)),
            *(Column("2014: CPU s", theirs=True), Column("2014: GPU s", theirs=True)),
            Column("2014: CPU : GPU", theirs=True),
            *(Column(f"2014: {title} s", theirs=True) for title, _ in variants),
            *(MEASURED, REMARKS),
        ],
        [_row(what, job, host, results) for job in jobs],
    )


def _row(what: str, job: Job, host: Host, results: Results) -> list[str]:
    paper = components_2014()[job.parameters["family"]]
    record = results.partly(job)
    gpu = host.device == "gpu"
    cpu_theirs, gpu_theirs = (
        (paper.tarjan, paper.gpu_scc) if what == "scc" else (paper.cpu_mec, paper.gpu_mec)
    )
    theirs = [
        *(paper.model, number(paper.states), seconds(cpu_theirs), seconds(gpu_theirs)),
        ratio(cpu_theirs, gpu_theirs),
    ]
    if what == "scc":
        row = decomposition_2014().row(family=job.parameters["family"]) or {}
        theirs += [seconds(row.get(name)) for _, name in VARIANTS]
    if record is None:
        more = len(VARIANTS_TODAY) if gpu and what == "scc" else 0
        empty = [""] * ((11 if gpu else 6) + more)
        return [title_of(job), *empty, *theirs, "", results.why(job)]
    checked = record["checked"].get(what, [])
    # One voice alone proves nothing: no time of it.
    shown = record if len(checked) > 1 else {}
    cpu = shown.get(f"cpu_{what}_seconds")
    textbook = shown.get(f"tarjan_{what}_seconds")
    times = [seconds(cpu) or "–", seconds(textbook) or "–"]
    if gpu:
        device = shown.get(f"gpu_{what}_seconds")
        first = shown.get(f"gpu_{what}_first_seconds")
        taken = shown.get(f"gpu_{what}_bytes")
        paper_bytes = 4 * (2 * record["states"] + record["transitions"] + 1)
        times = [
            *(seconds(device), seconds(first), *times, ratio(textbook, device)),
            *("" if taken is None else number(taken / 1e6), number(paper_bytes / 1e6)),
        ]
        if what == "scc":
            times += [seconds(shown.get(f"{name}_scc_seconds")) for name in VARIANTS_TODAY]
    remark = f"compared: {', '.join(checked)}"
    if record["status"] == "stopped":
        remark += f"; the rest: {results.why(job)}"
    count = record["counts"].get(what)
    return [
        *(title_of(job), number(record["states"]), number(record["transitions"])),
        f"{record['transitions'] / record['states']:.2f}",
        *(number(count), *times, *theirs, origin(record), remark),
    ]
