"""Write the contract signing protocol of Even, Goldreich and Lempel as a PRISM model.

Each party splits its signature into pairs of secrets; a contract is signed for whoever knows both
secrets of one pair. First they hand over one secret of each pair by oblivious transfer, so that the
sender does not learn which; then all secrets bit by bit, the first ones of all pairs and after them
the second ones. Of each bit, A sends that of its first pair, B those of all its pairs, A the rest.

Sources: S. Even, O. Goldreich, A. Lempel, A randomized protocol for signing contracts,
Communications of the ACM 28(6), 1985, pp. 637-647; the order of messages is one that G. Norman
and V. Shmatikov study in Analysis of probabilistic contract signing, Journal of Computer Security
14(6), 2006.
"""

from __future__ import annotations

from pathlib import Path

import click

_PROTOCOL = """\
// Contract signing of Even, Goldreich and Lempel, {n} pairs of secrets. Written by egl.py.
// S. Even, O. Goldreich, A. Lempel, A randomized protocol for signing contracts, CACM 28(6), 1985.

dtmc

const int N = {n};             // pairs of secrets of each party
const int L;                   // bits of a secret

// In a round of transfers, A and B take turns. In a round of bits, A begins with its first pair,
// B sends a bit of each of its pairs, and A goes on with its others.
formula of_a = stage=0 ? mod(message, 2)=1 : message=1 | message>N+1;
formula pair = stage=0 ? ceil(message/2) : (message=1 ? 1 : message-(of_a ? N : 1));

module Rounds

  stage   : [0..3] init 0;     // 0 transfers, 1 bits of first secrets, 2 of second ones, 3 end
  bit     : [1..max(L, 2)] init 1;
  message : [1..2*N] init 1;   // of this round, the next

  [to_b] stage<3 & of_a & message<2*N  -> (message'=message+1);
  [to_a] stage<3 & !of_a & message<2*N -> (message'=message+1);

  [to_a] stage=0 & message=2*N                     -> (message'=1) & (stage'=1);
  [to_b] stage>0 & stage<3 & message=2*N & bit<L   -> (message'=1) & (bit'=bit+1);
  [to_b] stage>0 & stage<3 & message=2*N & bit=L   -> (message'=1) & (bit'=1) & (stage'=stage+1);

  [] stage=3 -> true;

endmodule
"""

_PARTY = """
// What was transferred of {owner}'s pairs, the first secret (0) or the second (1); nobody asks
// any more once both are known.
module PairsOf{owner}

  {variables}

  {transfers}
  [{action}] stage=1 | (stage=2 & bit<L) -> true;
  {ends}

endmodule

// The other party knows both secrets of one of {owner}'s pairs: the second by transfer and the
// first bit by bit, or both bit by bit.
formula open_{own} =
  {openings}
  | (stage=2 & bit=L & message>{first}) | stage=3;
"""

_FOOTER = """
label "a_knows" = open_b;
label "b_knows" = open_a;
label "done" = stage=3;

// Messages that A still gets, or lacks, while B alone knows a pair
rewards "messages_a_needs"
  [to_a] open_a & !open_b : 1;
endrewards

rewards "messages_b_needs"
  [to_b] open_b & !open_a : 1;
endrewards
"""

_PROPERTIES = """\
// Properties of contract signing. Written by egl.py.

// Messages from B that A needs for a pair once B knows one, and the other way round
"messages_a": R{"messages_a_needs"}=? [ F "done" ]
"messages_b": R{"messages_b_needs"}=? [ F "done" ]

// B knows a pair before A does, and the other way round
"unfair_to_a": P=? [ F "b_knows" & !"a_knows" ]
"unfair_to_b": P=? [ F "a_knows" & !"b_knows" ]
"""


def _party(n: int, own: str, action: str) -> str:
    pairs = range(1, n + 1)
    # The message of a round of bits that is about each pair: A's first comes before B's.
    messages = {i: i + 1 if own == "b" else (1 if i == 1 else n + i) for i in pairs}
    transfers = [
        f"[{action}] stage=0 & pair={i} -> 1/2 : ({own}{i}'=0) + 1/2 : ({own}{i}'=1);"
        for i in pairs
    ]
    ends = [f"[{action}] stage=2 & bit=L & pair={i} -> ({own}{i}'=0);" for i in pairs]
    openings = [
        f"({own}{i}=1 & (stage=2 | (stage=1 & bit=L & message>{messages[i]})))" for i in pairs
    ]
    return _PARTY.format(
        owner=own.upper(),
        own=own,
        action=action,
        variables="\n  ".join(f"{own}{i} : [0..1] init 0;" for i in pairs),
        transfers="\n  ".join(transfers),
        ends="\n  ".join(ends),
        openings="\n  | ".join(openings),
        first=messages[1],
    )


def egl_model(n: int) -> str:
    """Return the protocol for `n` pairs of secrets in PRISM's modelling language.

    Parameters
    ----------
    n : int
        Number of pairs of each party, at least 2.

    Returns
    -------
    str
        A DTMC with the constant ``L``, bits of a secret, 4^n (4nL - 2n + 3) - 2 states and 4^n - 1
        transitions more; the labels ``"a_knows"``, ``"b_knows"`` and ``"done"``.

    Raises
    ------
    ValueError
        If `n` is less than 2.
    """
    if n < 2:
        raise ValueError(f"contract signing needs at least 2 pairs of secrets; got {n}")
    return _PROTOCOL.format(n=n) + _party(n, "a", "to_b") + _party(n, "b", "to_a") + _FOOTER


def egl_properties() -> str:
    """Return the properties of the protocol, for any number of pairs."""
    return _PROPERTIES


@click.command()
@click.argument("n", metavar="N", type=int)
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Where."
)
@click.option("--properties", is_flag=True, help="Write the properties instead of the model.")
def main(n: int, output: Path | None, properties: bool) -> None:
    """Write the PRISM model of contract signing with N pairs of secrets (at least 2)."""
    try:
        text = egl_properties() if properties else egl_model(n)
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
