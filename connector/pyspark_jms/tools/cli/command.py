"""What the commands of ``pyspark-jms`` have in common: the arguments of a connection, and a line of progress."""

import argparse
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Self, TextIO, TypeAlias, TypeVar

from pyspark_jms.errors import InvalidOptionError, JMSSecurityError, OptionError
from pyspark_jms.jms.secret_text import SecretText
from pyspark_jms.sentences import counted

if TYPE_CHECKING:
    from pyspark_jms.options.sink import SinkOptions
    from pyspark_jms.options.source import SourceOptions

__all__ = [
    "Commands",
    "ProgressLine",
    "add_access",
    "is_ascii_json",
    "sink_options",
    "source_options",
    "text_of",
]


Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - has no public name
"""Where a command adds its parser, with the default ``run``: options → exit code. A ``JMSError`` of it is printed."""


# --- a terminal that is not UTF-8 ----------------------------------------------------------------------


def text_of(word: str, named: str | None = None) -> str:
    """Return the word. ``InvalidOptionError``: it has bytes that the locale's encoding does not have, which Python
    marks, and which nothing sends. ``named``: what the error calls a word that it must not show.
    """
    try:
        word.encode()
    except UnicodeEncodeError:
        shown = named or f"Argument {word!r}"
        raise InvalidOptionError(
            f"{shown} is not a text in the encoding of this terminal ({sys.getfilesystemencoding()}).",
            "Set LC_ALL=C.UTF-8, and give it in UTF-8.",
        ) from None
    return word


def is_ascii_json() -> bool:
    """Return whether JSON has to escape all other characters: those that ``exit_code`` prints are not JSON's."""
    return not (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("_", "-").startswith("utf")


# --- a line that shows how far a long command is -----------------------------------------------------

_SECONDS_BETWEEN = 0.2


class ProgressLine:
    """``with ProgressLine("sent") as progress: progress.show(messages)``. The line is removed at the end."""

    def __init__(self, done: str, stream: TextIO | None = None) -> None:
        """``done``: the participle after the number of messages."""
        self._done = done
        self._stream = sys.stderr if stream is None else stream
        self._is_terminal = self._stream.isatty()
        self._began = time.monotonic()
        self._shown_at = self._began
        self._width = 0

    def show(self, messages: int) -> None:
        now = time.monotonic()
        if not self._is_terminal or now - self._shown_at < _SECONDS_BETWEEN:
            return
        self._shown_at = now
        self._write(f"{counted(messages)} {self._done}, {messages / (now - self._began):,.0f}/s")

    def _write(self, line: str) -> None:
        self._stream.write("\r" + line.ljust(self._width) + ("" if line else "\r"))
        self._stream.flush()
        self._width = len(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._width:
            self._write("")


# --- the arguments of every command that connects to a broker ----------------------------------------

_Parsed = TypeVar("_Parsed")


def add_access(parser: argparse.ArgumentParser, *, side: str = "source") -> None:
    """``side``: source or sink, whose options ``--option`` takes."""
    add = parser.add_argument
    add("--broker-url", required=True, metavar="URL", help="broker, as stomp://HOST:61613 or amqp://HOST:5672")
    add("--user", help="user name")
    password = parser.add_mutually_exclusive_group()
    password.add_argument("--password-file", metavar="FILE", help="file with the password")
    password.add_argument("--password-env", metavar="NAME", help="environment variable with the password")
    password.add_argument("--password", action=_NoPassword, help=argparse.SUPPRESS)
    add(
        "--option",
        action="append",
        default=[],
        type=_option,
        metavar="NAME=VALUE",
        help=f"any other option of the {side}, as sslCaFile=ca.pem",
    )


class _NoPassword(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser.error(
            "a password on the command line is visible in the process list; use --password-env or --password-file"
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
    """Return the parsed options. An error names the arguments of the command, as the user has written them."""
    try:
        return parse(_given(options, more))
    except OptionError as error:
        arguments = _arguments(options, more)
        raise type(error)(_renamed(error.fact, arguments), _renamed(error.remedy, arguments)) from None


_ARGUMENTS = {
    "brokerUrl": "broker_url",
    "passwordFile": "password_file",
    "password": "password_env",
    "subscriptionName": "subscription_name",
    "clientId": "client_id",
    "maxMessagesPerTrigger": "max",
}
"""Option → argument, where the names differ."""


def _arguments(options: argparse.Namespace, more: Mapping[str, str | None]) -> dict[str, str]:
    """Return the argument of this command that gives each option: the one with its value, or else with its name."""
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
        "password": _password(options.password_env),
        **more,
        **dict(options.option),
    }
    return {name: value for name, value in given.items() if value is not None}


def _password(variable: str | None) -> str | None:
    if variable is None:
        return None
    if variable not in os.environ:
        raise JMSSecurityError(
            f"The environment variable {variable} named by --password-env is not set.",
            "Set and export the variable, or give the password with --password-file.",
        )
    return SecretText(text_of(os.environ[variable], f"The password in {variable}"))
