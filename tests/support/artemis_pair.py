"""Artemis with a backup that shares its store: ``with ArtemisPair(folder) as pair``. And two nodes of a cluster."""

from py4j.protocol import Py4JError
from waiting import wait_until

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.testing import AddressSettings, EmbeddedArtemis
from pyspark_jms.tools.testing.ports import free_port

_CLUSTER = """<cluster-connections><cluster-connection name="c"><connector-ref>own</connector-ref>
<retry-interval>500</retry-interval><message-load-balancing>ON_DEMAND</message-load-balancing><max-hops>1</max-hops>
<static-connectors><connector-ref>other</connector-ref></static-connectors></cluster-connection></cluster-connections>
"""
_POLICY = "<ha-policy><shared-store>{}<failover-on-shutdown>true</failover-on-shutdown>{}</shared-store></ha-policy>"
PRIMARY = _POLICY.format("<primary>", "</primary>")
BACKUP = _POLICY.format("<backup><allow-failback>true</allow-failback>", "</backup>")


class ClusterNode(EmbeddedArtemis):
    """A broker that knows another one. ``policy``: an ``ha-policy``; without one, both are active.

    ``redistribution_delay``: of the addresses ``redistributed.#``, in ms.
    """

    def __init__(self, directory, port, other_port, *, policy="", store=None, redistribution_delay=None):
        settings = [AddressSettings(match="redistributed.#", redistribution_delay=redistribution_delay)]
        super().__init__(directory, port, address_settings=settings)
        self._other_port, self._policy, self._store = other_port, policy, store

    def _configure(self):
        super()._configure()
        path = self.directory / "broker.xml"
        xml = path.read_text()
        for folder in ("journal", "bindings", "large-messages", "paging"):
            xml = xml.replace(f"{self.directory}/{folder}", f"{self._store or self.directory}/{folder}")
        connectors = "".join(
            f'<connector name="{name}">tcp://{self.host}:{port}</connector>'
            for name, port in (("own", self.port), ("other", self._other_port))
        )
        login = "<cluster-user>cluster</cluster-user><cluster-password>cluster</cluster-password>"
        xml = xml.replace("<acceptors>", f"<connectors>{connectors}</connectors>{login}{self._policy}<acceptors>", 1)
        path.write_text(xml.replace("<security-settings>", f"{_CLUSTER}<security-settings>", 1))

    def _boot(self, jvm):
        try:
            super()._boot(jvm)
        except EmbeddedBrokerError:
            if self._policy != BACKUP:
                raise

    def _await_ready(self, deadline):
        if self._policy != BACKUP:
            super()._await_ready(deadline)

    @property
    def active(self):
        try:
            return self.running and bool(self._server.isActive())
        except Py4JError:  # it is being killed
            return False


class ArtemisPair:
    def __init__(self, folder):
        ports = [free_port("127.0.0.1"), free_port("127.0.0.1")]
        store = folder / "store"
        self.live = ClusterNode(folder / "live", ports[0], ports[1], policy=PRIMARY, store=store)
        self.backup = ClusterNode(folder / "backup", ports[1], ports[0], policy=BACKUP, store=store)
        self.user, self.password = self.live.user, self.live.password

    @property
    def url(self):
        return f"{self.live.url},{self.backup.url}"

    @property
    def amqp_url(self):
        return f"{self.live.amqp_url},{self.backup.amqp_url}"

    @property
    def active(self):
        """The broker that answers. Waits for it."""
        wait_until(lambda: self.live.active or self.backup.active, what="a broker of the pair to be active")
        return self.live if self.live.active else self.backup

    def fail_over(self):
        """Kill the live broker; the backup takes over."""
        self.live.kill()
        wait_until(lambda: self.backup.active, what="the backup to be active")

    def fail_back(self):
        """Start the live broker again; it takes over."""
        self.live.start()
        wait_until(lambda: self.live.active and not self.backup.active, what="the live broker to be active again")

    def __enter__(self):
        self.live.start()
        self.backup.start()
        return self

    def __exit__(self, *_):
        self.live.kill()
        self.backup.kill()
