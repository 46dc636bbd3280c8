"""The class file reader, on files built here byte by byte, so that no JDK is needed."""

from __future__ import annotations

import struct

import pytest

from engines.errors import BridgeError
from prism_hooks.classfile import ClassFile, encode_text, static_string_constants

STRING_TYPE = "Ljava/lang/String;"
NOP, RETURN, LDC, PUTSTATIC, IFNULL, ACONST_NULL = 0x00, 0xB1, 0x12, 0xB3, 0xC6, 0x01


class ClassBuilder:
    """Just enough of a class file writer: constants are appended as they are asked for."""

    def __init__(self, name="host/Built"):
        self.constants: list[bytes | None] = []
        self.name = name
        self.this_class = self.owner(name)
        self.super_class = self.owner("java/lang/Object")
        self.fields: list[bytes] = []
        self.methods: list[bytes] = []

    def constant(self, tag, payload, slots=1):
        entry = bytes([tag]) + payload
        if entry not in self.constants:
            self.constants += [entry] + [None] * (slots - 1)
        return self.constants.index(entry) + 1

    def text(self, text):
        encoded = encode_text(text)
        return self.constant(1, struct.pack(">H", len(encoded)) + encoded)

    def owner(self, name):
        return self.constant(7, struct.pack(">H", self.text(name)))

    def string(self, text):
        return self.constant(8, struct.pack(">H", self.text(text)))

    def field_reference(self, name, descriptor=STRING_TYPE):
        pair = self.constant(12, struct.pack(">HH", self.text(name), self.text(descriptor)))
        return self.constant(9, struct.pack(">HH", self.this_class, pair))

    def attribute(self, name, content):
        return struct.pack(">HI", self.text(name), len(content)) + content

    def add_field(self, name, constant=None, access=0x0009, descriptor=STRING_TYPE):
        attributes = []
        if constant is not None:
            content = struct.pack(">H", self.string(constant))
            attributes.append(self.attribute("ConstantValue", content))
        header = struct.pack(
            ">HHHH", access, self.text(name), self.text(descriptor), len(attributes)
        )
        self.fields.append(header + b"".join(attributes))

    def add_method(self, code, name="run"):
        content = struct.pack(">HHI", 8, 8, len(code)) + code + struct.pack(">HH", 0, 0)
        header = struct.pack(">HHHH", 0x0009, self.text(name), self.text("()V"), 1)
        self.methods.append(header + self.attribute("Code", content))

    def build(self):
        pool = b"".join(entry for entry in self.constants if entry)
        return b"".join(
            (
                struct.pack(">IHHH", 0xCAFEBABE, 0, 52, len(self.constants) + 1),
                pool,
                struct.pack(">HHHH", 0x0021, self.this_class, self.super_class, 0),
                struct.pack(">H", len(self.fields)),
                *self.fields,
                struct.pack(">H", len(self.methods)),
                *self.methods,
                struct.pack(">H", 0),
            )
        )


def opcodes_of(code):
    builder = ClassBuilder()
    builder.add_method(bytes(code))
    parsed = ClassFile(builder.build())
    start, end = parsed.code_span(parsed.methods[0])
    return [(position - start, opcode) for position, opcode in parsed.instructions(start, end)]


def version_class():
    builder = ClassBuilder("prism/Version")
    builder.add_field("released", constant="4.10", access=0x0019)
    builder.add_field("suffix")
    literal, target = builder.string("dev"), builder.field_reference("suffix")
    code = bytes([LDC, literal, PUTSTATIC]) + struct.pack(">H", target) + bytes([RETURN])
    builder.add_method(code, name="<clinit>")
    return builder.build()


def test_reads_names_members_and_every_kind_of_constant():
    builder = ClassBuilder("host/Konstanten")
    two_slots = builder.constant(5, bytes(8), slots=2)
    for tag, length in ((3, 4), (4, 4), (11, 4), (15, 3), (16, 2), (17, 4), (18, 4)):
        builder.constant(tag, bytes(length))
    for tag in (19, 20):
        builder.constant(tag, bytes(2))
    builder.constant(6, bytes(8), slots=2)
    builder.add_field("größe")
    builder.add_method(bytes([RETURN]))
    parsed = ClassFile(builder.build())
    assert parsed.name == "host/Konstanten"
    assert [field.name for field in parsed.fields] == ["größe"]
    assert [method.name for method in parsed.methods] == ["run"]
    assert parsed.pool_count == len(builder.constants) + 1
    with pytest.raises(BridgeError, match=r"host/Konstanten.*constant"):
        parsed.class_name(two_slots + 1)


