"""The headers of SUBSCRIBE and UNSUBSCRIBE for a durable topic subscription, as data of a dialect."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from pyspark_jms.jms.model import DurableSubscription

__all__ = ["DurableSubscriptionHeaders"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DurableSubscriptionHeaders:
    """The names of a durable topic subscription in a broker's frames, and how the broker treats it."""

    name_header: str
    """The header with the subscription's name. In UNSUBSCRIBE it ends the subscription; without it UNSUBSCRIBE only
    stops the delivery."""

    subscribe_headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers that SUBSCRIBE must have."""

    unsubscribe_headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers that the UNSUBSCRIBE that ends the subscription must have."""

    name_is_queue: bool = False
    """Whether ``name_header`` takes the name of the subscription's queue (``clientId.name``) and not the name alone."""

    destination_without_client_id: str | None = None
    """A template of ``destination``, with topic and queue, for a subscription without a client id. Such a subscription
    has no ``name_header`` and takes no selector. None if it is named as one with a client id is.
    """

    ended_by_subscriber: bool = False
    """Whether only the connection that has subscribed can end the subscription."""

    existing_destination: str | None = None
    """A template of ``destination``, with the queue, for a SUBSCRIBE that reads an existing subscription and is refused
    if there is none. None if the broker reports a missing subscription by other means.
    """

    ignores_changed_selector: bool = False
    """Whether SUBSCRIBE with another selector silently keeps the subscription's first one."""

    def is_named_by_destination(self, subscription: DurableSubscription) -> bool:
        """Return whether ``destination`` names the subscription's queue, and no header names the subscription."""
        return subscription.client_id is None and self.destination_without_client_id is not None

    def destination(self, topic: str, subscription: DurableSubscription) -> str:
        """The ``destination`` of SUBSCRIBE; ``topic`` is the topic as the dialect writes it."""
        template = self.destination_without_client_id
        if template is None or not self.is_named_by_destination(subscription):
            return topic
        return template.format(topic, subscription)

    def destination_of_existing(self, subscription: DurableSubscription) -> str | None:
        """The ``destination`` of a SUBSCRIBE that never creates the subscription."""
        template = self.existing_destination
        return None if template is None else template.format(quote(str(subscription), safe=""))

    def for_subscribe(self, subscription: DurableSubscription) -> dict[str, str]:
        """The headers of the SUBSCRIBE that creates the subscription, or finds it."""
        return {**self.subscribe_headers, **self._name(subscription)}

    def for_unsubscribe(self, subscription: DurableSubscription) -> dict[str, str]:
        """The headers of the UNSUBSCRIBE that ends the subscription."""
        return {**self.unsubscribe_headers, **self._name(subscription)}

    def _name(self, subscription: DurableSubscription) -> dict[str, str]:
        if self.is_named_by_destination(subscription):
            return {}
        return {self.name_header: str(subscription) if self.name_is_queue else subscription.name}
