"""MESSAGE frames read one by one, in plain Python: what the vectorised decoder must agree with.

Written from STOMP 1.2, JMS 3.1 and the dialect's data; it shares no code with the decoder.
"""

import base64
import binascii
import datetime as dt
import json
import re

from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.jms.headers import HEADERS, SELECTOR_SCHEMA
from pyspark_jms.jms.rules import shown_name

ESCAPES = {b"\\": b"\\", b"c": b":", b"r": b"\r", b"n": b"\n"}
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
NUMBERS = {"JMSPriority"}
COLUMNS_IN_ORDER = ("JMSTimestamp", "JMSPriority", "JMSExpiration", "JMSDeliveryTime")


def message(*headers, body=b""):
    """A MESSAGE frame; headers and body as they stand on the wire, text or bytes."""
    lines = [header.encode() if isinstance(header, str) else header for header in headers]
    data = body.encode() if isinstance(body, str) else body
    return b"MESSAGE\n" + b"".join(line + b"\n" for line in lines) + b"\n" + data + b"\0\n"


def block_of(frames):
    """Whole frames, one after the other."""
    block = MessageBlock(b"".join(frames))
    for frame in frames:
        start = block.start(len(block))
        block.heads.append(start + frame.index(b"\n\n"))
        block.ends.append(start + len(frame))
    return block


def frames_in(data):
    """Every whole frame that can be made out in bytes, however broken, each with NUL LF at its end."""
    frames, start = [], data.find(b"MESSAGE\n")
    while start >= 0:
        end = _end(data, start)
        if end >= 0:
            frames.append(data[start:end] + b"\0\n")
        start = data.find(b"MESSAGE\n", end if end >= 0 else start + 1)
    return frames


