"""Write Herman's self-stabilising token ring as a PRISM model, for any odd size.

The processes of a ring hold one bit each and move in step. A process whose bit equals its
left neighbour's holds a token: it draws a new bit. Every other process copies its left
neighbour's bit. Each configuration is an initial state, and with an odd number of processes
the number of tokens is odd; the ring is stable when one token is left.

Source: T. Herman, Probabilistic self-stabilization, Information Processing Letters 35(2),
1990, pp. 63-67.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

_HEADER = """\
// Herman's self-stabilising ring of {n} processes. Written by herman.py.
// T. Herman, Probabilistic self-stabilization, Information Processing Letters 35(2), 1990.

dtmc

const int N = {n};
"""

_PROCESS = """
module Process{process}
  {own} : [0..1];
  [tick] {own}={left} -> 1/2 : ({own}'=0) + 1/2 : ({own}'=1);
  [tick] {own}!={left} -> ({own}'={left});
endmodule
"""

_FOOTER = """
// Tokens in the ring: processes that agree with their left neighbour
formula num_tokens =
  {tokens};

label "stable" = num_tokens=1;

init
  true
endinit

rewards "steps"
  true : 1;
endrewards
"""

_PROPERTIES_HEADER = """\
// Properties of Herman's ring of {n} processes. Written by herman.py.

"stabilises": filter(forall, P>=1 [ F "stable" ])
"slowest": filter(max, R{{"steps"}}=? [ F "stable" ])
"""

_TOKEN_PROPERTIES = """
"slowest_of_{k}": filter(max, R{{"steps"}}=? [ F "stable" ], num_tokens={k})
"quickest_of_{k}": filter(min, R{{"steps"}}=? [ F "stable" ], num_tokens={k})
"""


def _check_size(n: int) -> None:
    if n < 3 or n % 2 == 0:
        raise ValueError(f"Herman's ring needs an odd number of processes, at least 3; got {n}")


def herman_model(n: int) -> str:
    """Return the ring of `n` processes in PRISM's modelling language.

    Parameters
    ----------
    n : int
        Number of processes: odd, at least 3.

    Returns
    -------
    str
        A DTMC with bits ``b1``…``bn``, 2^n states (all initial) and 3^n + 1 transitions; the
        formula ``num_tokens``, the label ``"stable"`` and the reward structure ``"steps"``.

    Raises
    ------
    ValueError
        If `n` is even or less than 3.
    """
    _check_size(n)
    left_neighbours = {i: i - 1 if i > 1 else n for i in range(1, n + 1)}
    processes = [
        _PROCESS.format(process=i, own=f"b{i}", left=f"b{left}")
        for i, left in left_neighbours.items()
    ]
    tokens = "\n  + ".join(f"(b{i}=b{left} ? 1 : 0)" for i, left in left_neighbours.items())
    return _HEADER.format(n=n) + "".join(processes) + _FOOTER.format(tokens=tokens)


def herman_properties(n: int) -> str:
    """Return properties of the ring of `n` processes that need no constants.

    Those of ``herman.props``, with its constant ``k`` replaced by every number of tokens that
    a ring of this size can hold.

    Parameters
    ----------
    n : int
        Number of processes: odd, at least 3.

    Returns
    -------
    str
        A PRISM properties file: ``"stabilises"``, ``"slowest"``, then ``"slowest_of_k"`` and
        ``"quickest_of_k"`` for k = 1, 3, …, n.

    Raises
    ------
    ValueError
        If `n` is even or less than 3.
    """
    _check_size(n)
    by_tokens = [_TOKEN_PROPERTIES.format(k=k) for k in range(1, n + 1, 2)]
    return _PROPERTIES_HEADER.format(n=n) + "".join(by_tokens)


def _write_whole(path: Path, text: str) -> None:
    if path.exists() and not path.is_file():  # a pipe or a device cannot be replaced
        path.write_text(text, encoding="utf-8")
        return
    path = path.resolve()
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@click.command()
@click.argument("n", metavar="N", type=int)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to FILE instead of the standard output; FILE appears whole or not at all.",
)
@click.option("--properties", is_flag=True, help="Write the properties instead of the model.")
def main(n: int, output: Path | None, properties: bool) -> None:
    """Write the PRISM model of Herman's ring of N processes (odd, at least 3)."""
    try:
        text = herman_properties(n) if properties else herman_model(n)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="N") from error
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        _write_whole(output, text)
    except OSError as error:
        raise click.FileError(str(output), error.strerror or str(error)) from error


if __name__ == "__main__":
    main()
