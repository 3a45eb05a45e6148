"""Bare AMQP 1.0 messages read one by one, in plain Python: what the vectorised decoder must agree with.

Written from AMQP 1.0 §1.6 and §3.2, the AMQP-JMS binding and the dialect's data; it shares no code with the decoder.
"""

import base64
import datetime as dt
import decimal
import hashlib
import struct
import uuid

from jms_selector.meaning.conversions import java_text
from jms_selector.syntax.kinds import Kind, Value
from pyspark_jms.jms.names import may_receive

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
SECTION_NAMES = [
    "amqp:header:list",
    "amqp:delivery-annotations:map",
    "amqp:message-annotations:map",
    "amqp:properties:list",
    "amqp:application-properties:map",
    "amqp:data:binary",
    "amqp:amqp-sequence:list",
    "amqp:amqp-value:*",
    "amqp:footer:map",
]
KNOWN = {
    **dict.fromkeys([0x40, 0x41, 0x42, 0x43, 0x44, 0x45], 0),
    **dict.fromkeys([0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56], 1),
    **dict.fromkeys([0x60, 0x61], 2),
    **dict.fromkeys([0x70, 0x71, 0x72, 0x73, 0x74], 4),
    **dict.fromkeys([0x80, 0x81, 0x82, 0x83, 0x84], 8),
    **dict.fromkeys([0x94, 0x98], 16),
}
NARROW = {0xA0, 0xA1, 0xA3, 0xC0, 0xC1, 0xE0}
WIDE = {0xB0, 0xB1, 0xB3, 0xD0, 0xD1, 0xF0}
LIST, MAP, STRING, BINARY, SYMBOL = {0xC0, 0xD0, 0x45}, {0xC1, 0xD1}, {0xA1, 0xB1}, {0xA0, 0xB0}, {0xA3, 0xB3}
BODY_TYPES = ["message", "object", "map", "bytes", "stream", "text"]
NUMBERS = {0x51: ("b", "byte"), 0x61: ("h", "short"), 0x71: ("i", "int"), 0x54: ("b", "int"), 0x81: ("q", "long")}
NUMBERS |= {0x55: ("b", "long"), 0x72: ("f", "float"), 0x82: ("d", "double")}


class NotAmqpError(Exception):
    pass


class NotJmsError(Exception):
    pass


def take(data, depth=0):
    """The first value of some bytes as its constructor and content, and the bytes after it."""
    if not data:
        raise NotAmqpError
    code, rest = data[0], data[1:]
    if code == 0:
        if depth >= 8:
            raise NotAmqpError
        _, rest = take(rest, depth + 1)
        _, rest = take(rest, depth + 1)
        return (0, data[1 : len(data) - len(rest)]), rest
    if code in KNOWN:
        size = KNOWN[code]
    elif code in NARROW | WIDE:
        width = 1 if code in NARROW else 4
        if len(rest) < width:
            raise NotAmqpError
        size, rest = int.from_bytes(rest[:width], "big"), rest[width:]
    else:
        raise NotAmqpError
    if len(rest) < size:
        raise NotAmqpError
    return (code, rest[:size]), rest[size:]


def members(value, codes):
    """The values in a list or map."""
    code, content = value
    if code not in codes:
        raise NotAmqpError
    if code == 0x45:
        return []
    width = 1 if code in NARROW else 4
    if len(content) < width:
        raise NotAmqpError
    count, content = int.from_bytes(content[:width], "big"), content[width:]
    if count > len(content):
        raise NotAmqpError
    found = []
    for _ in range(count):
        value, content = take(content)
        found.append(value)
    if content:
        raise NotAmqpError
    return found


def pairs(value):
    found = members(value, MAP)
    if len(found) % 2:
        raise NotAmqpError
    return [(found[i], found[i + 1]) for i in range(0, len(found), 2)]


