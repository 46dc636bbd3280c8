"""What the papers printed: the files in `data/`, each with its source, hardware and year."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Paper:
    """A publication and its rows.

    Parameters
    ----------
    name
        How the report calls it.
    source
        The publication, and which of its tables.
    hardware
        What its figures were measured on.
    units
        What the columns mean.
    rows
        The rows, by the names that the data files give the columns.
    remark
        What a reader must know of them; else empty.
    """

    name: str
    source: str
    hardware: str
    units: str
    rows: tuple[Row, ...]
    remark: str = ""

    def row(self, **wanted: Any) -> Row | None:
        """Return the first row that has these values, or None.

        Parameters
        ----------
        **wanted
            Values by column.
        """
        for row in self.rows:
            if all(row.get(name) == value for name, value in wanted.items()):
                return row
        return None


@dataclass(frozen=True)
class PublishedComponents:
    """What the paper of 2014 says about one of its models; times in seconds.

    Parameters
    ----------
    model
        Its name there.
    states, transitions, sccs
        Sizes, to the digits given.
    tarjan, gpu_scc
        Strong components on the CPU and on the GPU.
    cpu_mec, gpu_mec
        Maximal end components on the CPU and on the GPU.
    """

    model: str
    states: float
    transitions: float
    sccs: float
    tarjan: float
    gpu_scc: float
    cpu_mec: float
    gpu_mec: float


def _read(file: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((DATA / file).read_text(encoding="utf-8"))
    return content


def _paper(name: str, file: str) -> Paper:
    content = _read(file)
    hardware = content["hardware"]
    if isinstance(hardware, dict):
        hardware = "; ".join(hardware.values())
    rows = tuple(content["rows"])
    return Paper(
        name, content["source"], hardware, content["units"], rows, content.get("remark", "")
    )


@cache
def gpu_prism_2011() -> Paper:
    """Return tables 1 to 5 of the GPU-PRISM paper."""
    return _paper("GPU-PRISM, 2011", "gpu_prism_2011.json")


@cache
def gauss_seidel_2013() -> Paper:
    """Return Figures 5.4 to 5.16 of the thesis, which are tables."""
    return _paper("thesis, 2013", "gauss_seidel_2013.json")


@cache
def gauss_seidel_means() -> Mapping[str, Any]:
    """Return what section 5.3 of the thesis says of all its cases together.

    "mean_speed_up_over_prism" and its "deviation" are over PRISM's own method; the case that gains
    most took "prism_seconds" and "gpu_seconds"; "fewest_sweeps_percent" are of PRISM's sweeps.
    """
    found: dict[str, Any] = _read("gauss_seidel_2013.json")["section_5_3"]
    return found


@cache
def decomposition_2014() -> Paper:
    """Return tables 1 and 2 of the paper on graph decomposition."""
    return _paper("CAV 2014", "components_2014.json")


@cache
def apmc_2005() -> Paper:
    """Return the numbers that the text of the APMC paper prints."""
    return _paper("APMC, 2005", "apmc_2005.json")


def components_2014() -> dict[str, PublishedComponents]:
    """Return what the paper of 2014 says about each of its ten families."""
    columns = PublishedComponents.__dataclass_fields__
    return {
        row["family"]: PublishedComponents(**{name: row[name] for name in columns})
        for row in decomposition_2014().rows
    }


@cache
def _known() -> dict[str, Any]:
    return _read("known.json")


def known_value(family: str, prop: str, size: int) -> tuple[float, str] | None:
    """Return the value of a property and where it is from, or None where none is kept.

    Parameters
    ----------
    family, prop, size
        The model's family, the name of the property, the model's size.
    """
    for row in _known()["values"]:
        if (row["family"], row["property"], row["size"]) == (family, prop, size):
            return float(row["value"]), str(row["source"])
    return None


def known_counts(family: str, size: int) -> tuple[int, int] | None:
    """Return the states and transitions of a model without a closed form, or None.

    Parameters
    ----------
    family, size
        The model's family, and its size.
    """
    for row in _known()["counts"]:
        if (row["family"], row["size"]) == (family, size):
            return int(row["states"]), int(row["transitions"])
    return None
