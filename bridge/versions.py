"""What differs between PRISM's versions, and how a version is read without starting Java.

Everything that depends on the version of PRISM hangs on one table, `RELEASES`; supporting an
older PRISM means one more entry there and, where its Java API differs, one more source set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engines.errors import BridgeError
from prism_hooks.classfile import static_string_constants

OWN_VERSION = "0.1.0"
"""That of prism-gpu, as pyproject.toml has it: to ask the installation takes longer than to parse
most models."""
DOWNLOAD_PAGE = "https://www.prismmodelchecker.org/download.php"


class RequirementError(BridgeError):
    """Something that a run needs is missing or unusable.

    Attributes
    ----------
    problem : str
        What was found, or what was searched in vain.
    remedy : str
        What to do about it.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}\n{remedy}")
        self.problem = problem
        self.remedy = remedy


class NoPrismError(RequirementError):
    """No PRISM was named, and none was found."""


@dataclass(frozen=True)
class PrismRelease:
    """What the plug must know about one line of PRISM releases.

    Attributes
    ----------
    name : str
        Leading numbers of the versions that it covers: "4.10" covers 4.10, 4.10.1, 4.10.2-dev.
    hooks : str
        Source set of the Java hooks: the folder below `prism_hooks/java`.
    constructors : Mapping[str, str]
        Class that PRISM instantiates → the class of ours that takes its place, a subclass of it
        or of what PRISM holds the new object as.
    statics : Mapping[str, str]
        Class whose static methods PRISM calls → the subclass of ours that takes them over; or one
        such method, as `prism_hooks.relink.relink_class` takes them.
    """

    name: str
    hooks: str
    constructors: Mapping[str, str]
    statics: Mapping[str, str] = field(default_factory=dict)


RELEASES: tuple[PrismRelease, ...] = (
    PrismRelease(
        name="4.10",
        hooks="prismgpu",
        constructors={
            "prism/Prism": "prismgpu/GpuPrism",
            "explicit/ConstructModel": "prismgpu/GpuConstructModel",
            "explicit/rewards/ConstructRewards": "prismgpu/GpuConstructRewards",
            "explicit/DTMCModelChecker": "prismgpu/GpuDTMCModelChecker",
            "explicit/CTMCModelChecker": "prismgpu/GpuCTMCModelChecker",
            "explicit/MDPModelChecker": "prismgpu/GpuMDPModelChecker",
            "explicit/LTLModelChecker": "prismgpu/GpuLTLModelChecker",
            "explicit/SCCComputerTarjan": "prismgpu/GpuSCCComputer",
            "explicit/ECComputerDefault": "prismgpu/GpuECComputer",
            "symbolic/comp/ProbModelChecker": "prismgpu/GpuProbModelChecker",
            "symbolic/comp/StochModelChecker": "prismgpu/GpuStochModelChecker",
            "symbolic/comp/NondetModelChecker": "prismgpu/GpuNondetModelChecker",
            "symbolic/comp/SCCComputerLockstep": "prismgpu/GpuLockstep",
            "symbolic/comp/ECComputerDefault": "prismgpu/GpuDiagramECComputer",
            "symbolic/comp/LTLModelChecker": "prismgpu/GpuDiagramLTLModelChecker",
            "settings/ChoiceSetting": "prismgpu/WindowlessChoice",
            "simulator/SimulatorEngine": "prismgpu/GpuSimulatorEngine",
        },
        statics={
            "edu/jas/kern/ComputerThreads": "prismgpu/AlgebraThreads",
            "explicit/StateValues.createFromDoubleArray": "prismgpu/UnboxedValues",
            "explicit/StateValues.createFromSingleValue": "prismgpu/UnboxedValues",
            "explicit/ZeroRewardECQuotient.getQuotient": "prismgpu/ZeroRewardEnds",
            "sparse/PrismSparse": "prismgpu/GpuPrismSparse",
            "hybrid/PrismHybrid": "prismgpu/GpuPrismHybrid",
            "mtbdd/PrismMTBDD": "prismgpu/GpuPrismMTBDD",
            "java/lang/System.exit": "prismgpu/Ending",
            "prism/PrismCL.shellQuoteSingleIfNecessary": "prismgpu/TypedWords",
        },
    ),
)

# "4.10", "4.10.2-dev" (as `prism -version` prints it), "4.10.2dev", "4.8.1.beta2"
_VERSION = re.compile(r"(?P<numbers>\d+(?:\.\d+)+)(?P<suffix>[-.]?[A-Za-z]\w*)?")


def version_key(version: str) -> tuple[tuple[int, ...], bool] | None:
    """Order PRISM's versions: by number, a development version before its release.

    Parameters
    ----------
    version : str
        A version as `prism -version` prints it, such as "4.10.2-dev".

    Returns
    -------
    tuple or None
        A sort key (its numbers, whether it is a release), or None for what is not a version.
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        return None
    return tuple(int(number) for number in match["numbers"].split(".")), match["suffix"] is None


def supported_release(version: str, where: Path | None = None) -> PrismRelease:
    """Look up what the plug must know about a version of PRISM.

    Parameters
    ----------
    version : str
        The version found.
    where : Path, optional
        The folder it was found in, named in the error message.

    Raises
    ------
    RequirementError
        A `BridgeError`: the version is not supported.
    """
    key = version_key(version)
    if key is not None:
        for release in RELEASES:
            wanted = tuple(int(number) for number in release.name.split("."))
            if key[0][: len(wanted)] == wanted:
                return release
    place = f" in {where}" if where is not None else ""
    names = ", ".join(release.name for release in RELEASES)
    raise RequirementError(
        f"PRISM {version or '(no version)'}{place} is not supported: prism-gpu supports {names}",
        f"Get PRISM {names} from {DOWNLOAD_PAGE} and name its folder with --prism-dir or PRISM_DIR",
    )


def read_version(version_class: bytes) -> str:
    """Read PRISM's version out of `prism/Version.class`.

    Parameters
    ----------
    version_class : bytes
        The class file.

    Returns
    -------
    str
        The version as `prism -version` prints it: number, and "-" and the suffix if there is one.

    Raises
    ------
    BridgeError
        This is not a class file, or no version is in it.
    """
    strings = static_string_constants(version_class)
    number = strings.get("versionString")
    if not number:
        raise BridgeError("no versionString in prism/Version.class")
    suffix = strings.get("versionSuffixString")
    return f"{number}-{suffix}" if suffix else number
