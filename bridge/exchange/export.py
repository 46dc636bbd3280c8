"""`prism-gpu export`: a model that PRISM built, and what its properties ask of it, in a folder."""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from bridge import ending
from bridge.exchange.content import BuiltContent, digests, mask_digest, read_built
from bridge.exchange.manifest import (
    MANIFEST,
    Manifest,
    Question,
    file_digest,
    is_file_of_model,
    set_names,
    timestamp,
)
from bridge.exchange.prism_run import Exchange, masks, with_labels
from bridge.exchange.results import RESULTS
from bridge.files.checkable import as_file_model, as_umb
from bridge.files.umb import write_umb
from bridge.files.writer import write_model
from bridge.model import CheckableModel
from bridge.versions import OWN_VERSION
from engines.arrays import MaskArray
from engines.errors import BridgeError, UnsupportedError
from engines.model.environment import SolverEnvironment
from engines.process.leftovers import remove_abandoned, temporary_folder
from prism_hooks.backend import EngineBackend
from prism_hooks.options import HookOptions

MODEL_NAME = "model"
DRAFT = ".part"


class Collector(Exchange):
    """Takes down the operators of a run's properties.

    Parameters
    ----------
    options
        What the command line says about methods and limits.
    """

    def __init__(self, options: HookOptions) -> None:
        self._backend = EngineBackend(options)
        self._model_id: int | None = None
        self._content: BuiltContent | None = None
        self._settings: SolverEnvironment | None = None
        self._names: dict[str, str] = {}
        self._numbers = count(1)
        self._questions: dict[str, Question] = {}
        self.sets: dict[str, MaskArray] = {}

    def collects(self) -> bool:
        """Return True: operators are taken down."""
        return True

    def take_model(self, problem: Any, built: Any) -> None:
        """Read the model when the first property comes; the others must be about the same."""
        number = int(problem.modelId)
        if self._model_id is None:
            self._content = read_built(built)
            self._settings = self._backend.environment(problem)
            self._model_id = number
            labels = self._content.model.labels
            self._names = set_names({name: mask_digest(labels[name]) for name in labels})
        elif number != self._model_id:
            raise UnsupportedError("the properties are about several models: export one at a time")

    def take_operator(self, operator: Any) -> None:
        """Take down an operator; one that was asked before, perhaps with a bound, is not."""
        names = [self._name(states) for states in masks(operator, self.content.model.num_states)]
        text = with_labels(operator, names)
        self._questions.setdefault(text, Question(str(operator.key), text))

    def _name(self, states: MaskArray) -> str:
        digest = mask_digest(states)
        if digest not in self._names:
            taken = {*self.content.model.labels, *self.sets}
            name = next(name for n in self._numbers if (name := f"ap{n}") not in taken)
            self._names[digest] = name
            self.sets[name] = states
        return self._names[digest]

    @property
    def content(self) -> BuiltContent:
        """The model.

        Raises
        ------
        UnsupportedError
            When no property was checked.
        """
        if self._content is None:
            raise UnsupportedError("there is nothing to export: no property was checked")
        return self._content

    @property
    def settings(self) -> SolverEnvironment:
        """How to solve."""
        assert self._settings is not None
        return self._settings

    @property
    def questions(self) -> tuple[Question, ...]:
        """What was asked, in the order of asking."""
        return tuple(self._questions.values())


def require_target(folder: Path, *, force: bool) -> None:
    """Refuse a folder that an export cannot be written to, before anything is computed.

    Parameters
    ----------
    folder
        Where the export is to be.
    force
        Whether an export that is there may be replaced.

    Raises
    ------
    BridgeError
        Saying what is in the way.
    """
    asked, folder = folder, Path(os.path.realpath(folder))
    if os.path.lexists(folder):
        if not folder.is_dir():
            raise BridgeError(f"-to {asked}: this is a file, not a folder")
        # Drafts are those of other exports, at work or killed.
        inside = {entry.name for entry in folder.iterdir() if not entry.name.endswith(DRAFT)}
        if inside and MANIFEST not in inside:
            raise BridgeError(f"-to {asked}: the folder is not empty, and holds no export")
        if inside and not force:
            raise BridgeError(
                f"-to {asked}: there is an export already; name another folder, or replace it "
                "with -force"
            )
        strangers = sorted(name for name in inside if not _ours(name))
        if strangers:
            raise BridgeError(
                f"-to {asked}: {strangers[0]} is not part of the export there; remove it first"
            )
    else:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BridgeError(f"-to {asked}: {error.strerror}: {error.filename}") from error
    into = folder if folder.exists() else folder.parent
    if not os.access(into, os.W_OK | os.X_OK):
        raise BridgeError(f"-to {asked}: {into} is not writable")


