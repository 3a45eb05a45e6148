"""What a row of the sink is when its AMQP message is read, in plain Python: the vectorised encoder must agree.

Written from JMS 3.1, the AMQP-JMS binding and docs/typed-messages.md; it shares no code with the encoder.
"""

import datetime as dt
import struct

from plain_encoder import BY_PROVIDER, DEFAULT_DESTINATION

from jms_selector.meaning.conversions import java_text
from jms_selector.syntax.kinds import Kind, Value

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
OBJECT = "application/x-java-serialized-object"
BYTES = "application/octet-stream"


def expected_row(row, number, *, now_ms, prefix, states_bytes):
    """The columns that are not null, and ``ttl`` and ``delay`` as instants and durations in milliseconds."""
    get = row.get
    expires = _time(get("time_to_live"), _future(get("JMSExpiration"), now_ms), now_ms)
    delivered = _time(get("delivery_delay"), get("JMSDeliveryTime"), now_ms)
    properties = _properties(row)
    found = {
        "JMSMessageID": f"{prefix}{number:012}",
        "JMSDestination": _destination(get("destination") or DEFAULT_DESTINATION),
        "JMSReplyTo": get("JMSReplyTo") and _reply_to(get("JMSReplyTo")),
        "JMSCorrelationID": get("JMSCorrelationID"),
        "JMSType": get("JMSType"),
        "JMSDeliveryMode": get("JMSDeliveryMode") or 2,
        "JMSPriority": 4 if get("JMSPriority") is None else get("JMSPriority"),
        "JMSExpiration": _moment(expires),
        "JMSDeliveryTime": _moment(delivered),
        "JMSTimestamp": _moment(now_ms),
        "JMSRedelivered": False,
        "properties": {name: value for name, (_, value) in properties.items()},
        "property_types": {name: kind for name, (kind, _) in properties.items()},
    }
    found |= _body(row, states_bytes=states_bytes)
    return {name: value for name, value in found.items() if value is not None}


def _time(length, instant, now_ms):
    """The instant by a row's length of time, else its instant; a length of 0 is no instant."""
    if length is None:
        return _instant(instant)
    return now_ms + length if length else 0


def time_to_live(row, now_ms):
    """``ttl`` of section ``header``."""
    life = row.get("time_to_live")
    if life is None and _future(row.get("JMSExpiration"), now_ms) is not None:
        life = row["JMSExpiration"] - now_ms
    return life if life and life < 2**32 else None


def _future(milliseconds, now_ms):
    return None if milliseconds is None or max(milliseconds, 1) <= now_ms else milliseconds


def _instant(milliseconds):
    return 0 if milliseconds is None else max(milliseconds, 1)


def _moment(milliseconds):
    try:
        return EPOCH + dt.timedelta(milliseconds=milliseconds) if milliseconds else None
    except OverflowError:
        return None


def _destination(text):
    return text if "://" in text else f"queue://{text}"


def _reply_to(text):
    return text if text.startswith(("queue://", "topic://", "temp-queue://", "temp-topic://")) else f"queue://{text}"


def _properties(row):
    kinds = {name: kind for name, kind in row.get("property_types") or [] if kind}
    found = {"JMSXDeliveryCount": ("int", "1")}
    for name, value in row.get("properties") or []:
        if name in BY_PROVIDER or value is None:
            continue
        kind = {"JMSXGroupID": "string", "JMSXGroupSeq": "int"}.get(name) or kinds.get(name, "string")
        found[name] = (kind, _rendered(kind, value))
    return found


def _rendered(kind, text):
    if kind in {"byte", "short", "int", "long"}:
        return str(int(text))
    if kind == "boolean":
        return text.lower()
    if kind == "double":
        return java_text(Value(Kind.DOUBLE, float(text)))
    if kind == "float":
        return java_text(Value(Kind.FLOAT, struct.unpack("f", struct.pack("f", float(text)))[0]))
    return text


def _body(row, *, states_bytes):
    kind = row.get("body_type")
    if kind is None:
        kind = next((name for name in ("text", "bytes", "map", "stream") if row.get(name) is not None), "message")
    content_type = row.get("content_type")
    if kind == "text":
        return {"body_type": kind, "text": row.get("text"), "content_type": content_type}
    if kind == "object":
        data = bytes.fromhex("aced000570") if row.get("bytes") is None else row["bytes"]
        return {"body_type": kind, "bytes": data, "content_type": OBJECT}
    if kind == "bytes":
        own = content_type if content_type is not None and _stays_bytes(content_type) else BYTES
        own = None if content_type is None and not states_bytes else own
        return {"body_type": kind, "bytes": row.get("bytes") or b"", "content_type": own}
    if kind == "map":
        return {"body_type": kind, "map": {name: _element(item) for name, item in row.get("map") or []}}
    if kind == "stream":
        return {"body_type": kind, "stream": [_element(item) for item in row.get("stream") or []]}
    return {"body_type": kind, "content_type": "application/x-jms-message"}


def _stays_bytes(content_type):
    return not content_type.startswith("text/") and content_type not in {OBJECT, "application/json"}


def _element(element):
    if element is None or element["value"] is None:
        return {"type": "string", "value": None}
    return {"type": element["type"], "value": _rendered(element["type"], element["value"])}
