"""A small AMQP 1.0 broker of Qpid Proton, on a real socket: queues without transactions, and a chosen outcome."""

import threading
import uuid
from collections import defaultdict

from proton import Condition, Delivery, Message, Terminus, symbol
from proton.handlers import MessagingHandler
from proton.reactor import ApplicationEvent, Container, EventInjector

from pyspark_jms.options.source import SourceOptions
from pyspark_jms.tools.testing.ports import free_port

_CREDIT = 100


class ProtonBroker(MessagingHandler):
    """``with ProtonBroker(...) as broker``. Like RabbitMQ 4 and routers, it has no transactions.

    ``outcomes``: of messages to an address, a state of ``Delivery``; without one they are accepted. None settles
    without a state, and ``detach`` ends the link instead. ``coordinator``: what ends when a client attaches to the
    transaction coordinator, ``link`` (RabbitMQ 4.3) or ``session`` (RabbitMQ 4.0); ``nothing``: it takes a declare for
    an ordinary message. ``refusal``: of the attach of every link.
    """

    def __init__(self, *, outcomes=None, coordinator="link", product="a router", refusal=None):
        super().__init__(auto_accept=False, prefetch=_CREDIT)
        self.port = free_port("127.0.0.1")
        self.amqp_url = f"amqp://127.0.0.1:{self.port}"
        self.queues = defaultdict(list)
        """Address → the bodies that wait there."""
        self.hostnames = []
        self.container_ids = []
        """Both of the clients' opens, in order."""
        self.browses = 0
        """How many links asked for the distribution mode copy."""
        self.deliveries = 0
        """How many messages consumers got."""
        self._outcomes, self._coordinator, self._product = outcomes or {}, coordinator, product
        self._refusal = refusal
        self._in_flight = {}
        self._properties = {}
        """Body, as text → the application properties of the last message that a client sent with it."""
        self._listening = threading.Event()
        self._container = Container(self)
        self._injector = EventInjector()
        self._thread = threading.Thread(target=self._container.run, daemon=True)

    @property
    def settings(self):
        """Of a connection to it."""
        return SourceOptions.parse({"brokerUrl": self.amqp_url, "queue": "q"}).connection

    def __enter__(self):
        self._thread.start()
        assert self._listening.wait(30)
        return self

    def __exit__(self, *_):
        """Its thread ends when it has closed its sockets, and the clients have closed theirs."""
        self._injector.trigger(ApplicationEvent("leave"))
        self._thread.join(30)
        assert not self._thread.is_alive(), "a client is still connected"

    @property
    def is_busy(self):
        """Whether a message is in flight, or was not given back yet."""
        return bool(self._in_flight)

    # --- called by Proton's thread -------------------------------------------------------------

    def on_start(self, event):
        event.container.selectable(self._injector)
        self._acceptor = event.container.listen(self.amqp_url)
        self._listening.set()

    def on_leave(self, _):
        self._acceptor.close()
        self._injector.close()

    def on_connection_opening(self, event):
        self.hostnames.append(event.connection.remote_hostname)
        self.container_ids.append(event.connection.remote_container)
        event.connection.offered_capabilities = [symbol("ANONYMOUS-RELAY")]
        event.connection.properties = {symbol("product"): self._product}

    def on_link_opening(self, event):
        link = event.link
        self.browses += link.remote_source.distribution_mode == Terminus.DIST_MODE_COPY
        if link.remote_target.type == Terminus.COORDINATOR and self._coordinator == "session":
            link.session.condition = Condition("amqp:not-implemented", "no transactions")
            link.session.close()
        elif link.remote_target.type == Terminus.COORDINATOR and self._coordinator == "link":
            link.condition = Condition("amqp:not-implemented", "no transactions")
        elif self._refusal:
            link.condition = Condition(self._refusal, "refused by the test")
        else:
            link.source.copy(link.remote_source)
            link.target.copy(link.remote_target)

    def on_link_local_open(self, event):
        if event.link.condition:
            event.link.close()

    def on_message(self, event):
        delivery, address = event.delivery, event.receiver.remote_target.address or event.message.address
        outcome = self._outcomes.get(address, Delivery.ACCEPTED)
        if outcome == "detach":
            event.receiver.condition = Condition("amqp:resource-deleted", "refused by the test")
            event.receiver.close()
            return
        if outcome is Delivery.ACCEPTED:
            self.queues[address].append(event.message.body)
            self._properties[str(event.message.body)] = event.message.properties
        if outcome is not None:
            delivery.update(outcome)
        delivery.settle()

    def on_sendable(self, event):
        sender = event.sender
        waiting = self.queues[sender.remote_source.address]
        while sender.credit and waiting:
            body = waiting.pop(0)
            message = Message(body=body, id=str(uuid.uuid4()), properties=self._properties.get(str(body)))
            self._in_flight[sender.send(message).tag] = (sender.remote_source.address, body)
            self.deliveries += 1
        if sender.drain_mode:
            sender.drained()

    def on_accepted(self, event):
        self._in_flight.pop(event.delivery.tag, None)

    def on_link_closing(self, event):
        self.on_disconnected(event)

    def on_disconnected(self, _):
        """Messages in flight wait again; one consumer at a time is enough for the tests."""
        for address, body in self._in_flight.values():
            self.queues[address].append(body)
        self._in_flight.clear()
