"""How often the stated interval holds the exact value: pairs of a model and a property, 200 seeds.

    PRISM_DIR=… python examples/benchmarks/interval_coverage.py VALUES ROOT... --json FILE
        [--pairs 60] [--seeds 200] [--paths 1000] [--device cpu|gpu] [--same-as FILE]

VALUES is a JSON list of exact values: entries with "model", "constants", "property", "kind",
"model_type", "value"; the files of the models are looked for below each ROOT. Taken are the
properties of DTMCs and CTMCs that PRISM's simulator takes, of each model and property the smallest
sizes first, by a rule that sees no outcome (`chosen`). Where a path meets the path limit, which is
PRISM's error and ours, the next pair is taken instead. All runs go through PRISM in this process:
its parser, its simulator's interface, its result and half-width.

Methods: apmc and clopper-pearson for P, whose guarantee holds for any model, and ci for P and R,
whose guarantee is asymptotic. Stated is 1 − δ with δ = 0.05. "share" is that of the seeds whose
interval holds the value. A pair fails where so few would have a probability below 0.01 / (number of
rows) if the true share were the stated one: a one-sided binomial test at level 0.01 for the whole
table, by Bonferroni's correction. Where all paths of some seed agree, ci states an interval of no
width: such events are too rare for the normal distribution, and these rows ("agreeing") are shown
and not judged.

The file is written after each pair, and pairs in it are not done again. `--same-as` compares every
estimate with that of another file, digit for digit: a GPU's with the CPU's.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from scipy.stats import binom

from bridge import jvm
from bridge.built import prism_call
from engines.errors import InvalidModelError
from engines.model.environment import DeviceChoice
from prism_hooks.options import HookOptions

DELTA = 0.05
LEVEL = 0.01
PATH_LIMIT = 10_000
KINDS = (
    "unbounded until",
    "bounded until",
    "reachability reward",
    "cumulative reward",
    "instantaneous reward",
)
LONGEST_REWARD = 1_000.0
"""A larger expected reward until a target may mean as many steps: such pairs are left out."""
SIZES = 3
"""At most so many sizes of a model with the same property."""
UNCERTAINTY = 1e-6
"""What a reference value may be off by, relative: added to the interval."""


@dataclass(frozen=True)
class Pair:
    """A property of a model, and its exact value."""

    model: str
    constants: str
    text: str
    value: float

    @property
    def name(self) -> str:
        """Its name in the file of results."""
        return " | ".join((self.model, self.constants, self.text))

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that take it."""
        return ("apmc", "clopper-pearson", "ci") if self.text.startswith("P") else ("ci",)


def chosen(values: Path) -> list[Pair]:
    """Return pairs that PRISM's simulator takes, the smallest models of each family first."""
    found: list[tuple[int, Pair]] = []
    sizes: Counter[tuple[str, str]] = Counter()
    entries = json.loads(values.read_text(encoding="utf-8"))
    for entry in sorted(entries, key=lambda entry: entry["states"]):
        text, value = entry["property"], entry["value"]
        if entry["model_type"] not in ("DTMC", "CTMC") or entry["kind"] not in KINDS:
            continue
        if isinstance(value, bool) or not re.match(r'(P|R(\{"\w+"\})?)=\?', text):
            continue
        if entry["kind"] == "reachability reward" and value > LONGEST_REWARD:
            continue
        family = re.sub(r"\d+", "", entry["model"]), re.sub(r"\d+", "", text)
        sizes[family] += 1
        if sizes[family] <= SIZES:
            pair = Pair(entry["model"], entry["constants"], text, value)
            found.append((sizes[family], pair))
    found.sort(key=lambda item: item[0])
    return [pair for _, pair in found]


class OpenPair:
    """A model and a property in PRISM, to be simulated again and again."""

    def __init__(self, pair: Pair, file: Path) -> None:
        self.prism = jvm.java_class("prismgpu.GpuPrism")(jvm.java_class("prism.PrismDevNullLog")())
        prism_call(self.prism.initialise)
        modules = prism_call(self.prism.parseModelFile, jvm.java_class("java.io.File")(str(file)))
        prism_call(self.prism.loadPRISMModel, modules)
        values = jvm.java_class("prism.UndefinedConstants")(modules, None)
        prism_call(values.defineUsingConstSwitch, pair.constants)
        prism_call(self.prism.setPRISMModelConstants, values.getMFConstantValues())
        info = self.prism.getModelInfo()
        self.properties = prism_call(self.prism.parsePropertiesString, info, pair.text)
        self.property = self.properties.getProperty(0)

    def run(self, method: str, seed: int, paths: int) -> tuple[float, float]:
        """Return the estimate and the half-width of one simulation."""
        kind = "APMCapproximation" if method == "apmc" else "CIwidth"
        judge = jvm.java_class(f"simulator.method.{kind}")(DELTA, paths)
        self.prism.getSimulator().setRandomNumberGeneratorSeed(seed)
        result = prism_call(
            self.prism.modelCheckSimulator,
            *(self.properties, self.property, None, None, PATH_LIMIT, judge),
        )
        value = result.getResult()
        if not isinstance(value, jvm.java_class("java.lang.Double")):
            raise InvalidModelError(str(value.getMessage()))
        return float(value), float(result.getAccuracy().getAbsoluteErrorBound(value))


