"""``pyspark-jms check``: what a broker can do for a user, and what is on a queue."""

import argparse
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from pyspark_jms import __version__
from pyspark_jms.errors import InvalidOptionError, OptionConflictError
from pyspark_jms.tools.cli.command import Command, add_access, is_ascii_json, source_options

__all__ = ["COMMAND"]

_REPORT = "conformance.md"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    shown = "(default: %(default)s)"
    add_access(parser)
    add("--queue", metavar="NAME", help="also check this queue")
    add(
        "--receive",
        action="store_true",
        help="also receive the messages and give them back: exact, but meanwhile no other consumer receives them",
    )
    add(
        "--max",
        default=10_000,
        type=int,
        metavar="N",
        help=f"maximum messages to receive, and to list in delivery {shown}",
    )
    add("--staging-queue", metavar="NAME", help="over AMQP, also check this queue of option stagingQueue")
    add("--scratch-queue", default="pyspark-jms.check", metavar="NAME", help=f"queue for test messages {shown}")
    add(
        "--conformance",
        action="store_true",
        help="test with messages what the broker does, and write a report. --queue names an empty queue that nothing"
        " else uses; without it the command makes a name",
    )
    add("--report", metavar="FILE", help=f"with --conformance: file for the report, instead of {_REPORT}")
    add("--json", action="store_true", help="print JSON")


def _run(options: argparse.Namespace) -> int:
    return _run_conformance(options) if _is_conformance(options) else _run_checks(options)


def _is_conformance(options: argparse.Namespace) -> bool:
    if options.report is not None and not options.conformance:
        raise OptionConflictError("--report is given without --conformance.", "Give both or neither.")
    if options.conformance and (options.receive or options.staging_queue is not None):
        raise OptionConflictError(
            "--conformance is given with --receive or --staging-queue.", "Run the command twice, each with one of them."
        )
    return bool(options.conformance)


def _run_conformance(options: argparse.Namespace) -> int:
    from pyspark_jms.tools.check.conformance.run import run_conformance
    from pyspark_jms.tools.check.findings import as_json, as_table, failed

    queue = options.queue or f"pyspark-jms.conformance.{uuid.uuid4().hex[:8]}"
    parsed = source_options(options, queue=queue)
    with _opened(Path(options.report or _REPORT)) as file:
        report = run_conformance(parsed.connection, queue, is_new=options.queue is None)
        file.write(report.as_markdown(__version__, datetime.now(UTC)))
    if options.json:
        print(as_json(report.findings, ascii_only=is_ascii_json()))
    else:
        print(f"{as_table(report.findings)}\n\nreport: {file.name}")
    return int(failed(report.findings))


def _opened(path: Path) -> TextIO:
    """Opened before the tests, which take a minute."""
    try:
        return path.open("w", encoding="utf-8")
    except OSError as error:
        raise InvalidOptionError(
            f"--report {path} cannot be written: {error.strerror}.", "Name another file."
        ) from None


def _run_checks(options: argparse.Namespace) -> int:
    from pyspark_jms.tools.check.findings import as_json, as_table, failed
    from pyspark_jms.tools.check.run import Check, run_checks

    parsed = source_options(options, queue=options.scratch_queue)
    check = Check(
        settings=parsed.connection,
        queue=options.queue or "",
        limit=options.max,
        receive=options.receive,
        scratch_queue=options.scratch_queue,
        staging_queue=options.staging_queue,
    )
    findings = run_checks(check)
    print(as_json(findings, ascii_only=is_ascii_json()) if options.json else as_table(findings))
    return int(failed(findings))


COMMAND = Command(
    name="check",
    help="find out what a broker can do for a user, and what is on a queue",
    description="Connect, test on a scratch queue the features that source and sink need, and print their "
    "guarantees on this broker. With --queue, also print the depth of a queue, its body types, messages "
    "that cannot be received over STOMP, and over AMQP how many of its messages are in staging queues of exactly-once "
    "reads; the messages stay on the queue. With --conformance, send test messages instead, to that queue, which must "
    "be empty, or to a new one, and compare what the broker does with what the connector assumes. The exit code is 1 "
    "if there is a problem.",
    epilog="To inspect a queue, and over AMQP the address settings that exactly-once queries depend on, the user needs "
    "the permission `manage`. Without it, the other checks run.",
    add_arguments=_add_arguments,
    run=_run,
)
