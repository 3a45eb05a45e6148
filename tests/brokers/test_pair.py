"""A live broker and its backup: three changes of the broker in the middle of a query. And two nodes of a cluster."""

import json
from collections import Counter
from contextlib import closing

import commands
import pyarrow as pa
import pytest
from amqp_sending import subscription_to
from broker_rows import access_over, read_texts
from py4j.protocol import Py4JError
from streaming import stopping
from waiting import wait_until

from pyspark_jms.amqp.sink import AmqpSinkLink
from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.network.connection import StateCondition
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.sink.sending import send_at_least_once
from pyspark_jms.spark.protocols import reading_of
from pyspark_jms.testing import AddressSettings, EmbeddedArtemis
from pyspark_jms.tools.testing.ports import free_port

pytestmark = [pytest.mark.broker, pytest.mark.deep, pytest.mark.slow]  # minutes, and CI has an hour

PORTION = 300

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
    """Artemis with a backup that shares its store."""

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


@pytest.fixture
def pair(tmp_path):
    with ArtemisPair(tmp_path / "pair") as pair:
        yield pair


def send(broker, queue, numbers):
    rows = pa.record_batch({"text": [str(number) for number in numbers]})
    options = SinkOptions.parse(access_over(broker, "amqp") | {"queue": queue})
    send_at_least_once(AmqpSinkLink, options, iter([rows]), patience=60)


class Run:
    """One query from queue ``in`` to queue ``out`` or to files. It is started again when it ended with an error."""

    def __init__(self, spark, pair, folder, protocol, guarantee):
        self._spark, self._pair, self._folder = spark, pair, folder
        self._access = access_over(pair, protocol)
        self._read = {"queue": "in", "maxMessagesPerTrigger": "50"}
        self._write = {"queue": "out"}
        exactly_once = guarantee == "exactly-once"
        self._to_files = exactly_once and protocol == "stomp"
        if self._to_files:
            self._read |= {"deliveryGuarantee": "exactly-once", "journalLocation": str(folder / "journal")}
        elif exactly_once:
            self._read |= {"deliveryGuarantee": guarantee, "readers": "1"}
            self._write["deliveryGuarantee"] = guarantee
        self._query = None

    def start(self):
        rows = self._spark.readStream.format("jms").options(**self._access, **self._read).load().select("text")
        writer = rows.writeStream.option("checkpointLocation", str(self._folder / "checkpoint"))
        if self._to_files:
            self._query = writer.foreachBatch(self._write_files).start()
        else:
            self._query = writer.format("jms").options(**self._access, **self._write).start()

    def _write_files(self, batch, number):
        """A repeated batch replaces its file."""
        target = self._folder / "out" / f"{number}.json"
        target.parent.mkdir(exist_ok=True)
        draft = target.with_suffix(".draft")  # the rows are read meanwhile
        draft.write_text(json.dumps([row.text for row in batch.collect()]))
        draft.replace(target)

    def require_running(self):
        if self._query is None or not self._query.isActive:
            self.start()
        return True

    def count(self):
        return len(self.rows()) if self._to_files else self._pair.active.message_count("out")

    def rows(self):
        if self._to_files:
            return [text for path in (self._folder / "out").glob("*.json") for text in json.loads(path.read_text())]
        access = access_over(self._pair.active, "amqp")
        return read_texts(access, "out", maxMessagesPerTrigger="100000", idleTimeout="2s")

    def await_rows(self, count):
        wait_until(lambda: self.require_running() and self.count() >= count, seconds=240, what=f"row {count}")

    def stop(self):
        if self._query is not None:
            self._query.stop()


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
def test_three_changes_of_the_broker_lose_nothing(spark, pair, tmp_path, protocol, guarantee):
    with stopping(Run(spark, pair, tmp_path, protocol, guarantee)) as run:
        for number, change in enumerate((pair.fail_over, pair.fail_back, pair.fail_over, None)):
            send(pair, "in", range(number * PORTION, (number + 1) * PORTION))
            run.await_rows(number * PORTION + PORTION // 3)
            if change is not None:
                change()
        run.await_rows(4 * PORTION)
        wait_until(lambda: run.require_running() and pair.active.message_count("in") == 0, what="the last message")
    found = Counter(run.rows())
    assert set(found) == {str(number) for number in range(4 * PORTION)}, "0 lost"
    if guarantee == "exactly-once":
        assert found.total() == 4 * PORTION, "0 twice"


@pytest.fixture
def nodes(tmp_path):
    ports = free_port("127.0.0.1"), free_port("127.0.0.1")
    first = ClusterNode(tmp_path / "a", ports[0], ports[1], redistribution_delay=0)
    second = ClusterNode(tmp_path / "b", ports[1], ports[0], redistribution_delay=0)
    with first, second:
        yield first, second


def test_a_reader_of_one_node_sees_the_other_node_s_messages_only_with_redistribution(nodes, capsys):
    first, second = nodes
    counts = {}
    for queue in ("kept", "redistributed.q"):
        send(first, queue, range(100))
        with _reading(second, queue) as link:
            if queue == "kept":
                link.has_receipt(link.probe(), wait=True)
                assert link.waiting()[0] == 0, "to AvailableNow the queue is empty"
                send(second, queue, range(100, 110))
                wait_until(lambda link=link: link.waiting()[0] >= 10)
            else:
                wait_until(lambda link=link: link.waiting()[0] == 100)
            counts[queue] = link.waiting()[0], first.message_count(queue)
    assert counts["kept"] == (10, 100)
    assert counts["redistributed.q"][0] == 100
    said = {queue: _checked(second, queue, capsys) for queue in counts}
    assert said["kept"]["verdict"] == "note"
    assert "redistribution-delay" in said["kept"]["advice"]
    assert said["redistributed.q"]["verdict"] == "fine"


def _reading(node, queue):
    options = SourceOptions.parse(access_over(node, "amqp") | {"queue": queue})
    link = reading_of(options).connect(StateCondition())
    link.subscribe(subscription_to(queue))
    return closing(link)


def _checked(node, queue, capsys):
    commands.run(access_over(node, "amqp"), "check", "--queue", queue, "--json")
    findings = {each["name"]: each for each in json.loads(capsys.readouterr().out)["findings"]}
    return findings["cluster"]
