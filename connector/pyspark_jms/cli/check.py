"""``pyspark-jms check``: what a broker can do for a user, and what is on a queue."""

import argparse

from pyspark_jms.cli.access import add_access, source_options
from pyspark_jms.cli.command import Command

__all__ = ["COMMAND"]


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
    add("--json", action="store_true", help="print JSON")


def _run(options: argparse.Namespace) -> int:
    from pyspark_jms.check.findings import as_json, as_table, failed
    from pyspark_jms.check.run import CheckRequest, run_checks

    parsed = source_options(options, queue=options.scratch_queue)
    request = CheckRequest(
        settings=parsed.connection,
        queue=options.queue,
        limit=options.max,
        receive=options.receive,
        scratch_queue=options.scratch_queue,
        staging_queue=options.staging_queue,
    )
    findings = run_checks(request)
    print(as_json(findings) if options.json else as_table(findings))
    return int(failed(findings))


COMMAND = Command(
    name="check",
    help="find out what a broker can do for a user, and what is on a queue",
    description="Connect, test on a scratch queue the features that source and sink need, and print their "
    "guarantees on this broker. With --queue, also print the depth of a queue, its body types, messages "
    "that cannot be received over STOMP, and over AMQP how many of its messages are in staging queues of exactly-once "
    "reads; the messages stay on the queue. The exit code is 1 if there is a problem.",
    epilog="To inspect a queue, and over AMQP the address settings that exactly-once queries depend on, the user needs "
    "the permission `manage`. Without it, the other checks run.",
    add_arguments=_add_arguments,
    run=_run,
)
