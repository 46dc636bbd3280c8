"""Point PRISM's compiled classes at our subclasses, without a JVM and without PRISM's sources.

A class file names in its constant pool every class that its code instantiates or calls. Where the
code says ``new X`` or ``invokestatic X.m``, the instruction is given a newly appended constant
that names our subclass of X. No constant is renumbered and no Class entry is changed: the same
entry also stands for X in casts, signatures and the verifier's stack maps, where X is still meant.

Left alone on purpose: a constructor's own ``super(...)`` or ``this(...)``, subclasses of X
(anonymous ones too), and a static method that X's subclass calls without naming X, because javac
records that subclass as its owner.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from engines.errors import BridgeError
from prism_hooks.classfile import (
    Access,
    ClassFile,
    Member,
    MethodHandle,
    Opcode,
    Reference,
    Tag,
    encode_text,
)

_LARGEST_POOL_COUNT = 0xFFFF


def relink_class(
    data: bytes,
    constructors: Mapping[str, str],
    statics: Mapping[str, str],
    label: str = "unnamed class file",
) -> bytes | None:
    """Redirect the instantiations and static calls of one class.

    Method references (``X::new``, static ``X::m``) are redirected too. A private static method
    that X calls on itself is not: a subclass cannot redeclare it.

    Parameters
    ----------
    data : bytes
        The class file. It must not be a target class itself.
    constructors : mapping of str to str
        Internal names: the class whose ``new`` is redirected, and the subclass to make instead.
        The subclass needs an accessible constructor of each descriptor in use.
    statics : mapping of str to str
        Internal names: the class whose static calls are redirected, and the subclass to call. A
        name such as ``java/lang/System.exit`` is that of one method, and any class may have it.
    label : str, optional
        What errors call the file until its own name is known.

    Returns
    -------
    bytes or None
        The changed class file, or None where nothing changes.

    Raises
    ------
    BridgeError
        If the file is truncated or malformed, a ``new`` cannot be paired with its constructor
        call, or the constant pool would overflow.
    """
    # Few classes name any of ours, and parsing them all would take ten times as long as this.
    names = [*constructors, *statics]
    if not any(all(encode_text(part) in data for part in name.split(".")) for name in names):
        return None
    return _Relinker(ClassFile(data, label), constructors, statics).relink()


def iter_class_files(location: Path) -> Iterator[tuple[str, bytes]]:
    """Read the classes in a folder or a jar, in the order of their names.

    Parameters
    ----------
    location : Path
        The root folder of a package tree, or a jar.

    Yields
    ------
    tuple of str and bytes
        Internal name, such as ``explicit/DTMCModelChecker``, and the class file. Module
        descriptors, other files and a multi-release jar's extra versions are skipped.

    Raises
    ------
    BridgeError
        If the location, or a class in it, cannot be read.
    """
    try:
        if location.is_dir():
            for name in _class_names(_files_below(location)):
                yield name, (location / f"{name}.class").read_bytes()
        else:
            with zipfile.ZipFile(location) as jar:
                for name in _class_names(jar.namelist()):
                    yield name, jar.read(f"{name}.class")
    # zipfile raises RuntimeError for encryption and NotImplementedError for odd compression.
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, UnicodeError, RuntimeError) as error:
        raise BridgeError(f"cannot read the Java classes in {location}: {error}") from error


def relink(
    location: Path, constructors: Mapping[str, str], statics: Mapping[str, str]
) -> dict[str, bytes]:
    """Redirect the instantiations and static calls of all classes in a folder or jar.

    Parameters
    ----------
    location : Path
        The root folder of a package tree, or a jar.
    constructors, statics : mapping of str to str
        As for `relink_class`.

    Returns
    -------
    dict of str to bytes
        The changed classes only, by internal name.

    Raises
    ------
    BridgeError
        If a class cannot be read or relinked; the message names it.
    """
    changed = {}
    for name, data in iter_class_files(location):
        relinked = relink_class(data, constructors, statics, label=name)
        if relinked is not None:
            changed[name] = relinked
    return changed


def _class_names(files: Iterable[str]) -> list[str]:
    return sorted(
        file.removesuffix(".class")
        for file in files
        if file.endswith(".class")
        and file.rpartition("/")[2] != "module-info.class"
        and not file.startswith("META-INF/")
    )


def _files_below(folder: Path) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        raise error

    for parent, _, names in os.walk(folder, onerror=refuse):
        relative = Path(parent).relative_to(folder)
        for name in names:
            yield (relative / name).as_posix()


class _Relinker:
    """The changes to one class: two-byte operands to patch and constants to append."""

    def __init__(
        self, parsed: ClassFile, constructors: Mapping[str, str], statics: Mapping[str, str]
    ) -> None:
        self._parsed = parsed
        self._constructors = constructors
        self._statics = statics
        self._patches: dict[int, int] = {}
        self._constants: dict[bytes, int] = {}
        self._references: dict[int, Reference] = {}
        # Nobody but the class itself can mean these; lambda bodies are among them.
        self._own_private = {
            (method.name, method.descriptor)
            for method in parsed.methods
            if method.access & Access.PRIVATE
        }

    def relink(self) -> bytes | None:
        self._redirect_handles()
        for method in self._parsed.methods:
            self._redirect_code(method)
        if not self._patches:
            return None
        count = self._parsed.pool_count + len(self._constants)
        if count > _LARGEST_POOL_COUNT:
            self._parsed.fail(f"relinking needs {count} constants of {_LARGEST_POOL_COUNT}")
        result = bytearray(self._parsed.data)
        pool_count_offset = 8
        self._patches[pool_count_offset] = count
        for position, value in self._patches.items():
            result[position : position + 2] = value.to_bytes(2, "big")
        pool_end = self._parsed.pool_end
        result[pool_end:pool_end] = b"".join(self._constants)
        return bytes(result)

    def _redirect_handles(self) -> None:
        parsed = self._parsed
        for tag, position in zip(parsed.tags, parsed.offsets, strict=True):
            if tag != Tag.METHOD_HANDLE:
                continue
            kind, index = parsed.data[position], parsed.u2(position + 1)
            if kind == MethodHandle.NEW_INVOKE_SPECIAL:
                self._patch_method(position + 1, self._reference(index), self._constructors)
            elif kind == MethodHandle.INVOKE_STATIC:
                self._patch_static(position + 1, self._reference(index))

    def _redirect_code(self, method: Member) -> None:
        parsed = self._parsed
        pending: list[tuple[int, str]] = []  # where `new` is, and of what
        for position, opcode in parsed.instructions(*parsed.code_span(method)):
            if opcode == Opcode.NEW:
                pending.append((position + 1, parsed.class_name(parsed.u2(position + 1))))
            elif opcode == Opcode.INVOKESTATIC:
                self._patch_static(position + 1, self._reference(parsed.u2(position + 1)))
            elif opcode == Opcode.INVOKESPECIAL:
                reference = self._reference(parsed.u2(position + 1))
                if reference.name == "<init>":
                    self._redirect_construction(method, pending, position + 1, reference)

    def _redirect_construction(
        self, method: Member, pending: list[tuple[int, str]], operand: int, reference: Reference
    ) -> None:
        # Expressions nest, so the call belongs to the latest `new` that is still open.
        if pending and pending[-1][1] == reference.owner:
            new_operand, name = pending.pop()
            if name in self._constructors:
                self._patches[new_operand] = self._class(self._constructors[name])
                self._patch_method(operand, reference, self._constructors)
        elif pending or method.name != "<init>":
            self._parsed.fail(f"{method.name} constructs a {reference.owner} without its `new`")
        # Otherwise it is the constructor's own super(...) or this(...).

    def _patch_static(self, operand: int, reference: Reference) -> None:
        own = reference.owner == self._parsed.name
        if not (own and (reference.name, reference.descriptor) in self._own_private):
            self._patch_method(operand, reference, self._statics)

    def _patch_method(self, operand: int, reference: Reference, targets: Mapping[str, str]) -> None:
        target = targets.get(f"{reference.owner}.{reference.name}", targets.get(reference.owner))
        if target is not None:
            owner = self._class(target)
            self._patches[operand] = self._constant(
                reference.tag, owner.to_bytes(2, "big") + reference.name_and_type.to_bytes(2, "big")
            )

    def _reference(self, index: int) -> Reference:
        if index not in self._references:
            reference = self._parsed.reference(index)
            if reference.tag not in (Tag.METHODREF, Tag.INTERFACE_METHODREF):
                self._parsed.fail(f"constant {index} is called but is not a method")
            self._references[index] = reference
        return self._references[index]

    def _class(self, name: str) -> int:
        encoded = encode_text(name)
        text = self._constant(Tag.UTF8, len(encoded).to_bytes(2, "big") + encoded)
        return self._constant(Tag.CLASS, text.to_bytes(2, "big"))

    def _constant(self, tag: int, payload: bytes) -> int:
        entry = bytes([tag]) + payload
        return self._constants.setdefault(entry, self._parsed.pool_count + len(self._constants))
