"""Whether the host has room for an expanded matrix."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engines.diagrams.survey import Survey
from engines.errors import DeviceMemoryError, amount_text
from engines.host.expansion.expand import expanded_bytes
from engines.host.expansion.walks import Walked

SHARE_OF_HOST = 0.8
"""How much of the host's free memory an expansion may take: vectors come on top."""

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")
OWN_STATUS = Path("/proc/self/status")
MEMINFO = Path("/proc/meminfo")


@dataclass(frozen=True)
class Room:
    """Whether a matrix may be expanded in the host's memory.

    Parameters
    ----------
    needed
        Bytes that the expansion takes at most.
    available
        Bytes of the host's memory that are free; None where the system does not tell.
    """

    needed: int
    available: int | None

    @property
    def fits(self) -> bool:
        """Whether it may; it is tried where nothing is known."""
        return self.available is None or self.needed <= SHARE_OF_HOST * self.available


def fits_expanded(matrix: Survey | Walked | int, host_available: int | None = None) -> Room:
    """Return whether expanding a matrix is wise, with the numbers that say so.

    Parameters
    ----------
    matrix
        The survey of the matrix, or the bytes that its expansion takes.
    host_available
        Bytes of the host's memory that are free; None for `available_host_bytes`.
    """
    needed = int(matrix) if isinstance(matrix, int) else expanded_bytes(matrix)
    return Room(needed, available_host_bytes() if host_available is None else host_available)


def require_host_bytes(needed: int, what: str, share: float = SHARE_OF_HOST) -> None:
    """Refuse what the host's free memory, or the share of it that may be taken, has no room for.

    Parameters
    ----------
    needed
        Bytes that it takes.
    what
        What it is, as the subject of the message.
    share
        How much of the free memory may be taken.

    Raises
    ------
    DeviceMemoryError
        If there is no room; where the system does not tell, it is tried.
    """
    available = available_host_bytes()
    if available is not None and needed > share * available:
        raise DeviceMemoryError(
            f"{what} needs {amount_text(needed)}; {amount_text(available)} are free, of which "
            f"{share:.0%} may be taken"
        )


def available_host_bytes() -> int | None:
    """Return the bytes of the host's memory that this process may still take.

    Returns
    -------
    What Linux estimates to be available, or less where control groups or limits of its own hold
    the process; elsewhere the pages that are free, or None where the system does not tell.
    """
    free = _free_pages()
    with suppress(OSError, ValueError, IndexError):
        lines = MEMINFO.read_text().splitlines()
        found = (line.split() for line in lines if line.startswith("MemAvailable:"))
        free = next((1024 * int(words[1]) for words in found), free)
    known = [*([] if free is None else [free]), *_rooms_of_cgroups(), *_rooms_of_limits()]
    return min(known, default=None)


def _free_pages() -> int | None:
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _rooms_of_limits() -> list[int]:
    """Return the bytes that limits of the process (`ulimit`) leave of addresses and of data."""
    rooms = []
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        lines = (line.split() for line in OWN_STATUS.read_text().splitlines())
        taken = {words[0]: 1024 * int(words[1]) for words in lines if words[0].startswith("Vm")}
        for name, what in (("VmSize:", resource.RLIMIT_AS), ("VmData:", resource.RLIMIT_DATA)):
            limit = resource.getrlimit(what)[0]
            if limit != resource.RLIM_INFINITY and name in taken:
                rooms.append(max(limit - taken[name], 0))
    return rooms


def _rooms_of_cgroups() -> list[int]:
    """Return the bytes that each control group with a limit leaves, of versions 1 and 2."""
    rooms = []
    with suppress(OSError):
        for line in OWN_CGROUPS.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue
            root = CGROUPS / "memory" if controllers else CGROUPS
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
            if not controllers:
                names = ("memory.max", "memory.current")
            own = root / path.strip("/")
            # In a container, the path may be the host's; its own group is then the root.
            for group in {root, own, *own.parents}:
                if group.is_relative_to(root):
                    rooms += _room_of_cgroup(group, *names)
    return rooms


def _room_of_cgroup(group: Path, limit_name: str, usage_name: str) -> list[int]:
    try:
        limit = int((group / limit_name).read_text())
        usage = int((group / usage_name).read_text())
        lines = (group / "memory.stat").read_text().splitlines()
        # Files that nobody has used lately make room when it is wanted.
        idle = [line.split()[1] for line in lines if line.startswith("inactive_file ")]
    except (OSError, ValueError):
        # No such group, or "max" for no limit.
        return []
    return [max(limit - usage + sum(map(int, idle)), 0)]
