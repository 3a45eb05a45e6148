"""The options of a read → its registers, what a task subscribes to, and whether the broker is the checkpoint's."""

from collections.abc import Sequence

from pyspark_jms.amqp.link.read_register import DEFAULT_PREFIX, RegisterName
from pyspark_jms.amqp.reading import ReaderLink
from pyspark_jms.delivery.register.plan import require_place
from pyspark_jms.delivery.register.token import Offset
from pyspark_jms.jms.model import Destination, DurableSubscription
from pyspark_jms.jms.subscription import ASSUMED_MESSAGE_BYTES, Subscription
from pyspark_jms.management.link import broker_identity
from pyspark_jms.network.address import Address
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.links import Reading

__all__ = [
    "connect_register",
    "place_of",
    "queue_of",
    "readers_of",
    "register_queues",
    "require_broker",
    "subscriptions_of",
]


def queue_of(options: SourceOptions, stream: str) -> str:
    """The address of the staging queues. Each reader's has its number at the end."""
    return options.staging_queue or DEFAULT_PREFIX + stream


def place_of(options: SourceOptions, stream: str) -> str:
    """Return what the names of a stream's registers share: the broker puts the client id before the address."""
    return str(DurableSubscription(queue_of(options, stream), options.durable.client_id if options.durable else None))


def readers_of(options: SourceOptions) -> int:
    """Return how many readers a batch has: each takes at least one message, whatever its size, so a small limit has
    fewer.
    """
    most = options.readers if options.max_messages is None else min(options.readers, options.max_messages)
    return max(1, min(most, options.max_bytes // ASSUMED_MESSAGE_BYTES))


def connect_register(options: SourceOptions, condition: StateCondition, base: str, reader: int) -> ReaderLink:
    """The register and a durable subscription are read on one connection, which has the client id."""
    return ReaderLink(options.connection, _register_name(options, base, reader), condition)


def register_queues(options: SourceOptions, base: str) -> list[str]:
    return [_register_name(options, base, reader).queue for reader in range(readers_of(options))]


def _register_name(options: SourceOptions, base: str, reader: int) -> RegisterName:
    return RegisterName(base, reader, options.durable.client_id if options.durable else None)


def subscriptions_of(options: SourceOptions, link: ReaderLink, reader: int, readers: int) -> list[Subscription]:
    """The limits of a reader are shared among its sources, so that little is received and given back."""
    destinations, messages = _share(options.destinations, reader, readers), options.max_messages
    count = len(destinations)
    return [
        Subscription(
            destination=destination,
            window_bytes=max(1, options.max_bytes // count),
            window_messages=None if messages is None else max(1, messages // count),
            durable=options.durable,
            selector=options.selector_for(link.dialect),
        )
        for destination in destinations
    ]


def _share(destinations: Sequence[Destination], reader: int, readers: int) -> Sequence[Destination]:
    """Return what one of so many readers reads: several destinations, or one that it shares with other readers."""
    return destinations[reader::readers] or [destinations[reader % len(destinations)]]


# --- the broker of the checkpoint -------------------------------------------------------------------


def require_broker(reading: Reading, address: Address, named: str | None) -> str | None:
    """The identity of the broker at the address. ``OtherBrokerError``: it is not the one that is named.

    An identity is None if the user may not ask for it, or if the checkpoint has none.
    """
    here = broker_identity(reading.protocol.open_management, reading.options.connection, address)
    if stop := require_place(Offset(broker=named), "", here):
        raise stop.reason.error()
    return here
