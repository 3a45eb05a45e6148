"""One subscription on a connection of its own: whole frames in, acknowledgements out. Keeps no books."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pyspark_jms.errors import JMSError
from pyspark_jms.jms.model import Destination, DurableSubscription
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.stomp.dialects import Dialect
from pyspark_jms.stomp.link.connection import Arrivals, Connection, connect
from pyspark_jms.stomp.wire.frame import ack_frames
from pyspark_jms.stomp.wire.scan import FrameRun

__all__ = ["Consumer", "Subscription"]

_log = logging.getLogger("pyspark_jms.link")
_ID = "1"


def _no_selector(_dialect: Dialect) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """``window_bytes``: what the broker may have in flight to us, the bound of memory and the back-pressure;
    ``window_messages`` for a broker that counts messages. ``transform``: maps are wanted with their content, where
    that has to be asked for. ``browse``: look, and take nothing, where the broker knows that.
    """

    destination: Destination
    window_bytes: int
    window_messages: int | None = None
    transform: bool = False
    browse: bool = False
    durable: DurableSubscription | None = None
    selector: Callable[[Dialect], str | None] = _no_selector
    """What SUBSCRIBE's ``selector`` says depends on the broker that answers."""

    def headers(self, dialect: Dialect) -> dict[str, str]:
        """SUBSCRIBE without its receipt.

        Individual acknowledgement, always: on Artemis a cumulative ACK also deletes messages that could
        not be put on the wire.
        """
        spelled = dialect.addresses.spelled(self.destination, sending=False)
        headers = {
            "id": _ID,
            "destination": dialect.durable.destination(spelled, self.durable) if self.durable else spelled,
            "ack": "client-individual",
            dialect.window_header: str(dialect.window(self.window_bytes, self.window_messages)),
            **dialect.subscribe_headers[self.destination.kind],
        }
        if self.transform and dialect.transformation is not None:
            headers["transformation"] = dialect.transformation
        if self.browse and dialect.browse_headers is not None:
            headers |= dialect.browse_headers
        if self.durable:
            headers |= dialect.durable.subscribing(self.durable)
        selector = self.selector(dialect)
        if selector is not None:
            headers["selector"] = selector
        return headers


class Consumer:
    """Connected and subscribed once constructed; ``close`` gives back what was not acknowledged."""

    def __init__(
        self, settings: ConnectionSettings, subscription: Subscription, arrivals: Arrivals | None = None
    ) -> None:
        self.subscription = subscription
        self.connection: Connection = connect(settings, arrivals)
        try:
            self.connection.request("SUBSCRIBE", subscription.headers(self.connection.dialect))
        except JMSError:
            self.connection.close()
            raise

    @property
    def dialect(self) -> Dialect:
        return self.connection.dialect

    def waiting(self) -> tuple[int, int]:
        """Messages and bytes received and not taken."""
        return self.connection.waiting()

    def take(self) -> list[FrameRun]:
        return self.connection.take()

    def acknowledge(self, ids: Iterable[bytes]) -> str:
        """Send one ACK a message, in as few writes as the broker bears; returns the receipt to look for.

        It is not waited for, but for those of the writes before the last.
        """
        waiting = list(map(self.dialect.ack_id, ids))
        burst = self.dialect.ack_burst or len(waiting)
        while len(waiting) > burst:
            receipt = self._acknowledge(waiting[:burst])
            self.await_receipt(receipt)
            del waiting[:burst]
        return self._acknowledge(waiting)

    def _acknowledge(self, ids: list[bytes]) -> str:
        receipt = self.connection.new_receipt()
        self.connection.send(ack_frames(ids, receipt))
        return receipt

    def await_receipt(self, receipt: str) -> None:
        self.connection.await_receipt(receipt)

    def probe(self) -> str:
        """Ask for a sign of life: an empty transaction, begun and aborted.

        No barrier: on Artemis the receipt can overtake messages that are on their way to us.
        """
        receipt = self.connection.new_receipt()
        self.connection.frame("BEGIN", {"transaction": receipt, "receipt": receipt})
        self.connection.frame("ABORT", {"transaction": receipt})
        return receipt

    def close(self) -> None:
        """UNSUBSCRIBE, then DISCONNECT. Never raises.

        Only UNSUBSCRIBE gives unread messages back without spending one of their delivery attempts
        (measured on Artemis; after ten of those they would go to the dead-letter queue).
        """
        if not self.connection.down:
            try:
                self.connection.request("UNSUBSCRIBE", {"id": _ID})
            except JMSError as error:
                _log.warning("= %s did not confirm UNSUBSCRIBE: %s", self.connection.address, error.fact)
        self.connection.close()

    def drop(self) -> None:
        """Let go as a crash would: for a connection that is no longer good."""
        self.connection.drop()
