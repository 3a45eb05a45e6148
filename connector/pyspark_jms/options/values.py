"""Raw option strings → the values of the table, by name. What a source and a sink have in common.

An unknown key is refused with the name that was probably meant (``names``), a bad value with the values that are
allowed. No message repeats a secret.
"""

from collections.abc import Mapping
from typing import Any

from pyspark_jms.errors import InvalidOptionError, OptionConflictError, UnknownOptionError
from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.jms.secret_text import SecretText
from pyspark_jms.options.names import unknown_option
from pyspark_jms.options.table import OPTIONS, Option, Scope

__all__ = ["both_given", "destinations", "hide_secrets", "option_named", "parse_values"]

_BY_KEY = {option.name.lower(): option for option in OPTIONS}


def option_named(key: str) -> Option | None:
    """The option with this name, in any case."""
    return _BY_KEY.get(key.lower())


def hide_secrets(raw: Mapping[str, str]) -> dict[str, str]:
    """The same options. A text that is a secret, or may be one, is replaced by a ``SecretText``."""
    return {key: text if _may_show(key, text) else SecretText(text) for key, text in raw.items()}


def _may_show(key: str, text: str) -> bool:
    """False for a secret, for an address with a password in it, and for an unknown key: it may be a misspelled one."""
    option = option_named(key)
    return option is not None and not option.secret and not (option.name == "brokerUrl" and "@" in text)


def parse_values(raw: Mapping[str, str], scope: Scope) -> dict[str, Any]:
    """Every option of the scope by name, parsed, with defaults filled in."""
    given: dict[str, str] = {}
    for key, text in raw.items():
        option = option_named(key)
        if option is None:
            raise unknown_option(key, scope)
        if option.scope not in (scope, "both"):
            of_option, of_query = ("reading", "write") if option.scope == "source" else ("writing", "read")
            raise UnknownOptionError(
                f"Option {option.name} is for {of_option}.", f"Remove the option: this query is a {of_query}."
            )
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


def destinations(values: Mapping[str, Any]) -> tuple[Destination, ...]:
    """The destinations that the options ``queue`` and ``topic`` name."""
    if values["topic"] is not None:
        return (Destination(DestinationKind.TOPIC, values["topic"]),)
    return tuple(Destination(DestinationKind.QUEUE, name) for name in values["queue"] or ())


def both_given(first: str, second: str, remedy: str) -> OptionConflictError:
    return OptionConflictError(f"Options {first} and {second} are both given.", remedy)
