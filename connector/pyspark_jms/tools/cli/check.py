"""``pyspark-jms check``: what a broker can do for a user, and what is on a queue."""

import argparse
import os
import shutil
import subprocess
import sys
import uuid
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from pyspark_jms.errors import InvalidOptionError, OptionConflictError
from pyspark_jms.tools.cli.command import Commands, add_access, is_ascii_json, source_options

if TYPE_CHECKING:
    from pyspark_jms.tools.check.findings import Finding

__all__ = ["add_command"]

_REPORT = "conformance.md"


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "check",
        help="find out what a broker can do for a user, and what is on a queue",
        description="Connect, test on a scratch queue the features that source and sink need, and print their "
        "guarantees on this broker. With --queue, also print the depth of a queue, its body types, messages that "
        "cannot be received over STOMP, and over AMQP how many of its messages are in staging queues of exactly-once "
        "reads; the messages stay on the queue. The exit code is 1 if there is a problem.",
        epilog="To inspect a queue, and over AMQP the address settings that exactly-once queries depend on, the user "
        "needs the permission `manage`. Without it, the other checks run.",
    )
    parser.set_defaults(run=_run)
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
        help="instead, send test messages, compare what the broker does with what the connector assumes, and write a"
        " report. --queue names an empty queue that nothing else uses; without it the command makes a name",
    )
    add("--report", metavar="FILE", help=f"with --conformance: file for the report, instead of {_REPORT}")
    add("--json", action="store_true", help="print JSON")


def _run(options: argparse.Namespace) -> int:
    from pyspark_jms.tools.check.findings import as_json, as_markdown, as_table, failed
    from pyspark_jms.tools.check.run import Check, run_checks

    _require_consistent(options)
    scratch, queue = options.scratch_queue, options.queue or ""
    if options.conformance:
        scratch, queue = queue or f"pyspark-jms.conformance.{uuid.uuid4().hex[:8]}", ""
    check = Check(
        settings=source_options(options, queue=scratch).connection,
        queue=queue,
        limit=options.max,
        receive=options.receive,
        scratch_queue=scratch,
        staging_queue=options.staging_queue or "",
        conformance=options.conformance,
        is_new=options.queue is None,
    )
    with _opened(Path(options.report or _REPORT)) if options.conformance else nullcontext() as report:
        findings = run_checks(check)
        if not options.conformance:
            findings += _python_findings()
        if report is not None:
            report.write(as_markdown(check.title, check.facts, findings))
    print(as_json(findings, ascii_only=is_ascii_json()) if options.json else as_table(findings))
    if report is not None and not options.json:
        print(f"\nreport: {report.name}")
    return int(failed(findings))


def _python_findings() -> "list[Finding]":
    """Return a note if Spark would start a Python without this package, as where no environment is activated."""
    from pyspark_jms.tools.check.findings import note

    name = os.environ.get("PYSPARK_DRIVER_PYTHON") or os.environ.get("PYSPARK_PYTHON") or "python3"
    path = shutil.which(name)
    with suppress(OSError, subprocess.SubprocessError):
        command = [path or name, "-c", "import pyspark_jms"]
        subprocess.run(command, capture_output=True, timeout=60, check=True)  # noqa: S603 - what Spark would start
        return []
    value = f"Spark would look up, plan and run format jms with {path or name}, which cannot import pyspark_jms"
    return [note("python", value, f"Set PYSPARK_PYTHON={sys.executable} where the driver starts.")]


def _require_consistent(options: argparse.Namespace) -> None:
    if options.report is not None and not options.conformance:
        raise OptionConflictError("--report is given without --conformance.", "Give both or neither.")
    if options.conformance and (options.receive or options.staging_queue is not None):
        raise OptionConflictError(
            "--conformance is given with --receive or --staging-queue.", "Run the command twice, each with one of them."
        )


def _opened(path: Path) -> TextIO:
    """Open the report before the tests, which take a minute."""
    try:
        return path.open("w", encoding="utf-8")
    except OSError as error:
        raise InvalidOptionError(
            f"--report {path} cannot be written: {error.strerror}.", "Name another file."
        ) from None
