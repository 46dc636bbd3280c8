"""The model families of the papers: where their texts are, how large they get, what is asked."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import bridge
from bridge.reproduce.published import known_counts, known_value
from engines.errors import BridgeError

THREE_TOKENS = 'filter(max, R{"steps"}=? [ F "stable" ], num_tokens=3)'


@dataclass(frozen=True)
class Family:
    """Models that one number scales.

    Parameters
    ----------
    name
        Its name, as the papers have it.
    symbol
        What the papers call the size; a constant of the model, unless its text is written for it.
    file
        The file of the model, or of the program that writes it.
    writer
        For a program: the function that returns the model's text, given the numbers of `fixed` or,
        where there are none, the size; else empty.
    properties
        What is asked, by a short name.
    counts
        States and transitions of a size, or None where they are not known.
    fixed
        The other numbers that choose a model: its constants, or what its text is written for.
    """

    name: str
    symbol: str
    file: str
    writer: str
    properties: Mapping[str, str]
    counts: Callable[[int], tuple[int, int] | None]
    fixed: Mapping[str, int] = field(default_factory=dict)

    def label(self, size: int) -> str:
        """Return how a table names the model of a size."""
        constants = {**self.fixed, self.symbol: size}
        return f"{self.name} {', '.join(f'{name}={value}' for name, value in constants.items())}"

    def model(self, size: int, folder: Path) -> tuple[Path, dict[str, int]]:
        """Return the file of the model of a size, and its constants.

        Parameters
        ----------
        size
            The number that scales the model.
        folder
            Where a model is written that has no constant for its size.
        """
        source = model_folder() / self.file
        if not self.writer:
            return source, {**self.fixed, self.symbol: size}
        numbers, constants = [size], {}
        if self.fixed:
            numbers, constants = list(self.fixed.values()), {self.symbol: size}
        path = folder / f"{self.name}{'_'.join(map(str, numbers))}.prism"
        if not path.exists():
            path.write_text(_program(self.file, self.writer)(*numbers), encoding="utf-8")
        return path, constants

    def value(self, prop: str, size: int) -> tuple[float, str] | None:
        """Return the known value of a property and where it is from, or None."""
        if self.name == "herman" and prop == "three tokens":
            return herman_three_tokens(size), "closed form 4abc/N (McIver, Morgan 2005)"
        if self.name == "egl" and prop == "messages":
            return egl_messages(self.fixed["N"], size), "closed form, by who completes a pair when"
        return known_value(self.name, prop, size)


@cache
def model_folder() -> Path:
    """Return the folder of the models: inside an installed package, or in the repository.

    Raises
    ------
    BridgeError
        Where neither has them.
    """
    package = Path(bridge.__file__).parent
    for folder in (package / "models", package.parent / "examples" / "models"):
        if (folder / "tandem.sm").is_file():
            return folder
    raise BridgeError(f"no models: neither {package / 'models'} nor the repository's examples/")


def _program(file: str, function: str) -> Callable[..., str]:
    # The programs are examples and no package: they are loaded by their path.
    path = model_folder() / file
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[..., str] = getattr(module, function)
    return found


def philosophers_text(n: int) -> str:
    """Return the model of so many dining philosophers."""
    return _program("philosophers.py", "philosophers_model")(n)


def herman_three_tokens(n: int) -> float:
    """Return the longest expected time in which three tokens of Herman's ring become one.

    It is 4abc/n for the distances a, b, c of the tokens, and longest where they are about equal.

    Parameters
    ----------
    n
        Number of processes, odd.

    Source: A. McIver, C. Morgan, An elementary proof that Herman's ring is Θ(N²), Information
    Processing Letters 94(2), 2005.
    """
    return 4 * ((n + 2) // 3) * ((n + 1) // 3) * (n // 3) / n


def egl_messages(n: int, bits: int) -> float:
    """Return the expected messages from B that A still gets or lacks while B alone knows a pair.

    A party completes its pair i in the last round of first secrets if it is the first whose second
    secret was transferred, with probability 2^-i, and with what remains, 2^-n, at the end of the
    second secrets. B's first pair comes before all of A's, and its others after them.

    Parameters
    ----------
    n
        Pairs of secrets of each party.
    bits
        Bits of a secret.
    """
    never = 0.5**n
    # B is done at the first message: A gets i messages until its pair i, or what is to come.
    early = 0.5 * (2.0 - (n + 2) * never + never * (bits * n + 1))
    late = (0.5 - never) * never * ((bits - 1) * n + 1)
    return early + late + never * never


def _table(family: str) -> Callable[[int], tuple[int, int] | None]:
    return lambda size: known_counts(family, size)


FAMILIES = {
    family.name: family
    for family in (
        Family(
            *("herman", "N", "herman.py", "herman_model"),
            {"three tokens": THREE_TOKENS},
            lambda n: (2**n, 3**n + 1),
        ),
        Family(
            *("cluster", "N", "cluster.sm", ""),
            {"premium": 'S=? [ "premium" ]'},
            # Fitted to three sizes of PRISM's own model, checked at six more.
            lambda n: (36 * n * n + 56 * n + 20, 176 * n * n + 192 * n + 32),
        ),
        Family(
            *("tandem", "c", "tandem.sm", ""),
            {"customers": 'R{"customers"}=? [ S ]'},
            lambda c: ((c + 1) * (2 * c + 1), 7 * c * c + 3 * c - 1),
        ),
        Family(
            *("kanban", "t", "kanban.sm", ""),
            {"throughput": 'R{"throughput"}=? [ S ]'},
            _table("kanban"),
        ),
        Family(
            *("fms", "n", "fms.sm", ""),
            {"productivity": 'R{"productivity"}=? [ S ]'},
            _table("fms"),
        ),
        Family(
            *("polling", "n", "polling.py", "polling_model"),
            {
                "before": "P=? [ !(at=2 & serving) U (at=1 & serving) ]",
                "s1": "S=? [ waiting_1 & !(at=1 & serving) ]",
            },
            lambda n: (3 * n * 2 ** (n - 1), n * (3 * n + 5) * 2 ** (n - 2)),
        ),
        Family(
            *("nand", "K", "nand.pm", ""),
            {"reliable": 'P=? [ F "reliable" ]'},
            # Of bundles of 40 wires; each restorative stage adds as many.
            lambda k: (998_220 * k + 6_642, 1_569_040 * k + 12_382),
            {"N": 40},
        ),
        Family(
            *("egl", "L", "egl.py", "egl_model"),
            {"messages": 'R{"messages_a_needs"}=? [ F "done" ]'},
            # Of ten pairs of secrets; each bit of a secret is 40 messages.
            lambda bits: (4**10 * (40 * bits - 17) - 2, 4**10 * (40 * bits - 16) - 3),
            {"N": 10},
        ),
    )
}
