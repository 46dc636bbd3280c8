"""Rows that are measured in several ways: their jobs, their tables, and why one is missing."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bridge.reproduce.execute import SPLIT
from bridge.reproduce.families import FAMILIES
from bridge.reproduce.instances import gauss_seidel, jacobi
from bridge.reproduce.jobs import Kind, Scale, Subject
from bridge.reproduce.perform import Limits, Performer
from bridge.reproduce.store import Store
from bridge.reproduce.tables import all_tables
from engines.cuda.sweeper import device_bytes
from engines.systems.one_sided import Scaling, SweepSystem
from tests.bridge.reproduce.made_up import all_done, host
from tests.bridge.reproduce.test_perform import Programs
from tests.bridge.reproduce.test_report import column


def tables_of(scale=Scale.PAPER, spoil=lambda _: None):
    machine, results = all_done(scale)
    spoil(results)
    return {table.name: table for table in all_tables(tuple(Subject), scale, machine, results)}


def test_two_gpus_and_the_segmented_scan_have_jobs_of_their_own():
    row = jacobi.solves(Subject.TANDEM, Scale.PAPER, host())[0]
    jobs = jacobi.other_jobs(row, Scale.PAPER, host())
    assert set(jobs) == {"two", "scan", "hybrid", "mtbdd"}
    assert jobs["two"].parameters["switches"] == ["-jacobi", "-gpudevices", "2"]
    assert jobs["scan"].parameters["switches"][-2:] == ["-gpuformat", "segments"]
    assert [jobs[name].kind for name in ("hybrid", "mtbdd")] == [Kind.PEER] * 2
    names = [row.job(Kind.OURS).name, *(job.name for job in jobs.values())]
    assert len(set(names)) == 5
    # Without a GPU neither is a row; PRISM's other engines are asked at the papers' scale.
    assert jacobi.other_jobs(row, Scale.SMALL, host("cpu")) == {}


@pytest.mark.parametrize(("gpus", "said"), [(0, "there is none"), (1, "there is 1"), (2, None)])
def test_a_row_of_two_gpus_says_why_it_is_missing(tmp_path, gpus, said):
    machine = replace(host(), gpus=gpus)
    row = jacobi.solves(Subject.TANDEM, Scale.SMALL, machine)[0]
    job = jacobi.other_jobs(row, Scale.SMALL, machine)["two"]
    performer = Performer(machine, Store(tmp_path, {}), Programs(), None, Limits(60))
    results = performer.all([job], lambda _: None)
    if said is None:
        assert results.of(job) is not None
    else:
        assert said in results.why(job)


def test_the_largest_queue_in_a_gigabyte_is_the_engine_s_own_account():
    size = jacobi.largest_in_memory()
    states, transitions = FAMILIES["tandem"].counts(size)
    for capacity, fits in ((size, True), (size + 1, False)):
        states, transitions = FAMILIES["tandem"].counts(capacity)
        matrix = SimpleNamespace(
            columns=np.empty(transitions, np.int32),
            values=np.empty(transitions),
            row_offsets=np.empty(states + 1, np.int32),
            num_rows=states,
        )
        system = SweepSystem(matrix, np.empty(states), scaling=Scaling.BALANCE)
        assert (device_bytes(system) <= 1 << 30) is fits


@pytest.mark.parametrize("travelling", [0, 3])
def test_the_size_that_fits_is_told_by_what_travels(travelling):
    def spoil(results):
        (job, *_) = jacobi.memory_jobs(Scale.PAPER, host()).values()
        results.records[job.name] |= {"travelling_parts": travelling} if travelling else {}

    table = tables_of(spoil=spoil)["tandem-memory"]
    assert column(table, "fits")[0] == ("no" if travelling else "yes")
    assert column(table, "precision") == ["double", "double", "single", "single"]
    log = f"the matrix is split into 9 blocks, {travelling} of which (0.5 GiB)"
    assert SPLIT.search(log)[1] == str(travelling)


def test_the_published_scan_and_two_gpus_stand_beside_ours():
    table = tables_of()["tandem"]
    row = column(table, "instance").index("tandem c=255")
    assert column(table, "ours, 2 GPUs: check s")[row]
    assert column(table, "ours, segmented scan: GPU memory MB")[row]
    assert column(table, "PRISM today, -mtbdd: check s")[row]
    assert column(table, "2011: GPU memory MB, segmented scan")[row]
    assert column(table, "2011: factor, segmented scan")[row]


def test_sizes_means_and_our_own_cpu_stand_beside_the_thesis_s():
    tables = tables_of()
    table = tables["gauss-seidel"]
    row = column(table, "instance").index("fms n=10")
    assert column(table, "2013: size (Tamaño) MB")[row] == "412"
    assert column(table, "ours: GPU over our CPU, check")[row] == "1 ×"
    means = {cells[0]: cells for cells in tables["gauss-seidel-means"].rows}
    assert means["speed-up over PRISM's -pgs, mean"][-1] == "26 ×"
    assert means["largest speed-up over PRISM's -pgs"][-1].startswith("73 × (fms n=10")
    assert means["speed-up over our own CPU, mean"][1] == "29"


def test_methods_are_compared_over_two_to_eight_colours_for_every_case_of_the_thesis():
    machine = host()
    cases = gauss_seidel.method_cases(Scale.PAPER, machine)
    asked = {(case.row.family, case.row.asked) for case in cases}
    assert asked == set(gauss_seidel.SIZES)
    assert {case.colours for case in cases} == set(range(2, 9))
    for case in cases:
        assert set(case.jobs) >= {"CPU", "direct"}
        assert case.jobs["CPU"].parameters["on"] == "cpu"
    split = [case.jobs["split"].parameters["switches"] for case in cases if "split" in case.jobs]
    assert split
    assert all(words[-2] == "-gpumaxmem" and words[-1].endswith("k") for words in split)


def test_methods_that_differ_in_sweeps_are_told():
    case = gauss_seidel.method_cases(Scale.PAPER, host())[0]

    def spoil(results):
        results.records[case.jobs["split"].name]["sweeps"] = 105

    right, wrong = (tables_of(spoil=how)["gauss-seidel-methods"] for how in (lambda _: None, spoil))
    assert "DIFFERENT" not in "".join(column(right, "remarks"))
    assert "DIFFERENT numbers of sweeps" in column(wrong, "remarks")[0]
    # Equation 4.1, of kanban with t=5 in two colours.
    assert column(right, "sums MB")[0] == "10.2"
