"""The models that are measured: their sizes and values are those that PRISM finds."""

from __future__ import annotations

import re

import pytest

from bridge.reproduce.families import FAMILIES, model_folder

SMALL = [
    ("herman", 5, None),
    ("cluster", 4, "-gs"),
    ("tandem", 15, "-bgs"),
    ("kanban", 1, "-gs"),
    ("kanban", 2, "-gs"),
    ("fms", 1, "-pgs"),
    ("fms", 2, "-pgs"),
    ("fms", 3, "-pgs"),
    ("polling", 3, "-gs"),
    ("polling", 5, "-gs"),
]


@pytest.mark.sampled(5)
@pytest.mark.prism
@pytest.mark.parametrize(("name", "size", "method"), SMALL)
def test_models_have_the_published_sizes_and_values(prism, tmp_path, name, size, method):
    family = FAMILIES[name]
    model, constants = family.model(size, tmp_path)
    switch = [f"-const={key}={value}" for key, value in constants.items()]
    words = [word for text in switch for word in text.split("=", 1)]
    for asked, text in family.properties.items():
        run = prism(
            *(model, "-pctl", text, *words, "-epsilon", "1e-12", "-maxiters", "1000000"),
            *([method] if method else []),
        )
        states = int(re.search(r"^States:\s+(\d+)", run.output, re.M)[1])
        transitions = int(re.search(r"^Transitions:\s+(\d+)", run.output, re.M)[1])
        assert (states, transitions) == family.counts(size)
        value, _ = family.value(asked, size)
        assert run.numbers() == [pytest.approx(value, rel=1e-7)]


def test_polling_of_one_station_is_refused(tmp_path):
    with pytest.raises(ValueError, match="at least 2 stations; got 1"):
        FAMILIES["polling"].model(1, tmp_path)


def test_the_models_are_found_in_the_repository():
    for family in FAMILIES.values():
        assert (model_folder() / family.file).is_file()
