"""A real Apache ActiveMQ Classic in a Java virtual machine of its own, with the manners of ``EmbeddedArtemis``."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.testing.config import User
from pyspark_jms.testing.jars import classic_classpath
from pyspark_jms.testing.lifecycle import JavaBroker
from pyspark_jms.testing.operations import DeadLetter

__all__ = ["EmbeddedClassic"]

_NAME = "embedded"
_ADVISORIES = "ActiveMQ.Advisory.>"
"""Topics of the broker's own that every client touches."""

_READ = frozenset({"consume", "browse"})
_WRITE = frozenset({"send"})
_ADMIN = frozenset({"createAddress", "createDurableQueue", "createNonDurableQueue"})
"""Artemis' names of permissions, by what Classic calls them. What is not listed, Classic does not know."""


class EmbeddedClassic(JavaBroker):
    """A broker for a test::

        with EmbeddedClassic() as broker:
            spark.readStream.format("jms").options(
                brokerUrl=broker.url, user=broker.user, password=broker.password, queue="orders"
            )

    Stored in KahaDB, synced as in production. Permissions of ``users`` add up: what the most specific match does not
    give, a wider one may. ``scheduler``: whether messages may be delayed, which Classic leaves off by default.
    """

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
        self._users = (User(user, password), *users)
        self._scheduler = scheduler
        self._java_options = (f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        self._service: Any = None

    @property
    def server(self) -> Any:
        """The running ``org.apache.activemq.broker.BrokerService``."""
        self._require_running()
        return self._service

    def connection_factory(self) -> Any:
        """Jakarta JMS: for clients in the broker's own machine."""
        return self.jvm.org.apache.activemq.ActiveMQConnectionFactory(f"vm://{_NAME}?create=false")

    # --- starting ------------------------------------------------------------------------------

    def _classpath(self) -> list[str]:
        return classic_classpath()

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
        self._service = service
        service.start()
        if not service.waitUntilStarted():
            raise EmbeddedBrokerError("The broker did not start.", f"Its log is {self.log}.")

    def _plugins(self, jvm: Any) -> Any:
        security = jvm.org.apache.activemq.security
        accounts, entries = jvm.java.util.ArrayList(), jvm.java.util.ArrayList()
        for user in self._users:
            accounts.add(security.AuthenticationUser(user.name, user.password, user.name))
        for match in [">", *sorted({match for user in self._users for match in user.at})]:
            for set_destination in ("setQueue", "setTopic"):
                entries.add(self._entry(jvm, match.replace("#", ">"), set_destination, self._may(match)))
        everybody = [user.name for user in self._users]
        entries.add(self._entry(jvm, _ADVISORIES, "setTopic", (everybody, everybody, everybody)))
        plugins = self.gateway.new_array(jvm.org.apache.activemq.broker.BrokerPlugin, 2)
        plugins[0] = security.SimpleAuthenticationPlugin(accounts)
        plugins[1] = security.AuthorizationPlugin(security.DefaultAuthorizationMap(entries))
        return plugins

    def _may(self, match: str) -> tuple[list[str], ...]:
        """Who may read, write and create there."""
        given = {user.name: set(user.permissions if match == ">" else user.at.get(match, ())) for user in self._users}
        return tuple([name for name in given if given[name] & needed] for needed in (_READ, _WRITE, _ADMIN))

    @staticmethod
    def _entry(jvm: Any, match: str, set_destination: str, may: Sequence[Sequence[str]]) -> Any:
        entry = jvm.org.apache.activemq.security.AuthorizationEntry()
        getattr(entry, set_destination)(match)
        for permit, names in zip((entry.setRead, entry.setWrite, entry.setAdmin), may, strict=True):
            permit(",".join(names) or "nobody")
        return entry

    def _shut_down(self) -> None:
        self._service.stop()
        self._service.waitUntilStopped()

    def _end(self) -> None:
        super()._end()
        self._service = None

    # --- what a test asks ------------------------------------------------------------------------

    def _found(self, queue: str) -> Any:
        destinations = self.server.getBroker().getDestinationMap()
        found = destinations.get(self.jvm.org.apache.activemq.command.ActiveMQQueue(queue))
        while found is not None and str(found.getClass().getSimpleName()) != "Queue":
            found = found.getNext()  # what guards it by permissions stands before it
        return found

    @contextlib.contextmanager
    def _queue(self, name: str) -> Iterator[Any]:
        found = self._found(name)
        if found is None:
            raise EmbeddedBrokerError(f"The broker has no queue {name!r}.", "create_queue() makes one.")
        try:
            yield found
        finally:
            self._release(found)

    def has_queue(self, queue: str) -> bool:
        return self._found(queue) is not None

    def message_count(self, queue: str) -> int:
        """Messages the queue holds, those in delivery included; 0 where there is no queue."""
        if not self.has_queue(queue):
            return 0
        with self._queue(queue) as found:
            return int(found.getDestinationStatistics().getMessages().getCount())

    def delivering_count(self, queue: str) -> int:
        """Messages sent to consumers and not acknowledged yet."""
        with self._queue(queue) as found:
            return int(found.getDestinationStatistics().getInflight().getCount())

    def consumer_count(self, queue: str) -> int:
        with self._queue(queue) as found:
            return int(found.getDestinationStatistics().getConsumers().getCount())

    def delivery_counts(self, queue: str) -> list[int]:
        """How often each of the first few hundred messages was delivered, head first."""
        with self._queue(queue) as found:
            return [int(message.getRedeliveryCounter()) for message in found.browse()]

    def dead_letters(self, dead_letter_queue: str = "ActiveMQ.DLQ") -> list[DeadLetter]:
        if not self.has_queue(dead_letter_queue):
            return []
        with self._queue(dead_letter_queue) as found:
            return [_dead_letter(message) for message in found.browse()]

    def create_queue(self, name: str) -> None:
        context = self.server.getAdminConnectionContext()
        destination = self.jvm.org.apache.activemq.command.ActiveMQQueue(name)
        self.server.getBroker().addDestination(context, destination, False)  # noqa: FBT003 - not a temporary one

    def purge(self, queue: str) -> int:
        """Delete what waits in the queue; returns how many that were."""
        count = self.message_count(queue)
        with self._queue(queue) as found:
            found.purge()
        return count


def _dead_letter(message: Any) -> DeadLetter:
    origin = message.getOriginalDestination()
    queue = None if origin is None else str(origin.getPhysicalName())
    return DeadLetter(queue=queue, message_id=str(message.getMessageId().toString()))
