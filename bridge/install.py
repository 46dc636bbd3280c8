"""Find PRISM and Java, and ask their versions, before any JVM starts.

Only files are looked at: PRISM's version is read out of `prism/Version.class`, Java's out of its
`release` file. Java is run only where a home without that file leaves no other way.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bridge.versions import (
    DOWNLOAD_PAGE,
    RELEASES,
    NoPrismError,
    RequirementError,
    read_version,
    supported_release,
    version_key,
)
from engines.errors import BridgeError

GET_PRISM = (
    f"Get PRISM {RELEASES[0].name} from {DOWNLOAD_PAGE} and name its folder with "
    "--prism-dir or PRISM_DIR"
)
OLDEST_JAVA = 11

USUAL_PRISM_PLACES = (
    "/opt/prism*",
    "~/prism*",
    "/usr/local/prism*",
    "/usr/lib/prism*",
    "/usr/share/prism*",
    "~/Applications/prism*",
    "~/opt/prism*",
)
USUAL_JAVA_PLACES = (
    "/usr/lib/jvm/*",
    "/opt/java*",
    "/opt/jdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "/usr/local/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
)
# Below a Java home; all but the first of each are Java 8's, found only to be refused by number.
JVM_LIBRARIES = {
    "linux": ("lib/server/libjvm.so", "jre/lib/*/server/libjvm.so", "lib/*/server/libjvm.so"),
    "darwin": ("lib/server/libjvm.dylib", "jre/lib/server/libjvm.dylib"),
}
_NATIVE_LIBRARIES = ("libprism*.so", "libprism*.dylib", "libprism*.jnilib")
_SCRIPT_FOLDER = re.compile(
    r"""^\s*(?:export\s+)?PRISM_DIR=(?:"([^"]+)"|'([^']+)'|([^\s"';]+))""", re.MULTILINE
)


@dataclass(frozen=True)
class PrismInstall:
    """An installed PRISM.

    Attributes
    ----------
    root : Path
        PRISM's folder, the one with `bin/` and `lib/`.
    version : str
        As `prism -version` prints it: "4.10.2-dev".
    class_location : Path
        The `classes` folder of a source build, or `lib/prism.jar`.
    classpath : tuple of Path
        In the order of PRISM's own start script: jar, classes, root, the other jars.
    library_path : Path
        Folder of the native libraries.
    found_by : str
        How it was found: "--prism-dir", "PRISM_DIR", "prism on the PATH" or "usual places".
    """

    root: Path
    version: str
    class_location: Path
    classpath: tuple[Path, ...]
    library_path: Path
    found_by: str

    def beside(self, name: str) -> Path | None:
        """Return a folder that comes with PRISM, such as its examples; None where it is not there.

        Parameters
        ----------
        name
            Its name: "prism-examples" lies beside PRISM's own folder in a source repository, and
            inside of it in a packaged PRISM.
        """
        found = (root / name for root in (self.root.parent, self.root))
        return next((folder for folder in found if folder.is_dir()), None)


@dataclass(frozen=True)
class JavaInstall:
    """An installed Java, 11 or newer.

    Attributes
    ----------
    home : Path
        Its home folder.
    jvm_library : Path
        The library that JPype loads.
    version : str
        "17.0.21", and its first number in `major`.
    major : int
        17.
    has_compiler : bool
        Whether the module `jdk.compiler` is in it, as it is in a JDK.
    vendor : str
        "Eclipse Adoptium"; empty where it does not say.
    found_by : str
        How it was found: "JAVA_HOME", "java on the PATH" or "usual places".
    """

    home: Path
    jvm_library: Path
    version: str
    major: int
    has_compiler: bool
    vendor: str
    found_by: str