def _end(data, start):
    """Where the NUL of the frame is that begins at start, or -1."""
    head = data.find(b"\n\n", start)
    if head < 0:
        return -1
    for line in data[start:head].split(b"\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length" and value.isdigit():
            end = head + 2 + int(value[:12])
            return end if data[end : end + 1] == b"\0" else -1
    return data.find(b"\0", head + 2)


def rows(frames, *, dialect, source, first_sequence=0, body_type="auto"):
    return [
        {"sequence": first_sequence + i} | _row(frame, dialect, source, body_type) for i, frame in enumerate(frames)
    ]


def _row(frame, dialect, source, body_type):
    block, _, rest = frame.removeprefix(b"MESSAGE").partition(b"\n\n")
    headers, faults = _headers(block)
    roles, properties = _roles(headers, dialect, body_type)
    row = dict.fromkeys([*(header.name for header in HEADERS), "map", "stream", "text", "bytes"])
    row["property_types"] = _types(roles.get("@types", ("", ""))[1])
    text = {column: value for column, (_, value) in roles.items() if column not in SELECTOR_SCHEMA.times | NUMBERS}
    row |= {column: value for column, value in text.items() if not column.startswith("@")}
    for column in COLUMNS_IN_ORDER:
        if column in roles:
            row[column] = _typed(column, *roles[column], faults)
    row["JMSReplyTo"] = _reply_to(row["JMSReplyTo"], dialect)
    row["JMSDeliveryMode"] = 2 if roles.get("JMSDeliveryMode", ("", ""))[1].lower() == "true" else 1
    row["JMSRedelivered"] = roles.get("JMSRedelivered", ("", ""))[1].lower() == "true"
    row["JMSDestination"] = str(source)
    if source.kind == "topic" and "@destination" in roles:
        row["JMSDestination"] = "topic://" + roles["@destination"][1]
    row["delivery_id"] = _delivery_id(roles, dialect, source)
    row["properties"] = list(properties.items())
    data = rest.removesuffix(b"\0\n")
    try:
        row["body_type"], known = _body_type(headers, roles, body_type)
        lost = _is_lost(data, roles.get("@stored-size", ("", ""))[1])
        row |= _body(data, row["body_type"], known=known, lost=lost)
    except OddBodyError as odd:
        row["bytes"] = data
        faults.append(str(odd))
    row["body_error"] = "; ".join(faults[:10] + ["and more"] * (len(faults) > 10)) or None
    return row


def _headers(block):
    headers, faults = [], []
    for number, line in enumerate(block.split(b"\n")[1:], 1):
        if b":" not in line:
            faults.append(f"header line {number} has no colon")
            continue
        raw_name, _, raw_value = line.partition(b":")
        plain = [_unescape(raw_name), _unescape(raw_value.removesuffix(b"\r"))]
        name, value = (data.decode(errors="replace") for data, _ in plain)
        if not all(defined for _, defined in plain):
            faults.append(f"header {shown_name(name, number)} holds an escape that STOMP 1.2 does not define")
        if name.encode() != plain[0][0] or value.encode() != plain[1][0]:
            faults.append(f"header {shown_name(name, number)} is not valid UTF-8")
        headers.append((name, value))
    return headers, faults


def _unescape(data):
    plain, defined, at = bytearray(), True, 0
    while at < len(data):
        code = data[at + 1 : at + 2]
        if data[at] != ord("\\"):
            plain.append(data[at])
            at += 1
        elif code in ESCAPES:
            plain += ESCAPES[code]
            at += 2
        else:
            plain.append(data[at])
            defined = False
            at += 1
    return bytes(plain), defined


def _roles(headers, dialect, body_type):
    """Column → (header, value), and the application's properties."""
    counting = {}
    for at, (name, _) in enumerate(headers):
        if name in dialect.message_headers and (name == "ack" or name not in counting):
            counting[name] = at
    roles, properties = {}, {}
    for at, (name, value) in enumerate(headers):
        if counting.get(name) == at:
            roles[dialect.message_headers[name]] = (name, value)
            if not _understood(name, value, body_type):
                properties.setdefault(name, value)
        elif name not in dialect.ignored_headers and not name.startswith(dialect.ignored_header_prefixes):
            properties.setdefault(dialect.property_names.get(name, name), value)
    return roles, properties


def _typed(column, header, value, faults):
    if not re.fullmatch("-?[0-9]+", value):
        faults.append(f"header {header!r} is not a number")
        return None
    number = int(value) if len(value.lstrip("-0")) < 30 else 10**30
    if column in NUMBERS:
        return min(number, 9) if -(2**31) <= number < 2**31 else None
    if number == 0:
        return None
    try:
        return EPOCH + dt.timedelta(milliseconds=number)
    except OverflowError:
        return None


def _reply_to(value, dialect):
    if value is None:
        return None
    for prefix, spelled in dialect.reply_to_prefixes.items():
        if value.startswith(prefix):
            return spelled + value.removeprefix(prefix) if value != prefix else None
    return f"queue://{value}" if value else None


def _delivery_id(roles, dialect, source):
    if dialect.stable_id_separator is None or "@message-id" not in roles:
        return None
    identifier = roles["@message-id"][1]
    _, found, stable = (
        identifier.partition(dialect.stable_id_separator) if dialect.stable_id_separator else ("", "", "")
    )
    broker_id = stable if found else identifier
    return f"{source.name}/{broker_id}" if broker_id else None


# --- bodies, and their markers ------------------------------------------------------------

BODY_TYPES = ("text", "bytes", "map", "stream", "object", "message")
PROPERTY_TYPES = ("boolean", "byte", "short", "int", "long", "float", "double", "string")
BITS = {"byte": 8, "short": 16, "int": 32, "long": 64}
FLOATING = re.compile(
    r"[+-]?(NaN|Infinity|((\d+\.?|\d*\.\d+)([eE][+-]?\d+)?"
    r"|0[xX]([0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?\d+)[fFdD]?)",
    re.ASCII,
)


class OddBodyError(Exception):
    """Why a body is not what it should be."""


def _understood(name, value, body_type):
    if name == "spark_jms_body":
        return body_type == "auto" and value in BODY_TYPES
    return name != "spark_jms_types" or _types(value) is not None


def _types(text):
    """Of ``property_types``; None when the text has no types."""
    pairs = _pairs(text)
    if pairs is None or not all(name and kind in PROPERTY_TYPES for name, kind in pairs):
        return None
    return pairs


def _is_lost(data, stored):
    """Whether a body of Artemis is neither a text nor bytes; it stores n UTF-16 units of text in 2n + 5 bytes."""
    if not re.fullmatch("-?[0-9]{1,600}", stored) or int(stored) >= 2**62:
        return False
    return max(len(data), 2 * len(data) + 5) < int(stored)


def _body_type(headers, roles, option):
    """The body's type, and whether it is known."""
    names = [name for name, _ in headers]
    in_front = "content-length" in names and names.index("content-length") != len(names) - 1
    reason = roles.get("@body", ("", None))[1]
    if option != "auto":
        return option, True
    if reason in BODY_TYPES:
        return reason, True
    return ("bytes" if in_front else "text"), reason is None


def _body(data, body_type, *, known, lost):
    if lost:
        raise OddBodyError("the broker did not send the body: it is neither text nor bytes")
    if not known:
        raise OddBodyError("property 'spark_jms_body' does not name a body type")
    if body_type in {"bytes", "object"}:
        return {"bytes": data}
    if body_type == "message":
        if data:
            raise OddBodyError("a message without a body has one")
        return {}
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise OddBodyError("text is not valid UTF-8") from None
    if body_type == "text":
        return {"text": text}
    return {body_type: _elements(text, body_type)}


def _elements(text, body_type):
    document = _pairs(text)
    if document is None or [key for key, _ in document] != [body_type] or not isinstance(document[0][1], list):
        raise OddBodyError(f"body is not the JSON of a {body_type}")
    wanted = {"name", "type", "value"} if body_type == "map" else {"type", "value"}
    read = [_element(element, wanted) for element in document[0][1]]
    if None in read:
        raise OddBodyError(f"body is not the JSON of a {body_type}")
    for number, (name, kind, value) in enumerate(read, 1):
        where = f"element {number} of the {body_type}"
        if body_type == "map" and not name:
            raise OddBodyError(f"{where} has no name")
        if body_type == "map" and name in [earlier for earlier, _, _ in read[: number - 1]]:
            raise OddBodyError(f"{where} has the same name as an earlier one")
        if kind not in {*PROPERTY_TYPES, "char", "bytes"}:
            raise OddBodyError(f"{where} has no JMS type")
        if value is not None and not _is_rendering(kind, value):
            raise OddBodyError(f"{where} is not of type {kind}")
    values = [{"type": kind, "value": value} for _, kind, value in read]
    return [(name, value) for (name, _, _), value in zip(read, values, strict=True)] if body_type == "map" else values


def _element(element, wanted):
    if not isinstance(element, tuple):
        return None
    found = dict(element)
    texts = [value for value in found.values() if value is not None]
    if len(found) < len(element) or not found.keys() <= wanted or not all(map(_is_text, texts)):
        return None
    return tuple(found.get(key) for key in ("name", "type", "value"))


def _is_text(value):
    return isinstance(value, str) and not re.search("[\ud800-\udfff]", value)


def _pairs(text):
    """The members of a JSON object, each object in it a tuple of members; None when it is none, or has one twice."""
    try:
        members = json.loads(text, object_pairs_hook=tuple, parse_constant=int)
    except (ValueError, RecursionError):
        return None
    if not isinstance(members, tuple) or len({name for name, _ in members}) < len(members):
        return None
    return list(members) if all(_is_text(name) for name, _ in members) else None


def _is_rendering(kind, text):
    if kind in BITS:
        if not re.fullmatch("[+-]?[0-9]+", text):
            return False
        digits = text.lstrip("+-").lstrip("0")
        sign = "-" if text.startswith("-") else ""
        return len(digits) < 30 and -(2 ** (BITS[kind] - 1)) <= int(sign + (digits or "0")) < 2 ** (BITS[kind] - 1)
    if kind in {"float", "double"}:
        return FLOATING.fullmatch(text) is not None
    if kind == "boolean":
        return text.lower() in {"true", "false"} and text.isascii()
    if kind == "char":
        return len(text.encode("utf-16-le")) == 2
    return kind == "string" or _is_base64(text)


def _is_base64(text):
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(text) % 4 == 0 and not re.search("=[^=]|={3}", text)
