"""Bare AMQP 1.0 messages as bytes: an encoder of single values, and messages by the thousand from a seed.

The messages are those of brokers and clients, and with a small chance in each part what none of them sends.
"""

import random
import struct
from itertools import pairwise

import numpy as np
import pyarrow as pa

from pyspark_jms.amqp.columns.byte_reader import ByteReader
from pyspark_jms.amqp.columns.walk import walk
from pyspark_jms.amqp.wire.sections import LISTS, MAPS, elements, sections
from pyspark_jms.blocks.block import MessageBlock, positions_of

NULL, TRUE, FALSE = b"\x40", b"\x41", b"\x42"
NOW_MS = 1_760_000_000_000


def variable(narrow, data):
    if len(data) < 256:
        return bytes([narrow, len(data)]) + data
    return bytes([narrow + 0x10]) + struct.pack(">I", len(data)) + data


def string(text):
    return variable(0xA1, text.encode() if isinstance(text, str) else text)


def symbol(text):
    return variable(0xA3, text.encode())


def binary(data):
    return variable(0xA0, data)


def byte(number):
    return b"\x51" + struct.pack(">b", number)


def ubyte(number):
    return b"\x50" + struct.pack(">B", number)


def int_(number):
    return b"\x54" + struct.pack(">b", number) if -128 <= number < 128 else b"\x71" + struct.pack(">i", number)


def long(number):
    return b"\x55" + struct.pack(">b", number) if -128 <= number < 128 else b"\x81" + struct.pack(">q", number)


def uint(number):
    if not number:
        return b"\x43"
    return b"\x52" + bytes([number]) if number < 256 else b"\x70" + struct.pack(">I", number)


def ulong(number):
    return b"\x53" + bytes([number]) if number < 256 else b"\x80" + struct.pack(">Q", number)


def timestamp(milliseconds):
    return b"\x83" + struct.pack(">q", milliseconds)


def compound(narrow, values, *, wide=False):
    data = b"".join(values)
    if not wide and len(data) < 255 and len(values) < 256:
        return bytes([narrow, len(data) + 1, len(values)]) + data
    return bytes([narrow + 0x10]) + struct.pack(">II", len(data) + 4, len(values)) + data


def list_(*values, wide=False):
    return compound(0xC0, values, wide=wide)


def map_(pairs, *, wide=False):
    return compound(0xC1, [value for pair in pairs for value in pair], wide=wide)


def section(code, value):
    return b"\x00\x53" + bytes([code]) + value


def annotations(**values):
    """``x-opt-…`` of a message, as ``jms_dest=byte(0)``."""
    return section(0x72, map_([(symbol(f"x-opt-{name.replace('_', '-')}"), value) for name, value in values.items()]))


def properties(*, wide=True, **given):
    """The properties section; fields as they are encoded, by their names with ``_``."""
    names = ["message_id", "user_id", "to", "subject", "reply_to", "correlation_id", "content_type", "content_encoding"]
    names += ["absolute_expiry_time", "creation_time", "group_id", "group_sequence", "reply_to_group_id"]
    values = [given.pop(name, NULL) for name in names]
    assert not given, given
    while values and values[-1] == NULL:
        values.pop()
    return section(0x73, list_(*values, wide=wide))


def application_properties(**values):
    return section(0x74, map_([(string(name), value) for name, value in values.items()]))


def text_message(text="hello", **parts):
    """Header, annotations, properties, application properties and a text, as Artemis sends a message of CORE."""
    return b"".join(
        [
            section(0x70, list_(TRUE)),
            annotations(jms_dest=byte(0), jms_msg_type=byte(5)),
            properties(message_id=string("ID:1"), to=string("orders"), creation_time=timestamp(NOW_MS), **parts),
            application_properties(customer=string("C1"), count=int_(7), JMSXDeliveryCount=NULL),
            section(0x77, string(text)),
        ]
    )


def block_of(messages):
    block = MessageBlock(b"".join(messages))
    for message in messages:
        block.ends.append(block.start(len(block)) + len(message))
    return block


def walked(messages):
    """The bytes of a block of these messages, and the parts of each message."""
    block = block_of(messages)
    ends = positions_of(block.ends)
    reader = ByteReader(pa.py_buffer(block.data)).padded()
    return reader, walk(reader, np.concatenate(([0], ends))[:-1], ends)


