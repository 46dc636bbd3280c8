"""Each family of numerical work at the size where it hurts, beside PRISM, same host, same run.

    python examples/benchmarks/families.py [CASE ...] [--device gpu|cpu] [--json FILE]

Ours runs with its default settings; PRISM with the engine and the method, of those it offers, that
the case names. "Check" is what both programs print as `Time for model checking`, all of a
property's work on a model that is built; "solve" is our share of it, set-up included. The two
results must agree to 1e-3 relative, because PRISM's own default stops that early on some of these
models. PRISM gets `--timeout` seconds a case; where it needs more, the table says so.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import click

AGREEMENT = 1e-3
SOLVE = re.compile(
    r"prism-gpu: (?P<engine>.+?), kernel (?P<kernel>.+?), format .*?"
    r"solved in (?P<seconds>[\d.]+) s,"
    r" (?P<sweeps>\d+) sweeps(?:, at most [\d.]+ MB of device memory)?"
    r"(?:, (?P<speed>[\d.]+) us a sweep)?(?P<rest>.*)"
)
SHARE = re.compile(r"(\d+) % of copy bandwidth")
COUNT = re.compile(r"(?:: |took |took iters )(\d+) (?:iterations|iters)\b")


@dataclass(frozen=True)
class Case:
    """A property of one of PRISM's example models, and how PRISM is to solve it."""

    name: str
    model: str
    constants: str
    text: str
    peer: str


SLOW = "-maxiters 1000000"
CASES = [
    Case(
        "cluster 128 U<=2000",
        "ctmcs/cluster/cluster.sm",
        "N=128",
        'P=? [ true U<=2000 !"minimum" ]',
        f"-sparse {SLOW}",
    ),
    Case(
        "cluster 128 repairs",
        "ctmcs/cluster/cluster.sm",
        "N=128",
        'R{"num_repairs"}=? [ F !"minimum" ]',
        f"-sparse -gs {SLOW}",
    ),
    Case(
        "kanban 4 throughput",
        "ctmcs/kanban/kanban.sm",
        "t=4",
        'R{"throughput"}=? [ S ]',
        f"-sparse -gs {SLOW}",
    ),
    Case(
        "fms 6 productivity",
        "ctmcs/fms/fms.sm",
        "n=6",
        'R{"productivity"}=? [ S ]',
        f"-sparse -jacobi {SLOW}",
    ),
    Case(
        "polling 15 s1 before s2",
        "ctmcs/polling/poll15.sm",
        "",
        "P=? [ !(s=2 & a=1) U (s=1 & a=1) ]",
        f"-sparse -gs {SLOW}",
    ),
    Case(
        "polling 15 waiting",
        "ctmcs/polling/poll15.sm",
        "",
        "S=? [ s1=1 & !(s=1 & a=1) ]",
        f"-sparse -gs {SLOW}",
    ),
    Case(
        "consensus 6 disagree",
        "mdps/consensus/coin6.nm",
        "K=2",
        'Pmax=? [ F "finished" & !"agree" ]',
        f"-sparse {SLOW}",
    ),
    Case(
        "consensus 6 steps",
        "mdps/consensus/coin6.nm",
        "K=2",
        'R{"steps"}max=? [ F "finished" ]',
        f"-sparse {SLOW}",
    ),
    Case(
        "zeroconf collision",
        "mdps/zeroconf/zeroconf.nm",
        "N=1000,K=6,reset=false,err=100",
        "Pmax=? [ F (l=4 & ip=1) ]",
        f"-explicit {SLOW}",
    ),
    Case(
        "csma 3 4 time",
        "mdps/csma/csma3_4.nm",
        "",
        'R{"time"}max=? [ F "all_delivered" ]',
        f"-sparse {SLOW}",
    ),
    Case(
        "csma 4 2 time",
        "mdps/csma/csma4_2.nm",
        "",
        'R{"time"}min=? [ F "all_delivered" ]',
        f"-sparse {SLOW}",
    ),
    *(
        Case(
            f"wlan {backoff} cost {end}",
            f"mdps/wlan/wlan{backoff}.nm",
            "COL=0,TRANS_TIME_MAX=10",
            f'R{{"cost"}}{end}=? [ F s1=12 & s2=12 ]',
            f"-sparse {SLOW}",
        )
        for backoff in (4, 5, 6)
        for end in ("min", "max")
    ),
]


@dataclass(frozen=True)
class Printed:
    """What one program printed of a case; nothing where it ran out of time."""

    value: float
    check_seconds: float
    iterations: int
    states: int
    output: str


@dataclass(frozen=True)
class Row:
    """A line of the table; PRISM's part is None where it did not end in time."""

    case: str
    states: int
    peer: str
    prism_value: float | None
    value: float
    prism_iterations: int | None
    sweeps: int
    prism_seconds: float | None
    check_seconds: float
    solve_seconds: float
    microseconds_a_sweep: float | None
    copy_share_percent: float | None
    engine: str


def words_of(case: Case, examples: Path) -> list[str]:
    """Return the words that name a case's model and property."""
    words = [str(examples / case.model), "-pctl", case.text]
    return [*words, "-const", case.constants] if case.constants else words


