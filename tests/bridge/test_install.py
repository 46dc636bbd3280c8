"""Finding PRISM and Java: made-up installs in a temporary folder, and the real PRISM once."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bridge import install
from bridge.install import (
    JVM_LIBRARIES,
    JavaInstall,
    PrismInstall,
    find_java,
    find_prism,
    require_compiler,
)
from bridge.versions import RELEASES, read_version, supported_release, version_key
from engines.errors import BridgeError

JDK_MODULES = "java.base java.compiler jdk.compiler"
JRE_MODULES = "java.base java.compiler java.desktop"


def version_class(number: str, suffix: str) -> bytes:
    """`prism/Version.class` as javac writes it: two non-final strings set in `<clinit>`."""

    def text(value: str) -> bytes:
        return b"\x01" + struct.pack(">H", len(value)) + value.encode()

    def entry(tag: int, *indices: int) -> bytes:
        return bytes([tag]) + struct.pack(f">{len(indices)}H", *indices)

    pool = [
        text("prism/Version"),  # 1
        entry(7, 1),
        text("java/lang/Object"),  # 3
        entry(7, 3),
        text("versionString"),  # 5
        text("versionSuffixString"),
        text("Ljava/lang/String;"),  # 7
        text(number),
        entry(8, 8),  # 9
        text(suffix),
        entry(8, 10),  # 11
        entry(12, 5, 7),
        entry(9, 2, 12),  # 13: Version.versionString
        entry(12, 6, 7),
        entry(9, 2, 14),  # 15: Version.versionSuffixString
        text("<clinit>"),
        text("()V"),  # 17
        text("Code"),
    ]
    code = b"\x12\x09\xb3\x00\x0d\x12\x0b\xb3\x00\x0f\xb1"
    code_attribute = struct.pack(">HHI", 1, 0, len(code)) + code + struct.pack(">HH", 0, 0)
    return (
        b"\xca\xfe\xba\xbe\x00\x00\x00\x37"
        + struct.pack(">H", len(pool) + 1)
        + b"".join(pool)
        + struct.pack(">HHHH", 0x21, 2, 4, 0)
        + struct.pack(">H", 2)
        + struct.pack(">HHHH", 9, 5, 7, 0)
        + struct.pack(">HHHH", 9, 6, 7, 0)
        + struct.pack(">H", 1)
        + struct.pack(">HHHH", 8, 16, 17, 1)
        + struct.pack(">HI", 18, len(code_attribute))
        + code_attribute
        + struct.pack(">H", 0)
    )


def make_prism(root: Path, number: str = "4.10", suffix: str = "", jar: bool = False) -> Path:
    (root / "bin").mkdir(parents=True)
    (root / "lib").mkdir()
    (root / "lib" / "libprism.so").touch()
    for name in ("zeta.jar", "alpha.jar"):
        (root / "lib" / name).touch()
    data = version_class(number, suffix)
    if jar:
        with zipfile.ZipFile(root / "lib" / "prism.jar", "w") as file:
            file.writestr("prism/Version.class", data)
    else:
        (root / "classes" / "prism").mkdir(parents=True)
        (root / "classes" / "prism" / "Version.class").write_bytes(data)
    return root


def make_script(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def make_java(
    home: Path, version: str = "17.0.9", modules: str | None = JDK_MODULES, release: bool = True
) -> Path:
    pattern = JVM_LIBRARIES[sys.platform][0]
    (home / pattern).parent.mkdir(parents=True)
    (home / pattern).touch()
    make_script(home / "bin" / "java", "exit 1")
    if release:
        lines = [f'JAVA_VERSION="{version}"', 'IMPLEMENTOR="Nobody"']
        lines += [f'MODULES="{modules}"'] if modules else []
        (home / "release").write_text("\n".join(lines))
    return home


@pytest.fixture(autouse=True)
def _no_usual_places(monkeypatch, request):
    if "prism_install" in request.fixturenames:
        return
    monkeypatch.setattr(install, "USUAL_PRISM_PLACES", ("~/prism*", "~/opt/prism*"))
    monkeypatch.setattr(install, "USUAL_JAVA_PLACES", ("~/jvm/*",))


# PRISM


def test_source_build_has_the_classpath_of_prisms_own_script(tmp_path):
    root = make_prism(tmp_path / "p", "4.10.2", "dev")
    found = find_prism(str(root), {})
    assert found == PrismInstall(
        root=root,
        version="4.10.2-dev",
        class_location=root / "classes",
        classpath=(root / "classes", root, root / "lib" / "alpha.jar", root / "lib" / "zeta.jar"),
        library_path=root / "lib",
        found_by="--prism-dir",
    )


def test_what_comes_with_prism_lies_beside_it_or_inside(tmp_path):
    found = find_prism(str(make_prism(tmp_path / "p", "4.10.2", "dev")), {})
    assert found.beside("prism-examples") is None
    (found.root / "prism-examples").mkdir()
    assert found.beside("prism-examples") == found.root / "prism-examples"
    (tmp_path / "prism-tests").mkdir()
    assert found.beside("prism-tests") == tmp_path / "prism-tests"


def test_binary_distribution_puts_its_jar_first_and_once(tmp_path):
    root = make_prism(tmp_path / "p", jar=True)
    found = find_prism(str(root), {})
    assert found.version == "4.10"
    assert found.class_location == root / "lib" / "prism.jar"
    names = [path.name for path in found.classpath]
    assert names == ["prism.jar", "p", "alpha.jar", "zeta.jar"]


def test_a_jar_goes_before_classes(tmp_path):
    root = make_prism(tmp_path / "p", "4.10", jar=True)
    (root / "classes" / "prism").mkdir(parents=True)
    (root / "classes" / "prism" / "Version.class").write_bytes(version_class("4.9", ""))
    assert find_prism(str(root), {}).version == "4.10"


def test_repository_folder_stands_for_its_prism_folder(tmp_path):
    root = make_prism(tmp_path / "repository" / "prism")
    assert find_prism(str(tmp_path / "repository"), {}).root == root


def test_the_option_goes_before_the_variable_before_the_path(tmp_path):
    roots = [make_prism(tmp_path / name) for name in ("option", "variable", "path")]
    make_script(roots[2] / "bin" / "prism")
    environ = {"PRISM_DIR": str(roots[1]), "PATH": str(roots[2] / "bin")}
    assert find_prism(str(roots[0]), environ).root == roots[0]
    assert find_prism(None, environ).root == roots[1]
    assert find_prism(None, environ).found_by == "PRISM_DIR"
    del environ["PRISM_DIR"]
    assert find_prism(None, environ).root == roots[2]
    assert find_prism(None, environ).found_by == "prism on the PATH"


def test_empty_prism_dir_variable_counts_as_unset(tmp_path):
    root = make_prism(tmp_path / "prism-4.10")
    assert find_prism(None, {"PRISM_DIR": "", "HOME": str(tmp_path)}).root == root


@pytest.mark.parametrize(
    "line", ['PRISM_DIR="{}"', "PRISM_DIR='{}'", "PRISM_DIR={}", "  export PRISM_DIR={}; echo"]
)
def test_script_on_the_path_is_followed_to_its_prism_dir(tmp_path, line):
    root = make_prism(tmp_path / "elsewhere")
    make_script(tmp_path / "bin" / "prism", line.format(root))
    assert find_prism(None, {"PATH": str(tmp_path / "bin")}).root == root


@pytest.mark.parametrize("line", ["PRISM_DIR=/no/such", 'PRISM_DIR="$(dirname "$0")/.."', ""])
def test_linked_script_is_followed_to_its_own_folder(tmp_path, line):
    root = make_prism(tmp_path / "p")
    script = make_script(root / "bin" / "prism", line)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "prism").symlink_to(script)
    assert find_prism(None, {"PATH": str(tmp_path / "links")}).root == root


def test_another_program_called_prism_is_passed_over(tmp_path):
    make_script(tmp_path / "other" / "bin" / "prism", "echo a photo viewer")
    root = make_prism(tmp_path / "p")
    make_script(root / "bin" / "prism")
    path = f"{tmp_path / 'other' / 'bin'}:{root / 'bin'}"
    assert find_prism(None, {"PATH": path}).root == root


def test_newest_supported_of_the_usual_places_is_taken(tmp_path):
    for version in ("4.8.1", "4.10", "4.10.2"):
        make_prism(tmp_path / f"prism-{version}", version)
    make_prism(tmp_path / "prism-dev", "4.10.2", "dev")
    make_prism(tmp_path / "opt" / "prism-5", "5.0")
    (tmp_path / "prism-notes.txt").touch()
    found = find_prism(None, {"HOME": str(tmp_path)})
    assert (found.version, found.found_by) == ("4.10.2", "usual places")


def test_unsupported_prism_is_still_found_so_that_it_can_be_named(tmp_path):
    make_prism(tmp_path / "prism-4.8.1", "4.8.1")
    assert find_prism(None, {"HOME": str(tmp_path)}).version == "4.8.1"


@pytest.mark.parametrize("by", ["--prism-dir", "PRISM_DIR"])
def test_a_named_folder_without_prism_is_an_error_though_another_has_one(tmp_path, by):
    make_prism(tmp_path / "prism")
    (tmp_path / "empty").mkdir()
    for name, problem in (("empty", "holds no PRISM"), ("absent", "not a folder")):
        named = str(tmp_path / name)
        environ = {"HOME": str(tmp_path)} | ({"PRISM_DIR": named} if by == "PRISM_DIR" else {})
        with pytest.raises(BridgeError, match=f"^{by} names {named}, which.*{problem}"):
            find_prism(named if by == "--prism-dir" else None, environ)


def test_an_empty_option_does_not_mean_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(make_prism(tmp_path / "p"))
    with pytest.raises(BridgeError, match="an empty path"):
        find_prism("", {})


def test_nothing_found_says_what_was_searched_and_where_to_get_it(tmp_path):
    with pytest.raises(BridgeError) as caught:
        find_prism(None, {"HOME": str(tmp_path), "PATH": str(tmp_path)})
    message = str(caught.value)
    for part in ("--prism-dir", "PRISM_DIR", "on the PATH", "~/prism*", "prismmodelchecker.org"):
        assert part in message


def make_unbuilt(root: Path) -> Path:
    (root / "src" / "prism").mkdir(parents=True)
    (root / "src" / "prism" / "PrismCL.java").touch()
    return root


def test_unbuilt_sources_say_make(tmp_path):
    root = make_unbuilt(tmp_path / "prism")
    for named, environ in ((str(root), {}), (None, {"HOME": str(tmp_path)})):
        with pytest.raises(BridgeError, match=f"not built.*\n?.*cd {root} && make"):
            find_prism(named, environ)


@pytest.mark.parametrize("jar", [False, True])
def test_missing_native_library_is_named(tmp_path, jar):
    root = make_prism(tmp_path / "p", jar=jar)
    (root / "lib" / "libprism.so").unlink()
    with pytest.raises(BridgeError, match=f"{root} has no native library"):
        find_prism(str(root), {})


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut short"])
def test_damaged_jar_is_named(tmp_path, content):
    root = make_prism(tmp_path / "p", jar=True)
    (root / "lib" / "prism.jar").write_bytes(content)
    with pytest.raises(BridgeError, match=r"cannot be read from .*prism\.jar"):
        find_prism(str(root), {})


def test_unreadable_class_is_named(tmp_path):
    root = make_prism(tmp_path / "p")
    (root / "classes" / "prism" / "Version.class").write_bytes(b"\xca\xfe\xba\xbe\x00")
    with pytest.raises(BridgeError, match=r"cannot be read from .*classes"):
        find_prism(str(root), {})


def test_unreadable_folder_is_an_error_only_if_named(tmp_path, monkeypatch):
    root = make_prism(tmp_path / "prism")

    def refuse(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_file", refuse)
    with pytest.raises(BridgeError, match=f"{root} cannot be read: Permission denied"):
        find_prism(str(root), {})
    with pytest.raises(BridgeError, match=r"No PRISM found(.|\n)*not usable: .*Permission denied"):
        find_prism(None, {"HOME": str(tmp_path)})


# Versions


@pytest.mark.parametrize(("suffix", "version"), [("", "4.10.2"), ("dev", "4.10.2-dev")])
def test_version_reads_as_prism_prints_it(suffix, version):
    assert read_version(version_class("4.10.2", suffix)) == version


def test_a_class_without_a_version_is_refused():
    with pytest.raises(BridgeError, match="no versionString"):
        read_version(version_class("", "dev"))


@pytest.mark.parametrize("version", ["4.10", "4.10.1", "4.10.2-dev", "4.10.2dev", "4.10.beta1"])
def test_every_4_10_is_supported(version):
    assert supported_release(version).name == "4.10"


@pytest.mark.parametrize(
    "version", ["4.9", "4.8.1", "4.7", "4.1", "4.100", "5.0", "4", "", "x", "4.10 4.10"]
)
def test_other_versions_are_refused_by_name(version, tmp_path):
    with pytest.raises(BridgeError) as caught:
        supported_release(version, tmp_path)
    assert f"PRISM {version or '(no version)'} in {tmp_path} is not supported" in str(caught.value)
    assert "supports 4.10" in str(caught.value)


def test_versions_order_by_number_with_dev_before_release():
    ordered = ["4.8.1", "4.9", "4.10-dev", "4.10", "4.10.2-dev", "4.10.2"]
    keys = [version_key(version) for version in ordered]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(ordered)


def test_releases_name_internal_classes():
    for release in RELEASES:
        for name, target in (release.constructors | dict(release.statics)).items():
            assert re.fullmatch(r"\w+(/\w+)+", target)
            # A single static method may follow the name of its class.
            method = r"(\.\w+)?" if name in release.statics else ""
            assert re.fullmatch(rf"\w+(/\w+)+{method}", name)


# Java


def test_java_home_is_read_from_its_release_file(tmp_path):
    home = make_java(tmp_path / "jdk")
    assert find_java({"JAVA_HOME": str(home)}) == JavaInstall(
        home=home,
        jvm_library=home / JVM_LIBRARIES[sys.platform][0],
        version="17.0.9",
        major=17,
        has_compiler=True,
        vendor="Nobody",
        found_by="JAVA_HOME",
    )


def test_java_on_the_path_is_followed_through_links(tmp_path):
    home = make_java(tmp_path / "jdk")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    java = find_java({"PATH": str(tmp_path / "bin")})
    assert (java.home, java.found_by) == (home, "java on the PATH")


def test_newest_jdk_of_the_usual_places_is_taken(tmp_path):
    for version in ("1.8.0_392", "11.0.2", "21.0.1", "9"):
        make_java(tmp_path / "jvm" / version, version)
    make_java(tmp_path / "jvm" / "jre-25", "25", JRE_MODULES)
    java = find_java({"HOME": str(tmp_path)})
    assert (java.version, java.has_compiler, java.found_by) == ("21.0.1", True, "usual places")


def test_a_jdk_elsewhere_is_preferred_to_a_jre_on_the_path(tmp_path):
    jre = make_java(tmp_path / "jre", "21.0.1", JRE_MODULES)
    environ = {"HOME": str(tmp_path), "PATH": str(jre / "bin")}
    assert find_java(environ).home == jre
    jdk = make_java(tmp_path / "jvm" / "jdk")
    assert find_java(environ).home == jdk
    assert find_java(environ | {"JAVA_HOME": str(jre)}).home == jre


def test_a_jdk_elsewhere_is_preferred_to_an_old_one_on_the_path(tmp_path):
    old = make_java(tmp_path / "old", "1.8.0_392")
    jdk = make_java(tmp_path / "jvm" / "jdk")
    assert find_java({"HOME": str(tmp_path), "PATH": str(old / "bin")}).home == jdk


def test_a_jre_is_refused_by_name_with_the_command_that_gets_a_jdk(tmp_path, monkeypatch):
    home = make_java(tmp_path / "jre", "17.0.9", JRE_MODULES)
    java = find_java({"JAVA_HOME": str(home)})
    assert not java.has_compiler
    for platform, command in (
        ("linux", "apt-get install default-jdk-headless"),
        ("darwin", "brew install openjdk"),
    ):
        monkeypatch.setattr(sys, "platform", platform)
        with pytest.raises(BridgeError, match=rf"17\.0\.9 in {home} \(JAVA_HOME\)(.|\n)*{command}"):
            require_compiler(java)


def test_a_jdk_has_its_compiler(tmp_path):
    require_compiler(find_java({"JAVA_HOME": str(make_java(tmp_path / "jdk"))}))


@pytest.mark.parametrize("javac", [False, True])
def test_without_a_list_of_modules_javac_decides(tmp_path, javac):
    home = make_java(tmp_path / "jdk", modules=None)
    if javac:
        make_script(home / "bin" / "javac")
    assert find_java({"JAVA_HOME": str(home)}).has_compiler == javac


def test_without_a_release_file_java_is_asked(tmp_path):
    home = make_java(tmp_path / "jdk", release=False)
    make_script(home / "bin" / "java", "echo '    java.version = 21.0.1' >&2")
    assert find_java({"JAVA_HOME": str(home)}).major == 21


def test_a_wrapper_on_the_path_is_asked_for_its_home(tmp_path):
    home = make_java(tmp_path / "jdk")
    make_script(tmp_path / "shims" / "java", f"echo '    java.home = {home}' >&2")
    assert find_java({"PATH": str(tmp_path / "shims")}).home == home


@pytest.mark.parametrize("version", ["1.8.0_392", "9.0.4", "10"])
def test_old_java_is_refused_by_number(tmp_path, version):
    home = make_java(tmp_path / "jvm" / "old", version)
    for environ in ({"JAVA_HOME": str(home)}, {"HOME": str(tmp_path)}):
        with pytest.raises(BridgeError, match=f"Java {version} in {home} .* too old(.|\n)*11"):
            find_java(environ)


def test_broken_java_home_is_an_error_though_another_java_is_there(tmp_path):
    make_java(tmp_path / "jvm" / "jdk")
    environ = {"HOME": str(tmp_path), "JAVA_HOME": str(tmp_path / "gone")}
    with pytest.raises(BridgeError, match=f"JAVA_HOME names {tmp_path / 'gone'}"):
        find_java(environ)


@pytest.mark.parametrize("stub", [False, True])
def test_no_java_says_what_was_searched_and_how_to_get_it(tmp_path, stub):
    if stub:
        make_script(tmp_path / "bin" / "java", "exit 1")
    environ = {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin")}
    with pytest.raises(BridgeError, match=r"No Java found(.|\n)*JAVA_HOME(.|\n)*~/jvm(.|\n)*JDK"):
        find_java(environ)


@pytest.mark.parametrize("platform", JVM_LIBRARIES)
def test_the_jvm_library_is_the_platforms(tmp_path, monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    home = make_java(tmp_path / "jdk")
    assert find_java({"JAVA_HOME": str(home)}).jvm_library == home / JVM_LIBRARIES[platform][0]


# The real ones


@pytest.mark.prism
def test_the_real_prism_tells_the_same_version_itself(prism_install):
    classpath = ":".join(map(str, prism_install.classpath))
    java = find_java()
    run = subprocess.run(
        [
            java.home / "bin" / "java",
            f"-Djava.library.path={prism_install.library_path}",
            "-classpath",
            classpath,
            "prism.PrismCL",
            "-version",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split()[-1] == prism_install.version
