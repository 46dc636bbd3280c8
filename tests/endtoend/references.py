"""The reference results, and one run of a model instance against all its entries."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2].parent / "shared"
TIGHT = ("-epsilon", "1e-10", "-maxiters", "1000000")
TOLERANCE = 1e-6
UNBOUNDED = (
    "unbounded until",
    "reachability reward",
    "steady-state",
    "LTL",
    "state formula",
)


@dataclass(frozen=True)
class Entry:
    """One property of a model instance and its reference value."""

    model: str
    constants: str
    text: str
    kind: str
    value: float | bool
    uncertainty: float = 0.0
    """Of the value, relative; 0 where it is exact."""

    @property
    def unbounded(self) -> bool:
        """Whether no bound of steps or time is in it, and no total reward."""
        return any(kind in self.kind for kind in UNBOUNDED)


def reference_entries() -> list[Entry]:
    """Return the entries of values.json; none where the shared folder is absent."""
    file = SHARED / "reference" / "values.json"
    if not file.is_file():
        return []
    return [
        Entry(
            e["model"],
            e["constants"],
            e["property"],
            e["kind"],
            _value(e["value"]),
            float(e["rel_uncertainty"] or 0.0),
        )
        for e in json.loads(file.read_text(encoding="utf-8"))
    ]


def _value(value: object) -> float | bool:
    return value if isinstance(value, bool) else float(str(value))


def instances(pattern: str, *, every_kind: bool = False) -> list[pytest.param]:
    """Return the entries of the models that match, one parameter an instance.

    Only the unbounded ones, unless every kind is wanted.
    """
    groups: defaultdict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in reference_entries():
        if (every_kind or entry.unbounded) and re.search(pattern, entry.model):
            groups[entry.model, entry.constants].append(entry)
    if not groups:
        reason = f"needs {SHARED / 'reference' / 'values.json'}"
        return [pytest.param([], id="absent", marks=pytest.mark.skip(reason=reason))]
    return [
        pytest.param(entries, id=f"{Path(model).stem}-{constants}".rstrip("-"))
        for (model, constants), entries in groups.items()
    ]


def model_path(prism_examples: Path, model: str) -> Path:
    """Return where a model lies: in PRISM's examples, or in the benchmarks beside PRISM."""
    collection, _, inside = model.partition("/")
    if collection == "prism-examples":
        return prism_examples / inside
    for parent in prism_examples.parents:
        if (parent / collection / inside).is_file():
            return parent / collection / inside
    pytest.skip(f"needs {collection}, which is not found above {prism_examples}")


def answers(output: str) -> list[str]:
    """Return for each property the text of its result, or of its error."""
    found = []
    for block in re.split(r"^Model checking: ", output, flags=re.MULTILINE)[1:]:
        result = re.search(r"^Result.*?: (\S+)", block, re.MULTILINE)
        error = re.search(r"^Error: (.*)", block, re.MULTILINE)
        found.append(result[1] if result else error[0] if error else "no result")
    return found


def relative_error(answer: str, value: float | bool) -> float:
    """Return how far an answer is from its reference; infinite for an error or a wrong truth."""
    if isinstance(value, bool) or answer in ("true", "false"):
        return 0.0 if answer == str(value).lower() else math.inf
    try:
        number = float(answer)
    except ValueError:
        return math.inf
    if number == value:
        return 0.0
    if math.isinf(value) or not math.isfinite(number):
        return math.inf
    return abs(number - value) / abs(value) if abs(value) > 1e-12 else abs(number - value)


def check(prism_gpu, prism_examples: Path, tmp_path: Path, entries: list[Entry]) -> list[float]:
    """Run one model instance on all its entries; return the relative errors."""
    first = entries[0]
    properties = tmp_path / "reference.props"
    properties.write_text("\n".join(f"{entry.text};" for entry in entries), encoding="utf-8")
    constants = ("-const", first.constants) if first.constants else ()
    model = model_path(prism_examples, first.model)
    run = prism_gpu(model, properties, *constants, *TIGHT, timeout=3600)
    found = answers(run.output)
    assert len(found) == len(entries), run.output[-2000:] + run.errors
    return [relative_error(answer, e.value) for answer, e in zip(found, entries, strict=True)]


def assert_close(ours: str, theirs: str, tolerance: float) -> None:
    """Assert that the answers of two logs are no further apart than that; truths are equal."""
    for one, other in zip(answers(ours), answers(theirs), strict=True):
        value = other == "true" if other in ("true", "false") else float(other)
        assert relative_error(one, value) < tolerance, (one, other)
