"""The options of a connection → ``ConnectionSettings``: addresses, login, TLS, time-outs."""

from collections.abc import Mapping
from typing import Any

from pyspark_jms.errors import MissingOptionError, OptionConflictError
from pyspark_jms.network.settings import ConnectionSettings, Password, TlsSettings
from pyspark_jms.options.broker import require_known_broker
from pyspark_jms.options.values import both_given

__all__ = ["connection_settings"]


def connection_settings(values: Mapping[str, Any]) -> ConnectionSettings:
    if values["brokerUrl"] is None:
        raise MissingOptionError(
            "Option brokerUrl is not given.", "Give the broker's address: stomp://HOST:61613 or amqp://HOST:5672."
        )
    require_known_broker(values)
    return ConnectionSettings(
        addresses=values["brokerUrl"],
        user=values["user"],
        tls=_tls(values),
        password=_password(values),
        broker=values["broker"],
        client_id=values.get("clientId"),
        virtual_host=values["virtualHost"],
        connect_timeout=values["connectTimeout"],
        receipt_timeout=values["receiptTimeout"],
        heartbeat=values["heartbeat"],
        reconnect_timeout=float(values["reconnectTimeout"]),
        max_message_bytes=values["maxMessageBytes"],
        on_too_large=values.get("onTooLarge", "fail"),
    )


def _password(values: Mapping[str, Any]) -> Password | None:
    given = [name for name in ("password", "passwordFile", "passwordEnv") if values[name] is not None]
    if len(given) > 1:
        raise both_given(given[0], given[1], "Keep one of the two options.")
    if not given:
        return None
    if values["user"] is None:
        raise OptionConflictError(f"Option {given[0]} is given without user.", "Give both options or neither.")
    return Password(value=values["password"], file=values["passwordFile"], variable=values["passwordEnv"])


def _tls(values: Mapping[str, Any]) -> TlsSettings:
    for name in ("sslKeyFile", "sslKeyPassword"):
        if values[name] is not None and values["sslCertFile"] is None:
            raise OptionConflictError(
                f"Option {name} is given without sslCertFile.",
                "For mutual TLS, give the client certificate, too.",
            )
    for name in ("sslCaFile", "sslCertFile"):
        if values[name] is not None and not any(address.tls for address in values["brokerUrl"]):
            raise OptionConflictError(
                f"Option {name} is given, and no address of brokerUrl uses TLS.",
                "An address with TLS is stomp+ssl://HOST:61614 or amqps://HOST:5671.",
            )
    key_password = values["sslKeyPassword"]
    return TlsSettings(
        ca_file=values["sslCaFile"],
        cert_file=values["sslCertFile"],
        key_file=values["sslKeyFile"],
        key_password=None if key_password is None else Password(value=key_password),
        verify_hostname=values["sslVerifyHostname"],
    )
