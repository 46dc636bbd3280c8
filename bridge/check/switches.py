"""PRISM's switches, as far as they have a meaning without PRISM."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from bridge.check.export_request import ModelExport, parse_model_export
from bridge.check.simulation_options import SimulationOptions
from bridge.own_switches import UsageError
from engines.arrays import INT32_MAX
from engines.errors import UnsupportedError
from engines.model.environment import BoundMethod, IntervalOptions, Method, SolverEnvironment
from engines.model.explicit import ModelKind
from prism_hooks.options import HookOptions

ENGINES = {
    *("explicit", "ex", "sparse", "s", "hybrid", "h", "mtbdd", "m"),
}
METHODS = {
    **dict.fromkeys(("power", "pow", "pwr"), Method.POWER),
    **dict.fromkeys(("jacobi", "jac"), Method.JACOBI),
    "jor": Method.JOR,
    **dict.fromkeys(("gaussseidel", "gs", "pgaussseidel", "pgs"), Method.GAUSS_SEIDEL),
    **dict.fromkeys(
        ("bgaussseidel", "bgs", "bpgaussseidel", "bpgs"), Method.BACKWARDS_GAUSS_SEIDEL
    ),
    **dict.fromkeys(("sor", "psor"), Method.SOR),
    **dict.fromkeys(("bsor", "bpsor"), Method.BACKWARDS_SOR),
    "politer": Method.POLICY_ITERATION,
    "modpoliter": Method.MODIFIED_POLICY_ITERATION,
}
# Switches that change how PRISM works, and not what it computes.
WITHOUT_EFFECT = {
    *("nopre", "noprob0", "noprob1", "noprerel", "nofair", "nossdetect"),
    *("nocompact", "extraddinfo", "extrareachinfo", "ddsanity", "valiter", "zerorewardcheck"),
}
WITHOUT_EFFECT_WITH_VALUE = {
    *("javamaxmem", "javastack", "javaparams", "cuddmaxmem", "cuddepsilon", "sbl", "sbmax"),
    *("gsl", "sorl", "gsmax", "sormax", "ddextrastatevars", "ddextraactionvars", "sccmethod"),
}
PRISM_ONLY = {
    *("javaversion", "settings", "simpath", "test", "testall", "ng", "importpepa", "importobs"),
    *("importresults", "exportobs", "exportproplabels", "exportstrat", "exportmatlab"),
    *("exportrows", "exporttransdot", "exporttransdotstates", "exportdot", "exportsccs"),
    *("exportbsccs", "exportmecs", "exportprism", "exportprismconst", "exportmodelprecision"),
    *("exact", "ptamethod", "transientmethod", "heuristic"),
    *("gridresolution", "fair", "sumroundoff", "symm", "aroptions", "pathviaautomata"),
    *("nodasimplify", "exportadv", "exportadvmdp", "ltl2datool", "ltl2dasyntax"),
    *("exportiterations", "pmaxquotient", "linprog", "lp", "multimaxpoints", "paretoepsilon"),
    *("exportpareto", "param", "paramprecision", "paramsplit", "parambisim", "paramfunction"),
    *("paramelimorder", "paramrandompoints", "paramsubsumeregions", "paramdagmaxerror"),
    *("fauepsilon", "faudelta", "fauarraythreshold", "fauintervals", "fauinitival"),
    *("importstates", "importlabels", "importstaterewards"),
    *("importtransrewards", "importinitdist", "exportrewards", "exportstaterewards"),
    *("exporttransrewards", "dddebug", "ddtrace", "ddtraceall", "ddtracefollowcopies"),
    *("dddebugwarnfatal", "dddebugwarnoff", "keywords", "timeout", "mainlog"),
}

LARGEST_LONG = (1 << 63) - 1
"""Java's whole numbers of 64 bits end there."""


