"""Brokers as people run them: their files are those of the artifacts, and a smoke test of each. Without Spark.

``make test-deep`` runs other tests on them, by BROKER_AS.
"""

import difflib
import re
import time

import pytest
from artemis_as_created import create
from broker_rows import access_over, read_texts, write_rows
from chosen_brokers import AS_PEOPLE_RUN_THEM
from classic_as_run import distributed
from commands import findings_of_check
from receivers import read_through_a_kill
from registers import ReaderQuery
from waiting import wait_until

from pyspark_jms.errors import UnsupportedError
from pyspark_jms.testing import JmsClient

pytestmark = [pytest.mark.broker, pytest.mark.deep]

TEXTS = [f"text {n}" for n in range(150)]
"""Classic delivers a page or two of 200 without an acknowledgement, and the others after 30 s."""


@pytest.fixture(scope="module", params=AS_PEOPLE_RUN_THEM)
def broker(request):
    with AS_PEOPLE_RUN_THEM[request.param]() as broker:
        broker.kind = request.param
        yield broker


over_both = pytest.mark.parametrize("protocol", ["stomp", "amqp"])
of_artemis, of_classic = (
    pytest.mark.parametrize("broker", [kind for kind in AS_PEOPLE_RUN_THEM if kind.startswith(product)], indirect=True)
    for product in ("artemis", "classic")
)


# --- the files --------------------------------------------------------------------------------------


def changed(before, after):
    """The lines of ``before`` that ``after`` does not have, and the other way round, without blanks."""
    lines = difflib.ndiff(*([line.strip() for line in text.splitlines()] for text in (before, after)))
    found = {"- ": [], "+ ": [], "  ": [], "? ": []}
    for line in lines:
        found[line[:2]].append(line[2:])
    return found["- "], found["+ "]


@of_artemis
def test_the_configuration_is_what_artemis_create_writes(broker, tmp_path):
    create(tmp_path / "again", broker.user, broker.password)
    # A part of `create` measures how fast the disk is.
    again, running = (
        re.sub(r"[\d.]+ writes per|every \d+ nano|timeout>\d+<", "…", path.read_text())
        for path in (tmp_path / "again/etc/broker.xml", broker.configuration)
    )
    gone, new = changed(again, running)
    ports = {broker.port, broker.amqp_port, *broker.other_ports.values()}
    assert {int(port) for line in new for port in re.findall(r"tcp://127\.0\.0\.1:(\d+)", line)} == ports
    without_ports = [[re.sub(r"tcp://[\d.]+:\d+", "tcp://…", line) for line in each] for each in (gone, new)]
    if broker.kind == "artemis-as-created":
        assert len(gone) == 5
        assert without_ports[0] == without_ports[1]
    else:
        assert not re.search(r"<address(-setting)? |(expiry|queue)-scan-period", running)
        assert set(without_ports[1]) <= set(without_ports[0])
    settings = broker.server.getAddressSettingsRepository().getMatch("any")
    assert settings.isAutoDeleteQueues() is (broker.kind == "artemis-built-in")
    assert broker.server.getConfiguration().getMessageExpiryScanPeriod() == 30_000
    assert broker.server.getConfiguration().getAddressQueueScanPeriod() == 30_000


@of_classic
def test_the_configuration_is_that_of_the_distribution(broker):
    gone, new = changed(distributed(), broker.configuration.read_text())
    lines = (line.replace("transport.transformer=jms&amp;", "") for line in new)
    connectors = [line for line in lines if line.startswith("<transportConnector")]
    assert len(connectors) == 3
    assert {re.sub(r"127\.0\.0\.1:\d+", "…", line) for line in connectors} == {
        re.sub(r"0\.0\.0\.0:\d+", "…", line.removeprefix("<!-- ").removesuffix(" -->"))
        for line in gone
        if line.removeprefix("<!-- ").startswith("<transportConnector")
    }
    others = [line for line in gone if "transportConnector" not in line]
    if broker.kind == "classic-as-run":
        assert others == ['<import resource="jetty-spring.xml"/>']
        assert [line for line in new if line] == connectors


# --- reading and writing ----------------------------------------------------------------------------


@over_both
def test_rows_go_in_and_come_out_also_when_the_broker_is_killed(broker, protocol, queue):
    access = access_over(broker, protocol)
    write_rows(access, queue, [{"text": text} for text in TEXTS])
    read_through_a_kill(broker, access, queue, len(TEXTS))


@over_both
def test_a_batch_read_shows_every_message_and_none_that_has_expired(broker, protocol, queue):
    access = access_over(broker, protocol)
    with JmsClient(broker.amqp_url, broker.user, broker.password) as java:
        for number in range(10):
            java.send(queue, f"expired {number}", time_to_live=200)
    sent = time.time()
    write_rows(access, queue, [{"text": text} for text in TEXTS])
    wait_until(lambda: time.time() > sent + 0.2)
    assert read_texts(access, queue) == TEXTS


@pytest.mark.parametrize("broker", ["classic-in-production"], indirect=True)
@over_both
def test_a_browse_that_a_policy_ends_is_an_error(broker, protocol, queue):
    access = access_over(broker, protocol)
    write_rows(access, queue, [{"text": text} for text in TEXTS * 4])
    with pytest.raises(UnsupportedError, match="it ends a browse at the maxBrowsePageSize"):
        read_texts(access, queue)


@of_artemis
def test_an_exactly_once_read_gives_each_message_once(broker, queue):
    write_rows(access_over(broker, "amqp"), queue, [{"text": text} for text in TEXTS])
    query = ReaderQuery(broker, queue=queue, readers=2)
    assert sorted(query.texts(len(TEXTS))) == sorted(TEXTS)


@over_both
def test_the_check_finds_no_problem(broker, protocol, queue, capsys):
    findings_of_check(access_over(broker, protocol), capsys, "--queue", queue)
