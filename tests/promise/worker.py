"""A process that runs command lines as standard input names them, each with a log of its own."""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from bridge import jvm
from bridge.arguments import parse
from bridge.built import prism_call
from bridge.cli import main as command
from bridge.regress.answers import Cell
from bridge.regress.driving import Driver
from engines.errors import BridgeError, InvalidModelError


class Once(Driver):
    """PRISM in this process, asked each question once, as its own command asks it."""

    def ask(self, cell: Cell, constants: Any) -> None:
        """Check a property; the answer goes to the log."""
        prism_call(self._file.setSomeUndefinedConstants, constants, self.exact)
        prism_call(self.prism.modelCheck, self._file, self._properties[cell.index])


def without_prism(words: list[str]) -> None:
    """Run a command line that needs no PRISM."""
    try:
        command(words)
    except SystemExit:
        sys.stdout.flush()


def in_prism(words: list[str], folder: Path) -> None:
    """Run a command line in PRISM, which stays for the next one."""
    import jpype

    arguments = parse(words, os.environ)
    if not jpype.isJVMStarted():
        jvm.start(jvm.find_runtime(None), arguments.jvm)
    jvm.install_engines(arguments.hooks)
    driver = Once(list(arguments.prism))
    out = jvm.java_class("java.lang.System").out
    built = False
    for cell, of_model, of_property in driver.cells():
        if not built:
            driver.build(of_model, folder, "built")
            built = True
        try:
            driver.ask(cell, of_property)
        except (BridgeError, InvalidModelError) as error:
            out.flush()
            print(f"\nError: {error}", flush=True)
        out.flush()
    driver.prism.closeDown(False)


def main() -> None:
    """Answer until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        task = json.loads(line)
        log = Path(task["log"])
        with log.open("wb") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        try:
            if sys.argv[1] == "prism":
                in_prism(task["words"], log.parent)
            else:
                without_prism(task["words"])
        except Exception:
            print(f"\nError: unexpected\n{traceback.format_exc()}", flush=True)
        sys.stdout.flush()
        answers.write("done\n")
        answers.flush()


if __name__ == "__main__":
    main()