@dataclass(frozen=True)
class CheckOptions:
    """What a command line asks of the embedded front end.

    Parameters
    ----------
    files
        The model's file, and the properties' file if there is one.
    properties_text
        What -pctl, -csl or -pf gave, or None.
    selected
        Which properties to check, by number or name; empty for all.
    constants
        The texts of -const.
    environment
        How to solve.
    kind
        What -dtmc, -ctmc or -mdp say of a model in text files.
    results_file, results_format, vector_file
        Where results and vectors are exported to.
    model_files
        What to export of the model, and where to.
    export_headers
        Whether those files have headers where the switch itself does not say.
    steady_state, transient
        Whether to compute the steady-state distribution, and at which times the transient one.
    steady_state_file, transient_file
        Where those are exported to.
    fix_deadlocks, verbose, build
        Whether deadlocks get a self-loop, long lists are shown, the model is built at all.
    show_solves
        Whether a line a solve is printed.
    simulate, simulation
        Whether -sim asks for sampled paths, and how they are sampled.
    remarks
        Lines for the log: what runs otherwise than named.
    """

    files: tuple[str, ...] = ()
    properties_text: str | None = None
    selected: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    environment: SolverEnvironment = field(default_factory=SolverEnvironment)
    kind: ModelKind | None = None
    results_file: str | None = None
    results_format: str = "list"
    vector_file: str | None = None
    model_files: tuple[ModelExport, ...] = ()
    export_headers: bool = True
    steady_state: bool = False
    transient: str | None = None
    steady_state_file: str | None = None
    transient_file: str | None = None
    fix_deadlocks: bool = True
    verbose: bool = False
    build: bool = True
    show_solves: bool = False
    simulate: bool = False
    simulation: SimulationOptions = field(default_factory=SimulationOptions)
    remarks: tuple[str, ...] = ()


def read_switches(words: tuple[str, ...], hooks: HookOptions) -> CheckOptions:
    """Return what a command line asks for.

    Parameters
    ----------
    words
        The command line without what is prism-gpu's own.
    hooks
        What is prism-gpu's own, and which methods and limits were named.

    Raises
    ------
    UsageError
        For unknown switches, wrong values and too many files, in PRISM's words.
    UnsupportedError
        For switches that need PRISM.
    """
    reader = _Reader(words, hooks)
    reader.run()
    options = reader.options()
    if len(options.files) > 2:
        raise UsageError("Invalid argument syntax")
    return options


def known_switches() -> tuple[str, ...]:
    """Return the names of the switches that do something without PRISM, besides the methods'."""
    return (*_Reader((), HookOptions())._handlers(), "intervaliter", "ii")


def interval_options(switch: str, text: str) -> IntervalOptions:
    """Return the sub-switches of interval iteration.

    Parameters
    ----------
    switch
        The switch, for messages.
    text
        What follows its colon: ``boundmethod=variant-2,upper=3.0,noselectmidpoint``, say.

    Raises
    ------
    UsageError
        For what is none of PRISM's sub-switches.
    """
    flags = {
        "selectmidpoint": "select_midpoint",
        "monotonicbelow": "monotonic_below",
        "monotonicabove": "monotonic_above",
        "checkmonotonic": "check_monotonic",
    }
    changes: dict[str, object] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        plain = name.removeprefix("no")
        try:
            if name == "boundmethod":
                changes["bound_method"] = BoundMethod(value)
            elif name in ("lower", "upper"):
                changes[name] = float(value)
            elif plain in flags and not value:
                changes[flags[plain]] = plain == name
            elif plain != "boundverbose" or value:
                raise ValueError(part)
        except ValueError as error:
            raise UsageError(f'Unknown option "{part}" for -{switch} switch') from error
    return IntervalOptions(**changes)  # type: ignore[arg-type]