def sections(data):
    found = []
    while data:
        if data[0] != 0:
            raise NotAmqpError
        (code, content), data = take(data[1:])
        if code in SYMBOL:
            name = content.decode("latin-1")
            number = 0x70 + SECTION_NAMES.index(name) if name in SECTION_NAMES else -1
        elif code in {0x53, 0x80}:
            number = int.from_bytes(content, "big")
        else:
            raise NotAmqpError
        if not 0x70 <= number <= 0x78:
            raise NotAmqpError
        value, data = take(data)
        found.append((number, value))
    numbers = [number for number, _ in found]
    if numbers != sorted(numbers) or len({n for n in numbers if 0x75 <= n <= 0x77}) > 1:
        raise NotAmqpError
    if any(numbers.count(n) > 1 for n in numbers if n not in {0x75, 0x76}):
        raise NotAmqpError
    return found


def fields(value, most):
    found = members(value, LIST)
    if len(found) > most:
        raise NotAmqpError
    return dict(enumerate(found))


# --- values ---------------------------------------------------------------------------------------


def integer(value, *codes):
    code, content = value
    if code not in codes:
        raise NotJmsError
    if code in {0x41, 0x42}:
        return code == 0x41
    if code in NUMBERS or code == 0x83:
        return struct.unpack(">" + (NUMBERS[code][0] if code in NUMBERS else "q"), content)[0]
    number = int.from_bytes(content, "big")
    if code == 0x56 and number > 1:
        raise NotJmsError
    return number


def text(value, codes=STRING):
    code, content = value
    if code not in codes:
        raise NotJmsError
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise NotJmsError from None


def identifier(value, *, message):
    code, content = value
    if code in {0x80, 0x53, 0x44}:
        return "ID:AMQP_ULONG:" + str(int.from_bytes(content, "big"))
    if code == 0x98:
        return "ID:AMQP_UUID:" + str(uuid.UUID(content.hex()))
    if code in BINARY:
        return "ID:AMQP_BINARY:" + content.hex().upper()
    found = text(value)
    if any(found.startswith(f"ID:AMQP_{kind}:") for kind in ("BINARY", "NO_PREFIX", "STRING", "ULONG", "UUID")):
        return "ID:AMQP_STRING:" + found
    return "ID:AMQP_NO_PREFIX:" + found if message and not found.startswith("ID:") else found


def message_identifier(value):
    return identifier(value, message=True)


def correlation_identifier(value):
    return identifier(value, message=False)


def typed(value, *, element):
    code, content = value
    if code == 0x40:
        return "string", None
    if code in STRING:
        return "string", text(value)
    if code in {0x41, 0x42, 0x56}:
        return "boolean", "true" if integer(value, code) else "false"
    if code in NUMBERS:
        format_, kind = NUMBERS[code]
        return kind, java_text(Value(Kind(kind), struct.unpack(">" + format_, content)[0]))
    if element and code in BINARY:
        return "bytes", base64.b64encode(content).decode()
    kind, jms, found = beyond_jms(code, content)
    if element:
        return (jms, found) if found is not None else (kind, None)
    return ("string" if (kind, jms) == ("ulong", "string") else kind), found


UNSIGNED = {0x50: "ubyte", 0x60: "ushort", 0x70: "uint", 0x52: "uint", 0x43: "uint", 0x80: "ulong", 0x53: "ulong"}
UNSIGNED |= {0x44: "ulong"}
HOLDERS = {"ubyte": "short", "ushort": "int", "uint": "long", "ulong": "long"}


def beyond_jms(code, content):
    """The AMQP type of a value, the JMS type that holds it, and its text."""
    if code in UNSIGNED:
        kind, number = UNSIGNED[code], int.from_bytes(content, "big")
        return kind, HOLDERS[kind] if number < 2**63 else "string", str(number)
    if code == 0x83:
        return "timestamp", "long", str(struct.unpack(">q", content)[0])
    if code == 0x98:
        return "uuid", "string", str(uuid.UUID(content.hex()))
    if code in SYMBOL:
        return "symbol", "string", text((code, content), SYMBOL)
    if code in BINARY:
        return "binary", "string", base64.b64encode(content).decode()
    if code == 0x73:
        point = int.from_bytes(content, "big")
        if point > 0x10FFFF or 0xD800 <= point < 0xE000:
            raise NotJmsError
        return "char", "char" if point <= 0xFFFF else "string", chr(point)
    if code in {0x74, 0x84, 0x94}:
        return f"decimal{8 * len(content)}", "string", decimal_of(content)
    if code in LIST:
        return "list", "string", None
    if code in MAP:
        return "map", "string", None
    return ("described type" if code == 0 else "array"), "string", None


