"""MESSAGE frames read one by one, in plain Python: what the vectorised decoder must agree with.

Written from STOMP 1.2, JMS 3.1 and the dialect's data; it shares no code with ``pyspark_jms.columns``.
"""

import datetime as dt
import re
from array import array

ESCAPES = {b"\\": b"\\", b"c": b":", b"r": b"\r", b"n": b"\n"}
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
NUMBERS = {"JMSPriority"}
TIMES = {"JMSTimestamp", "JMSExpiration", "JMSDeliveryTime"}
COLUMNS_IN_ORDER = ("JMSTimestamp", "JMSPriority", "JMSExpiration", "JMSDeliveryTime")


def message(*headers, body=b""):
    """A MESSAGE frame; headers and body as they stand on the wire, text or octets."""
    lines = [header.encode() if isinstance(header, str) else header for header in headers]
    octets = body.encode() if isinstance(body, str) else body
    return b"MESSAGE\n" + b"".join(line + b"\n" for line in lines) + b"\n" + octets + b"\0\n"


def segment(frames):
    """Octets, heads and ends of whole frames."""
    heads, ends, size = array("q"), array("q"), 0
    for frame in frames:
        heads.append(size + frame.index(b"\n\n"))
        size += len(frame)
        ends.append(size)
    return b"".join(frames), heads, ends


def frames_in(octets):
    """Every whole frame that can be made out in octets, however broken, each with NUL LF at its end."""
    frames, start = [], octets.find(b"MESSAGE\n")
    while start >= 0:
        end = _end(octets, start)
        if end >= 0:
            frames.append(octets[start:end] + b"\0\n")
        start = octets.find(b"MESSAGE\n", end if end >= 0 else start + 1)
    return frames


def _end(octets, start):
    """Where the NUL of the frame is that begins at start, or -1."""
    head = octets.find(b"\n\n", start)
    if head < 0:
        return -1
    for line in octets[start:head].split(b"\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length" and value.isdigit():
            end = head + 2 + int(value[:12])
            return end if octets[end : end + 1] == b"\0" else -1
    return octets.find(b"\0", head + 2)


def rows(frames, *, dialect, source, first_sequence=0, body_type="auto"):
    return [
        {"sequence": first_sequence + i} | _row(frame, dialect, source, body_type) for i, frame in enumerate(frames)
    ]


def _row(frame, dialect, source, body_type):
    block, _, rest = frame.removeprefix(b"MESSAGE").partition(b"\n\n")
    headers, faults = _headers(block)
    roles, properties = _roles(headers, dialect)
    row = dict.fromkeys(("JMSMessageID", "JMSTimestamp", "JMSCorrelationID", "JMSType", "JMSReplyTo", "JMSPriority"))
    row |= dict.fromkeys(("JMSExpiration", "JMSDeliveryTime", "content_type", "property_types", "map", "stream"))
    text = {column: value for column, (_, value) in roles.items() if column not in TIMES | NUMBERS}
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
    if body_type == "auto":
        names = [name for name, _ in headers]
        in_front = "content-length" in names and names.index("content-length") != len(names) - 1
        body_type = "bytes" if in_front else "text"
    row |= _body(rest.removesuffix(b"\0\n"), body_type, faults)
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
        name, value = (octets.decode(errors="replace") for octets, _ in plain)
        if not all(defined for _, defined in plain):
            faults.append(f"header {name[:60]!r} holds an escape that STOMP 1.2 does not define")
        if name.encode() != plain[0][0] or value.encode() != plain[1][0]:
            faults.append(f"header {name[:60]!r} is not valid UTF-8")
        headers.append((name, value))
    return headers, faults


def _unescape(octets):
    plain, defined, at = bytearray(), True, 0
    while at < len(octets):
        code = octets[at + 1 : at + 2]
        if octets[at] != ord("\\"):
            plain.append(octets[at])
            at += 1
        elif code in ESCAPES:
            plain += ESCAPES[code]
            at += 2
        else:
            plain.append(octets[at])
            defined = False
            at += 1
    return bytes(plain), defined


def _roles(headers, dialect):
    """Column → (header, value), and the application's properties."""
    counting = {}
    for at, (name, _) in enumerate(headers):
        if name in dialect.message_headers and (name == "ack" or name not in counting):
            counting[name] = at
    roles, properties = {}, {}
    for at, (name, value) in enumerate(headers):
        if counting.get(name) == at:
            roles[dialect.message_headers[name]] = (name, value)
        elif name not in dialect.noise:
            properties.setdefault(dialect.property_names.get(name, name), value)
    return roles, properties


def _typed(column, header, value, faults):
    if not re.fullmatch("-?[0-9]+", value):
        faults.append(f"header {header!r} is not a number")
        return None
    number = int(value) if len(value.lstrip("-0")) < 30 else 10**30
    if column in NUMBERS:
        return number if -(2**31) <= number < 2**31 else None
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
    _, _, broker_id = roles["@message-id"][1].partition(dialect.stable_id_separator)
    return f"{source.name}/{broker_id}" if broker_id else None


def _body(octets, body_type, faults):
    if body_type == "bytes":
        return {"body_type": "bytes", "text": None, "bytes": octets}
    try:
        return {"body_type": "text", "text": octets.decode(), "bytes": None}
    except UnicodeDecodeError:
        faults.append("text is not valid UTF-8")
        return {"body_type": "text", "text": None, "bytes": octets}
