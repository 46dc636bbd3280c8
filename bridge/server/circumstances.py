"""What a run depends on beside its arguments and its files, as far as Linux tells.

A server makes the runs of those commands alone that were started as it was. Client and server take
the same list down, and compare.
"""

from __future__ import annotations

import os
import sys

_DECIDING = tuple(
    prefix.encode()
    for prefix in (
        *("PRISM", "JAVA", "JDK", "_JAVA", "JVM", "JPYPE", "CLASSPATH", "PYTHON", "CUDA", "CUPY"),
        *("NV", "NCCL", "NPY", "NUMPY", "OPENBLAS", "GOTO", "OMP", "GOMP", "KMP", "MKL", "BLIS"),
        *("VECLIB", "NUMEXPR", "LD_", "GLIBC", "MALLOC", "LC_", "LANG", "LOC", "NLS", "TZ", "HOME"),
        *("USER", "LOGNAME", "HOST", "RES_", "XDG_CACHE", "XDG_CONFIG", "XDG_DATA", "XDG_RUNTIME"),
        *("TMP", "TEMP", "COLUMNS", "LINES", "DASK", "TQDM", "MPL", "NO_COLOR", "FORCE_COLOR"),
        *("CC", "CXX", "CFLAGS"),
    )
)
"""How the names of variables begin that Python, Java, PRISM, the engines and the libraries of
these read, some of them once a process."""
_ASKED_ALONE = b"PRISM_GPU_SERVER"
_COMMANDS = ("prism", "java", "cc", "gcc", "clang")
"""What is looked for on the PATH."""
_FOLDERS = ("PRISM_DIR", "JAVA_HOME")
"""Variables that name folders, or links to them."""

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
    for variable, text in sorted(os.environb.items()):
        if decides(variable):
            found.append(b"the variable " + variable + b"=" + text)
    found += [os.fsencode(f"{each} on the PATH={_on_path(each)}") for each in _COMMANDS]
    for each in _FOLDERS:
        where = os.path.realpath(os.environ.get(each, "/"))
        found.append(os.fsencode(f"where {each} leads={where}"))
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


def decides(name: bytes) -> bool:
    """Return whether a run may depend on a variable by more than what its children read.

    Parameters
    ----------
    name
        Of the variable.
    """
    return name.startswith(_DECIDING) and name != _ASKED_ALONE


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


def _on_path(name: str) -> str:
    """Return where a command is found; as `shutil.which`, which would have to be loaded."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name)
        if folder and os.access(path, os.X_OK) and not os.path.isdir(path):
            return os.path.realpath(path)
    return "none"


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
    # What version 1 gives where there is no limit is no round number.
    if first in ("max", "-1") or (first.isdecimal() and int(first) >= 1 << 60):
        return None
    return text