def decimal_of(content):
    """By table of IEEE 754-2008: digits, width of the exponent, bias."""
    digits, width, bias = {4: (7, 8, 101), 8: (16, 10, 398), 16: (34, 14, 6176)}[len(content)]
    bits = "".join(f"{byte:08b}" for byte in content)
    sign, rest = bits[0], bits[1:]
    if rest.startswith("1111"):
        return "NaN" if rest[4] == "1" else "-Infinity" if sign == "1" else "Infinity"
    if rest.startswith("11"):
        exponent, coefficient = rest[2 : 2 + width], "100" + rest[2 + width :]
    else:
        exponent, coefficient = rest[:width], rest[width:]
    number = int(coefficient, 2) if int(coefficient, 2) < 10**digits else 0
    return str(decimal.Decimal(("-" if sign == "1" else "") + f"{number}E{int(exponent, 2) - bias}"))


def moment(milliseconds):
    if not milliseconds:
        return None
    try:
        return EPOCH + dt.timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None


# --- messages -------------------------------------------------------------------------------------


def row_of(data, dialect, source, body_type="auto"):
    """The columns of one message without ``sequence``; ``body_error`` is True if the decoder must give a reason."""
    try:
        found = sections(data)
        parts = {"header": {}, "properties": {}, "annotations": [], "application": [], "bodies": []}
        for number, value in found:
            if number == 0x70:
                parts["header"] = fields(value, 5)
            elif number == 0x73:
                parts["properties"] = fields(value, 13)
            elif number == 0x72:
                parts["annotations"] = pairs(value)
            elif number == 0x74:
                parts["application"] = pairs(value)
            elif number in {0x71, 0x78}:
                pairs(value)
            else:
                parts["bodies"].append((number, value))
    except NotAmqpError:
        row = {"JMSDestination": f"{source.kind}://{source.name}", "bytes": data, "body_error": True}
        row["delivery_id"] = delivery_id(data, source)
        return row
    return Reader(data, parts, dialect, source, body_type).row()


