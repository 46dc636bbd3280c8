"""The command `python -m tests.signals`."""

from __future__ import annotations

import random
import sys

import click

from tests.signals.scenarios import scenarios
from tests.signals.sending import SIGNALS, send


@click.command()
@click.option("--signals", default=300, show_default=True, help="How many are sent.")
@click.option("--seed", default=1, show_default=True)
@click.option("--only", default="", help="The scenarios whose names begin so.")
def main(signals: int, seed: int, only: str) -> None:
    """Send SIGINT, SIGTERM and SIGHUP at random moments, and list what ended badly.

    Each run must end with 128 and the signal's number, silently, with nothing left behind: no
    process, no temporary file, no file that is not whole under its final name.
    """
    chance = random.Random(seed)
    chosen = [item for item in scenarios() if item.name.startswith(only)]
    bad = 0
    slowest = 0.0
    ends: dict[int, int] = {}
    for turn in range(signals):
        scenario = chosen[turn % len(chosen)]
        number = SIGNALS[(turn // len(chosen)) % len(SIGNALS)]
        delay = chance.uniform(0.0, scenario.seconds)
        outcome = send(scenario, number, delay)
        slowest = max(slowest, outcome.seconds)
        ends[outcome.code] = ends.get(outcome.code, 0) + 1
        if outcome.faults:
            bad += 1
            print(f"{scenario.name}: {number.name} after {delay:.3f} s: {outcome.faults}")
            print("    " + "\n    ".join(outcome.output.splitlines()[-40:]), flush=True)
    print(f"{signals} signals, {bad} ended badly; the slowest end took {slowest:.2f} s")
    print("exit codes:", ", ".join(f"{code}: {count}" for code, count in sorted(ends.items())))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
