"""PRISM in this process, to build models by its own code and by ours."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from prism_hooks.options import HookOptions


def java(name):
    """Return a class of the running JVM."""
    import jpype

    return jpype.JClass(name)


@dataclass
class Bench:
    """PRISM in this process, with a log in a file."""

    folder: Path

    def __post_init__(self) -> None:
        self.log = self.folder / "log"
        self.prism = java("prismgpu.GpuPrism")(java("prism.PrismFileLog")(str(self.log)))
        self.prism.initialise()

    def load(self, text: str):
        """Read a program, and return the generator of its model."""
        modules = self.prism.parseModelString(text)
        self.prism.loadPRISMModel(modules)
        values = java("prism.UndefinedConstants")(modules, None)
        self.prism.setPRISMModelConstants(values.getMFConstantValues())
        return self.prism.getModelGenerator()

    def built(self, name: str, generator, *, fix_deadlocks: bool = True):
        """Return the model that a class constructs, its states, and the lines of the log."""
        self.prism.getMainLog().flush()
        before = len(self.log.read_text())
        constructor = java(name)(self.prism)
        constructor.setFixDeadlocks(fix_deadlocks)
        model = constructor.constructModel(generator)
        self.prism.getMainLog().flush()
        text = re.sub(r"[\d.E-]+ secs", "# secs", self.log.read_text()[before:])
        return model, constructor.getStatesList(), text.splitlines()

    def described(self, model, states) -> dict[str, object]:
        """Return what PRISM can tell of a model."""
        path = self.folder / "model.tra"
        model.exportToPrismExplicitTra(str(path))
        found = {
            "transitions": path.read_text(),
            "states": str(java("java.util.ArrayList")(states)),
            "of the model": states == model.getStatesList(),
            "initial": str(model.getInitialStates()),
            "deadlocks": str(model.getDeadlockStates()),
            "labels": str(model.getLabelToStatesMap()),
            "actions": str(model.getActions()),
            "actions used": sorted(map(str, model.findActionsUsed())),
            "unnamed": bool(model.onlyNullActionUsed()),
            "info": str(model.infoStringTable()),
            "constants": str(model.getConstantValues()),
            "variables": str(model.getVarList().getNumVars()),
        }
        if str(model.getModelType()) == "CTMC":
            for chain, derived in (
                ("embedded", model.getImplicitEmbeddedDTMC()),
                ("uniformised", model.buildUniformisedDTMC(model.getDefaultUniformisationRate())),
            ):
                derived.exportToPrismExplicitTra(str(path))
                found[chain] = Transitions(path.read_text())
            found["exit rates"] = [float(model.getExitRate(s)) for s in range(states.size())]
        return found


class Transitions:
    """Transitions of a file, equal to others whose last digits differ.

    PRISM sums the rates of a state up in the order of a hash table.
    """

    def __init__(self, text: str) -> None:
        lines = [line.split() for line in text.splitlines()[2:]]
        self.ends = [(source, target) for source, target, *_ in lines]
        self.values = [float(value) for _, _, value, *_ in lines]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transitions) or self.ends != other.ends:
            return False
        return np.allclose(self.values, other.values, rtol=1e-15, atol=0.0)


OURS, THEIRS = "prismgpu.GpuConstructModel", "explicit.ConstructModel"


@pytest.fixture
def bench(prism_install, tmp_path):
    jpype = pytest.importorskip("jpype")
    from bridge import jvm

    if not jpype.isJVMStarted():
        jvm.start(jvm.find_runtime(str(prism_install.root)), jvm.default_options())
    jvm.install_engines(HookOptions())
    made = Bench(tmp_path)
    yield made
    made.prism.closeDown()
