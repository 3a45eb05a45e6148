"""How a dialect names a durable topic subscription: the headers of SUBSCRIBE and UNSUBSCRIBE. Data, and two rules."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from pyspark_jms.jms.model import DurableSubscription

__all__ = ["DurableWords"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DurableWords:
    name_header: str
    """Of SUBSCRIBE, and of the UNSUBSCRIBE that ends it; without it UNSUBSCRIBE only stops reading."""

    subscribe_headers: Mapping[str, str] = field(default_factory=dict)
    unsubscribe_headers: Mapping[str, str] = field(default_factory=dict)
    """What both say besides."""

    named_by_queue: bool = False
    """Whether the header takes the name of the queue, and not the subscription's own."""

    shared: bool = True
    """Whether several connections may read one subscription."""

    unnamed: str | None = None
    """How ``destination`` is spelled without a client id, of topic and queue; such a subscription takes no selector.
    None: as with one."""

    ended_by_reader: bool = False
    """Whether UNSUBSCRIBE ends only what its connection has subscribed to."""

    readable_at: str | None = None
    """How ``destination`` is spelled to read an existing subscription's queue, refused where there is none. None: the
    broker can be asked, or says so itself when a missing one is to end."""

    keeps_filter: bool = False
    """Whether a selector that differs from the subscription's own is silently ignored."""

    def is_unnamed(self, subscription: DurableSubscription) -> bool:
        """Whether it is known by its queue alone."""
        return subscription.client_id is None and self.unnamed is not None

    def destination(self, spelled: str, subscription: DurableSubscription) -> str:
        """Of SUBSCRIBE; ``spelled`` is the topic's."""
        if self.unnamed is None or not self.is_unnamed(subscription):
            return spelled
        return self.unnamed.format(spelled, subscription)

    def existing(self, subscription: DurableSubscription) -> str | None:
        """Of a SUBSCRIBE that never makes it."""
        return None if self.readable_at is None else self.readable_at.format(quote(str(subscription), safe=""))

    def subscribing(self, subscription: DurableSubscription) -> dict[str, str]:
        """For SUBSCRIBE, which makes it or finds it."""
        return {**self.subscribe_headers, **self._named(subscription)}

    def ending(self, subscription: DurableSubscription) -> dict[str, str]:
        """For the UNSUBSCRIBE that ends it."""
        return {**self.unsubscribe_headers, **self._named(subscription)}

    def _named(self, subscription: DurableSubscription) -> dict[str, str]:
        if self.is_unnamed(subscription):
            return {}
        return {self.name_header: str(subscription) if self.named_by_queue else subscription.name}
