"""``pyspark-jms subscribe`` and ``unsubscribe``: create a durable subscription, and delete it."""

import argparse
import json

from pyspark_jms.tools.cli.command import Commands, add_access, is_ascii_json, source_options

__all__ = ["add_subscribe", "add_unsubscribe"]


def _add_arguments(parser: argparse.ArgumentParser, topic: str) -> None:
    add = parser.add_argument
    add_access(parser)
    add("--topic", required=True, metavar="NAME", help=topic)
    add("--subscription-name", required=True, metavar="NAME", help="the query's option subscriptionName")
    add("--client-id", metavar="ID", help="the query's option clientId; without it, the subscription is shared")


def add_subscribe(commands: Commands) -> None:
    parser = commands.add_parser(
        "subscribe",
        help="create a durable topic subscription before its first query starts",
        description="Create a durable subscription: the broker keeps the topic's messages for it from now on. Start "
        "the query with the same topic, subscriptionName, clientId and selector. An existing subscription stays as "
        "it is, with its messages; another selector is refused.",
        epilog="A subscription without a consumer fills the broker's storage. `unsubscribe` deletes it.",
    )
    parser.set_defaults(run=_subscribe)
    _add_arguments(parser, "topic to subscribe to")
    parser.add_argument("--selector", metavar="TEXT", help="the query's option selector")
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_unsubscribe(commands: Commands) -> None:
    parser = commands.add_parser(
        "unsubscribe",
        help="delete a durable topic subscription that no query reads any more",
        description="Delete a durable subscription with all its messages. The broker refuses it while a consumer "
        "reads the subscription (RabbitMQ does not refuse it).",
    )
    parser.set_defaults(run=_unsubscribe)
    _add_arguments(parser, "topic of the subscription")


def _named(options: argparse.Namespace) -> dict[str, str | None]:
    """Return the options of a query that read the subscription."""
    return {
        "topic": options.topic,
        "subscriptionName": options.subscription_name,
        "clientId": options.client_id,
        "sharedSubscription": "true" if options.client_id is None else None,
    }


def _subscribe(options: argparse.Namespace) -> int:
    from pyspark_jms.source.subscriptions import create_subscription
    from pyspark_jms.spark.protocols import reading_of

    parsed = source_options(options, **_named(options), selector=options.selector)
    selector = create_subscription(reading_of(parsed))
    if options.json:
        found = {"subscription": str(parsed.durable), "topic": options.topic, "selector": selector}
        print(json.dumps(found, ensure_ascii=is_ascii_json()))
    else:
        print(f"{parsed.durable}: the broker keeps the messages of topic {options.topic} from now on")
    return 0


def _unsubscribe(options: argparse.Namespace) -> int:
    from pyspark_jms.spark.protocols import reading_of

    parsed = source_options(options, **_named(options))
    assert parsed.durable is not None
    reading_of(parsed).protocol.end_subscription(parsed.connection, parsed.destinations[0], parsed.durable)
    print(f"{parsed.durable}: ended")
    return 0