def values_in(value):
    """The encoded values in an encoded list or map."""
    return [value[begin:end] for begin, end in pairwise([*elements(value, 0, LISTS + MAPS), len(value)])]


def entries_in(value):
    found = values_in(value)
    return list(zip(found[::2], found[1::2], strict=True))


def parts_of(message):
    """The code of each section → its encoded value."""
    return {code: message[value:end] for code, value, end in sections(message)}


# --- by the thousand --------------------------------------------------------------------------------

_TEXTS = [
    "",
    "a",
    "order",
    "é",
    "日本",
    "x" * 255,
    "y" * 256,
    "ü" * 200,
    "𝄞",
    "queue://a",
    "topic://b.c",
    "temp-queue://t",
]
_NAMES = ["customer", "region", "amount", "n", "JMSXGroupID", "destination", "receipt", "_AMQ_X", "_AMQ_ORIG_QUEUE"]
_NAMES += ["JMSXDeliveryCount", "é", "", "n2", "z" * 300, "JMSXUserID", "content-length", "spark_jms_types"]
_TYPES = ["text/plain", "text/plain; charset=utf-16", "application/json", "application/octet-stream", "a/b"]
_TYPES += ["application/x-java-serialized-object", 'TEXT/xml; charset="UTF-8"', "application/soap+xml", "text", "text/"]
_ADDRESSES = ["orders", "a.b", "queue://orders", "topic://news", "temp-topic://t", "é", ""]
_DOUBLES = [0.0, -0.0, 1.5, 1e10, 1e-9, 12345678.9, float("inf"), float("nan"), 5e-324, 100.0, 0.001, 1e7]