class _Reader:
    def __init__(self, words: tuple[str, ...], hooks: HookOptions) -> None:
        self._words: Iterator[str] = iter(words)
        self._options = CheckOptions(show_solves=hooks.show_solves)
        self._environment = SolverEnvironment(
            method=hooks.method or Method.AUTO,
            max_iterations_named=hooks.max_iterations_named,
            convention=hooks.convention,
            device=hooks.device,
            device_number=hooks.device_number,
            matrix_format=hooks.matrix_format,
            device_memory=hooks.device_memory,
            num_devices=hooks.num_devices,
            slice_size=hooks.slice_size,
            colours=hooks.colours,
            precision=hooks.precision,
        )

    def options(self) -> CheckOptions:
        return replace(self._options, environment=self._environment)

    def run(self) -> None:
        for word in self._words:
            if word in ("-", "--"):
                raise UsageError("Invalid empty switch")
            if word.startswith("-"):
                name = word[2:] if word.startswith("--") else word[1:]
                self._switch(name)
            else:
                self._set(files=(*self._options.files, word))

    def _switch(self, name: str) -> None:
        plain, _, suboptions = name.partition(":")
        if plain in METHODS:
            self._environment = replace(self._environment, method=METHODS[plain])
        elif plain in ENGINES:
            self._remark(f"-{plain} names an engine of PRISM's, and has no effect without PRISM")
        elif plain in WITHOUT_EFFECT:
            pass
        elif plain in WITHOUT_EFFECT_WITH_VALUE:
            self._value(plain)
        elif plain in ("intervaliter", "ii"):
            self._solve_with(bounds=True, interval=interval_options(plain, suboptions))
        elif plain in PRISM_ONLY:
            raise UnsupportedError(
                f"-{plain} needs PRISM: install it and name its folder in PRISM_DIR "
                '("prism-gpu doctor" says how)'
            )
        elif (handler := self._handlers().get(plain)) is not None and not suboptions:
            handler(plain)
        else:
            raise UsageError(f'Unknown switch -{name} (type "prism-gpu -help" for full list)')

    def _handlers(self) -> dict[str, Callable[[str], None]]:
        return {
            **dict.fromkeys(("pctl", "csl", "pf"), self._properties),
            **dict.fromkeys(("property", "prop"), self._select),
            "const": self._constants,
            **dict.fromkeys(("epsilon", "e"), self._epsilon),
            "maxiters": self._max_iterations,
            "omega": self._omega,
            **dict.fromkeys(("relative", "rel"), lambda _: self._solve_with(absolute=False)),
            **dict.fromkeys(("absolute", "abs"), lambda _: self._solve_with(absolute=True)),
            "topological": lambda _: self._solve_with(topological=True),
            **{kind.value.lower(): self._force_kind for kind in ModelKind},
            "exportresults": self._export_results,
            "exportvector": lambda name: self._set(vector_file=self._value(name)),
            **dict.fromkeys(
                ("exportmodel", "exporttrans", "exportstates", "exportlabels"), self._export_model
            ),
            **dict.fromkeys(("importmodel", "importtrans"), self._import_model),
            **dict.fromkeys(("steadystate", "ss"), lambda _: self._set(steady_state=True)),
            **dict.fromkeys(
                ("transient", "tr"), lambda name: self._set(transient=self._value(name))
            ),
            **dict.fromkeys(
                ("exportsteadystate", "exportss"),
                lambda name: self._set(steady_state_file=self._value(name), steady_state=True),
            ),
            **dict.fromkeys(
                ("exporttransient", "exporttr"),
                lambda name: self._set(transient_file=self._value(name)),
            ),
            "fixdl": lambda _: self._set(fix_deadlocks=True),
            "nofixdl": lambda _: self._set(fix_deadlocks=False),
            **dict.fromkeys(("verbose", "v"), lambda _: self._set(verbose=True)),
            "nobuild": lambda _: self._set(build=False),
            "noexportheaders": lambda _: self._set(export_headers=False),
            "sim": lambda _: self._set(simulate=True),
            "simmethod": lambda name: self._note_word(name, self._value(name)),
            "simmanual": lambda name: self._note_word(name, name),
            "simsamples": lambda name: self._note_word(name, str(self._whole(name, 1))),
            "simvar": lambda name: self._note_word(name, str(self._whole(name, 1))),
            "simconf": lambda name: self._note_positive(name, 1.0),
            **dict.fromkeys(("simwidth", "simapprox", "simmaxrwd"), self._note_positive),
            "simpathlen": lambda name: self._simulate_with(
                path_limit=self._whole(name, 1, LARGEST_LONG)
            ),
            "noprobchecks": lambda _: self._simulate_with(checked=False),
            "dir": self._directory,
        }

    def _simulate_with(self, **changes: object) -> None:
        self._set(simulation=replace(self._options.simulation, **changes))  # type: ignore[arg-type]

    def _note_word(self, name: str, word: str) -> None:
        self._simulate_with(words=(*self._options.simulation.words, (name, word)))

    def _note_positive(self, name: str, high: float = float("inf")) -> None:
        text = str(self._number(name, 0.0, high))
        if float(text) == 0.0:
            raise UsageError(f"Invalid value for -{name} switch")
        self._note_word(name, text)

    def _whole(self, name: str, least: int, largest: int = INT32_MAX) -> int:
        text = self._value(name)
        # Digits are counted first: Python refuses to read some thousands of them.
        if not re.fullmatch("[+-]?[0-9]{1,30}", text) or abs(int(text)) > largest:
            raise UsageError(f'Invalid value "{text}" for -{name} switch')
        if int(text) < least:
            raise UsageError(f"Invalid value for -{name} switch")
        return int(text)

    def _set(self, **changes: object) -> None:
        self._options = replace(self._options, **changes)  # type: ignore[arg-type]

    def _solve_with(self, **changes: object) -> None:
        self._environment = replace(self._environment, **changes)  # type: ignore[arg-type]

    def _remark(self, text: str) -> None:
        self._set(remarks=(*self._options.remarks, text))

    def _value(self, name: str) -> str:
        value = next(self._words, None)
        if value is None:
            raise UsageError(f"No value specified for -{name} switch")
        return value.strip()

    def _number(self, name: str, low: float, high: float = float("inf")) -> float:
        text = self._value(name)
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise UsageError(f'Invalid value "{text}" for -{name} switch')
        if not low <= value < high:
            raise UsageError(f"Invalid value for -{name} switch")
        return value

    def _directory(self, name: str) -> None:
        import os

        folder = self._value(name)
        # PRISM has none but its native code write there: files are named from where it began.
        if not os.path.isdir(folder):
            raise UsageError(f'Working directory "{folder}" is not a directory')

    def _properties(self, name: str) -> None:
        self._set(properties_text=self._value(name))

    def _select(self, name: str) -> None:
        self._set(selected=tuple(part for part in self._value(name).split(",") if part))

    def _constants(self, name: str) -> None:
        self._set(constants=(*self._options.constants, self._value(name)))

    def _epsilon(self, name: str) -> None:
        self._solve_with(epsilon=self._number(name, 0.0))

    def _max_iterations(self, name: str) -> None:
        self._solve_with(max_iterations=self._whole(name, 0), max_iterations_named=True)

    def _omega(self, name: str) -> None:
        self._solve_with(omega=self._number(name, float("-inf")))

    def _force_kind(self, name: str) -> None:
        self._set(kind=ModelKind(name.upper()))

    def _import_model(self, name: str) -> None:
        path, _, _ = self._value(name).partition(":")
        stem, dot, endings = path.rpartition(".")
        first = endings.split(",")[0]
        if first == "all":
            first = "tra"
        # Of several files of a model the one with the transitions leads to the others.
        ending = "tra" if "tra" in endings.split(",") else first
        self._set(files=(f"{stem}{dot}{ending}", *self._options.files))

    def _export_results(self, name: str) -> None:
        path, _, chosen = self._value(name).partition(":")
        parts = sorted(part for part in chosen.split(",") if part)
        for part in parts:
            if part not in ("comment", "csv", "dataframe", "list", "matrix"):
                raise UsageError(f'Unknown option "{part}" for -{name} switch')
        form = ",".join(parts) or "list"
        if form not in ("list", "csv", "csv,list", "comment"):
            raise UnsupportedError(
                f'-{name}: "{chosen}" needs PRISM; known here: list, csv, comment'
            )
        self._set(results_file=path, results_format=form.removesuffix(",list"))

    def _export_model(self, name: str) -> None:
        request = parse_model_export(name.removeprefix("export"), self._value(name))
        self._set(model_files=(*self._options.model_files, request))
