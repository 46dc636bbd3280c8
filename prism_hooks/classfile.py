"""A reader of Java class files, as far as relinking needs it.

The structure follows the Java Virtual Machine Specification, chapter 4. All of a file is
walked when it is read, so a truncated or malformed file is refused before anything is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import NoReturn

from engines.errors import BridgeError


class Tag(IntEnum):
    """The kind of an entry of the constant pool, JVMS table 4.4-A."""

    UNUSABLE = 0
    """Entry 0, and the second slot of a Long or Double."""
    UTF8 = 1
    INTEGER = 3
    FLOAT = 4
    LONG = 5
    DOUBLE = 6
    CLASS = 7
    STRING = 8
    FIELDREF = 9
    METHODREF = 10
    INTERFACE_METHODREF = 11
    NAME_AND_TYPE = 12
    METHOD_HANDLE = 15
    METHOD_TYPE = 16
    DYNAMIC = 17
    INVOKE_DYNAMIC = 18
    MODULE = 19
    PACKAGE = 20


class Access(IntFlag):
    """The access flags of a field or method that matter here, JVMS table 4.5-A."""

    PRIVATE = 0x0002
    STATIC = 0x0008


class Opcode(IntEnum):
    """The instructions that are told apart by name, JVMS chapter 6."""

    LDC = 0x12
    LDC_W = 0x13
    IINC = 0x84
    RET = 0xA9
    TABLESWITCH = 0xAA
    LOOKUPSWITCH = 0xAB
    PUTSTATIC = 0xB3
    INVOKESPECIAL = 0xB7
    INVOKESTATIC = 0xB8
    NEW = 0xBB
    WIDE = 0xC4


class MethodHandle(IntEnum):
    """The kinds of a method handle that matter here, JVMS table 5.4.3.5-A."""

    INVOKE_STATIC = 6
    NEW_INVOKE_SPECIAL = 8


_PAYLOAD_LENGTHS: dict[int, int] = {
    Tag.INTEGER: 4,
    Tag.FLOAT: 4,
    Tag.LONG: 8,
    Tag.DOUBLE: 8,
    Tag.CLASS: 2,
    Tag.STRING: 2,
    Tag.FIELDREF: 4,
    Tag.METHODREF: 4,
    Tag.INTERFACE_METHODREF: 4,
    Tag.NAME_AND_TYPE: 4,
    Tag.METHOD_HANDLE: 3,
    Tag.METHOD_TYPE: 2,
    Tag.DYNAMIC: 4,
    Tag.INVOKE_DYNAMIC: 4,
    Tag.MODULE: 2,
    Tag.PACKAGE: 2,
}

_VARIABLE = 0  # the length depends on the operands: the switches and wide
_OPCODE_LENGTHS = bytes(
    length
    for count, length in (
        (16, 1),  # 0x00 nop ... dconst_1
        (1, 2),  # 0x10 bipush
        (1, 3),  # 0x11 sipush
        (1, 2),  # 0x12 ldc
        (2, 3),  # 0x13 ldc_w, ldc2_w
        (5, 2),  # 0x15 iload ... aload
        (28, 1),  # 0x1a iload_0 ... saload
        (5, 2),  # 0x36 istore ... astore
        (73, 1),  # 0x3b istore_0 ... lxor
        (1, 3),  # 0x84 iinc
        (20, 1),  # 0x85 i2l ... dcmpg
        (16, 3),  # 0x99 ifeq ... goto, jsr
        (1, 2),  # 0xa9 ret
        (2, _VARIABLE),  # 0xaa tableswitch, lookupswitch
        (6, 1),  # 0xac ireturn ... return
        (7, 3),  # 0xb2 getstatic ... invokestatic
        (2, 5),  # 0xb9 invokeinterface, invokedynamic
        (1, 3),  # 0xbb new
        (1, 2),  # 0xbc newarray
        (1, 3),  # 0xbd anewarray
        (2, 1),  # 0xbe arraylength, athrow
        (2, 3),  # 0xc0 checkcast, instanceof
        (2, 1),  # 0xc2 monitorenter, monitorexit
        (1, _VARIABLE),  # 0xc4 wide
        (1, 4),  # 0xc5 multianewarray
        (2, 3),  # 0xc6 ifnull, ifnonnull
        (2, 5),  # 0xc8 goto_w, jsr_w
    )
    for _ in range(count)
)
# What wide may widen by one byte: loads, stores and ret; iinc it widens by two.
_WIDENED = frozenset({*range(0x15, 0x1A), *range(0x36, 0x3B), Opcode.RET})
_BRANCHES = frozenset({*range(0x99, 0xAC), *range(0xC6, 0xCA)})


@dataclass(frozen=True, slots=True)
class Member:
    """A field or method; `attributes` are (name, start, end) spans into the file."""

    access: int
    name: str
    descriptor: str
    attributes: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """A field or method that the constant pool refers to; `name_and_type` is a pool index."""

    tag: int
    owner: str
    name: str
    descriptor: str
    name_and_type: int


def encode_text(text: str) -> bytes:
    """Encode text as the class file's modified UTF-8 (JVMS 4.4.7).

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    bytes
        NUL takes two bytes and a character beyond U+FFFF two surrogates of three bytes each.
    """
    if text.isascii() and "\0" not in text:
        return text.encode("ascii")
    units = text.encode("utf-16-be", "surrogatepass")
    characters = (chr(units[i] << 8 | units[i + 1]) for i in range(0, len(units), 2))
    return b"".join(
        b"\xc0\x80" if char == "\0" else char.encode("utf-8", "surrogatepass")
        for char in characters
    )


class ClassFile:
    """The structure of one class file.

    Parameters
    ----------
    data : bytes
        The whole file.
    label : str, optional
        What errors call the file until its own name is known.

    Attributes
    ----------
    name : str
        Internal name, such as ``explicit/DTMCModelChecker``.
    pool_count : int
        The file's ``constant_pool_count``: one more than the largest valid index.
    pool_end : int
        Offset of the first byte after the constant pool.
    tags, offsets : list of int
        Per constant pool index the tag and the offset of what follows the tag byte.
    fields, methods : list of Member
        In the file's order.

    Raises
    ------
    BridgeError
        If the file is truncated or malformed; also raised by every method.
    """

    def __init__(self, data: bytes, label: str = "unnamed class file") -> None:
        self.data = data
        self.name = label
        self._position = 0
        if self._take(4) != b"\xca\xfe\xba\xbe":
            self.fail("does not begin with a class file's magic number")
        self._take(4)  # minor and major version
        self.tags: list[int] = [Tag.UNUSABLE]
        self.offsets = [0]
        self._read_pool()
        self.pool_end = self._position
        self._take(2)  # access flags
        self.name = self.class_name(self._take_u2())
        self._take(2)  # superclass
        self._take(2 * self._take_u2())  # interfaces
        self.fields = self._read_members()
        self.methods = self._read_members()
        self._read_attributes()
        if self._position != len(data):
            self.fail(f"has {len(data) - self._position} bytes after its end")

    def fail(self, problem: str) -> NoReturn:
        """Raise a `BridgeError` that names this class and its `problem`."""
        raise BridgeError(f"Java class {self.name}: {problem}")

    def u2(self, position: int) -> int:
        """Read the unsigned 16-bit number at `position`, which must lie in a span read before."""
        return self.data[position] << 8 | self.data[position + 1]

    def text(self, index: int) -> str:
        """Decode the Utf8 entry at a constant pool `index`."""
        position = self._payload(index, Tag.UTF8)
        raw = self.data[position + 2 : position + 2 + self.u2(position)]
        try:
            if raw.isascii():
                return raw.decode("ascii")
            units = raw.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
            # Surrogates came as characters of their own; this joins the pairs.
            return units.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        except UnicodeError:
            self.fail(f"constant {index} is not valid modified UTF-8")

    def class_name(self, index: int) -> str:
        """Return the internal name in the Class entry at a constant pool `index`."""
        return self.text(self.u2(self._payload(index, Tag.CLASS)))

    def string(self, index: int) -> str:
        """Return the text of the String entry at a constant pool `index`."""
        return self.text(self.u2(self._payload(index, Tag.STRING)))

    def reference(self, index: int) -> Reference:
        """Resolve the Fieldref, Methodref or InterfaceMethodref at a constant pool `index`."""
        position = self._payload(index, Tag.FIELDREF, Tag.METHODREF, Tag.INTERFACE_METHODREF)
        name_and_type = self.u2(position + 2)
        pair = self._payload(name_and_type, Tag.NAME_AND_TYPE)
        return Reference(
            self.tags[index],
            self.class_name(self.u2(position)),
            self.text(self.u2(pair)),
            self.text(self.u2(pair + 2)),
            name_and_type,
        )

    def code_span(self, method: Member) -> tuple[int, int]:
        """Return where the instructions of `method` begin and end; equal if it has none."""
        for name, start, end in method.attributes:
            if name == "Code":
                return self._read_code(method, start, end)
        return 0, 0

    def instructions(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Walk the instructions of one method.

        Parameters
        ----------
        start, end : int
            Where the method's code begins and ends in the file, from `code_span`.

        Yields
        ------
        tuple of int
            Offset in the file and opcode. All operands lie before `end`.

        Raises
        ------
        BridgeError
            If an opcode is unknown or the last instruction does not end at `end`.
        """
        data, position = self.data, start
        while position < end:
            opcode = data[position]
            length = _OPCODE_LENGTHS[opcode] if opcode < len(_OPCODE_LENGTHS) else _VARIABLE
            if length == _VARIABLE:
                length = self._variable_length(opcode, position, start, end)
            if position + length > end:
                self.fail(f"an instruction at {position - start} runs past the end of its method")
            yield position, opcode
            position += length

    def _variable_length(self, opcode: int, position: int, start: int, end: int) -> int:
        at = f"at {position - start}"
        if opcode == Opcode.WIDE:
            widened = self.data[position + 1] if position + 1 < end else -1
            if widened == Opcode.IINC:
                return 6
            if widened in _WIDENED:
                return 4
            self.fail(f"wide {at} widens the opcode {widened}")
        if opcode not in (Opcode.TABLESWITCH, Opcode.LOOKUPSWITCH):
            self.fail(f"unknown opcode {opcode:#04x} {at}")
        # Operands are aligned to four bytes from the start of the method.
        operands = position + 4 - (position - start) % 4
        header = 12 if opcode == Opcode.TABLESWITCH else 8
        if operands + header > end:
            self.fail(f"a switch {at} runs past the end of its method")
        if opcode == Opcode.TABLESWITCH:
            cases = self._s4(operands + 8) - self._s4(operands + 4) + 1
            size = header + 4 * cases
        else:
            cases = self._s4(operands + 4)
            size = header + 8 * cases
        if cases < 0:
            self.fail(f"a switch {at} has {cases} cases")
        return operands + size - position

    def _s4(self, position: int) -> int:
        return int.from_bytes(self.data[position : position + 4], "big", signed=True)

    def _take(self, count: int) -> bytes:
        end = self._position + count
        if end > len(self.data):
            self.fail(f"truncated: {len(self.data)} bytes, but {end} or more are needed")
        taken = self.data[self._position : end]
        self._position = end
        return taken

    def _take_u2(self) -> int:
        return int.from_bytes(self._take(2), "big")

    def _take_u4(self) -> int:
        return int.from_bytes(self._take(4), "big")

    def _payload(self, index: int, *tags: int) -> int:
        if index >= len(self.tags) or self.tags[index] not in tags:
            found = self.tags[index] if index < len(self.tags) else "none"
            self.fail(f"constant {index} has tag {found}, not {' or '.join(map(str, tags))}")
        return self.offsets[index]

    def _read_pool(self) -> None:
        self.pool_count = self._take_u2()
        while len(self.tags) < self.pool_count:
            tag = self._take(1)[0]
            self.tags.append(tag)
            self.offsets.append(self._position)
            if tag == Tag.UTF8:
                self._take(self._take_u2())
            elif tag in _PAYLOAD_LENGTHS:
                self._take(_PAYLOAD_LENGTHS[tag])
            else:
                self.fail(f"constant {len(self.tags) - 1} has the unknown tag {tag}")
            if tag in (Tag.LONG, Tag.DOUBLE):
                self.tags.append(Tag.UNUSABLE)
                self.offsets.append(self._position)
        if len(self.tags) != self.pool_count:
            self.fail("its constant pool ends inside a Long or Double, or is empty")

    def _read_members(self) -> list[Member]:
        members = []
        for _ in range(self._take_u2()):
            access = self._take_u2()
            name, descriptor = self.text(self._take_u2()), self.text(self._take_u2())
            members.append(Member(access, name, descriptor, self._read_attributes()))
        return members

    def _read_attributes(self) -> tuple[tuple[str, int, int], ...]:
        attributes = []
        for _ in range(self._take_u2()):
            name = self.text(self._take_u2())
            length = self._take_u4()
            start = self._position
            self._take(length)
            attributes.append((name, start, self._position))
        return tuple(attributes)

    def _read_code(self, method: Member, start: int, end: int) -> tuple[int, int]:
        self._position = start
        self._take(4)  # max_stack, max_locals
        length = self._take_u4()
        code = self._position
        self._take(length)
        self._take(8 * self._take_u2())  # exception table
        self._read_attributes()
        if self._position != end or length == 0:
            self.fail(f"the Code attribute of {method.name} does not have the length it states")
        return code, code + length