class Messages:
    """Messages from a seed. ``oddness`` is the chance, in each part, of something that JMS clients do not send."""

    def __init__(self, seed, oddness=0.0):
        self.random = random.Random(seed)
        self.oddness = oddness

    def odd(self):
        return self.random.random() < self.oddness

    def chance(self, share):
        return self.random.random() < share

    def text(self):
        if self.odd():
            return variable(0xA1, self.random.choice([b"\xff", b"\xc3", b"a\xed\xa0\x80"]))
        text = self.random.choice([*_TEXTS, f"t{self.random.randrange(1000)}"]).encode()
        return b"\xb1" + struct.pack(">I", len(text)) + text if self.odd() else string(text)

    def value(self, *, element=False):
        r = self.random
        if self.odd():
            return self.any_value()
        kinds = [
            lambda: NULL,
            lambda: r.choice([TRUE, FALSE, b"\x56\x01", b"\x56\x00"]),
            lambda: byte(r.randrange(-128, 128)),
            lambda: b"\x61" + struct.pack(">h", r.randrange(-(2**15), 2**15)),
            lambda: int_(r.choice([0, -1, 127, 128, -129, r.randrange(-(2**31), 2**31)])),
            lambda: long(r.choice([0, 5, 2**63 - 1, -(2**63), r.randrange(2**40)])),
            lambda: b"\x72" + struct.pack(">f", r.choice([0.1, 1e9, -3.5, 1e-40, float("nan")])),
            lambda: b"\x82" + struct.pack(">d", r.choice([*_DOUBLES, r.random() * 1000])),
            self.text,
            self.text,
        ]
        if self.chance(0.1):
            kinds = [
                lambda: ubyte(r.randrange(256)),
                lambda: b"\x60" + r.randbytes(2),
                lambda: uint(r.choice([0, 7, 255, 2**32 - 1])),
                lambda: r.choice([b"\x44", ulong(7), ulong(2**63 - 1), ulong(2**63)]),
                lambda: timestamp(r.choice([0, -1, NOW_MS])),
                lambda: b"\x98" + r.randbytes(16),
                lambda: symbol(r.choice(["", "s", "x" * 300])),
                lambda: binary(r.randbytes(3)),
            ]
        if element:
            kinds += [
                lambda: b"\x73" + struct.pack(">I", r.choice([65, 0x20AC, 0xFFFF, 0])),
                lambda: binary(r.choice([b"", b"ab", b"\x00\xff", b"q" * 300])),
            ]
        return r.choice(kinds)()

    def any_value(self):
        r = self.random
        return r.choice(
            [
                b"\x98" + bytes(range(16)),
                b"\x73\x00\x00\x00A",
                b"\x73\x00\x00\xd8\x00",
                b"\x73\x00\x01\x00\x00",
                binary(b"x"),
                symbol("s"),
                ubyte(9),
                b"\x60\x00\x01",
                uint(r.choice([0, 7, 2**31, 2**32 - 1])),
                ulong(r.choice([0, 7, 2**63])),
                b"\x44",
                timestamp(5),
                b"\x74" + r.randbytes(4),
                b"\x84" + r.randbytes(8),
                b"\x94" + r.randbytes(16),
                b"\x80" + r.randbytes(8),
                b"\x53\xff",
                b"\x60\xff\xff",
                b"\x83" + r.randbytes(8),
                symbol("é" * 200),
                binary(r.randbytes(300)),
                b"\xa3\x01\xff",
                b"\x45",
                list_(int_(1), string("a")),
                map_([(string("k"), int_(1))]),
                b"\xe0\x03\x01\x51\x05",
                b"\xf0\x00\x00\x00\x06\x00\x00\x00\x01\x51\x05",
                b"\x00\x53\x01" + string("d"),
                b"\x00" * 12,
                b"\x56\x02",
                b"\x01",
                NULL,
            ]
        )

    def maybe(self, make, share=0.5):
        if self.odd():
            return self.any_value()
        return make() if self.chance(share) else NULL

    def id(self):
        r = self.random
        if self.chance(0.8):
            return string(f"ID:{r.randrange(10**9)}")
        odd = [ulong(r.choice([0, 7, 2**63])), b"\x44", b"\x98" + r.randbytes(16), binary(r.randbytes(5))]
        odd += [string(text) for text in ("", "7", "ID:AMQP_x", "ID:AMQP_UUID:x", "ID:AMQP_NO_PREFIX:")]
        return r.choice(odd)

    def address(self):
        return string(self.random.choice(_ADDRESSES))

    def trimmed(self, values):
        if self.chance(0.7):
            while values and values[-1] == NULL:
                values.pop()
        return [*values, NULL] * (1 + 9 * self.odd()) if self.odd() else values

    def header(self):
        r = self.random
        fields = [
            self.maybe(lambda: r.choice([TRUE, FALSE, b"\x56\x01"])),
            self.maybe(lambda: ubyte(r.randrange(10)), 0.3),
            self.maybe(lambda: uint(r.choice([0, 5, 1000, 2**32 - 1])), 0.3),
            self.maybe(lambda: TRUE, 0.1),
            self.maybe(lambda: uint(r.choice([0, 1, 3, 2**31, 2**32 - 1, 300])), 0.3),
        ]
        return self.list(self.trimmed(fields))

    def list(self, values):
        if not values and self.chance(0.5):
            return b"\x45"
        return list_(*values, wide=self.chance(0.3))

    def annotations(self):
        r = self.random
        makers = {
            "x-opt-jms-dest": lambda: byte(r.randrange(4)),
            "x-opt-jms-reply-to": lambda: byte(r.randrange(4)),
            "x-opt-delivery-time": lambda: r.choice([long, timestamp])(r.choice([0, NOW_MS, 2**62])),
            "x-opt-ingress-time": lambda: long(NOW_MS),
        }
        makers = {name: make for name, make in makers.items() if self.chance(0.5)}
        found = [(symbol(name), self.any_value() if self.odd() else make()) for name, make in makers.items()]
        if self.odd():
            found.append((self.any_value(), self.any_value()))
        if self.odd():
            found.append((symbol("x-opt-jms-dest"), byte(r.randrange(-1, 6))))
        return found

    def properties(self):
        r = self.random
        fields = [
            self.maybe(self.id, 0.8),
            self.maybe(lambda: binary(b"user"), 0.2),
            self.maybe(self.address, 0.8),
            self.maybe(self.text),
            self.maybe(self.address, 0.3),
            self.maybe(r.choice([self.text, self.id])),
            self.maybe(lambda: symbol(r.choice(_TYPES)), 0.4),
            self.maybe(lambda: symbol("gzip"), 0.1),
            self.maybe(lambda: timestamp(r.choice([0, NOW_MS, 2**63 - 1, -1, 253_402_300_800_000])), 0.3),
            self.maybe(lambda: timestamp(r.choice([NOW_MS + r.randrange(10**6), 0, -1, 2**63 - 1])), 0.8),
            self.maybe(self.text, 0.2),
            self.maybe(lambda: uint(r.choice([0, 1, 2**31, 2**32 - 1])), 0.2),
            self.maybe(self.text, 0.1),
        ]
        return self.list(self.trimmed(fields))

    def application_properties(self):
        names = self.random.sample(_NAMES, self.random.choice([0, 1, 3, 5, 8]))
        found = [(self.any_value() if self.odd() else string(name), self.value()) for name in names]
        if found and self.odd():
            found.append(found[0])
        if self.chance(0.05):
            size = self.random.choice([long(0), long(2), long(300), uint(2), NULL])
            found += [(string("_AMQ_LARGE_COMPRESSED"), self.value()), (string("_AMQ_LARGE_SIZE"), size)]
        return found

    def body(self):
        """Body sections, and the type that an annotation gives to them."""
        r = self.random
        kind = r.randrange(6)
        sequence = r.choice([1, 1, 2])
        elements = [self.value(element=True) for _ in range(r.randrange(5))]
        names = [self.any_value() if self.odd() else string(n) for n in r.sample(_NAMES, len(elements))]
        bodies = [
            lambda: b"",
            lambda: section(0x75, binary(b"\xac\xed" + r.randbytes(9))),
            lambda: section(0x77, map_(list(zip(names, elements, strict=True)), wide=self.chance(0.2))),
            lambda: b"".join(section(0x75, binary(r.choice([b"", b"ab", r.randbytes(300)]))) for _ in range(sequence)),
            lambda: r.choice([section(0x77, self.list(elements)), section(0x76, self.list(elements)) * sequence]),
            lambda: section(0x77, self.text() if self.chance(0.9) else NULL),
        ]
        if self.odd():
            return section(r.choice([0x75, 0x76, 0x77]), self.any_value()), r.randrange(-1, 7)
        if self.odd():
            kind, made = r.randrange(6), bodies[kind]()
            return made, kind
        return bodies[kind](), kind

    def message(self):
        r = self.random
        body, kind = self.body()
        notes = self.annotations()
        if self.chance(0.7):
            notes.append((symbol("x-opt-jms-msg-type"), byte(kind)))
        parts = []
        if self.chance(0.8):
            parts.append(section(0x70, self.header()))
        if self.chance(0.1):
            parts.append(section(0x71, map_([(symbol("x-d"), self.any_value())])))
        if self.chance(0.8):
            parts.append(section(0x72, map_(notes)))
        if self.chance(0.95):
            parts.append(section(0x73, self.properties()))
        if self.chance(0.8):
            parts.append(section(0x74, map_(self.application_properties(), wide=self.chance(0.1))))
        parts.append(body)
        if self.chance(0.05):
            parts.append(section(0x78, map_([(symbol("f"), self.any_value())])))
        if self.odd():
            r.shuffle(parts)
        if self.odd():
            parts.insert(0, b"\x00" + symbol("amqp:header:list") + list_(TRUE))
        if self.odd() and parts[0][:2] == b"\0\x53":
            parts[0] = b"\x00\x80" + bytes(7) + parts[0][2:]
        return b"".join(parts)

    def damaged(self):
        """A message that is cut, or has a byte changed, removed or added."""
        message, r = self.message(), self.random
        if not message:
            return message
        at = r.randrange(len(message))
        match r.randrange(5):
            case 0:
                return message[:at]
            case 1:
                return message[:at] + bytes([r.randrange(256)]) + message[at + 1 :]
            case 2:
                return message[:at] + message[at + 1 :]
            case 3:
                return message[:at] + bytes([r.choice([0, 1, 0x40, 0x45, 0xFF, 0xA1, 0xB1])]) + message[at:]
        return message[:at] + bytes([message[at] ^ 1 << r.randrange(8)]) + message[at + 1 :]

    def of_one_layout(self, count, *, damaged=0):
        """Make copies of one message with other letters and digits; some of them have a byte changed."""
        template, found = self.message(), []
        for number in range(count):
            message = bytearray(template)
            for at in range(len(message)):
                if chr(message[at]) in "xyt0123456789" and self.chance(0.1):
                    message[at] = ord(self.random.choice("0123456789"))
            if message and number < damaged:
                message[self.random.randrange(len(message))] = self.random.randrange(256)
            found.append(bytes(message))
        self.random.shuffle(found)
        return found