class Reader:
    def __init__(self, data, parts, dialect, source, body_type):
        self.data, self.parts, self.dialect, self.source, self.body_type = data, parts, dialect, source, body_type
        self.wrong = False
        self.annotations = {k[1]: v for k, v in parts["annotations"] if k[0] in SYMBOL}

    def attempt(self, read, *arguments, **options):
        try:
            return read(*arguments, **options)
        except NotJmsError:
            self.wrong = True
            return None

    def header(self, index, *codes):
        value = self.parts["header"].get(index, (0x40, b""))
        return None if value[0] == 0x40 else self.attempt(integer, value, *codes)

    def property(self, index, read, *arguments):
        value = self.parts["properties"].get(index, (0x40, b""))
        return None if value[0] == 0x40 else self.attempt(read, value, *arguments)

    def annotation(self, name, *codes):
        try:
            return integer(self.annotations[name], *codes) if name in self.annotations else None
        except NotJmsError:
            return None

    def kind(self, name):
        return {0: "queue", 1: "topic", 2: "temp-queue", 3: "temp-topic"}.get(self.annotation(name, 0x51))

    def split(self, address):
        for prefix, kind in self.dialect.destination_prefixes.items():
            if address.startswith(prefix):
                return str(kind), address[len(prefix) :]
        return None, address

    def row(self):
        earlier = self.header(4, 0x70, 0x52, 0x43) or 0
        priority = self.header(1, 0x50)
        life = self.header(2, 0x70, 0x52, 0x43)
        created = self.property(9, integer, 0x83)
        row = {
            "JMSDeliveryMode": 2 if self.header(0, 0x41, 0x42, 0x56) else 1,
            "JMSPriority": 4 if priority is None else min(priority, 9),
            "JMSRedelivered": earlier > 0,
            "JMSMessageID": self.property(0, message_identifier),
            "JMSType": self.property(3, text),
            "JMSCorrelationID": self.property(5, correlation_identifier),
            "content_type": self.property(6, text, SYMBOL),
            "JMSExpiration": moment(self.property(8, integer, 0x83) or (life and created and created + life)),
            "JMSTimestamp": moment(created),
            "JMSDeliveryTime": moment(self.annotation(b"x-opt-delivery-time", 0x81, 0x55, 0x83)),
            "JMSDestination": self.destination(self.property(2, text)),
            "JMSReplyTo": self.reply_to(self.property(4, text)),
        }
        entries = self.entries(earlier)
        row["properties"] = {name: value for name, (_, value) in entries.items()}
        row["property_types"] = {name: kind for name, (kind, _) in entries.items()}
        row |= self.attempt(self.body, row["content_type"]) or {}
        if self.wrong:
            row |= {"bytes": row.get("bytes", self.data), "body_error": True}
        row["delivery_id"] = delivery_id(self.data, self.source)
        return row

    def destination(self, to):
        read_from = f"{self.source.kind}://{self.source.name}"
        if not to:
            return read_from
        prefixed, name = self.split(to)
        kind = self.kind(b"x-opt-jms-dest") or prefixed
        patterns = self.source.name.split(",") if any(sign in self.source.name for sign in "*#>,") else []
        if name != self.source.name and not any(may_receive(pattern, name) for pattern in patterns):
            return read_from
        temporary = kind == f"temp-{self.source.kind}"
        return f"{'temp-' if temporary else ''}{self.source.kind}://{name}"

    def reply_to(self, address):
        if not address:
            return None
        prefixed, name = self.split(address)
        return f"{self.kind(b'x-opt-jms-reply-to') or prefixed or 'queue'}://{name}"

    def entries(self, earlier):
        own = {"JMSXDeliveryCount": ("int", str(min(earlier + 1, 2**31 - 1)))}
        group, sequence, user = self.property(10, text), self.property(11, integer, 0x70, 0x52, 0x43), None
        if group is not None:
            own["JMSXGroupID"] = ("string", group)
        if sequence is not None:
            own["JMSXGroupSeq"] = ("int", str(struct.unpack(">i", struct.pack(">I", sequence))[0]))
        user = self.property(1, text, BINARY)
        if user is not None:
            own["JMSXUserID"] = ("string", user)
        found = {}
        from_stomp = self.parts["properties"].get(0, (0x40,))[0] == 0x40
        for key, value in self.parts["application"]:
            name = self.attempt(text, key)
            if name is None or name in own or name in self.dialect.ignored_properties:
                continue
            if any(name.startswith(prefix) for prefix in self.dialect.ignored_property_prefixes):
                continue
            if from_stomp and name in self.dialect.ignored_stomp_headers:
                continue
            if name in found:
                self.wrong = True
                continue
            entry = self.attempt(typed, value, element=False)
            if entry is not None:
                found[name] = entry
        return found | own

    def body(self, content_type):
        shape, content = self.shape()
        kind = self.body_kind(shape, content_type)
        if shape == "data" and self.annotation(b"x-opt-jms-msg-type", 0x51) != 1 and self.is_cut(len(content)):
            raise NotJmsError
        if kind in {"bytes", "object"}:
            if shape == "string" and self.body_type == "bytes":
                return {"body_type": kind, "bytes": text((0xA1, content)).encode()}
            if shape in {"data", "binary", "none", "null"}:
                return {"body_type": kind, "bytes": content}
        if kind == "text":
            if shape in {"string", "data"}:
                return {"body_type": kind, "text": text((0xA1, content))}
            if shape in {"none", "null"}:
                return {"body_type": kind, "text": None}
            if shape == "scalar":
                return {"body_type": kind, "text": typed(content, element=True)[1]}
        if kind == "message" and shape in {"none", "null"}:
            return {"body_type": kind}
        if kind == "map" and shape in {"map", "none", "null"}:
            return {"body_type": kind, "map": self.map(content or [])}
        if kind == "stream" and shape in {"list", "none", "null"}:
            return {"body_type": kind, "stream": [self.element(value) for value in content or []]}
        raise NotJmsError

    def is_cut(self, size):
        named = {k[1]: v for k, v in self.parts["application"] if k[0] in STRING}
        code, content = named.get(b"_AMQ_LARGE_COMPRESSED", (0x42, b""))
        if code not in {0x41, 0x56} or content in {b"\0", *(bytes([n]) for n in range(2, 256))}:
            return False
        size_code, number = named.get(b"_AMQ_LARGE_SIZE", (0x40, b""))
        return size_code not in {0x55, 0x81} or int.from_bytes(number, "big", signed=True) != size

    def shape(self):
        bodies = self.parts["bodies"]
        if not bodies:
            return "none", b""
        number, (code, content) = bodies[0]
        try:
            if number == 0x75:
                if any(code not in BINARY for _, (code, _) in bodies):
                    raise NotJmsError
                return "data", b"".join(content for _, (_, content) in bodies)
            if number == 0x76 or code in LIST:
                return "list", [element for _, value in bodies for element in members(value, LIST)]
            if code in MAP:
                return "map", pairs((code, content))
        except NotAmqpError:
            raise NotJmsError from None
        if code in STRING:
            return "string", content
        if code in BINARY:
            return "binary", content
        if code == 0x40:
            return "null", b""
        if code in {0, 0xE0, 0xF0}:
            raise NotJmsError
        return "scalar", (code, content)

    def body_kind(self, shape, content_type):
        if self.body_type != "auto":
            return self.body_type
        annotation = self.annotation(b"x-opt-jms-msg-type", 0x51)
        if annotation in range(6) and not (annotation == 1 and shape in {"string", "scalar", "list", "map"}):
            return BODY_TYPES[annotation]
        if shape == "data":
            if content_type == "application/x-java-serialized-object":
                return "object"
            return "text" if content_type and is_text(content_type) else "bytes"
        of_shape = {"none": "message", "null": "text", "string": "text", "scalar": "text", "binary": "bytes"}
        return (of_shape | {"list": "stream", "map": "map"})[shape]

    def map(self, found):
        entries = {}
        for key, value in found:
            name = self.attempt(text, key)
            if name in entries:
                self.wrong = True
            elif name is not None:
                entries[name] = self.element(value)
        return entries

    def element(self, value):
        """An element that cannot be read is a null of its type."""
        code, _ = value
        kind = "string" if code in STRING | SYMBOL else "boolean" if code == 0x56 else "char"
        kind, found = self.attempt(typed, value, element=True) or (kind, None)
        return {"type": kind, "value": found}