@pytest.mark.parametrize("text", ["plain", "", "größe", "a\0b", "\U0001f600", "\ud800", "\ufeffx"])
def test_modified_utf8_round_trips(text):
    builder = ClassBuilder()
    index = builder.text(text)
    assert ClassFile(builder.build()).text(index) == text
    assert b"\0" not in encode_text(text)


@pytest.mark.parametrize("leading", range(4))
def test_switches_are_padded_from_the_start_of_the_method(leading):
    position = leading
    padding = bytes(-(position + 1) % 4)
    table = bytes([0xAA]) + padding + struct.pack(">iii3i", 0, -1, 1, 0, 0, 0)
    lookup_position = leading + len(table)
    padding = bytes(-(lookup_position + 1) % 4)
    lookup = bytes([0xAB]) + padding + struct.pack(">ii4i", 0, 2, 5, 0, 9, 0)
    code = bytes(leading) + table + lookup + bytes([RETURN])
    assert opcodes_of(code)[leading:] == [
        (position, 0xAA),
        (lookup_position, 0xAB),
        (len(code) - 1, RETURN),
    ]


def test_wide_widens_loads_by_one_byte_and_increments_by_two():
    code = [0xC4, 0x15, 1, 0, 0xC4, 0x84, 1, 0, 0, 5, 0xC4, 0xA9, 1, 0, RETURN]
    assert opcodes_of(code) == [(0, 0xC4), (4, 0xC4), (10, 0xC4), (14, RETURN)]


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ([0xBB, 0], "runs past"),
        ([0x11, 0], "runs past"),
        ([0xFE], "unknown opcode 0xfe"),
        ([0xCB], "unknown opcode 0xcb"),
        ([0xC4], "wide"),
        ([0xC4, NOP, 0, 0], "wide"),
        ([0xC4, 0x84, 0, 0, 0], "runs past"),
        ([0xAA, 0, 0, 0, 0], "switch"),
        ([0xAA, 0, 0, 0, *struct.pack(">iii", 0, 5, 1)], "cases"),
        ([0xAA, 0, 0, 0, *struct.pack(">iii", 0, -(2**31), 2**31 - 1)], "runs past"),
        ([0xAB, 0, 0, 0, *struct.pack(">ii", 0, -1)], "cases"),
        ([0xAB, 0, 0, 0, *struct.pack(">ii", 0, 1)], "runs past"),
    ],
)
def test_code_that_is_not_consumed_exactly_is_refused(code, problem):
    with pytest.raises(BridgeError, match=rf"host/Built.*{problem}"):
        opcodes_of(code)


def test_every_truncation_is_refused():
    data = version_class()
    for length in range(len(data)):
        with pytest.raises(BridgeError):
            ClassFile(data[:length], "prism/Version")
    with pytest.raises(BridgeError, match=r"prism/Version.*3 bytes after its end"):
        ClassFile(data + b"end")


def test_no_single_changed_byte_escapes_as_another_error():
    data = version_class()
    for position in range(len(data)):
        for value in (0, 1, 0x7F, 0xFF, data[position] ^ 1):
            changed = data[:position] + bytes([value]) + data[position + 1 :]
            try:
                static_string_constants(changed)
            except BridgeError as error:
                assert str(error)  # noqa: PT017 - many changes are harmless; none may crash


@pytest.mark.parametrize("code_length", [0, 6, 9, 11, 2**31])
def test_code_attribute_must_have_the_length_it_states(code_length):
    builder = ClassBuilder()
    builder.add_method(bytes([NOP] * 9 + [RETURN]))
    data = builder.build().replace(
        struct.pack(">HHI", 8, 8, 10), struct.pack(">HHI", 8, 8, code_length)
    )
    parsed = ClassFile(data)
    with pytest.raises(BridgeError, match="host/Built"):
        parsed.code_span(parsed.methods[0])


def test_static_strings_come_from_constants_and_from_the_initialiser():
    assert static_string_constants(version_class()) == {"released": "4.10", "suffix": "dev"}


def test_static_strings_leave_out_what_is_not_certain():
    builder = ClassBuilder()
    builder.add_field("instance", constant="no", access=0x0011)
    builder.add_field("number", descriptor="I")
    for name in ("early", "computed", "overwritten", "late"):
        builder.add_field(name)

    def store(name):
        return bytes([PUTSTATIC]) + struct.pack(">H", builder.field_reference(name))

    literal = bytes([LDC, builder.string("literal")])
    code = (
        literal
        + store("early")
        + bytes([ACONST_NULL])
        + store("computed")
        + literal
        + store("overwritten")
        + bytes([ACONST_NULL])
        + store("overwritten")
        + bytes([ACONST_NULL, IFNULL, 0, 3])
        + literal
        + store("late")
        + bytes([RETURN])
    )
    builder.add_method(code, name="<clinit>")
    assert static_string_constants(builder.build()) == {"early": "literal"}
