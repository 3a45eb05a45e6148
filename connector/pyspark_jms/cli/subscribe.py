"""``pyspark-jms subscribe``: creates a durable subscription before its first reader."""

import argparse
import json

from pyspark_jms.cli.access import add_access, source_options
from pyspark_jms.cli.command import Command

__all__ = ["COMMAND"]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_access(parser)
    add("--topic", required=True, metavar="NAME", help="topic to subscribe to")
    add("--subscription-name", required=True, metavar="NAME", help="the query's option subscriptionName")
    add("--client-id", metavar="ID", help="the query's option clientId; without it, the subscription is shared")
    add("--selector", metavar="TEXT", help="the query's option selector")
    add("--json", action="store_true", help="print JSON")


def _run(options: argparse.Namespace) -> int:
    from pyspark_jms.source.subscriptions import create_subscription
    from pyspark_jms.spark.protocols import source_protocol

    shared = "true" if options.client_id is None else None
    parsed = source_options(
        options,
        topic=options.topic,
        subscriptionName=options.subscription_name,
        clientId=options.client_id,
        sharedSubscription=shared,
        selector=options.selector,
    )
    selector = create_subscription(parsed, source_protocol(parsed))
    if options.json:
        found = {"subscription": str(parsed.durable), "topic": options.topic, "selector": selector}
        print(json.dumps(found, ensure_ascii=False))
    else:
        print(f"{parsed.durable}: the broker keeps the messages of topic {options.topic} from now on")
    return 0


COMMAND = Command(
    name="subscribe",
    help="create a durable topic subscription before its first query starts",
    description="Create a durable subscription: the broker keeps the topic's messages for it from now on. Start the "
    "query with the same topic, subscriptionName, clientId and selector. An existing subscription stays as it is; "
    "another selector is refused.",
    epilog="A subscription without a consumer fills the broker's storage. `unsubscribe` deletes it.",
    add_arguments=_add_arguments,
    run=_run,
)
