"""Raw option strings → the values of the table, by name. What a source and a sink have in common.

An unknown key is refused with the name that was probably meant (``names``), a bad value with the values that are
allowed. No message repeats a secret.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from pyspark_jms.errors import InvalidOptionError, MissingOptionError, OptionConflictError, UnknownOptionError
from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.jms.secret_text import SecretText
from pyspark_jms.network.settings import ConnectionSettings, Password, TlsSettings
from pyspark_jms.options.names import unknown_option
from pyspark_jms.options.table import OPTIONS, Option, Scope

__all__ = ["both_given", "connection_settings", "destinations", "hide_secrets", "made", "parse_values"]

T = TypeVar("T")

_NOT_IN_A_BATCH = (
    "Remove the option. A batch read leaves all messages on the broker, because it has no commit after which they could"
    " be acknowledged; maxMessagesPerTrigger and maxBytesPerTrigger limit it. To consume the messages and stop, use"
    " spark.readStream with trigger(availableNow=True)."
)
_BY_KEY = {option.name.lower(): option for option in OPTIONS}


def option_named(key: str) -> Option | None:
    """Return the option with this name, in any case."""
    return _BY_KEY.get(key.lower())


def hide_secrets(raw: Mapping[str, str]) -> dict[str, str]:
    """Return the options. A text that is a secret, or may be one, is replaced by a ``SecretText``."""
    return {key: text if _may_show(key, text) else SecretText(text) for key, text in raw.items()}


def _may_show(key: str, text: str) -> bool:
    """Return False for a secret, an address with a password in it, and an unknown key: it may be a misspelled one."""
    option = option_named(key)
    return option is not None and not option.secret and not (option.name == "brokerUrl" and "@" in text)


def parse_values(raw: Mapping[str, str], scope: Scope, *, batch: bool = False) -> dict[str, Any]:
    """Return every option of the scope by name, parsed, with defaults filled in."""
    given: dict[str, str] = {}
    for key, text in hide_secrets(raw).items():
        option = option_named(key)
        if option is None:
            raise unknown_option(key, scope)
        if option.scope not in (scope, "both"):
            of_option, of_query = ("reading", "write") if option.scope == "source" else ("writing", "read")
            raise UnknownOptionError(
                f"Option {option.name} is for {of_option}.", f"Remove the option: this query is a {of_query}."
            )
        if batch and option.streams_only:
            raise UnknownOptionError(f"Option {option.name} is for a stream, and this reads a batch.", _NOT_IN_A_BATCH)
        given[option.name] = text
    return {o.name: _parse(o, given.get(o.name, o.default)) for o in OPTIONS if o.scope in (scope, "both")}


def _parse(option: Option, text: str | None) -> Any:
    if text is None:
        return None
    try:
        return option.parse(text)
    except ValueError as error:
        shown = "read" if option.secret or option.name == "brokerUrl" else repr(text)
        raise InvalidOptionError(f"Option {option.name} cannot be {shown}.", f"Expected: {error}.") from None


def made(of: type[T], values: Mapping[str, Any], **others: Any) -> T:
    """Make a value of this class. A field that is named like an option, as ``idle_timeout`` is, has the option's value,
    unless ``others`` has it.
    """
    named = {name.lower(): value for name, value in values.items()}
    names = (field.name for field in fields(of))  # type: ignore[arg-type]
    return of(**{name: named[key] for name in names if (key := name.replace("_", "")) in named} | others)


def destinations(values: Mapping[str, Any]) -> tuple[Destination, ...]:
    """Return the destinations that the options ``queue`` and ``topic`` name."""
    if values["topic"] is not None:
        return (Destination(DestinationKind.TOPIC, values["topic"]),)
    return tuple(Destination(DestinationKind.QUEUE, name) for name in values["queue"] or ())


def both_given(first: str, second: str, remedy: str) -> OptionConflictError:
    return OptionConflictError(f"Options {first} and {second} are both given.", remedy)


# --- the settings of a connection --------------------------------------------------------------------


def connection_settings(values: Mapping[str, Any]) -> ConnectionSettings:
    if values["brokerUrl"] is None:
        raise MissingOptionError(
            "Option brokerUrl is not given.", "Give the broker's address: stomp://HOST:61613 or amqp://HOST:5672."
        )
    return made(
        ConnectionSettings,
        values,
        addresses=values["brokerUrl"],
        tls=_tls(values),
        password=_password(values),
        reconnect_timeout=float(values["reconnectTimeout"]),
    )


def _password(values: Mapping[str, Any]) -> Password | None:
    given = [name for name in ("password", "passwordFile") if values[name] is not None]
    if len(given) > 1:
        raise both_given(given[0], given[1], "Keep one of the two options.")
    if not given:
        return None
    if values["user"] is None:
        raise OptionConflictError(f"Option {given[0]} is given without user.", "Give both options or neither.")
    return Password(value=values["password"], file=values["passwordFile"])


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