def _ours(name: str) -> bool:
    ours = name in (MANIFEST, RESULTS) or name.startswith(f".{RESULTS}.")
    return ours or is_file_of_model(name, MODEL_NAME)


def write_export(
    folder: Path,
    collector: Collector,
    command: tuple[str, ...],
    prism: str,
    *,
    text: bool,
    command_line: str | None = None,
    force: bool = True,
) -> Manifest:
    """Write what was taken down, whole or not at all.

    Parameters
    ----------
    folder
        Where to; checked by `require_target`.
    collector
        What was taken down.
    command
        The command line that the report is to repeat.
    prism
        PRISM's version.
    text
        Whether the model is written as text files instead of UMB.
    command_line
        All that the export was told, for people to read; `command` by default.
    force
        Whether an export that is there by now may be replaced.

    Raises
    ------
    UnsupportedError
        When there is nothing to write, or text files cannot hold the model.
    OSError
        When the folder cannot be written.
    """
    content = collector.content
    model = content.model
    if not collector.questions:
        raise UnsupportedError(
            "there is nothing to export: the properties have no P, R or S operator"
        )
    labels = {**model.labels, **collector.sets}
    with _whole_folder(folder, force=force) as draft:
        labelled = CheckableModel(replace(model, labels=labels), content.rewards)
        if text:
            write_model(as_file_model(labelled), draft)
        else:
            write_umb(as_umb(labelled), draft / f"{MODEL_NAME}.umb")
        manifest = Manifest(
            provenance={
                "date": timestamp(),
                "PRISM": prism,
                "prism-gpu": OWN_VERSION,
                "command line": f"prism-gpu export {command_line or shlex.join(command)}",
                "model": f"{model.kind}, {model.num_states} states, "
                f"{model.matrix.num_entries} transitions",
                "constants": content.constants,
            },
            command=command,
            settings=collector.settings,
            content=digests(content),
            sets={name: mask_digest(states) for name, states in labels.items()},
            files={path.name: file_digest(path) for path in sorted(draft.iterdir())},
            questions=collector.questions,
        )
        manifest.save(draft)
    return manifest


@contextmanager
def _whole_folder(folder: Path, *, force: bool) -> Iterator[Path]:
    """Yield a folder whose files are a folder's once all are written.

    A folder that is there stays the same one: it may be someone's current folder.
    """
    # What a link points to is the folder.
    folder = Path(os.path.realpath(folder))
    into = folder if folder.exists() else folder.parent
    remove_abandoned(into / folder.name)
    with temporary_folder(into, prefix=f".{folder.name}.", suffix=DRAFT) as draft:
        yield draft
        draft.chmod(0o755)
        if into is folder:
            _replace_files(folder, draft, force=force)
        else:
            _rename(draft, folder)


def _rename(draft: Path, folder: Path) -> None:
    """Give a draft its final name; of several exports at once, one does."""
    try:
        draft.rename(folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        raise BridgeError(f"-to {folder}: it was written by another meanwhile") from error


def _replace_files(folder: Path, draft: Path, *, force: bool) -> None:
    """Put a draft's files in the places of those that are there, the manifest last."""
    with _alone_in(folder):
        require_target(folder, force=force)
        aside = draft / "aside"
        aside.mkdir()
        moved: list[tuple[Path, Path]] = []

        def move(path: Path, to: Path) -> None:
            moved.append((path, to))
            path.rename(to)

        def undo() -> None:
            for before, after in reversed(moved):
                # The last of them may not have been moved yet.
                with suppress(FileNotFoundError):
                    after.rename(before)

        with ending.first(undo):
            try:
                there = [path for path in folder.iterdir() if _ours(path.name)]
                for path in sorted(there, key=lambda path: path.name != MANIFEST):
                    move(path, aside / path.name)
                new = [path for path in draft.iterdir() if path != aside]
                for path in sorted(new, key=lambda path: path.name == MANIFEST):
                    move(path, folder / path.name)
            except BaseException:
                undo()
                raise


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep other exports out of a folder, where its file system has locks."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)