def measure(
    pair: Pair, file: Path, seeds: int, paths: int, options: HookOptions
) -> dict[str, dict[str, Any]]:
    """Return, for each method, what all seeds gave."""
    record: dict[str, dict[str, Any]] = {}
    opened = OpenPair(pair, file)
    for method in pair.methods:
        ours = method if method == "clopper-pearson" else ""
        words = (("simconf", str(DELTA)), ("simsamples", str(paths))) if ours else ()
        jvm.install_engines(replace(options, simulation_method=ours, simulation=words))
        begin = time.perf_counter()
        runs = [opened.run(method, seed, paths) for seed in range(1, seeds + 1)]
        slack = abs(pair.value) * UNCERTAINTY
        covered = sum(abs(mean - pair.value) <= width + slack for mean, width in runs)
        record[method] = {
            "covered": covered,
            "estimates": [mean for mean, _ in runs],
            "widths": [width for _, width in runs],
            "seconds": round(time.perf_counter() - begin, 2),
        }
    opened.prism.closeDown(False)
    return record


def file_of(model: str, roots: tuple[Path, ...]) -> Path:
    """Return a model's file, below the root that has it; leading folders of its name may lack."""
    parts = Path(model).parts
    places = [
        root.joinpath(*parts[skipped:]) for root in roots for skipped in range(len(parts) - 1)
    ]
    return next((place for place in places if place.is_file()), places[0])


def table(record: dict[str, Any], seeds: int, wanted: list[Pair]) -> list[str]:
    """Print the shares; return what failed."""
    rows = [(pair, method) for pair in wanted for method in pair.methods]
    failed = []
    print("| model | constants | property | exact | method | half-width | agreeing | share | p |")
    print("|---|---|---|---|---|---|---|---|---|")
    at_least: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for pair, method in rows:
        found = record[pair.name][method]
        covered = found["covered"]
        chance = float(binom.cdf(covered, seeds, 1 - DELTA))
        agreeing = sum(width == 0.0 for width in found["widths"])
        if not agreeing or pair.value in (0.0, 1.0):
            total[method] += 1
            at_least[method] += covered >= (1 - DELTA) * seeds
            if chance < LEVEL / len(rows):
                failed.append(f"{pair.name} {method}")
        print(
            f"| {Path(pair.model).name} | {pair.constants} | `{pair.text}` | {pair.value:.6g} | "
            f"{method} | {sum(found['widths']) / seeds:.3g} | {agreeing or ''} | "
            f"{covered / seeds:.3f} | {chance:.2g} |"
        )
    for method, count in total.items():
        print(
            f"{method}: {at_least[method]} of {count} pairs that are judged hold the exact value "
            f"in {1 - DELTA:.0%} of the seeds or more"
        )
    return failed


@click.command()
@click.argument("values", type=click.Path(exists=True, path_type=Path))
@click.argument("roots", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--json", "file", required=True, type=click.Path(path_type=Path))
@click.option("--pairs", default=60, show_default=True)
@click.option("--seeds", default=200, show_default=True)
@click.option("--paths", default=1000, show_default=True, help="Of each run.")
@click.option("--device", type=click.Choice(["cpu", "gpu"]), default="cpu")
@click.option("--same-as", type=click.Path(exists=True, path_type=Path))
def main(
    values: Path,
    roots: tuple[Path, ...],
    file: Path,
    pairs: int,
    seeds: int,
    paths: int,
    device: str,
    same_as: Path | None,
) -> None:
    """Simulate pairs of a model and a property with many seeds each."""
    settings = {"seeds": seeds, "paths": paths, "delta": DELTA, "device": device}
    content: dict[str, Any] = {"settings": settings, "pairs": {}, "refused": {}}
    if file.exists():
        content = json.loads(file.read_text(encoding="utf-8"))
        if content["settings"] != settings:
            sys.exit(f"{file} holds runs with other settings: {content['settings']}")
    options = HookOptions(device=DeviceChoice(device))
    jvm.start(jvm.find_runtime(None), jvm.default_options())
    wanted: list[Pair] = []
    for pair in chosen(values):
        if len(wanted) == pairs:
            break
        if pair.name not in content["pairs"] and pair.name not in content["refused"]:
            try:
                found = measure(pair, file_of(pair.model, roots), seeds, paths, options)
                content["pairs"][pair.name] = found
            except InvalidModelError as error:
                content["refused"][pair.name] = str(error)
            file.write_text(json.dumps(content, indent=1), encoding="utf-8")
            print(f"{len(wanted) + 1} of {pairs}: {pair.name}", file=sys.stderr, flush=True)
        if pair.name in content["pairs"]:
            wanted.append(pair)
    failed = table(content["pairs"], seeds, wanted)
    for name, reason in content["refused"].items():
        print(f"not sampled: {name}: {reason}")
    if same_as is not None:
        other = json.loads(same_as.read_text(encoding="utf-8"))["pairs"]
        for pair in wanted:
            for method in pair.methods:
                mine, theirs = content["pairs"][pair.name][method], other[pair.name][method]
                if mine["estimates"] != theirs["estimates"]:
                    failed.append(f"{pair.name} {method}: other estimates than in {same_as}")
    if failed:
        sys.exit("\n".join(("failed:", *failed)))


if __name__ == "__main__":
    main()
