"""Write Lehmann and Rabin's dining philosophers as a PRISM model, for any number of them.

Philosophers sit in a ring with a fork between each two. A hungry philosopher draws a side by a
fair coin, waits for the fork of that side and takes it, then looks at the other fork: when it is
free he takes it and eats, else he puts the first one back and draws again. One philosopher moves
at a time; among all moves that are possible each is equally likely. The model is a DTMC without
synchronisation, whose size grows linearly and whose state space grows exponentially with the
number of philosophers.

Source: D. Lehmann, M. O. Rabin, On the advantages of free choice: a symmetric and fully
distributed solution to the dining philosophers problem, POPL 1981, pp. 133-138.
"""

from __future__ import annotations

from pathlib import Path

import click

_HEADER = """\
// {n} dining philosophers. Written by philosophers.py.
// D. Lehmann, M. O. Rabin, On the advantages of free choice, POPL 1981.

dtmc

// What a philosopher does: 0 thinks, 1 draws a side, 2 waits for the left fork, 3 waits for the
// right fork, 4 has the left fork, 5 has the right fork, 6 eats.
"""

_PHILOSOPHER = """
// Philosopher {own}; on the left sits {left}, on the right {right}.
module Philosopher{own}
  p{own} : [0..6];
  [] p{own}=0 -> (p{own}'=1);
  [] p{own}=1 -> 1/2 : (p{own}'=2) + 1/2 : (p{own}'=3);
  [] p{own}=2 & p{left}<5 -> (p{own}'=4);
  [] p{own}=3 & p{right}!=4 & p{right}!=6 -> (p{own}'=5);
  [] p{own}=4 & p{right}!=4 & p{right}!=6 -> (p{own}'=6);
  [] p{own}=4 & (p{right}=4 | p{right}=6) -> (p{own}'=1);
  [] p{own}=5 & p{left}<5 -> (p{own}'=6);
  [] p{own}=5 & p{left}>=5 -> (p{own}'=1);
  [] p{own}=6 -> (p{own}'=0);
endmodule
"""

_FOOTER = """
label "first_eats" = p1=6;
label "second_eats" = p2=6;

rewards "moves"
  true : 1;
endrewards
"""

_PROPERTIES = """\
// Properties of {n} dining philosophers. Written by philosophers.py.

// Within 200 moves the first philosopher eats
"first": P=? [ F<=200 "first_eats" ]

// Within 200 moves the first philosopher eats before the second does
"first_before_second": P=? [ !"second_eats" U<=200 "first_eats" ]
"""


def _check_number(n: int) -> None:
    if n < 3:
        raise ValueError(f"there have to be at least 3 philosophers; got {n}")


def philosophers_model(n: int) -> str:
    """Return `n` philosophers in PRISM's modelling language.

    Parameters
    ----------
    n : int
        Number of philosophers: at least 3.

    Returns
    -------
    str
        A DTMC with variables ``p1``…``pn``, labels ``"first_eats"`` and ``"second_eats"``, and
        the reward structure ``"moves"``.

    Raises
    ------
    ValueError
        If `n` is less than 3.
    """
    _check_number(n)
    philosophers = [
        _PHILOSOPHER.format(own=i, left=i - 1 if i > 1 else n, right=i + 1 if i < n else 1)
        for i in range(1, n + 1)
    ]
    return _HEADER.format(n=n) + "".join(philosophers) + _FOOTER


def philosophers_properties(n: int) -> str:
    """Return bounded properties of `n` philosophers.

    Parameters
    ----------
    n : int
        Number of philosophers: at least 3.

    Raises
    ------
    ValueError
        If `n` is less than 3.
    """
    _check_number(n)
    return _PROPERTIES.format(n=n)


@click.command()
@click.argument("n", metavar="N", type=int)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to FILE instead of the standard output.",
)
@click.option("--properties", is_flag=True, help="Write the properties instead of the model.")
def main(n: int, output: Path | None, properties: bool) -> None:
    """Write the PRISM model of N dining philosophers (at least 3)."""
    try:
        text = philosophers_properties(n) if properties else philosophers_model(n)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="N") from error
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.FileError(str(output), error.strerror or str(error)) from error


if __name__ == "__main__":
    main()
