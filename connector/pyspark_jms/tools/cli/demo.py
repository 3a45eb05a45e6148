"""``pyspark-jms demo``: a broker, a Spark job, orders in and out."""

import argparse

from pyspark_jms.tools.cli.command import Command

__all__ = ["COMMAND"]


def _run(_options: argparse.Namespace) -> int:
    from pyspark_jms.tools import demo

    return demo.run()


COMMAND = Command(
    name="demo",
    help="run a broker and a Spark job that routes orders; takes a minute",
    description="Start a broker, send orders to a queue, run a Spark job that reads, enriches and routes them to "
    "other queues, and compare the result with the expected one. Needs Java 17 or newer. The first run downloads "
    "the broker's jars. All other files are removed at the end.",
    run=_run,
)
