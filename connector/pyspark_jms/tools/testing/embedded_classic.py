"""An Apache ActiveMQ Classic broker in its own Java virtual machine, with the interface of ``EmbeddedArtemis``."""

import os
from collections.abc import Sequence
from typing import Any

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.tools.testing.config import User
from pyspark_jms.tools.testing.jars import CLASSIC_PACKAGES
from pyspark_jms.tools.testing.lifecycle import JavaBroker
from pyspark_jms.tools.testing.operations import Broker, DeadLetter
from pyspark_jms.tools.testing.ports import free_port

__all__ = ["EmbeddedClassic"]

_NAME = "embedded"
_ADVISORIES = "ActiveMQ.Advisory.>"
"""The broker's advisory topics, which every client uses."""

_STATISTICS = {"Message": "getMessages", "Delivering": "getInflight", "Consumer": "getConsumers"}
_READ = frozenset({"consume", "browse"})
_WRITE = frozenset({"send"})
_ADMIN = frozenset({"createAddress", "createDurableQueue", "createNonDurableQueue"})
"""Artemis' names of permissions for each permission of Classic. Classic has no equivalent of the others."""


class EmbeddedClassic(JavaBroker, Broker):
    """A broker for a test::

        with EmbeddedClassic() as broker:
            spark.readStream.format("jms").options(
                brokerUrl=broker.url, user=broker.user, password=broker.password, queue="orders"
            )

    The broker stores messages in KahaDB and syncs as in production. A user's permissions are the union of all matches
    of an address. ``scheduler`` enables delayed delivery, which Classic disables by default.
    """

    _packages = CLASSIC_PACKAGES

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        port: int = 0,
        user: str = "admin",
        password: str = "admin",
        *,
        host: str = "127.0.0.1",
        users: Sequence[User] = (),
        scheduler: bool = True,
        heap: str = "512m",
        start_timeout: float = 60,
    ) -> None:
        super().__init__(directory, port, user, password, host=host, start_timeout=start_timeout)
        self.amqp_port = free_port(host)
        self._users = (User(user, password), *users)
        self._scheduler = scheduler
        self._java_options = (f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

    @property
    def amqp_url(self) -> str:
        """The URL of the port for AMQP 1.0 clients. With its transformer ``jms``, Java clients over OpenWire get their
        messages as JMS messages, and not as bytes.
        """
        return f"amqp://{self.host}:{self.amqp_port}"

    def connection_factory(self) -> Any:
        return self.jvm.org.apache.activemq.ActiveMQConnectionFactory(f"vm://{_NAME}?create=false")

    # --- starting ------------------------------------------------------------------------------

    def _ports(self) -> tuple[int, ...]:
        return self.port, self.amqp_port

    def _boot(self, jvm: Any) -> None:
        service = jvm.org.apache.activemq.broker.BrokerService()
        service.setBrokerName(_NAME)
        service.setDataDirectory(str(self.directory))
        service.setUseJmx(False)
        service.setUseShutdownHook(False)
        store = jvm.org.apache.activemq.store.kahadb.KahaDBPersistenceAdapter()
        store.setDirectory(jvm.java.io.File(str(self.directory / "kahadb")))
        service.setPersistenceAdapter(store)
        service.setSchedulerSupport(self._scheduler)
        service.setPlugins(self._plugins(jvm))
        service.addConnector(f"stomp://{self.host}:{self.port}")
        service.addConnector(f"{self.amqp_url}?transport.transformer=jms")
        self._server = service
        service.start()
        if not service.waitUntilStarted():
            raise EmbeddedBrokerError("The broker did not start.", f"See its log {self.log}.")

    def _plugins(self, jvm: Any) -> Any:
        security = jvm.org.apache.activemq.security
        accounts, entries = jvm.java.util.ArrayList(), jvm.java.util.ArrayList()
        for user in self._users:
            accounts.add(security.AuthenticationUser(user.name, user.password, user.name))
        for match in [">", *sorted({match for user in self._users for match in user.at})]:
            for set_destination in ("setQueue", "setTopic"):
                permitted = _permitted_users(self._users, match)
                entries.add(_entry(jvm, match.replace("#", ">"), set_destination, permitted))
        everybody = [user.name for user in self._users]
        entries.add(_entry(jvm, _ADVISORIES, "setTopic", (everybody, everybody, everybody)))
        plugins = self.gateway.new_array(jvm.org.apache.activemq.broker.BrokerPlugin, 2)
        plugins[0] = security.SimpleAuthenticationPlugin(accounts)
        plugins[1] = security.AuthorizationPlugin(security.DefaultAuthorizationMap(entries))
        return plugins

    def _shut_down(self) -> None:
        self._server.stop()
        self._server.waitUntilStopped()

    # --- queues ----------------------------------------------------------------------------------

    def _find(self, queue: str) -> Any:
        destinations = self.server.getBroker().getDestinationMap()
        found = destinations.get(self.jvm.org.apache.activemq.command.ActiveMQQueue(queue))
        while found is not None and str(found.getClass().getSimpleName()) != "Queue":
            found = found.getNext()  # the wrapper that checks permissions comes first
        return found

    def _count(self, queue: str, counted: str) -> int:
        with self._queue(queue) as found:
            return int(getattr(found.getDestinationStatistics(), _STATISTICS[counted])().getCount())

    def delivery_counts(self, queue: str) -> list[int]:
        """Return the number of deliveries of each of the first few hundred messages, from the head."""
        with self._queue(queue) as found:
            return [int(message.getRedeliveryCounter()) for message in found.browse()]

    def dead_letters(self, dead_letter_queue: str = "ActiveMQ.DLQ") -> list[DeadLetter]:
        if not self.has_queue(dead_letter_queue):
            return []
        with self._queue(dead_letter_queue) as found:
            return [_dead_letter(message) for message in found.browse()]

    def create_queue(self, name: str, *, topic: bool = False) -> None:
        context = self.server.getAdminConnectionContext()
        commands = self.jvm.org.apache.activemq.command
        destination = commands.ActiveMQTopic(name) if topic else commands.ActiveMQQueue(name)
        self.server.getBroker().addDestination(context, destination, False)  # noqa: FBT003 - not temporary

    def purge(self, queue: str) -> int:
        """Delete the waiting messages and return their number."""
        count = self.message_count(queue)
        with self._queue(queue) as found:
            found.purge()
        return count


def _dead_letter(message: Any) -> DeadLetter:
    origin = message.getOriginalDestination()
    queue = None if origin is None else str(origin.getPhysicalName())
    return DeadLetter(queue=queue, message_id=str(message.getMessageId().toString()))


def _permitted_users(users: Sequence[User], match: str) -> tuple[list[str], ...]:
    """Return the users that can read, write and create at ``match``."""
    given = {user.name: set(user.permissions if match == ">" else user.at.get(match, ())) for user in users}
    return tuple([name for name in given if given[name] & needed] for needed in (_READ, _WRITE, _ADMIN))


def _entry(jvm: Any, match: str, set_destination: str, may: Sequence[Sequence[str]]) -> Any:
    entry = jvm.org.apache.activemq.security.AuthorizationEntry()
    getattr(entry, set_destination)(match)
    for permit, names in zip((entry.setRead, entry.setWrite, entry.setAdmin), may, strict=True):
        permit(",".join(names) or "nobody")
    return entry
