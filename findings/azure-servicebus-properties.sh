#!/usr/bin/env bash
# Believed: application properties of azure-servicebus keep their Python types: bytes are AMQP binary, an int that does
#   not fit an int is a long.
# So (azure-servicebus 7.15.0): bytes are sent as an AMQP string, an int is sent as an int, and an int of 32 bits and
#   more is refused with ValueError; a datetime is a timestamp without its microseconds.
# Why it matters here: a reader cannot tell such a binary property from a text, and ids of 64 bits come as texts, because
#   their producers have to write them so.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check azure-servicebus==7.15.0

timeout 60 venv/bin/python - <<'PY' | tee out
from datetime import datetime, timezone
from importlib.metadata import version

from azure.servicebus import ServiceBusMessage
from azure.servicebus._pyamqp._encode import encode_payload
from azure.servicebus._transport._pyamqp_transport import PyamqpTransport

print("azure-servicebus", version("azure-servicebus"))
values = {
    "bytes": b"ab",
    "int": 5,
    "int of 31 bits": 2**31 - 1,
    "int of 32 bits": 2**31,
    "datetime": datetime(2026, 1, 2, 3, 4, 5, 678901, timezone.utc),
}
for name, value in values.items():
    message = ServiceBusMessage("x", application_properties={"p": value}).raw_amqp_message
    try:
        sent = bytes(encode_payload(bytearray(), PyamqpTransport.to_outgoing_amqp_message(message)))
    except ValueError as error:
        print(f"{name}: ValueError")
        continue
    key = sent.rindex(b"\xa1\x01p") + 3
    print(f"{name}: {sent[key:sent.index(bytes.fromhex('005375'), key)].hex()}")
PY

diff - out <<'OUT'
azure-servicebus 7.15.0
bytes: a1026162
int: 5405
int of 31 bits: 717fffffff
int of 32 bits: ValueError
datetime: 830000019b7ca98f2e
OUT
echo "as stated"
