"""Where and with what is measured: programs, versions, hardware."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from bridge.install import JavaInstall, PrismInstall, find_java, find_prism
from bridge.versions import OWN_VERSION, NoPrismError
from engines.errors import BridgeError
from engines.host.expansion.room import available_host_bytes
from engines.process.cores import num_cores

PACKAGES = ("numpy", "scipy", "jpype1", "matplotlib")
NO_PART_IN_RESULTS = ("matplotlib",)
ELSEWHERE = "gpu-elsewhere"
CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy")


@dataclass(frozen=True)
class Host:
    """A machine and its programs.

    Parameters
    ----------
    prism, java
        PRISM and the Java that it runs on; None where the embedded front end takes their place.
    device
        "gpu" or "cpu": what our engines compute on.
    device_name
        The device, in words.
    processor, cores
        The CPU, and the cores that this process may use.
    memory, available
        Bytes of memory, and of it what this process may still take.
    device_memory
        Bytes of the GPU's memory; 0 without one.
    versions
        By program and package.
    computes
        Whether the device is here; if not, only PRISM's runs are made, and other hosts' results
        are shown.
    gpus
        How many GPUs are here.
    """

    prism: PrismInstall | None
    java: JavaInstall | None
    device: str
    device_name: str
    processor: str
    cores: int
    memory: int
    available: int
    device_memory: int
    versions: dict[str, str]
    computes: bool = True
    gpus: int = 0

    @property
    def front_end(self) -> str:
        """Who builds the models: "prism" or "builtin"."""
        return "builtin" if self.prism is None else "prism"

    @property
    def examples(self) -> Path | None:
        """PRISM's folder of examples, or None."""
        return None if self.prism is None else self.prism.beside("prism-examples")

    @property
    def room(self) -> int:
        """Bytes that a model may take: on the device and on the host."""
        return min(self.available, self.device_memory) if self.device_memory else self.available

    def identity(self) -> dict[str, object]:
        """Return what results depend on."""
        return {
            "front_end": self.front_end,
            "device": self.device,
            "device_name": self.device_name,
            "processor": self.processor,
            "cores": self.cores,
            "versions": {
                name: version
                for name, version in self.versions.items()
                if name not in NO_PART_IN_RESULTS
            },
        }

    def described(self) -> dict[str, object]:
        """Return all of it for the record."""
        record = asdict(self)
        for name in ("prism", "java"):
            record.pop(name)
        record["front_end"] = self.front_end
        record["system"] = f"{platform.system()} {platform.release()}, {platform.machine()}"
        return record


def examine(device: str, front_end: str | None = None) -> Host:
    """Look at the machine.

    Parameters
    ----------
    device
        "auto", "gpu" or "cpu"; `ELSEWHERE` for a GPU of other hosts.
    front_end
        "prism" or "builtin", if named; else PRISM where there is one.

    Raises
    ------
    BridgeError
        Where the GPU or the PRISM that was named is missing, or PRISM is there without a Java.
    """
    prism = java = None
    if front_end != "builtin":
        try:
            prism = find_prism()
        except NoPrismError as error:
            if front_end == "prism":
                raise BridgeError(f"{error}\n--frontend prism was given") from error
        else:
            # A PRISM that cannot run is an error: nothing else takes its place in silence.
            java = find_java()
    elsewhere = device == ELSEWHERE
    summary, refusal = (None, "") if device == "cpu" or elsewhere else _gpu()
    if device == "gpu" and summary is None:
        raise BridgeError(f"--device gpu: no GPU can be used: {refusal}")
    processor, cores = _processor(), num_cores()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    name = f"{processor}, {cores} cores" if summary is None else summary[0]
    if elsewhere:
        name = "a GPU of another host"
    return Host(
        prism=prism,
        java=java,
        device="gpu" if summary is not None or elsewhere else "cpu",
        device_name=name,
        processor=processor,
        cores=cores,
        memory=memory,
        available=min(memory, available_host_bytes() or memory),
        device_memory=0 if summary is None else summary[1],
        versions=_versions(prism, java),
        computes=not elsewhere,
        gpus=0 if summary is None else summary[2],
    )


def _gpu() -> tuple[tuple[str, int, int] | None, str]:
    """Return name and bytes of the first GPU and how many there are, or None and the reason."""
    from engines.cuda.driver import early_refusal, gpu_refusal

    refusal = early_refusal() or gpu_refusal()
    if refusal is not None:
        return None, refusal
    from engines.cuda.driver import cupy

    runtime = cupy().cuda.runtime
    properties = runtime.getDeviceProperties(0)
    found = properties["name"].decode(), int(properties["totalGlobalMem"])
    return (*found, int(runtime.getDeviceCount())), ""


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _versions(prism: PrismInstall | None, java: JavaInstall | None) -> dict[str, str]:
    found = {"prism-gpu": OWN_VERSION, "python": platform.python_version()}
    if commit := _commit():
        found["commit"] = commit
    if prism is not None and java is not None:
        found |= {"PRISM": prism.version, "Java": java.version}
    for name in (*PACKAGES, *CUPY):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _commit() -> str:
    """Return the commit that the repository is at, or nothing outside of one."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists() or shutil.which("git") is None:
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()