def find_prism(
    prism_dir: str | None = None, environ: Mapping[str, str] = os.environ
) -> PrismInstall:
    """Find PRISM: `prism_dir`, PRISM_DIR, `prism` on the PATH, the usual places.

    Parameters
    ----------
    prism_dir : str, optional
        The folder that the user named; PRISM's own, or the one that holds it as `prism/`.
    environ : Mapping[str, str]
        The environment: PRISM_DIR, PATH and HOME are read.

    Returns
    -------
    PrismInstall
        Its version may be one that is not supported. Among several in the usual places the
        newest supported one is taken.

    Raises
    ------
    RequirementError
        A `BridgeError`: no PRISM (`NoPrismError`); or a folder was named, and no usable PRISM is in
        it.
    """
    if prism_dir is not None:
        return _named_prism(prism_dir, "--prism-dir")
    if environ.get("PRISM_DIR"):
        return _named_prism(environ["PRISM_DIR"], "PRISM_DIR")

    unusable: list[RequirementError] = []
    for folder in _prism_folders_on_path(environ):
        install = _try_prism(folder, "prism on the PATH", unusable)
        if install is not None:
            return install
    installs = [
        install
        for folder in _existing(USUAL_PRISM_PLACES, environ)
        if (install := _try_prism(folder, "usual places", unusable)) is not None
    ]
    if installs:
        return max(installs, key=_preference)
    searched = "\n".join(
        [
            "No PRISM found. Searched:",
            "  --prism-dir: not given",
            "  PRISM_DIR: not set",
            "  prism on the PATH: none that leads to a PRISM",
            f"  usual places: {', '.join(USUAL_PRISM_PLACES)}",
            *dict.fromkeys(f"  not usable: {e.problem}. {e.remedy}" for e in unusable),
        ]
    )
    raise NoPrismError(searched, GET_PRISM)


def _named_prism(folder: str, found_by: str) -> PrismInstall:
    problem = f"{found_by} names {folder or 'an empty path'}, which holds no PRISM"
    if folder:
        install = _prism_at(Path(folder).expanduser(), found_by)
        if install is not None:
            return install
        if not Path(folder).expanduser().is_dir():
            problem = f"{found_by} names {folder}, which is not a folder"
    raise RequirementError(
        problem,
        "Name the folder with PRISM's bin/ and lib/ (classes/ or lib/prism.jar are looked for); "
        f"PRISM is at {DOWNLOAD_PAGE}",
    )


def _try_prism(
    folder: Path, found_by: str, unusable: list[RequirementError]
) -> PrismInstall | None:
    try:
        return _prism_at(folder, found_by)
    except RequirementError as error:
        unusable.append(error)
        return None


def _prism_at(folder: Path, found_by: str) -> PrismInstall | None:
    """PRISM in this folder or in its `prism/`; None where neither is one; raises if unusable."""
    try:
        for root in (folder, folder / "prism"):
            for location in (root / "lib" / "prism.jar", root / "classes"):
                if (location / "prism" / "Version.class").is_file() or location.is_file():
                    return _prism_with(root.resolve(), location.resolve(), found_by)
            if (root / "src" / "prism" / "PrismCL.java").is_file():
                raise RequirementError(
                    f"{root} holds PRISM's sources, but they are not built (no classes/)",
                    f"Build PRISM: cd {root} && make",
                )
    except OSError as error:
        raise RequirementError(
            f"{folder} cannot be read: {error.strerror or error}", GET_PRISM
        ) from error
    return None


