"""Management requests to the broker: one request, one reply, on a separate connection.

The connection is separate because a broker closes the connection of a user without the permission. Which attributes
and operations there are stands in ``words``. A protocol exchanges a request and its reply.
"""

import json
import logging
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from pyspark_jms.errors import (
    BrokerError,
    InvalidDestinationError,
    JMSSecurityError,
    MalformedFrameError,
    ReceiptTimeoutError,
    UnsupportedError,
)
from pyspark_jms.management.attributes import Management
from pyspark_jms.network.address import Address
from pyspark_jms.network.connection import OpenConnection
from pyspark_jms.network.settings import ConnectionSettings

__all__ = ["PATIENCE_SECONDS", "ManagementLink", "Reply", "ask", "broker_identity", "unknown_resource"]


_FIRST_REPLY_SECONDS = 5.0
"""Limit for the first reply: a broker answers it at once, or never."""


class Reply(NamedTuple):
    succeeded: bool
    body: bytes
    """JSON."""


class ManagementLink(ABC):
    """Connected and subscribed to replies once constructed; for one thread.

    Without the permission, the constructor or the first request raises ``JMSSecurityError``, and the link has ended.
    An unknown resource (a queue that does not exist) raises ``InvalidDestinationError``, and the link goes on.
    """

    _protocol: ClassVar[str]
    _connection: Any

    def __init__(self, settings: ConnectionSettings, connection: OpenConnection[Any]) -> None:
        """``connection`` belongs to this link from now on."""
        self._connection = connection
        self._id, self._requests = uuid.uuid4().hex, 0
        self._timeout = min(settings.receipt_timeout, _FIRST_REPLY_SECONDS)
        self._receipt_timeout = settings.receipt_timeout
        self._user = settings.user
        self.address: Address = connection.address
        try:
            self.words = _require_words(connection.dialect.management, connection.dialect.name, self._protocol)
            self._listen()
        except (BrokerError, JMSSecurityError):
            connection.close()
            raise self._refused() from None
        except BaseException:
            connection.close()
            raise

    def attribute(self, resource: str, name: str | None) -> Any:
        """Return the value, as of ``attribute("queue.orders", "messageCount")``, or None if the broker has no such
        attribute.
        """
        return self._attribute(resource, self._required(name))

    def queue_name(self, name: str) -> str:
        """Return the queue of a fully qualified name (``ADDRESS::QUEUE``), or the name itself."""
        return name.rpartition(self.words.queue_separator)[2]

    def queue_attribute(self, queue: str, name: str | None) -> Any:
        return self.attribute(self.words.queue_resource.format(queue), name)

    def queue_operation(self, queue: str, name: str, *parameters: object) -> Any:
        return self.operation(self.words.queue_resource.format(queue), name, *parameters)

    def operation(self, resource: str, name: str | None, *parameters: object) -> Any:
        """Return the result, as of ``operation("queue.orders", "countMessages", "n = 1")``, or None if the broker has
        no such operation.
        """
        # Always with a list: Artemis answers an operation without one as if the permission were missing.
        return self._request(resource, {self.words.operation_header: self._required(name)}, json.dumps(parameters))

    def rows(
        self, operation: str, field: str, value: str, most: int, *, page: int = 1, compare: str = "EQUALS"
    ) -> list[dict[str, Any]]:
        """Return what an operation lists whose field has, or ``CONTAINS``, the value: a page of ``most`` rows."""
        chosen = json.dumps({"field": field, "operation": compare, "value": value})
        reply = self.operation(self.words.broker_resource, operation, chosen, page, most)
        try:
            return [dict(row) for row in json.loads(reply)["data"]]
        except (LookupError, TypeError, ValueError):
            raise MalformedFrameError(f"The broker's reply to {operation} is no list of rows.") from None

    def settings_of(self, address: str) -> dict[str, Any]:
        """Return the settings of an address, as Artemis shows them: mostly without those that are not set."""
        return dict(json.loads(self.operation(self.words.broker_resource, "getAddressSettingsAsJSON", address)))

    def _attribute(self, resource: str, name: str) -> Any:
        return self._request(resource, {self.words.attribute_header: name}, "")

    @abstractmethod
    def _listen(self) -> None:
        """Subscribe to the replies."""

    @abstractmethod
    def _exchange(self, headers: dict[str, str], body: str) -> Reply:
        """Send a request with these headers or properties, and wait for its reply."""

    @abstractmethod
    def _arrived(self, deadline: float) -> Iterable[tuple[object, Any]]:
        """Wait for replies, and return each with its correlation id. Some may be replies to other clients."""

    def _new_correlation(self) -> str:
        self._requests += 1
        return f"{self._id}-{self._requests}"

    def _reply(self, correlation: str) -> Any:
        deadline = time.monotonic() + self._timeout
        while True:
            for answered, reply in self._arrived(deadline):
                if answered == correlation:
                    self._timeout = self._receipt_timeout
                    return reply

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _request(self, resource: str, request: dict[str, str], body: str) -> Any:
        try:
            reply = self._exchange({self.words.resource_header: resource, **request}, body)
        except (BrokerError, JMSSecurityError):
            raise self._refused() from None
        if not reply.succeeded:
            raise unknown_resource(resource, " ".join(request.values()))
        return _value(reply.body)

    def _required(self, name: str | None) -> str:
        if name is None:
            raise UnsupportedError(
                f"The management of {self.address} does not have this attribute or operation.",
                "Use the broker's own console.",
            )
        return name

    def _refused(self) -> JMSSecurityError:
        replies = self.words.reply_address
        return JMSSecurityError(
            f"User {self._user} may not use the management of {self.address}.",
            f"Grant the permission manage on {self.words.address}, and on {replies} createAddress,"
            " createNonDurableQueue and consume."
            if replies
            else f"Allow this user to send to {self.words.address} and to create a temporary queue.",
        )

    def _no_reply(self) -> ReceiptTimeoutError:
        """A broker whose management has another address takes the request for a message, and confirms it (Artemis)."""
        return ReceiptTimeoutError(
            f"{self.address} did not answer a management request to {self.words.address} within {self._timeout:g} s.",
            f"The broker's management may have another address: set its management-address to {self.words.address}."
            f" Or this user may not receive from {self.words.reply_address or 'a temporary queue'}.",
        )


