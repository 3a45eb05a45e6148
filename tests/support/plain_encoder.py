"""Rows encoded one by one, in plain Python, and a plain reader of SEND frames: the vectorised encoder must agree.

Written from STOMP 1.2, JMS 3.1 and what Artemis asks of a SEND; it shares no code with ``pyspark_jms.columns``.
"""

import re

TYPES = {"queue": "ANYCAST", "topic": "MULTICAST"}
DEFAULTS = {"destination": "queue://default", "mode": 2, "priority": 4, "ttl": 0, "delay": 0}


def expected_frame(row, *, transaction=None, now_ms=0, defaults=None):
    """The headers, in order and unescaped, and the body that the SEND of a row must have."""
    said = DEFAULTS | (defaults or {})
    get = row.get
    kind, name = _destination(get("destination") or said["destination"])
    headers = [("destination", name), ("destination-type", TYPES[kind])]
    is_bytes, body = _body(row)
    if is_bytes:
        headers.append(("content-length", str(len(body))))
    mode = said["mode"] if get("JMSDeliveryMode") is None else get("JMSDeliveryMode")
    headers.append(("persistent", "true" if mode == 2 else "false"))
    headers.append(("priority", str(said["priority"] if get("JMSPriority") is None else get("JMSPriority"))))
    if transaction is not None:
        headers.append(("transaction", transaction))
    columns = {
        "JMSCorrelationID": "correlation-id",
        "JMSType": "type",
        "JMSReplyTo": "reply-to",
        "content_type": "content-type",
    }
    headers += [(header, get(column)) for column, header in columns.items() if get(column) is not None]
    headers += _times(row, said, now_ms)
    names = {"JMSXGroupSeq": "_AMQ_GROUP_SEQUENCE"}
    headers += [(names.get(key, key), value) for key, value in get("properties") or [] if value is not None]
    return headers, body


def _destination(text):
    kind, separator, name = text.partition("://")
    return (kind, name) if separator else ("queue", text)


def _times(row, said, now_ms):
    expires = row.get("JMSExpiration")
    if row.get("time_to_live"):
        expires = now_ms + row["time_to_live"]
    elif expires is not None:
        expires = max(expires, 1)
    elif said["ttl"]:
        expires = now_ms + said["ttl"]
    if expires is not None:
        yield "expires", str(expires)
    at = row.get("JMSDeliveryTime")
    if row.get("delivery_delay"):
        yield "AMQ_SCHEDULED_DELAY", str(row["delivery_delay"])
    elif at is not None:
        yield "AMQ_SCHEDULED_TIME", str(max(at, 1))
    elif said["delay"]:
        yield "AMQ_SCHEDULED_DELAY", str(said["delay"])


def _body(row):
    kind = row.get("body_type")
    if kind is None:
        kind = "bytes" if row.get("bytes") is not None else "text"
    if kind == "bytes":
        return True, row.get("bytes") or b""
    return False, (row.get("text") or "").encode()


def read_frames(octets):
    """Every SEND in a buffer, which holds nothing else: no octet between frames, none after the last."""
    frames, start = [], 0
    while start < len(octets):
        head = octets.index(b"\n\n", start)
        command, *lines = octets[start:head].split(b"\n")
        assert command == b"SEND"
        headers = [_header(line) for line in lines]
        length = next((int(value) for name, value in headers if name == "content-length"), None)
        end = octets.index(b"\0", head + 2) if length is None else head + 2 + length
        assert octets[end : end + 1] == b"\0"
        frames.append((headers, octets[head + 2 : end]))
        start = end + 1
    return frames


def _header(line):
    assert line.count(b":") == 1
    assert b"\r" not in line
    name, value = line.split(b":")
    return _plain(name), _plain(value)


def _plain(octets):
    plain = {b"\\\\": b"\\", b"\\c": b":", b"\\r": b"\r", b"\\n": b"\n"}
    return re.sub(rb"\\.?", lambda match: plain[match[0]], octets, flags=re.DOTALL).decode()