def is_text(content_type):
    kind, *parameters = (part.strip() for part in content_type.lower().split(";"))
    main, _, sub = kind.partition("/")
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in {"utf-8", "utf8", "us-ascii"}:
            return False
    if main == "text":
        return bool(sub)
    if main != "application":
        return False
    return sub in {"xml-dtd", "javascript", "ecmascript"} or sub.rpartition("+")[2] in {"xml", "json"}


def delivery_id(data, source):
    """The message-id is known as far as the sections before it and the fields up to it can be read."""
    return f"{source.name}/{message_id(data) or '~' + digest(data)}"


def message_id(data):
    last = 0
    try:
        while data:
            (code, content), rest = take(data[1:]) if data[0] == 0 else ((0, b""), b"")
            if code in SYMBOL and content.decode("latin-1") in SECTION_NAMES:
                number = 0x70 + SECTION_NAMES.index(content.decode("latin-1"))
            else:
                number = int.from_bytes(content, "big") if code in {0x53, 0x80} else -1
            value, data = take(rest)
            if number <= last or not 0x70 <= number <= 0x73:
                return None
            last = number
            if number == 0x73:
                found = message_identifier(first_member(value))
                return "" if found == "ID:AMQP_NO_PREFIX:" else found
    except (NotAmqpError, NotJmsError):
        pass
    return None


def first_member(value):
    code, content = value
    width = {0xC0: 1, 0xD0: 4}.get(code)
    if width is None or len(content) < width:
        raise NotAmqpError
    count = int.from_bytes(content[:width], "big")
    if not 0 < count <= len(content) - width:
        raise NotAmqpError
    return take(content[width:])[0]


def digest(data):
    try:
        if data[:1] == b"\0":
            (code, content), rest = take(data[1:])
            if (code in {0x53, 0x80} and int.from_bytes(content, "big") == 0x70) or (
                code in SYMBOL and content == b"amqp:header:list"
            ):
                _, data = take(rest)
    except NotAmqpError:
        pass
    return hashlib.sha256(data).hexdigest()[:32]
