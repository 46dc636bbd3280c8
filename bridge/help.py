"""What the list of switches says of ours."""

from __future__ import annotations

import re

HELP = """
ENGINES (prism-gpu):
-gpu ................................... Solve on the GPU [default where there is one]
-nogpu ................................. Solve on the CPU
-gpudevice <k> ......................... Solve on GPU number k [default: 0]
-gpuformat <name> ...................... Lay matrices out as auto, csr, values, patterns,
                                         segments, panels or hybrid; with -nogpu as auto, csr,
                                         values or patterns [default: auto]
-gpudevices <n> ........................ Share each solve out among n GPUs, or all [default: 1]
-gpumaxmem <x> ......................... Take no more of a GPU's memory than that, such as 4g; what
                                         does not fit travels in each sweep [default: what is free]
-gpuengine off ......................... Leave PRISM untouched, for comparison
-gpumethod <name> ...................... Chains: solve by power, jacobi, jor, gs, bgs, sor, bsor,
                                         for steady states multilevel, else gmres [default: auto]
-gpuslice <n> .......................... Gauss-Seidel: slices of n states, coloured by congruence
-gpucolours <n> ........................ Gauss-Seidel: in so many colours [default: chosen]
-gpuprecision <name> ................... Sweep in double, single or mixed precision, where bounds
                                         are not asked for [default: double]
-gpuinfo ............................... Print a line on each solve: engine, kernel, speed
-gpuplot <file> ........................ Draw the residuals of the sweeps, and the results of
                                         experiments, into a .png, .svg or .pdf
-maxstates <n> ......................... Build no model that has more states: stop with an error
-gputruncate <p> ....................... Explore only states reached with about probability p or
                                         more, at most -maxstates of them, and print bounds of
                                         each P and R that are right whatever the others do
-gpuprogress <on|off> .................. Show the progress of long solves, on a terminal
                                         [default: on]
-simmethod <name> ..................... Also clopper-pearson or adaptive, which are sound, and
                                         growing, which decides lower bounds by path prefixes
-gpusimseed <n> ........................ With -sim: sample the paths of this seed [default: new]
-gpusimstates <k> ...................... With -sim: ask path formulas, any of LTL, of the first k
                                         states of each path
-gpusimsync <name> ..................... With -sim: combine the commands of an action beforehand
                                         (compile), at each step (runtime), or draw one before its
                                         guard is evaluated (lazy) [default: compile or runtime]
-gpusimsource <file.c> ................. With -sim: write the compiled model as a program: cc file.c
                                         && ./a.out SEED FIRST COUNT counts those paths
-simcluster <address> .................. With -sim: sample on the workers of a dask scheduler, or,
                                         as local:<n>, in n processes of this machine; with :low
                                         behind it, at the lowest priority
--prism-dir <dir> ...................... Use the PRISM in this folder
-frontend <name> ....................... Parse and build with prism, or as builtin without it
                                         [default: prism where it is there; files need none]
-gui ................................... Open PRISM's GUI with the engines inside

"prism-gpu doctor" tells what was found, what is missing and how to get it.
"prism-gpu server" keeps PRISM loaded for many small runs; it has --help.
"prism-gpu reproduce" measures published experiments again, "prism-gpu regress" compares our
values with PRISM's in every state; each has --help.
"prism-gpu export", "solve" and "report" solve on another machine than PRISM's; each has -help.
A model may be explicit files too: a .umb, a .tra with its companions, a .pexp, or a folder."""


def is_explained(switch: str) -> bool:
    """Return whether a switch is one of ours.

    Parameters
    ----------
    switch
        Its name, without a dash.
    """
    return _entry(switch) is not None


def help_on(switch: str) -> str:
    """Return what the list says of one of our switches.

    Parameters
    ----------
    switch
        Its name, without a dash.

    Raises
    ------
    KeyError
        For another switch.
    """
    entry = _entry(switch)
    if entry is None:
        raise KeyError(switch)
    return entry[0]


def _entry(switch: str) -> re.Match[str] | None:
    return re.search(rf"^-{{1,2}}{re.escape(switch)} .*(?:\n .*)*", HELP, re.MULTILINE)
