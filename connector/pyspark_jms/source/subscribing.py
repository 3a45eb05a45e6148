"""A durable subscription at the broker, created and given back at once: no message is taken."""

from pyspark_jms.errors import JMSError
from pyspark_jms.jms.subscription import Subscription
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.links import SourceProtocol

__all__ = ["create_subscription"]


def create_subscription(options: SourceOptions, protocol: SourceProtocol) -> str | None:
    """Return the selector in the broker's words. ``SelectorChangedError`` if the subscription exists with another one.

    ``SubscriptionInUseError`` while a consumer reads it, if the broker lets only one in.
    """
    assert options.durable is not None
    link = protocol.connect(options.connection, protocol.arrivals())
    try:
        selector = options.selector_for(link.dialect)
        link.require_supported(
            options.destinations[0], options.durable, selected=selector is not None, min_messages=None
        )
    except JMSError:
        link.close()
        raise
    link.subscribe(
        Subscription(
            destination=options.destinations[0],
            window_bytes=1,
            window_messages=1,
            durable=options.durable,
            selector=selector,
        )
    )
    try:
        link.require_unchanged()
    finally:
        link.close()
    return selector