def run(command: list[str], timeout: float | None) -> Printed | None:
    """Run a command and read its report; None if it takes longer than it may."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)
    except subprocess.TimeoutExpired:
        return None
    result = re.search(r"^Result[^:]*: ([^\s(]+)", done.stdout, re.M)
    check = re.search(r"^Time for model checking: ([\d.E-]+) seconds", done.stdout, re.M)
    states = re.search(r"^States:\s+(\d+)", done.stdout, re.M)
    if result is None or check is None:
        raise click.ClickException(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    counts = [int(count) for count in COUNT.findall(done.stdout)]
    return Printed(
        float(result[1]),
        float(check[1]),
        max(counts, default=0),
        int(states[1]) if states else 0,
        done.stdout,
    )


def row_of(case: Case, ours: Printed, theirs: Printed | None) -> Row:
    """Check that the answers agree, and return the line of a case."""
    if theirs is not None:
        apart = abs(ours.value - theirs.value)
        if not apart <= AGREEMENT * abs(theirs.value):
            raise click.ClickException(f"{case.name}: {ours.value}, PRISM {theirs.value}")
    solves = list(SOLVE.finditer(ours.output))
    main = max(solves, key=lambda solve: float(solve["seconds"]), default=None)
    share = SHARE.search(main["rest"]) if main else None
    return Row(
        case=case.name,
        states=ours.states,
        peer=case.peer.replace(SLOW, "").strip(),
        prism_value=theirs.value if theirs else None,
        value=ours.value,
        prism_iterations=theirs.iterations if theirs else None,
        sweeps=sum(int(solve["sweeps"]) for solve in solves),
        prism_seconds=theirs.check_seconds if theirs else None,
        check_seconds=ours.check_seconds,
        solve_seconds=sum(float(solve["seconds"]) for solve in solves),
        microseconds_a_sweep=float(main["speed"]) if main and main["speed"] else None,
        copy_share_percent=float(share[1]) if share else None,
        engine=f"{main['engine']}, {main['kernel']}" if main else "",
    )


def table(rows: list[Row], timeout: float) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| case | states | result | PRISM | PRISM's iterations | PRISM check s | sweeps "
        "| check s | solve s | ratio of checks | µs a sweep | of copy bandwidth | engine |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        peer = f"> {timeout:g}" if row.prism_seconds is None else f"{row.prism_seconds:.2f}"
        least = timeout if row.prism_seconds is None else row.prism_seconds
        more = "> " if row.prism_seconds is None else ""
        ratio = f"{more}{least / row.check_seconds:.1f} ×" if row.check_seconds else ""
        count = "" if row.prism_iterations is None else f"{row.prism_iterations:,}"
        speed = "" if row.microseconds_a_sweep is None else f"{row.microseconds_a_sweep:.1f}"
        share = "" if row.copy_share_percent is None else f"{row.copy_share_percent:.0f} %"
        lines.append(
            f"| {row.case} | {row.states:,} | {row.value:.10g} | `{row.peer}` | {count} | {peer} "
            f"| {row.sweeps:,} | {row.check_seconds:.3f} | {row.solve_seconds:.3f} | {ratio} "
            f"| {speed} | {share} | {row.engine} |"
        )
    return "\n".join(lines)


@click.command()
@click.argument("names", nargs=-1, metavar="[CASE]...")
@click.option("--device", type=click.Choice(["gpu", "cpu"]), default="gpu", show_default=True)
@click.option("--timeout", default=600.0, show_default=True, help="PRISM's seconds a case.")
@click.option("--jobs", default=1, show_default=True, help="PRISMs that run at a time.")
@click.option("--javamaxmem", default=None, help="Java's heap for both programs, such as 24g.")
@click.option("--json", "json_file", type=click.Path(), help="Write the rows here as well.")
def main(
    names: tuple[str, ...],
    device: str,
    timeout: float,
    jobs: int,
    javamaxmem: str | None,
    json_file: str | None,
) -> None:
    """Print one table of the cases whose name begins with a given one, all by default."""
    prism_dir = os.environ.get("PRISM_DIR")
    if not prism_dir:
        raise click.UsageError("set PRISM_DIR: the models are those of PRISM's examples")
    examples = Path(prism_dir).parent / "prism-examples"
    chosen = [case for case in CASES if not names or case.name.startswith(names)]
    if not chosen:
        raise click.UsageError(f"no such case: {', '.join(names)}")
    limits = ["-javamaxmem", javamaxmem] if javamaxmem else []
    switch = {"gpu": "-gpu", "cpu": "-nogpu"}[device]
    peer = str(Path(prism_dir) / "bin" / "prism")
    rows = []
    with ThreadPoolExecutor(jobs) as pool:
        theirs = {
            case.name: pool.submit(
                run, [peer, *words_of(case, examples), *case.peer.split(), *limits], timeout
            )
            for case in chosen
        }
        for case in chosen:
            words = [*words_of(case, examples), switch, "-gpuinfo", *limits]
            ours = run([sys.executable, "-m", "bridge", *words], None)
            if ours is None:
                raise click.ClickException(f"{case.name}: nothing printed")
            rows.append(row_of(case, ours, theirs[case.name].result()))
            click.echo(table(rows[-1:], timeout).splitlines()[-1], err=True)
    click.echo(table(rows, timeout))
    if json_file:
        record = {
            "command": " ".join(sys.argv),
            "date": time.strftime("%Y-%m-%d"),
            "machine": platform.machine(),
            "rows": [asdict(row) for row in rows],
        }
        Path(json_file).write_text(json.dumps(record, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
