"""``pyspark-jms``: the commands of the connector. Each command is a module; ``_COMMANDS`` lists them."""

import argparse
import sys
from collections.abc import Sequence

from jms_selector.cli import exit_code
from pyspark_jms import __version__
from pyspark_jms.errors import JMSError
from pyspark_jms.tools.cli import broker, check, demo, move, peek, send, staging, subscriptions
from pyspark_jms.tools.cli.command import Command, text_of

__all__ = ["main"]

_COMMANDS: tuple[Command, ...] = (
    demo.COMMAND,
    broker.COMMAND,
    check.COMMAND,
    send.COMMAND,
    peek.COMMAND,
    subscriptions.SUBSCRIBE,
    subscriptions.UNSUBSCRIBE,
    move.COMMAND,
    staging.COMMAND,
)
"""In the order of ``pyspark-jms --help``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code. A [JMS_...] error is printed, and the code is 1."""

    def run() -> int:
        options = _parser().parse_args([text_of(word) for word in (sys.argv[1:] if arguments is None else arguments)])
        return int(options.run(options))

    try:
        return exit_code(run, JMSError)
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pyspark-jms", description="JMS queues and topics as Spark streaming sources and sinks."
    )
    parser.add_argument("--version", action="version", version=f"pyspark-jms {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        own = commands.add_parser(
            command.name, help=command.help, description=command.description, epilog=command.epilog
        )
        own.set_defaults(run=command.run)
        if command.add_arguments is not None:
            command.add_arguments(own)
    return parser
