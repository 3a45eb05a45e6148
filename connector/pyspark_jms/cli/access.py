"""The arguments of every command that connects to a broker, and the options that they stand for."""

import argparse
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from pyspark_jms.errors import OptionError

if TYPE_CHECKING:
    from pyspark_jms.options.sink import SinkOptions
    from pyspark_jms.options.source import SourceOptions

__all__ = ["add_access", "sink_options", "source_options"]

_Parsed = TypeVar("_Parsed")


def add_access(parser: argparse.ArgumentParser, *, side: str = "source") -> None:
    """``side``: source or sink, whose options ``--option`` takes."""
    add = parser.add_argument
    add("--broker-url", required=True, metavar="URL", help="broker, as stomp://HOST:61613 or amqp://HOST:5672")
    add("--user", help="user name")
    password = parser.add_mutually_exclusive_group()
    password.add_argument("--password-file", metavar="FILE", help="file with the password")
    password.add_argument("--password-env", metavar="NAME", help="environment variable with the password")
    add(
        "--option",
        action="append",
        default=[],
        type=_option,
        metavar="NAME=VALUE",
        help=f"any other option of the {side}, as sslCaFile=ca.pem",
    )


def _option(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def source_options(options: argparse.Namespace, **more: str | None) -> "SourceOptions":
    from pyspark_jms.options.source import SourceOptions

    return _parsed(SourceOptions.parse, options, more)


def sink_options(options: argparse.Namespace, **more: str | None) -> "SinkOptions":
    from pyspark_jms.options.sink import SinkOptions

    return _parsed(SinkOptions.parse, options, more)


def _parsed(
    parse: Callable[[Mapping[str, str]], _Parsed], options: argparse.Namespace, more: Mapping[str, str | None]
) -> _Parsed:
    """The parsed options. An error names the arguments of the command, as the user has written them."""
    try:
        return parse(_given(options, more))
    except OptionError as error:
        arguments = _arguments(options, more)
        raise type(error)(_renamed(error.fact, arguments), _renamed(error.remedy, arguments)) from None


_ARGUMENTS = {
    "brokerUrl": "broker_url",
    "passwordFile": "password_file",
    "passwordEnv": "password_env",
    "subscriptionName": "subscription_name",
    "clientId": "client_id",
    "maxMessages": "max",
}
"""Option → argument, where the names differ."""


def _arguments(options: argparse.Namespace, more: Mapping[str, str | None]) -> dict[str, str]:
    """Option → the argument of this command that gives it: the one with its value, or else the one with its name."""
    given = {id(value): name for name, value in vars(options).items() if value is not None}
    names = {name: name for name in ("user", *more)} | _ARGUMENTS
    names |= {name: given[id(value)] for name, value in more.items() if id(value) in given}
    return {name: f"--{each.replace('_', '-')}" for name, each in names.items() if hasattr(options, each)}


def _renamed(text: str, arguments: Mapping[str, str]) -> str:
    """A name of one small word is replaced only behind the word option: queue is a word of every other sentence."""
    for name, argument in arguments.items():
        before = r"\b[Oo]ption " if name == name.lower() else r"(?:\b[Oo]ption )?\b"
        text = re.sub(rf"{before}{name}\b", argument, text)
    return text


def _given(options: argparse.Namespace, more: Mapping[str, str | None]) -> dict[str, str]:
    given = {
        "brokerUrl": options.broker_url,
        "user": options.user,
        "passwordFile": options.password_file,
        "passwordEnv": options.password_env,
        **more,
        **dict(options.option),
    }
    return {name: value for name, value in given.items() if value is not None}
