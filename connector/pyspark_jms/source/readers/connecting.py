"""The options of a read → the address of its registers, and what a task subscribes to."""

from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.readers.links import ReaderLink

__all__ = ["DEFAULT_PREFIX", "queue_of", "subscriptions_of"]

DEFAULT_PREFIX = "pyspark-jms.staging."


def queue_of(options: SourceOptions, stream: str) -> str:
    """The address of the staging queues. Each reader's has its number at the end."""
    return options.staging_queue or DEFAULT_PREFIX + stream


def subscriptions_of(options: SourceOptions, link: ReaderLink) -> list[Subscription]:
    """The limits of a batch are shared among the sources, so that little is received and given back."""
    count = len(options.destinations)
    messages = options.max_messages
    return [
        Subscription(
            destination=destination,
            window_bytes=max(1, options.max_bytes // count),
            window_messages=None if messages is None else max(1, messages // count),
            durable=options.durable,
            selector=options.selector_for(link.dialect),
        )
        for destination in options.destinations
    ]