def unknown_resource(resource: str, what: str) -> InvalidDestinationError:
    return InvalidDestinationError(f"The broker has no answer to {what} of {resource}.", "Is the name right?")


def _require_words(words: Management | None, broker: str, protocol: str) -> Management:
    if words is None:
        raise UnsupportedError(f"Broker {broker} has no management over {protocol}.", "Use the broker's own console.")
    return words


def _value(body: bytes) -> Any:
    """A reply is a JSON array with one element. The element null is an empty reply."""
    try:
        answer = json.loads(body or b"[null]")
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, list) or len(answer) != 1:
        raise MalformedFrameError("The broker's management reply is not a JSON array of one element.")
    return answer[0]


# --- what a query asks beside its work ---------------------------------------------------------------

T = TypeVar("T")

_log = logging.getLogger("pyspark_jms.link")
PATIENCE_SECONDS = 5.0
"""Limit for the connection and for each request: a query does not wait longer for what it can do without."""


def ask(
    open_link: Callable[[ConnectionSettings], ManagementLink],
    settings: ConnectionSettings,
    question: Callable[[ManagementLink], T],
    about: str,
    *,
    always: bool = False,
    patient: bool = False,
) -> T | None:
    """Return the answer to what a query can do without, or None if it is not known ``about`` what was asked, for
    instance without the permission ``manage``.

    Where the first question of a run had no answer or was refused, only those that are asked ``always`` are asked.
    ``patient``: wait for as long as the settings say, because the broker works for the answer.
    """
    state = settings.management
    if state.answers is False and not always:
        return None
    try:
        with open_link(settings if patient else settings.impatient(PATIENCE_SECONDS)) as link:
            answer = question(link)
    except Exception as error:  # noqa: BLE001  # an unexpected reply must not stop a query that could do its work
        _log.debug("= it is not known %s: %s", about, error)
        if state.answers is None and isinstance(error, JMSSecurityError | ReceiptTimeoutError):
            state.answers = False
            _log.info(
                "= what the broker's management tells is not known in this run, as which broker it is, whether its"
                " queues exist, how they are set and how many messages they have: %s %s",
                error.fact,
                error.remedy,
            )
        return None
    state.answers = True
    return answer


def broker_identity(
    open_link: Callable[[ConnectionSettings], ManagementLink], settings: ConnectionSettings, address: Address
) -> str | None:
    """Return the identity of the broker at one address of the list, or None if it does not tell it (without
    ``manage``).
    """

    def identity(link: ManagementLink) -> str:
        return str(link.attribute(link.words.broker_resource, link.words.identity))

    # Always, because behind the address there may be another broker since the last time.
    one = replace(settings, addresses=(address,))
    return ask(open_link, one, identity, f"which broker {address} is", always=True) or None
