"""Write the cyclic server polling system as a PRISM model, for any number of stations.

A server goes round the stations. Each holds one customer at most; where one waits, the server
serves it, and goes on. A station that is served or empty gets its next customer after a while.

Source: O. Ibe, K. Trivedi, Stochastic Petri net models of polling systems, IEEE Journal on
Selected Areas in Communications 8(9), 1990, pp. 1649-1657.
"""

from __future__ import annotations

from pathlib import Path

import click

_HEADER = """\
// Polling system of {n} stations. Written by polling.py.
// O. Ibe, K. Trivedi, Stochastic Petri net models of polling systems, IEEE JSAC 8(9), 1990.

ctmc

const int N = {n};

const double serve  = 1;
const double walk   = 200;     // to the next station, and to begin to serve
const double arrive = serve/N;

module Server

  at      : [1..N] init 1;
  serving : bool init false;
"""

_VISIT = """
  [] at={i} & !serving & !waiting_{i} -> walk : (at'={next});
  [] at={i} & !serving & waiting_{i}  -> walk : (serving'=true);
  [served_{i}] at={i} & serving -> serve : (at'={next}) & (serving'=false);
"""

_STATION = """
module Station{i}

  waiting_{i} : bool init false;

  [] !waiting_{i} -> arrive : (waiting_{i}'=true);
  [served_{i}] waiting_{i} -> (waiting_{i}'=false);

endmodule
"""

_FOOTER = """
// Customers of the first station that are served
rewards "served"
  [served_1] true : 1;
endrewards
"""

_PROPERTIES = """\
// Properties of polling systems. Written by polling.py.

// The first station is served before the second one
"before": P=? [ !(at=2 & serving) U (at=1 & serving) ]

// A customer waits at the first station, in the long run
"s1": S=? [ waiting_1 & !(at=1 & serving) ]
"""


def polling_model(n: int) -> str:
    """Return the polling system of `n` stations in PRISM's modelling language.

    Parameters
    ----------
    n : int
        Number of stations, at least 2.

    Returns
    -------
    str
        A CTMC with 3n·2^(n − 1) states and n(3n + 5)·2^(n − 2) transitions.

    Raises
    ------
    ValueError
        If `n` is less than 2.
    """
    if n < 2:
        raise ValueError(f"a polling system needs at least 2 stations; got {n}")
    stations = range(1, n + 1)
    visits = "".join(_VISIT.format(i=i, next=i % n + 1) for i in stations)
    modules = "".join(_STATION.format(i=i) for i in stations)
    return _HEADER.format(n=n) + visits + "\nendmodule\n" + modules + _FOOTER


def polling_properties() -> str:
    """Return the two properties of the thesis, for any number of stations."""
    return _PROPERTIES


@click.command()
@click.argument("n", metavar="N", type=int)
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Where."
)
@click.option("--properties", is_flag=True, help="Write the properties instead of the model.")
def main(n: int, output: Path | None, properties: bool) -> None:
    """Write the PRISM model of a polling system of N stations (at least 2)."""
    try:
        text = polling_properties() if properties else polling_model(n)
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
