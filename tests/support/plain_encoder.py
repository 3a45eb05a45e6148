"""Rows encoded one by one, in plain Python, and a plain reader of SEND frames: the vectorised encoder must agree.

Written from STOMP 1.2, JMS 3.1 and what Artemis requires of a SEND; it shares no code with ``pyspark_jms.columns``.
"""

import json
import re

from rawstomp import unescape

_BY_NUMBER = {letter: f"\\u{ord(character):04x}" for letter, character in zip("btnfr", "\b\t\n\f\r", strict=True)}
TYPES = {"queue": "ANYCAST", "topic": "MULTICAST"}
BY_PROVIDER = {
    "JMSXAppID",
    "JMSXConsumerTXID",
    "JMSXDeliveryCount",
    "JMSXProducerTXID",
    "JMSXRcvTimestamp",
    "JMSXState",
    "JMSXUserID",
}
DEFAULT_DESTINATION = "queue://default"


def expected_frame(row, *, transaction=None, now_ms=0):
    """The headers, in order and unescaped, and the body that the SEND of a row must have."""
    get = row.get
    kind, name = _destination(get("destination") or DEFAULT_DESTINATION)
    headers = [("destination", name), ("destination-type", TYPES[kind])]
    kind, body = _body(row)
    if kind in ("bytes", "object"):
        headers.append(("content-length", str(len(body))))
    if kind not in ("text", "bytes"):
        headers.append(("spark_jms_body", kind))
    headers.append(("persistent", "false" if get("JMSDeliveryMode") == 1 else "true"))
    headers.append(("priority", str(4 if get("JMSPriority") is None else get("JMSPriority"))))
    if transaction is not None:
        headers.append(("transaction", transaction))
    columns = {
        "JMSCorrelationID": "correlation-id",
        "JMSType": "type",
        "JMSReplyTo": "reply-to",
        "content_type": "content-type",
    }
    headers += [(header, get(column)) for column, header in columns.items() if get(column) is not None]
    headers += _times(row, now_ms)
    headers += _properties(row)
    return headers, body


def _properties(row):
    names = {"JMSXGroupSeq": "_AMQ_GROUP_SEQUENCE"}
    sent = {key: value for key, value in row.get("properties") or [] if value is not None and key not in BY_PROVIDER}
    yield from ((names.get(key, key), value) for key, value in sent.items())
    types = {key: kind for key, kind in row.get("property_types") or [] if kind is not None and key in sent}
    if types:
        yield "spark_jms_types", _json(types)


def _json(value):
    """RFC 8259, without blanks; control characters by their number, all else as it is."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return re.sub(r"\\(.)", lambda match: _BY_NUMBER.get(match[1], match[0]), text)


def _destination(text):
    kind, separator, name = text.partition("://")
    return (kind, name) if separator else ("queue", text)


def _times(row, now_ms):
    expires = row.get("JMSExpiration")
    if row.get("time_to_live") is not None:
        expires = now_ms + row["time_to_live"] if row["time_to_live"] else None
    elif expires is not None:
        expires = max(expires, 1) if max(expires, 1) > now_ms else None
    if expires is not None:
        yield "expires", str(expires)
    at = row.get("JMSDeliveryTime")
    if row.get("delivery_delay") is not None:
        if row["delivery_delay"]:
            yield "AMQ_SCHEDULED_DELAY", str(row["delivery_delay"])
    elif at is not None:
        yield "AMQ_SCHEDULED_TIME", str(max(at, 1))


def _body(row):
    given = [kind for kind in ("text", "bytes", "map", "stream") if row.get(kind) is not None]
    kind = row.get("body_type") or (given[0] if given else "message")
    if kind in ("bytes", "object"):
        return kind, row.get("bytes") or b""
    if kind == "map":
        items = [{"name": name, **_element(value)} for name, value in row.get("map") or []]
        return kind, _json({"map": items}).encode()
    if kind == "stream":
        return kind, _json({"stream": [_element(value) for value in row.get("stream") or []]}).encode()
    return kind, (row.get("text") or "").encode() if kind == "text" else b""


def _element(value):
    value = value or {"type": None, "value": None}
    return {"type": value["type"] or "string", "value": value["value"]}


def read_frames(data):
    """Every SEND in a buffer, which holds nothing else: no byte between frames, none after the last."""
    frames, start = [], 0
    while start < len(data):
        head = data.index(b"\n\n", start)
        command, *lines = data[start:head].split(b"\n")
        assert command == b"SEND"
        headers = [_header(line) for line in lines]
        length = next((int(value) for name, value in headers if name == "content-length"), None)
        end = data.index(b"\0", head + 2) if length is None else head + 2 + length
        assert data[end : end + 1] == b"\0"
        frames.append((headers, data[head + 2 : end]))
        start = end + 1
    return frames


def _header(line):
    assert line.count(b":") == 1
    assert b"\r" not in line
    name, value = line.split(b":")
    return unescape(name).decode(), unescape(value).decode()
