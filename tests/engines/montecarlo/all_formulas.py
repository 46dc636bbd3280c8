"""Monitors of all formulas up to depth 3 over two propositions, on all words up to length 6.

    python -m tests.engines.montecarlo.all_formulas [--processes N] [--log FILE] [--part I/N]

The operators are those of `languages`: four of one operand and seven of two. Depths 0, 1 and 2 are
checked in full, 4,154 different formulas, and so is every operator of one operand over each of
them. Of the operators over two operands, those are taken from one formula for each of the 882
languages that formulas up to depth 2 have. Whatever the log already holds is not done again, so
that a run may be stopped at any time; an hour of one core does it all.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import sys
import time
from functools import cache
from pathlib import Path

import click
import numpy as np
from tqdm import tqdm

from engines.montecarlo.monitor import monitor_of
from tests.engines.montecarlo.languages import (
    ATOMS,
    BINARY,
    LEAVES,
    UNARY,
    WORDS,
    language_of,
    one_more_operator,
    one_per_language,
)

COMMUTATIVE = ("&", "|", "<=>")
"""Operators whose operands may be exchanged: the formula is the same object then."""


@cache
def up_to_depth_2():
    """All formulas up to depth 2 that are different objects, with their languages."""
    shallow = dict([*LEAVES, *one_more_operator(LEAVES)])
    return list((shallow | dict(one_more_operator(list(shallow.items())))).items())


@cache
def operands():
    """One formula up to depth 2 for each language."""
    shallow = one_per_language([*LEAVES, *one_more_operator(LEAVES)])
    return one_per_language([*shallow, *one_more_operator(shallow)])


def chunks():
    """The names of the parts: an operator, and the number of its left operand."""
    names = ["up to depth 2", *UNARY]
    return names + [f"{symbol} {left}" for left in range(len(operands())) for symbol in BINARY]


def formulas_of(chunk):
    """The formulas of a part, with their languages."""
    symbol, _, left = chunk.partition(" ")
    if chunk == "up to depth 2":
        yield from up_to_depth_2()
    elif not left:
        make, language = UNARY[symbol]
        for formula, words in up_to_depth_2():
            yield make(formula), language(words)
    else:
        make, language = BINARY[symbol]
        formula, words = operands()[int(left)]
        others = operands()[int(left) if symbol in COMMUTATIVE else 0 :]
        for other, its_words in others:
            yield make(formula, other), language(words, its_words)


def check(chunk):
    """Compare the monitors of a part with the languages; a record for the log."""
    begin = time.perf_counter()
    count = largest = 0
    wrong = []
    for formula, words in formulas_of(chunk):
        monitor = monitor_of(formula, ATOMS)
        count += 1
        largest = max(largest, len(monitor.accepting))
        if not np.array_equal(language_of(monitor), words):
            wrong.append(str(formula))
    seconds = time.perf_counter() - begin
    return {
        "chunk": chunk,
        "formulas": count,
        "states": largest,
        "seconds": round(seconds, 3),
        "wrong": wrong,
    }


def part_of(names, part):
    """Every N-th of the names from the I-th on, for `I/N`."""
    which, _, parts = part.partition("/")
    return list(itertools.islice(names, int(which) - 1, None, int(parts)))


@click.command()
@click.option("--processes", default=multiprocessing.cpu_count(), show_default=True)
@click.option("--log", type=click.Path(path_type=Path), help="What is done, a line a part.")
@click.option("--part", default="1/1", show_default=True, help="Only so much of all: I/N.")
def main(processes: int, log: Path | None, part: str) -> None:
    """Check all formulas, and say how many there were."""
    begin = time.perf_counter()
    lines = log.read_text().splitlines() if log is not None and log.exists() else []
    records = {record["chunk"]: record for record in map(json.loads, lines)}
    wanted = part_of(chunks(), part)
    missing = [chunk for chunk in wanted if chunk not in records]
    # What the processes share is computed before they are made.
    up_to_depth_2()
    context = multiprocessing.get_context("fork")
    with context.Pool(processes) as pool:
        for record in tqdm(pool.imap_unordered(check, missing), total=len(missing), smoothing=0):
            records[record["chunk"]] = record
            if log is not None:
                with log.open("a") as file:
                    file.write(json.dumps(record) + "\n")
    done = [records[chunk] for chunk in wanted]
    count = sum(record["formulas"] for record in done)
    wrong = [text for record in done for text in record["wrong"]]
    click.echo(
        f"{count:,} formulas, {count * len(WORDS):,} pairs of a formula and a word, the largest "
        f"monitor of {max(record['states'] for record in done)} states; "
        f"{sum(record['seconds'] for record in done):.0f} s of processor time, "
        f"{time.perf_counter() - begin:.0f} s here"
    )
    for text in wrong[:20]:
        click.echo(f"WRONG: {text}")
    if wrong:
        sys.exit(f"{len(wrong)} monitors differ from the definition")


if __name__ == "__main__":
    main()
