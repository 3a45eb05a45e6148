"""The arguments of every command that connects to a broker, and the options that they stand for."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark_jms.options.sink import SinkOptions
    from pyspark_jms.options.source import SourceOptions

__all__ = ["add_access", "sink_options", "source_options"]


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

    return SourceOptions.parse(_given(options, more))


def sink_options(options: argparse.Namespace, **more: str | None) -> "SinkOptions":
    from pyspark_jms.options.sink import SinkOptions

    return SinkOptions.parse(_given(options, more))


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