def _prism_with(root: Path, location: Path, found_by: str) -> PrismInstall:
    library_path = root / "lib"
    if not any(library for name in _NATIVE_LIBRARIES for library in library_path.glob(name)):
        raise RequirementError(
            f"PRISM in {root} has no native library (lib/libprism.so or its like)",
            f"Build PRISM: cd {root} && make"
            if (root / "src").is_dir()
            else f"Unpack PRISM again, from {DOWNLOAD_PAGE}",
        )
    try:
        version = read_version(_version_class(location))
    except (BridgeError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise RequirementError(
            f"PRISM's version cannot be read from {location}: {error}",
            f"Build or unpack PRISM again; it is at {DOWNLOAD_PAGE}",
        ) from error
    jar = library_path / "prism.jar"
    others = sorted(path for path in library_path.glob("*.jar") if path != jar)
    classpath = [path for path in (jar, root / "classes", root) if path.exists()]
    return PrismInstall(root, version, location, (*classpath, *others), library_path, found_by)


def _version_class(location: Path) -> bytes:
    if location.is_dir():
        return (location / "prism" / "Version.class").read_bytes()
    with zipfile.ZipFile(location) as jar:
        return jar.read("prism/Version.class")


def _preference(install: PrismInstall) -> tuple[bool, tuple[tuple[int, ...], bool]]:
    try:
        supported_release(install.version)
    except BridgeError:
        supported = False
    else:
        supported = True
    return supported, version_key(install.version) or ((), False)


def _prism_folders_on_path(environ: Mapping[str, str]) -> Iterator[Path]:
    """Folders that the `prism` commands on the PATH point at: their PRISM_DIR, then their own."""
    for entry in environ.get("PATH", "").split(os.pathsep):
        command = shutil.which("prism", path=entry) if entry else None
        if command is None:
            continue
        script = Path(command).resolve()
        try:
            with script.open("rb") as file:
                text = file.read(1 << 16).decode("utf-8", "replace")
        except OSError:
            text = ""
        for groups in _SCRIPT_FOLDER.findall(text):
            assigned = next(group for group in groups if group)
            # What the shell would have to work out is left to the script's own folder.
            if "$" not in assigned and "`" not in assigned:
                yield script.parent / assigned
        yield script.parent.parent


def _existing(patterns: tuple[str, ...], environ: Mapping[str, str]) -> list[Path]:
    """Folders that match the patterns, each once, links resolved."""
    home = environ.get("HOME") or environ.get("USERPROFILE")
    folders: dict[Path, None] = {}
    for pattern in patterns:
        if pattern.startswith("~"):
            if not home:
                continue
            pattern = glob.escape(home) + pattern[1:]
        for match in sorted(glob.glob(pattern)):
            if os.path.isdir(match):
                folders[Path(match).resolve()] = None
    return list(folders)


def get_jdk() -> str:
    """Say which command gets a JDK on this system."""
    if sys.platform == "darwin":
        return "Get a JDK: brew install openjdk"
    return "Get a JDK: apt-get install default-jdk-headless (Debian, Ubuntu; else adoptium.net)"


def find_java(environ: Mapping[str, str] = os.environ) -> JavaInstall:
    """Find Java: JAVA_HOME, `java` on the PATH, the usual places.

    JAVA_HOME is respected whatever it names. Otherwise a Java with a compiler is preferred: the
    PATH's, else the newest in the usual places, before a Java without one.

    Parameters
    ----------
    environ : Mapping[str, str]
        The environment: JAVA_HOME and PATH are read.

    Returns
    -------
    JavaInstall
        Java 11 or newer; `has_compiler` is for `require_compiler` to look at.

    Raises
    ------
    RequirementError
        A `BridgeError`: no Java, only an older one, or a JAVA_HOME that is neither.
    """
    if environ.get("JAVA_HOME"):
        named = environ["JAVA_HOME"]
        java = _java_at(Path(named).expanduser(), "JAVA_HOME")
        if java is None:
            raise RequirementError(
                f"JAVA_HOME names {named}, which holds no Java (no {_jvm_libraries()[0]})",
                f"Set JAVA_HOME to a JDK's folder, or unset it. {get_jdk()}",
            )
        return _require_new_enough([java])

    command = shutil.which("java", path=environ.get("PATH", ""))
    on_path = None
    if command is not None:
        on_path = _java_at(Path(command).resolve().parent.parent, "java on the PATH")
        if on_path is not None and on_path.has_compiler and on_path.major >= OLDEST_JAVA:
            return on_path
    usual = [
        java
        for home in _existing(USUAL_JAVA_PLACES, environ)
        if (java := _java_at(home, "usual places")) is not None
    ]
    usual.sort(key=lambda java: (java.has_compiler, _numbers(java.version)), reverse=True)
    if usual and usual[0].has_compiler and usual[0].major >= OLDEST_JAVA:
        return usual[0]
    if command is not None and on_path is None:
        # A wrapper script (asdf, jenv) or macOS's stub: only running it tells its home.
        told = _ask_java(command).get("java.home")
        on_path = _java_at(Path(told), "java on the PATH") if told else None
    found = [java for java in (on_path, *usual) if java is not None]
    if not found:
        raise RequirementError(
            "No Java found. Searched:\n  JAVA_HOME: not set\n"
            f"  java on the PATH: {f'{command}, which does not run' if command else 'none'}\n"
            f"  usual places: {', '.join(USUAL_JAVA_PLACES)}",
            get_jdk(),
        )
    return _require_new_enough(found)


def require_compiler(java: JavaInstall) -> None:
    """Refuse a Java without a compiler: prism-gpu compiles its Java classes on first use.

    Raises
    ------
    RequirementError
        A `BridgeError` that names the Java found and the command that gets a JDK.
    """
    if not java.has_compiler:
        raise RequirementError(
            f"Java {java.version} in {java.home} ({java.found_by}) is a JRE without a compiler "
            "(no module jdk.compiler), which prism-gpu needs on its first run",
            get_jdk() + ("; then unset JAVA_HOME" if java.found_by == "JAVA_HOME" else ""),
        )


def _require_new_enough(found: list[JavaInstall]) -> JavaInstall:
    for java in found:
        if java.major >= OLDEST_JAVA:
            return java
    java = found[0]
    raise RequirementError(
        f"Java {java.version} in {java.home} ({java.found_by}) is too old: "
        f"PRISM {RELEASES[0].name} needs Java {OLDEST_JAVA} or newer",
        get_jdk() + ("; then unset JAVA_HOME" if java.found_by == "JAVA_HOME" else ""),
    )


def _jvm_libraries() -> tuple[str, ...]:
    return JVM_LIBRARIES.get(sys.platform, JVM_LIBRARIES["linux"])


def _java_at(home: Path, found_by: str) -> JavaInstall | None:
    """Java in this folder, of whatever age; None where there is none."""
    try:
        libraries = [path for pattern in _jvm_libraries() for path in sorted(home.glob(pattern))]
        if not libraries:
            return None
        facts = _release_file(home / "release")
    except OSError:
        return None
    home = home.resolve()
    if "JAVA_VERSION" not in facts:
        facts = _ask_java(str(home / "bin" / "java"))
    version = facts.get("JAVA_VERSION", facts.get("java.version", ""))
    numbers = _numbers(version)
    if not numbers:
        return None
    # Up to Java 8 versions read 1.8.0_392.
    major = numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]
    modules = facts.get("MODULES", "").split()
    # Debian's JRE has the compiler's module, though no javac: only the list of modules decides.
    has_compiler = "jdk.compiler" in modules if modules else _has_javac(home)
    vendor = facts.get("IMPLEMENTOR", facts.get("java.vendor", ""))
    return JavaInstall(home, libraries[0].resolve(), version, major, has_compiler, vendor, found_by)


def _has_javac(home: Path) -> bool:
    return any((home / "bin" / name).is_file() for name in ("javac", "javac.exe"))


def _numbers(version: str) -> tuple[int, ...]:
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(number) for number in match[0].split(".")) if match else ()


def _release_file(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    lines = (line.partition("=") for line in path.read_text("utf-8", "replace").splitlines())
    return {key.strip(): value.strip().strip('"') for key, _, value in lines if value}


def _ask_java(command: str) -> dict[str, str]:
    """Run Java for its properties (java.home, java.version); empty where it does not run."""
    try:
        run = subprocess.run(
            [command, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = (line.partition(" = ") for line in run.stderr.splitlines())
    return {key.strip(): value.strip() for key, _, value in lines if value}
