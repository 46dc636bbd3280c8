"""The command line: PRISM's switches pass through, ours are taken out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from bridge.help import HELP, help_on, is_explained
from bridge.jvm import JvmOptions, default_options, memory_bytes
from bridge.own_switches import READERS, SETTINGS, UsageError, on_or_off, one_of
from bridge.versions import OWN_VERSION
from engines.model.environment import Convention
from prism_hooks.options import SIMULATION, HookOptions

EXPLICIT = {"explicit", "ex"}
SPARSE_OR_HYBRID = {"sparse": "sparse", "s": "sparse", "hybrid": "hybrid", "h": "hybrid"}
MTBDD_WORK = "work of the MTBDD engine"
# What PRISM's own code does as a whole: its MTBDD engine, and what has an engine of its own.
LEFT_TO_PRISM = {
    **dict.fromkeys(("mtbdd", "m"), MTBDD_WORK),
    "exact": "exact model checking",
    "param": "parametric model checking",
    "sim": SIMULATION,
}
LINEAR_METHODS = {
    *("power", "pow", "pwr", "jacobi", "jac", "jor", "sor", "bsor", "psor", "bpsor"),
    *("gaussseidel", "gs", "bgaussseidel", "bgs", "pgaussseidel", "pgs", "bpgaussseidel", "bpgs"),
}
# The explicit engine refuses the block-wise methods of the hybrid one.
BLOCKWISE = {
    "pgaussseidel": "gaussseidel",
    "pgs": "gaussseidel",
    "bpgaussseidel": "bgaussseidel",
    "bpgs": "bgaussseidel",
    "psor": "sor",
    "bpsor": "bsor",
}
HELP_SWITCHES = {"help", "?"}
MDP_METHODS = {"valiter", "gaussseidel", "gs", "politer", "modpoliter", "linprog", "lp"}
# PRISM's switches that a value follows, whatever it looks like.
WITH_VALUE = {
    *("aroptions", "bsccmethod", "const", "csl", "cuddepsilon", "cuddmaxmem"),
    *("ddextraactionvars", "ddextrastatevars", "ddtrace", "dir", "e", "epsilon", "exportadv"),
    *("exportadvmdp", "exportbsccs", "exportdigital", "exportdot", "exportlabels", "exportmecs"),
    *("exportmodel", "exportmodelprecision", "exportobs", "exportpareto", "exportprism"),
    *("exportprismconst", "exportprodstates", "exportprodtrans", "exportprodvector"),
    *("exportpropaut", "exportproplabels", "exportresults", "exportsccs", "exportss"),
    *("exportstaterewards", "exportstates", "exportsteadystate", "exportstrat", "exporttarget"),
    *("exporttr", "exporttrans", "exporttransdot", "exporttransdotstates", "exporttransient"),
    *("exporttransrewards", "exportvector", "fauarraythreshold", "faudelta", "fauepsilon"),
    *("fauinitival", "fauintervals", "gridresolution", "gsl", "gsmax", "heuristic"),
    *("importinitdist", "importlabels", "importmodel", "importobs", "importprismpp"),
    *("importresults", "importstaterewards", "importstates", "importtrans", "importtransrewards"),
    *("ltl2dasyntax", "ltl2datool", "mainlog", "maxiters", "multimaxpoints", "omega", "param"),
    *("parambisim", "paramdagmaxerror", "paramelimorder", "paramfunction", "paramprecision"),
    *("paramrandompoints", "paramsplit", "paramsubsumeregions", "paretoepsilon", "pctl", "pf"),
    *("prop", "property", "ptamethod", "sbl", "sbmax", "sccmethod", "settings", "simapprox"),
    *("simconf", "simmaxrwd", "simmethod", "simpathlen", "simsamples", "simvar", "simwidth"),
    *("sorl", "sormax", "sumroundoff", "timeout", "tr", "transient", "transientmethod"),
}
WITH_TWO_VALUES = {"simpath", "exportrewards", "symm"}
OWN_SIMULATION_METHODS = ("clopper-pearson", "adaptive", "growing")
SIMULATION_SWITCHES = {"simwidth", "simconf", "simsamples", "simmaxrwd", "simapprox"}
FRONT_ENDS = ("prism", "builtin")


@dataclass(frozen=True)
class Arguments:
    """A command line, taken apart.

    Parameters
    ----------
    prism
        What PRISM is given.
    hooks
        What the engines are told.
    jvm
        What the JVM is told.
    prism_dir
        PRISM's folder, if named.
    front_end
        "prism" or "builtin", if named.
    files
        The words that are no switch and no switch's value: the model, the properties.
    plot
        The file that a plot of the run goes to, if one is wanted.
    engines
        Whether our engines take part.
    gui, help, version
        Whether PRISM's GUI is wanted, or its list of switches, or its version.
    help_on
        A switch that is to be explained; empty for none.
    words
        All of the command line.
    """

    prism: tuple[str, ...] = ()
    hooks: HookOptions = field(default_factory=HookOptions)
    jvm: JvmOptions = field(default_factory=JvmOptions)
    prism_dir: str | None = None
    front_end: str | None = None
    files: tuple[str, ...] = ()
    plot: str | None = None
    engines: bool = True
    gui: bool = False
    help: bool = False
    version: bool = False
    help_on: str = ""
    words: tuple[str, ...] = ()

    @property
    def own_help(self) -> str:
        """The explanation that is asked for, of a switch of ours; empty for another."""
        # Simulation's methods are PRISM's, too, whose help tells more of them.
        ours = self.help_on != "simmethod" and is_explained(self.help_on)
        return help_on(self.help_on) if ours else ""

    @property
    def at_the_end(self) -> str:
        """What is printed when PRISM is through."""
        return HELP if self.help else f"prism-gpu version {OWN_VERSION}" if self.version else ""


def parse(argv: list[str], environ: Mapping[str, str]) -> Arguments:
    """Take a command line apart.

    Parameters
    ----------
    argv
        The arguments, without the program's name. Switches start with one dash or two.
    environ
        The environment, for what PRISM's start script reads from it.

    Raises
    ------
    UsageError
        For a switch of ours without its value or with a wrong one.
    BridgeError
        For an environment variable with a wrong value.
    """
    parser = _Parser(argv, default_options(environ))
    parser.run()
    return replace(parser.result(), words=tuple(argv))


class _Parser:
    def __init__(self, argv: list[str], jvm: JvmOptions) -> None:
        self._words: Iterator[str] = iter(argv)
        self._prism: list[str] = []
        self._hooks = HookOptions()
        self._jvm = jvm
        self._rest = Arguments()

    def result(self) -> Arguments:
        self._require_simulation()
        if self._hooks.likely is not None and (self._rest.gui or not self._rest.engines):
            raise UsageError("-gputruncate is not PRISM's: neither -gui nor -gpuengine off has it")
        if self._rest.plot is not None and self._rest.gui:
            raise UsageError("-gpuplot draws what a command line ran; -gui has plots of its own")
        if self._rest.plot is not None and not self._rest.engines:
            raise UsageError("-gpuplot draws what our engines do, and -gpuengine is off")
        jvm, hooks = self._jvm, self._hooks
        if self._rest.gui:
            jvm = replace(jvm, headless=False)
            # The window shows an engine, which is the one that is used.
            hooks = replace(hooks, show_progress=False, engine_named=True)
        return replace(self._rest, prism=tuple(self._prism), hooks=hooks, jvm=jvm)

    def _require_simulation(self) -> None:
        """Raise for switches about paths that nobody samples, or PRISM's simulator."""
        hooks = self._hooks
        named = {
            f"-simmethod {hooks.simulation_method}": (bool(hooks.simulation_method), ""),
            "-simcluster": (bool(hooks.simulation_cluster), "says who samples paths"),
            "-gpusimstates": (hooks.simulation_states is not None, "is about sampled paths"),
            "-gpusimsync": (bool(hooks.simulation_sync), "is about sampled paths"),
        }
        for switch, (given, purpose) in named.items():
            if given and not self._rest.engines:
                raise UsageError(f"{switch} is not PRISM's, and -gpuengine is off")
            if given and purpose and hooks.left_to_prism != SIMULATION:
                raise UsageError(f"{switch} {purpose}: it needs -sim")

    def run(self) -> None:
        for word in self._words:
            switch = _switch_name(word)
            if switch is None:
                self._rest = replace(self._rest, files=(*self._rest.files, word))
            if switch is None or not self._ours(switch):
                self._note(switch or "", word)

    def _ours(self, switch: str) -> bool:
        """Handle a switch that PRISM does not know; return whether it was one."""
        if switch in SETTINGS:
            field_name, setting = SETTINGS[switch]
            self._hooks = replace(self._hooks, **{field_name: setting})  # type: ignore[arg-type]
        elif switch in READERS:
            field_name, read = READERS[switch]
            value = read(self._value(switch), switch)
            self._hooks = replace(self._hooks, **{field_name: value})  # type: ignore[arg-type]
        elif switch == "gpuengine":
            self._rest = replace(self._rest, engines=on_or_off(self._value(switch), switch))
        elif switch == "gpuplot":
            self._rest = replace(self._rest, plot=self._value(switch))
        elif switch == "gui":
            self._rest = replace(self._rest, gui=True)
        elif switch == "frontend":
            value = one_of(FRONT_ENDS, self._value(switch), switch)
            self._rest = replace(self._rest, front_end=value)
        elif switch == "prism-dir":
            self._rest = replace(self._rest, prism_dir=self._value(switch))
        elif switch.startswith("prism-dir="):
            self._rest = replace(self._rest, prism_dir=switch.partition("=")[2])
        elif switch.startswith("gpu"):
            from difflib import get_close_matches

            near = get_close_matches(f"-{switch}", re.findall(r"^-gpu\w+", HELP, re.MULTILINE), 1)
            hint = f"did you mean {near[0]}?" if near else 'type "prism-gpu -help" for full list'
            raise UsageError(f"Unknown switch -{switch} ({hint})")
        else:
            return False
        return True

    def _note_simulation_method(self) -> None:
        """Note a method of simulation that PRISM does not have, and put another in its place."""
        value = self._value("simmethod")
        own = value in OWN_SIMULATION_METHODS
        self._hooks = replace(self._hooks, simulation_method=value if own else "")
        # PRISM has to take one of its own, whose parameters have the same names.
        self._words = chain(["ci" if own else value], self._words)

    def _note_speed(self) -> None:
        """Note that PRISM goes over to its sparse engine and to Gauss-Seidel, whatever is named."""
        self._hooks = replace(
            self._hooks,
            engine_named=True,
            convention=Convention.SPARSE,
            symbolic_engine="sparse",
            linear_method_named=True,
        )

    def _note_help(self, given: list[str]) -> None:
        """Note that help is wanted: the list of switches, or what one of them does."""
        if given:
            self._rest = replace(self._rest, help_on=given[0].lstrip("-"))
        else:
            self._rest = replace(self._rest, help=True)

    def _note(self, switch: str, word: str) -> None:
        """Pass a word on to PRISM, noting what the engines must know of it."""
        hooks = self._hooks
        if switch in EXPLICIT or switch in SPARSE_OR_HYBRID:
            symbolic = SPARSE_OR_HYBRID.get(switch, "")
            convention = Convention.SPARSE if symbolic else Convention.EXPLICIT
            hooks = replace(
                hooks, engine_named=True, convention=convention, symbolic_engine=symbolic
            )
            if hooks.left_to_prism == MTBDD_WORK:
                # The engine that is named last is the one that PRISM uses.
                hooks = replace(hooks, left_to_prism="")
        elif switch in LEFT_TO_PRISM:
            # A simulation is one whatever the engine is.
            left = SIMULATION if hooks.left_to_prism == SIMULATION else LEFT_TO_PRISM[switch]
            hooks = replace(hooks, engine_named=True, left_to_prism=left)
        if switch in LINEAR_METHODS:
            hooks = replace(hooks, linear_method_named=True)
        if switch in MDP_METHODS:
            hooks = replace(hooks, mdp_method_named=True)
        if switch == "maxiters":
            hooks = replace(hooks, max_iterations_named=True)
        if switch == "simmethod":
            self._note_simulation_method()
            hooks = replace(hooks, simulation_method=self._hooks.simulation_method)
        if switch == "version":
            self._rest = replace(self._rest, version=True)
        self._hooks = hooks
        self._prism.append(word)
        if switch in ("javamaxmem", "javastack"):
            self._memory(switch)
        elif switch == "javaparams":
            value = self._pass_on(switch)
            self._jvm = replace(self._jvm, extra=(*self._jvm.extra, *value.split()))
        else:
            valued = switch in WITH_VALUE or switch in HELP_SWITCHES
            values = 2 if switch in WITH_TWO_VALUES else int(valued)
            given = list(islice(self._words, values))
            self._prism.extend(given)
            if switch in HELP_SWITCHES:
                self._note_help(given)
            if switch == "heuristic" and given == ["speed"]:
                self._note_speed()
            if switch in SIMULATION_SWITCHES and given:
                noted = (*self._hooks.simulation, (switch, given[0]))
                self._hooks = replace(self._hooks, simulation=noted)

    def _memory(self, switch: str) -> None:
        value = self._pass_on(switch)
        try:
            memory_bytes(value)
        except ValueError as error:
            raise UsageError(f"Invalid value for -{switch} switch") from error
        name = "max_memory" if switch == "javamaxmem" else "stack"
        self._jvm = replace(self._jvm, **{name: value})  # type: ignore[arg-type]

    def _pass_on(self, switch: str) -> str:
        value = self._value(switch)
        self._prism.append(value)
        return value

    def _value(self, switch: str) -> str:
        value = next(self._words, None)
        if value is None:
            raise UsageError(f"No value specified for -{switch} switch")
        return value


def _switch_name(word: str) -> str | None:
    """Return a switch without its dashes and sub-options, or None for another word."""
    if not word.startswith("-") or word in ("-", "--"):
        return None
    name = word[2:] if word.startswith("--") else word[1:]
    return name.partition(":")[0]


def without_blockwise_methods(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return PRISM's words with block-wise methods replaced by their plain forms.

    Parameters
    ----------
    words
        Words for PRISM. Only where no engine is named, and the explicit one is chosen, may they be
        replaced: it refuses the block-wise methods.
    """
    return tuple(
        f"-{BLOCKWISE[name]}" if (name := _switch_name(word)) in BLOCKWISE else word
        for word in words
    )
