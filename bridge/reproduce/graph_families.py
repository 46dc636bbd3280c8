"""The ten graphs of the 2014 paper at any scale, and PRISM's models of the same names.

Wijs, Katoen, Bošnački (2014), GPU-based graph decomposition into strongly connected and maximal end
components, tables 1 and 2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bridge.reproduce.graphs import Chains, Family, Layers, Rings, RingsInSteps, RingsThenChains


def _deep(states: float, depth: int, two: int, knot: int = 0) -> Callable[[float], Family]:
    """Return a family of layers: a larger graph is both deeper and wider."""

    def scaled(scale: float) -> Family:
        side = scale**0.5
        layers, band = max(round(depth * side), 8), max(round(knot * side), 1) if knot else 0
        return Layers(round(states * scale), layers, 20, two, band, sink=knot > 0)

    return scaled


def _test_and_set(scale: float) -> Family:
    fields = max(round(64 * scale**0.5), 2), max(round(73 * scale**0.5), 2)
    return RingsInSteps(round(51.4e6 * scale), 7, 0.3, fields)


GENERATED: dict[str, Callable[[float], Family]] = {
    "wlan": _deep(12.6e6, 10_000, 158, knot=80),
    "phil": lambda scale: Rings(round(11.0e6 * scale), 7, 0.28),
    "dining_crypt": lambda scale: Chains(round(42.9e6 * scale), 7),
    "test-and-set": _test_and_set,
    "leader": lambda scale: RingsThenChains(round(26.5e6 * scale), round(42.2e6 * scale), 4, 1),
    "phil_lss": lambda scale: Rings(round(72.9e6 * scale), 5, 0.168),
    "coin": lambda scale: RingsThenChains(round(82.5e6 * scale), round(5.4e6 * scale), 7, 2),
    "mutual": lambda scale: Rings(round(76.2e6 * scale), 7, 0.226),
    "zeroconf_dl": _deep(118.6e6, 400, 137),
    "firewire_dl": _deep(129.3e6, 800, 146),
}
"""By family: the graph at a scale, of which 1 is the size in the paper."""


Constants = Mapping[str, int | float | str]


@dataclass(frozen=True)
class PrismModel:
    """An MDP among PRISM's examples.

    Parameters
    ----------
    family
        Of `PAPER`.
    file
        Below the folder of MDPs.
    constants
        As the Python API takes them; truth values are texts.
    processes
        For mutual exclusion, how many processes to make of the model's five; 0 for those in it.
    """

    family: str
    file: str
    constants: Constants
    processes: int = 0

    @property
    def name(self) -> str:
        """The model and its constants, as a table shows them."""
        stem = Path(self.file).stem
        if stem == "deadline":
            stem = " ".join(Path(self.file).with_suffix("").parts)
        if self.processes:
            stem = stem.rstrip("0123456789") + str(self.processes)
        values = ",".join(f"{name}={value}" for name, value in self.constants.items())
        return f"{stem} {values}".strip()


WLAN: Constants = {"TRANS_TIME_MAX": 10, "COL": 0}
FIREWIRE: Constants = {"delay": 36, "fast": 0.5}
ZEROCONF: Constants = {"reset": "false", "N": 1000}
MODELS = {
    "one": [PrismModel("phil", "phil/original/phil5.nm", {})],
    "small": [
        PrismModel("wlan", "wlan/wlan3.nm", WLAN),
        PrismModel("phil", "phil/original/phil5.nm", {}),
        PrismModel("dining_crypt", "dining_crypt/dining_crypt7.nm", {}),
        PrismModel("test-and-set", "rabin/rabin4.nm", {}),
        PrismModel("leader", "leader_async/leader6.nm", {}),
        PrismModel("phil_lss", "phil_lss/phil_lss3.nm", {"K": 6}),
        PrismModel("coin", "consensus/coin6.nm", {"K": 2}),
        PrismModel("mutual", "mutual/mutual5.nm", {}),
        PrismModel(
            "zeroconf_dl", "zeroconf/zeroconf_time_bounded.nm", {**ZEROCONF, "T": 10, "K": 1}
        ),
        PrismModel("firewire_dl", "firewire/abst/deadline.nm", {**FIREWIRE, "deadline": 200}),
    ],
    "large": [
        PrismModel("wlan", "wlan/wlan6.nm", WLAN),
        PrismModel("phil", "phil/original/phil7.nm", {}),
        PrismModel("dining_crypt", "dining_crypt/dining_crypt9.nm", {}),
        PrismModel("test-and-set", "rabin/rabin4.nm", {}),
        PrismModel("leader", "leader_async/leader6.nm", {}),
        PrismModel("phil_lss", "phil_lss/phil_lss3.nm", {"K": 30}),
        PrismModel("coin", "consensus/coin6.nm", {"K": 16}),
        PrismModel("mutual", "mutual/mutual5.nm", {}, processes=6),
        PrismModel(
            "zeroconf_dl", "zeroconf/zeroconf_time_bounded.nm", {**ZEROCONF, "T": 20, "K": 2}
        ),
        PrismModel("firewire_dl", "firewire/abst/deadline.nm", {**FIREWIRE, "deadline": 400}),
    ],
    # Those that the paper has, or nearly: PRISM needs seconds for their diagrams, but the arrays
    # take minutes and tens of GiB.
    "paper": [
        PrismModel("dining_crypt", "dining_crypt/dining_crypt10.nm", {}),
        PrismModel("test-and-set", "rabin/rabin5.nm", {}),
        PrismModel("coin", "consensus/coin8.nm", {"K": 3}),
        PrismModel("mutual", "mutual/mutual5.nm", {}, processes=7),
    ],
}
"""Test-and-set is not among PRISM's examples any more: Rabin's mutual exclusion is its kin."""


def source_of(model: PrismModel, mdps: Path, folder: Path) -> Path:
    """Return the file of a model; one with other processes is written into the folder."""
    file = mdps / model.file
    if not model.processes:
        return file
    text = with_processes(file.read_text(encoding="utf-8"), model.processes)
    made = folder / f"{model.name}.nm"
    made.write_text(text, encoding="utf-8")
    return made


def with_processes(text: str, processes: int) -> str:
    """Return PRISM's model of mutual exclusion with as many processes.

    Its formulas say the same of each process but the first, joined by one operator; its modules are
    the first one's, renamed.
    """

    def formula(match: re.Match[str]) -> str:
        body = match[2]
        # The second process's part ends where the same is said of the third.
        end = next(
            at
            for at, sign in enumerate(body)
            if sign in "&|" and body.startswith(body[:at].replace("p2", "p3"), at + 1)
        )
        part, operator = body[:end], body[end]
        parts = (part.replace("p2", f"p{number}") for number in range(2, processes + 1))
        return f"{match[1]}{operator.join(parts)};"

    head, _, _ = text.partition("// construct further modules")
    head = re.sub(r"(formula \w+\s*= )([^;]*);", formula, head)
    modules = (
        f"module process{number} = process1 [ p1=p{number}, p{number}=p1 ] endmodule"
        for number in range(2, processes + 1)
    )
    return head + "\n".join(modules) + "\n"
