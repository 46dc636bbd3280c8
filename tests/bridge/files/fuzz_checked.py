"""Damaged model files, each checked by the command itself, in one process.

    python -m tests.bridge.files.fuzz_checked [--inputs N] [--seed S] [--umb | --text]

Each run must end with a result for every property or with an error that names the file, within ten
seconds, without a traceback, and with nothing written anywhere. The file that breaks a run stays in
the folder that is printed.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path

import click
from tqdm import tqdm

from bridge.cli import main as prism_gpu
from tests.bridge.files.fuzz_at_length import Fuzzer, by_rank

SECONDS = 10
PROPERTIES = (
    'filter(count, "init")',
    "filter(max, P=? [ F<=3 x=1 ])",
    "filter(max, R=? [ I=2 ])",
    'filter(max, P=? [ F "goal" ])',
)
EXPORTS = (
    (),
    (),
    ("-exportlabels", "stdout"),
    ("-exportstates", "stdout"),
    ("-exporttrans", "stdout"),
)


class CheckedFuzzer(Fuzzer):
    """Lets the command check what `Fuzzer` makes.

    Parameters
    ----------
    folder
        An empty folder for the files.
    seed
        Of the inputs.
    """

    def judged_umb(self) -> str:
        """Check the UMB file that was made."""
        return self._judged(self.folder / "f.umb")

    def judged_text(self, files: dict[str, bytes]) -> str:
        """Check the text files, after writing them."""
        for old in self.folder.glob("m.*"):
            old.unlink()
        for ending, text in files.items():
            (self.folder / f"m{ending}").write_bytes(text)
        return self._judged(self.folder / f"m{min(files, key=by_rank)}")

    def make(self, umb: bool | None) -> None:
        """Make one input and check it.

        Parameters
        ----------
        umb
            Whether it is a UMB file; None for either.
        """
        kinds = [self.umb_bytes, self.umb_members, self.umb_members] if umb is not False else []
        kinds += [self.text_files, self.combined] if umb is not True else []
        kind = self.random.choice(kinds)
        self.seen[f"{kind.__name__}: {kind()}"] += 1

    def _judged(self, path: Path) -> str:
        before = sorted(os.listdir(self.folder))
        question = self.random.choice(["=?", "max=?"])
        properties = "; ".join(PROPERTIES).replace("=?", question)
        exports = self.random.choice(EXPORTS)
        code, output = checked(path, ("-pctl", properties, *exports, "-nogpu"))
        assert sorted(os.listdir(self.folder)) == before, "a file was written"
        lines = output.splitlines()
        results = sum(line.startswith("Result:") for line in lines)
        errors = [line for line in lines if line.startswith("Error:")]
        assert results <= len(PROPERTIES), "a result of no property"
        assert "Traceback" not in output, output
        assert "failed unexpectedly" not in output, output
        if code == 0:
            assert 0 <= results + len(errors) - len(PROPERTIES) <= len(exports) // 2, output
            return "results" if results else "errors of properties"
        assert not results, output
        assert errors, output
        # Without its names a model is whole; a property that has them is not.
        blamed = (f"{self.folder}/{path.name[0]}.", "Undeclared ", "reward struct index")
        assert any(text in errors[0] for text in blamed), output
        return "refused"


def checked(path: Path, words: tuple[str, ...]) -> tuple[int, str]:
    """Return the exit code of the command, and what it printed, as a terminal would take it.

    Parameters
    ----------
    path
        The model.
    words
        What follows it on the command line.
    """
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            prism_gpu([str(path), *words])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    buffer = printed.buffer
    assert isinstance(buffer, io.BytesIO)
    return code, buffer.getvalue().decode()


def fuzz(inputs: int, seed: int, umb: bool | None, folder: Path) -> Counter[str]:
    """Check damaged files; return how many ended in which way.

    Parameters
    ----------
    inputs
        How many.
    seed
        Which.
    umb
        UMB files alone, text files alone, or, None, both.
    folder
        An empty folder.

    Raises
    ------
    AssertionError, TimeoutError
        Where a run does what it must not; other exceptions are those that a run should have caught.
    """

    def late(signum: int, frame: object) -> None:
        del signum, frame
        raise TimeoutError(f"more than {SECONDS} seconds")

    fuzzer = CheckedFuzzer(folder, seed)
    before = signal.signal(signal.SIGPROF, late)
    try:
        for number in tqdm(range(inputs), disable=None):
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                fuzzer.make(umb)
            except BaseException as error:
                error.add_note(f"input {number} of seed {seed}, in {folder}")
                raise
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return fuzzer.seen


@click.command()
@click.option("--inputs", default=5_000, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--umb/--text", default=None, help="UMB files alone, or text files alone.")
def main(inputs: int, seed: int, umb: bool | None) -> None:
    """Check damaged files until all are checked or one breaks a run."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz"))
    started = time.perf_counter()
    seen = fuzz(inputs, seed, umb, folder)
    for old in folder.iterdir():
        old.unlink()
    folder.rmdir()
    print(f"{inputs} inputs in {time.perf_counter() - started:.0f} s, seed {seed}")
    for outcome, count in sorted(seen.items()):
        print(f"{count:9} {outcome}")


if __name__ == "__main__":
    main()
