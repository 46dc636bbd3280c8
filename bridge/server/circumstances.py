"""What a run depends on beside its arguments and its files, as far as Linux tells.

A server makes the runs of those commands alone that were started as it was. Client and server take
the same list down, and compare. Variables are told by name: what nobody knows may matter.
"""

from __future__ import annotations

import os
import sys

IGNORED_VARIABLES = frozenset(
    name.encode()
    for name in (
        *("_", "PWD", "OLDPWD", "SHLVL", "PS1", "PS2", "PROMPT_COMMAND", "HISTFILE", "HISTSIZE"),
        *("LS_COLORS", "MAIL", "EDITOR", "VISUAL", "PAGER", "LESS", "LESSOPEN", "LESSCLOSE"),
        *("TERM", "COLORTERM", "COLORFGBG", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "WINDOW"),
        *("TERM_SESSION_ID", "WINDOWID", "STY", "TMUX", "TMUX_PANE", "VTE_VERSION", "GPG_TTY"),
        *("SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "SSH_AUTH_SOCK", "SSH_AGENT_PID"),
        *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "SESSION_MANAGER", "DESKTOP_STARTUP_ID"),
        *("DBUS_SESSION_BUS_ADDRESS", "XDG_SESSION_ID", "XDG_SESSION_TYPE", "XDG_SESSION_CLASS"),
        *("XDG_SEAT", "XDG_VTNR", "INVOCATION_ID", "JOURNAL_STREAM", "SYSTEMD_EXEC_PID"),
        "PRISM_GPU_SERVER",
    )
)
"""What shells, terminals and logins keep in variables, which no run reads."""

_STATUS = (
    *("Umask", "Uid", "Gid", "Groups", "CapPrm", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp"),
    *("Cpus_allowed", "Mems_allowed"),
)
_LIMITS_OF_GROUPS = {
    "memory": ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
    "cpu": ("cpu.cfs_quota_us",),
    "": ("memory.max", "memory.high", "memory.swap.max", "cpu.max"),
}
"""By the controller of a control group; the second version of groups has all in one."""
_NO_LIMIT = 1 << 60
"""Bytes; what version 1 gives where there is no limit is no round number."""


def circumstances() -> list[bytes]:
    """Return the circumstances of this process, each as a name, a "=" and a value.

    Raises
    ------
    OSError
        Where the system does not tell.
    """
    found = [
        b"Python=" + os.fsencode(sys.executable) + b" " + sys.version.encode(),
        b"the program=" + os.fsencode(os.path.dirname(os.path.dirname(__file__))),
    ]
    for name, value in sorted(os.environb.items()):
        if name not in IGNORED_VARIABLES:
            found.append(b"the variable " + name + b"=" + value)
    for line in _lines("/proc/self/status"):
        name, _, value = line.partition(b":")
        if name.decode() in _STATUS:
            found.append(name + b"=" + value.strip())
    for line in _lines("/proc/self/limits")[1:]:
        found.append(line[:25].rstrip() + b"=" + line[25:].strip())
    for space in sorted(os.listdir("/proc/self/ns")):
        found.append(f"{space} namespace={os.readlink(f'/proc/self/ns/{space}')}".encode())
    root = os.stat("/")
    found.append(f"root folder={root.st_dev}:{root.st_ino}".encode())
    priority = os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0)
    found.append(b"priority=%d of class %d" % priority)
    return found + _group_limits()


def difference(ours: list[bytes], theirs: list[bytes]) -> str | None:
    """Return the name of the first circumstance in which two lists differ; None if none does.

    Parameters
    ----------
    ours, theirs
        Two lists of circumstances.
    """
    for mine, other in ((ours, theirs), (theirs, ours)):
        known = set(other)
        for each in mine:
            if each not in known:
                return each.partition(b"=")[0].decode(errors="replace")
    return None


def _lines(path: str) -> list[bytes]:
    with open(path, "rb") as file:
        return file.read().splitlines()


def _group_limits() -> list[bytes]:
    """Return the limits that control groups set, each with the group that has it."""
    found = []
    for line in _lines("/proc/self/cgroup"):
        _, controllers, path = os.fsdecode(line).split(":", 2)
        for controller in controllers.split(","):
            names = _LIMITS_OF_GROUPS.get(controller, ())
            roots = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
            if controller:
                roots = (f"/sys/fs/cgroup/{controllers}", f"/sys/fs/cgroup/{controller}")
            root = next((each for each in roots if names and os.path.isdir(each)), None)
            group = path
            while root is not None:
                for name in names:
                    limit = _limit(f"{root}{group.rstrip('/')}/{name}")
                    if limit is not None:
                        found.append(os.fsencode(f"{name} of the group {group}={limit}"))
                if group in ("", "/"):
                    break
                group = os.path.dirname(group)
    return found


def _limit(path: str) -> str | None:
    """Return a limit, or None where there is none."""
    try:
        with open(path, encoding="ascii") as file:
            text = file.read().strip()
    except OSError:
        return None
    first = text.split()[0] if text else "max"
    if first in ("max", "-1") or (first.isdecimal() and int(first) >= _NO_LIMIT):
        return None
    return text