def static_string_constants(data: bytes) -> dict[str, str]:
    """Read the initial values of a class's static String fields without starting a JVM.

    Both forms of ``static String name = "literal"`` count: a final field has a ConstantValue
    attribute, any other is stored by the class initialiser. The initialiser is followed up to its
    first branch, as PRISM's ``prism.Version`` needs; fields set later are left out.

    Parameters
    ----------
    data : bytes
        The class file.

    Returns
    -------
    dict of str to str
        Value by field name; only fields that are initialised by a literal.

    Raises
    ------
    BridgeError
        If the file is truncated or malformed.
    """
    parsed = ClassFile(data)
    strings = {
        field.name: field
        for field in parsed.fields
        if field.access & Access.STATIC and field.descriptor == "Ljava/lang/String;"
    }
    values: dict[str, str] = {}
    for name, field in strings.items():
        for attribute, start, end in field.attributes:
            if attribute == "ConstantValue":
                if end - start != 2:
                    parsed.fail(f"the ConstantValue of {name} is not two bytes long")
                values[name] = parsed.string(parsed.u2(start))
    for method in parsed.methods:
        if method.name == "<clinit>":
            values.update(_stored_literals(parsed, method, strings))
    return values


def _stored_literals(
    parsed: ClassFile, initialiser: Member, strings: dict[str, Member]
) -> dict[str, str]:
    values: dict[str, str] = {}
    literal: str | None = None
    for position, opcode in parsed.instructions(*parsed.code_span(initialiser)):
        if opcode in _BRANCHES:
            break
        if opcode == Opcode.PUTSTATIC:
            target = parsed.reference(parsed.u2(position + 1))
            if target.owner == parsed.name and target.name in strings:
                values.pop(target.name, None)
                if literal is not None:
                    values[target.name] = literal
        literal = None
        if opcode in (Opcode.LDC, Opcode.LDC_W):
            index = parsed.data[position + 1] if opcode == Opcode.LDC else parsed.u2(position + 1)
            if index < len(parsed.tags) and parsed.tags[index] == Tag.STRING:
                literal = parsed.string(index)
    return values
