import contextlib

import pytest

from pyspark_jms.amqp.dialects import AMQP, ARTEMIS, AZURE_SERVICE_BUS, BROKER_J, CLASSIC, IBM_MQ, RABBITMQ, SOLACE
from pyspark_jms.amqp.dialects.send_rules import SendRules
from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.stomp import dialects as stomp


def test_any_broker_takes_plain_names():
    rules = SendRules()
    assert rules.address("topic", "t") == "t"
    assert AMQP.name_problem("AMQ_SCHEDULED_DELAY") is None
    rules.check_name("activemq.management", by_row=True)


def test_no_row_names_the_connectors_own_queues():
    for rules in (SendRules(), ARTEMIS.send, CLASSIC.send):
        rules.check_name("pyspark-jms.commits", by_row=False)
        with pytest.raises(InvalidDestinationError, match="pyspark-jms"):
            rules.check_name("pyspark-jms.commits", by_row=True)


@pytest.mark.parametrize(
    "dialect", [AMQP, BROKER_J, RABBITMQ, AZURE_SERVICE_BUS, SOLACE, IBM_MQ], ids=lambda each: each.name
)
@pytest.mark.parametrize(
    "name", ["$management", "$MANAGEMENT", "orders/$management", "$cbs", "$cbs/x", "$virtualhostProperties"]
)
def test_no_row_names_a_node_by_which_a_broker_is_managed(dialect, name):
    dialect.send.check_name(name, by_row=False)
    with pytest.raises(InvalidDestinationError, match="managed over AMQP"):
        dialect.send.check_name(name, by_row=True)


def test_names_that_are_like_those_of_nodes():
    for name in ("management", "a$management", "$management2", "orders/$DeadLetterQueue"):
        AMQP.send.check_name(name, by_row=True)


@pytest.mark.parametrize(
    ("rules", "name", "read", "sent"),
    [
        (CLASSIC.send, "a,b", False, False),
        (CLASSIC.send, "a?b=c", False, False),
        (CLASSIC.send, " a", False, False),
        (CLASSIC.send, "a.>", True, False),
        (ARTEMIS.send, "a?b=c", False, True),
        (ARTEMIS.send, "a::b?c", False, True),
        (ARTEMIS.send, "a::b", True, True),
        (ARTEMIS.send, " a,b", True, True),
        (SendRules(), "a?b", True, True),
    ],
)
def test_a_name_that_the_broker_parses_is_neither_read_nor_written(rules, name, read, sent):
    for address_of, taken in ((rules.source_address, read), (rules.target_address, sent)):
        with contextlib.nullcontext() if taken else pytest.raises(InvalidDestinationError, match="The name"):
            assert address_of("queue", name).endswith(name)


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        (ARTEMIS.send, "activemq.notifications"),
        (ARTEMIS.send, "$sys.mqtt.sessions"),
        (CLASSIC.send, "activemq.advisory.x"),
    ],
)
def test_the_option_may_name_what_rows_may_not(rules, name):
    rules.check_name(name, by_row=False)
    with pytest.raises(InvalidDestinationError, match="is reserved"):
        rules.check_name(name, by_row=True)


def test_properties_that_the_broker_acts_on():
    assert ARTEMIS.name_problem("_AMQ_DUPL_ID") == "has a prefix that artemis reserves"
    assert ARTEMIS.name_problem("_AMQ_LVQ_NAME") is None
    assert CLASSIC.name_problem("AMQ_SCHEDULED_CRON") == "is one that classic acts on"
    assert CLASSIC.name_problem("_AMQ_X") is None


@pytest.mark.parametrize("name", ["ARTEMIS", "CLASSIC"])
def test_both_protocols_of_a_broker_leave_the_same_properties_out(name):
    amqp, other = {"ARTEMIS": ARTEMIS, "CLASSIC": CLASSIC}[name], getattr(stomp, name)
    assert amqp.set_by_broker == other.set_by_broker
    assert amqp.set_by_client == other.set_by_client
    assert amqp.reserved_prefixes == other.reserved_prefixes
