#!/usr/bin/env bash
# Believed: the AMQP binding of CloudEvents maps time to an AMQP timestamp or to its RFC 3339 text, and all attributes
#   survive binary mode.
# So (cloudevents 2.2.0 for Python): in binary mode `time` is a whole number of milliseconds, which an AMQP library sends
#   as a long; microseconds are gone. Structured mode keeps the text with microseconds.
# Why it matters here: the property of such a row is "1767323045678", and not a time or its text; a property column of
#   type TIMESTAMP reads it.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check cloudevents==2.2.0

timeout 60 venv/bin/python - <<'PY' | tee out
import json
from datetime import datetime, timezone
from importlib.metadata import version

from cloudevents.core.bindings import amqp
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

print("cloudevents", version("cloudevents"))
when = datetime(2026, 1, 2, 3, 4, 5, 678901, timezone.utc)
event = CloudEvent({"id": "1", "source": "/orders", "type": "created", "specversion": "1.0", "time": when}, {"a": 1})
binary = amqp.to_binary(event, JSONFormat()).application_properties
print("binary", {name: value for name, value in binary.items() if name.endswith("time")})
print("structured", json.loads(amqp.to_structured(event, JSONFormat()).application_data)["time"])
PY

diff - out <<'OUT'
cloudevents 2.2.0
binary {'cloudEvents_time': 1767323045678}
structured 2026-01-02T03:04:05.678901Z
OUT
echo "as stated"
