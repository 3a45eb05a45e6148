"""``pyspark-jms``: the commands of the connector. Modules add them to the parser."""

import argparse
import sys
from collections.abc import Sequence

from jms_selector.cli import exit_code
from pyspark_jms import __version__
from pyspark_jms.errors import JMSError
from pyspark_jms.tools.cli import broker, check, move, peek, send, staging, subscriptions
from pyspark_jms.tools.cli.command import text_of

__all__ = ["main"]


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
    broker.add_demo(commands)
    broker.add_broker(commands)
    check.add_command(commands)
    send.add_command(commands)
    peek.add_command(commands)
    subscriptions.add_subscribe(commands)
    subscriptions.add_unsubscribe(commands)
    move.add_command(commands)
    staging.add_command(commands)
    return parser
