"""``pyspark-jms unsubscribe``: deletes a durable subscription."""

import argparse

from pyspark_jms.cli.access import add_access, source_options
from pyspark_jms.cli.command import Command

__all__ = ["COMMAND"]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_access(parser)
    add("--topic", required=True, metavar="NAME", help="topic of the subscription")
    add("--subscription-name", required=True, metavar="NAME", help="the query's option subscriptionName")
    add("--client-id", metavar="ID", help="the query's option clientId; without it, the subscription is shared")


def _run(options: argparse.Namespace) -> int:
    from pyspark_jms.spark.protocols import source_protocol

    shared = "true" if options.client_id is None else None
    parsed = source_options(
        options,
        topic=options.topic,
        subscriptionName=options.subscription_name,
        clientId=options.client_id,
        sharedSubscription=shared,
    )
    assert parsed.durable is not None
    source_protocol(parsed).end_subscription(parsed.connection, parsed.destinations[0], parsed.durable)
    print(f"{parsed.durable}: ended")
    return 0


COMMAND = Command(
    name="unsubscribe",
    help="delete a durable topic subscription that no query reads any more",
    description="Delete a durable subscription with all its messages. The broker refuses it while a consumer reads "
    "the subscription (RabbitMQ does not refuse it).",
    epilog="The subscription of a stopped query stays, so that no message is lost. A subscription without a "
    "consumer fills the broker's storage.",
    add_arguments=_add_arguments,
    run=_run,
)
