"""A machine and results for the tests of tables, pictures and the report."""

from __future__ import annotations

from bridge.reproduce.families import FAMILIES
from bridge.reproduce.host import Host
from bridge.reproduce.instances import plan
from bridge.reproduce.jobs import Job, Kind, Scale, Subject
from bridge.reproduce.perform import Results


def host(device: str = "gpu", cores: int = 4) -> Host:
    """Return a machine without PRISM: nothing is run on it."""
    return Host(
        prism=None,
        java=None,
        device=device,
        device_name="Made-up GPU" if device == "gpu" else "Made-up CPU, 4 cores",
        processor="Made-up CPU",
        cores=cores,
        memory=64 << 30,
        available=60 << 30,
        device_memory=32 << 30 if device == "gpu" else 0,
        versions={"prism-gpu": "1"},
    )


def record_of(job: Job) -> dict:
    """Return a result that a job could have."""
    asked = job.parameters
    if job.kind in (Kind.OURS, Kind.PEER):
        ours = job.kind is Kind.OURS
        states, transitions = FAMILIES[asked["family"]].counts(job.size)
        seconds = states * (1e-7 if ours else 2e-6)
        return {
            "status": "done",
            "value": 2.5,
            "states": states,
            "transitions": transitions,
            "build_seconds": 0.5,
            "check_seconds": seconds + 0.1,
            "sweeps": 100,
            "device_megabytes": states / 1e4,
            "error": 1e-9,
            # PRISM prints the CPU time of its solves.
            "solve_seconds" if ours else "solve_cpu_seconds": seconds,
            "setup_seconds" if ours else "setup_cpu_seconds": 0.0,
            "sweep_microseconds" if ours else "sweep_cpu_microseconds": 1e4 * seconds,
        }
    if job.kind is Kind.COLOURS:
        points = [
            {"colouring": colouring, "colours": c, "sweeps": None if c == 5 else 100 - c}
            for colouring in ("levels", "slices")
            for c in asked["colours"]
        ]
        return {"status": "done", "states": 1000, "points": points}
    if job.kind is Kind.SWEEPS:
        states = FAMILIES[asked["family"]].counts(job.size)[0]
        return {"status": "done", "states": states, "single": states / 2, "double": states / 1}
    if job.kind is Kind.PATTERNS:
        fields = [int(i % 9 == 0) for i in range(asked["bins"] ** 2)]
        return {"status": "done", "states": 200, "bins": asked["bins"], "fields": fields}
    if job.kind in (Kind.PATHS, Kind.WORKERS):
        return sampled(job)
    times = {
        f"{who}_{what}_seconds": t
        for who, t in (("gpu", 0.1), ("cpu", 2.0), ("tarjan", 3.0))
        for what in DECOMPOSITIONS
    }
    return {
        "status": "done",
        "states": 1000,
        "transitions": 3000,
        "counts": {"scc": 7, "mec": 3},
        "checked": {what: ["construction", "gpu", "cpu"] for what in DECOMPOSITIONS},
        **times,
        **{f"gpu_{what}_first_seconds": 0.2 for what in DECOMPOSITIONS},
        **{f"gpu_{what}_bytes": 40_000 for what in DECOMPOSITIONS},
    }


def sampled(job: Job) -> dict:
    """Return a result of sampled paths."""
    asked = job.parameters
    if job.kind is Kind.PATHS:
        seconds = asked["philosophers"] / (asked["threads"] or 10)
        return {
            "status": "done",
            "compile_seconds": 0.5,
            "sample_seconds": seconds,
            "steps_per_second": 1e7,
            "estimate": 0.5,
            "compared": 5,
        }
    seconds = 100 / asked["workers"]
    return {
        "status": "done",
        "deploy_seconds": 0.1 * asked["workers"],
        "first_seconds": seconds,
        "total_seconds": 0.1 * asked["workers"] + seconds,
        "warm_seconds": seconds,
        "estimate": 0.5,
    }


DECOMPOSITIONS = ("scc", "mec")


def all_done(scale: Scale = Scale.SMALL, device: str = "gpu") -> tuple[Host, Results]:
    """Return a machine, and results of all jobs of a scale."""
    machine = host(device)
    jobs = plan(tuple(Subject), scale, machine)
    return machine, Results({job.name: record_of(job) for job in jobs})
