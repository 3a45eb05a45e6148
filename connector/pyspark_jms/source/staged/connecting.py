"""The options of a read → the connection of a staged stream, and what it subscribes to."""

from typing import Any

from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.staged.links import SourcesLink, StagedLink, StagedProtocol

__all__ = ["DEFAULT_PREFIX", "connect_link", "queue_of", "subscriptions_of"]

DEFAULT_PREFIX = "pyspark-jms.staging."


def queue_of(options: SourceOptions, stream: str) -> str:
    """The address of the staging queue."""
    return options.staging_queue or DEFAULT_PREFIX + stream


def connect_link(options: SourceOptions, protocol: StagedProtocol, arrivals: Any, stream: str) -> StagedLink:
    return protocol.connect_staging(
        options.connection,
        arrivals,
        queue=queue_of(options, stream),
        stream=stream,
        topic=options.destinations[0],
        durable=options.durable,
    )


def subscriptions_of(options: SourceOptions, link: SourcesLink) -> list[Subscription]:
    """The limits of a batch are shared among the sources, so that little is received and given back."""
    lanes = len(options.destinations)
    messages = options.max_messages
    return [
        Subscription(
            destination=destination,
            window_bytes=max(1, options.max_bytes // lanes),
            window_messages=None if messages is None else max(1, messages // lanes),
            durable=options.durable,
            selector=options.selector_for(link.dialect),
        )
        for destination in options.destinations
    ]
