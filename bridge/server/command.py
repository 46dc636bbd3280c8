"""The command `prism-gpu server`."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NoReturn

import click

from bridge.refusals import error_line
from bridge.server import place, wire
from bridge.server.client import connected
from bridge.server.supervisor import ServerOptions, serve
from engines.errors import BridgeError
from engines.process import child

STARTED = "started"
PATIENCE_S = 5.0


@click.command(name="prism-gpu server", context_settings={"help_option_names": ["--help", "-help"]})
@click.option("--background", is_flag=True, help="Return once runs are taken.")
@click.option("--stop", is_flag=True, help="End the server, after the run that it makes.")
@click.option("--status", is_flag=True, help="Tell what the server is and does.")
@click.option(
    "--idle",
    metavar="MINUTES",
    type=click.FloatRange(min=0, min_open=True),
    default=ServerOptions.idle_minutes,
    show_default=True,
    help="End after that time without a run.",
)
@click.option("--started", type=int, hidden=True)
def command(background: bool, stop: bool, status: bool, idle: float, started: int | None) -> None:
    """Keep PRISM and our engines loaded for the runs of this user's commands.

    While it is there, `prism-gpu` has it make the runs that it would make the same way.
    """
    try:
        if stop or status:
            _tell(wire.STOP if stop else wire.STATUS)
        elif background:
            _start(idle)
        elif started is not None:
            _serve_detached(idle, started)
        else:
            serve(ServerOptions(idle_minutes=idle), lambda text: print(text, flush=True))
    except BridgeError as error:
        print(error_line(error), flush=True)
        sys.exit(1)
    sys.exit(0)


def _tell(what: bytes) -> NoReturn:
    """Ask the server for its status, or for its end, which is awaited."""
    path = place.folder_path()
    try:
        connection = None if path is None else connected(path, PATIENCE_S)
        if connection is None:
            raise FileNotFoundError
        wire.send(connection, [what])
        if what == wire.STOP:
            connection.settimeout(None)
        fields, _ = wire.receive(connection)
    except (FileNotFoundError, ConnectionError):
        print("prism-gpu: no server is there", flush=True)
        sys.exit(1)
    except OSError as error:
        raise BridgeError(f"the server does not answer: {error}") from error
    print(fields[0].decode() if fields else "prism-gpu: the server has ended", flush=True)
    sys.exit(0)


def _start(idle: float) -> None:
    """Start a server of its own session; return once it takes runs.

    Raises
    ------
    BridgeError
        With what it says if it does not.
    """
    theirs, ours = os.pipe()
    process = subprocess.Popen(
        [*child.module("bridge"), "server", "--idle", str(idle), "--started", str(ours)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[ours],
        cwd="/",
        start_new_session=True,
    )
    os.close(ours)
    with os.fdopen(theirs, encoding="utf-8") as file:
        said = file.read()
    kind, _, text = said.partition(" ")
    if kind != STARTED:
        raise BridgeError(said or f"the server ended with exit code {process.wait()}")
    print(text, flush=True)


def _serve_detached(idle: float, started: int) -> None:
    """Take runs; who started this process is told by a pipe."""
    os.set_inheritable(started, False)
    with os.fdopen(started, "w", encoding="utf-8") as file:

        def announce(text: str) -> None:
            file.write(f"{STARTED} {text}")
            file.close()

        try:
            serve(ServerOptions(idle_minutes=idle), announce)
        except BridgeError as error:
            if not file.closed:
                file.write(str(error))
            raise
