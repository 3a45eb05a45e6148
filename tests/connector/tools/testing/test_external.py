import pytest

from pyspark_jms import testing
from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.testing import EmbeddedArtemis, ExternalBroker


def test_a_named_broker_is_used_instead(broker, connect, monkeypatch):
    monkeypatch.setenv("JMS_BROKER_URL", broker.url)
    monkeypatch.setenv("JMS_BROKER_USER", broker.user)
    monkeypatch.setenv("JMS_BROKER_PASSWORD", broker.password)
    with testing.broker(heap="not even looked at") as named:
        assert isinstance(named, ExternalBroker)
        assert (named.url, named.host, named.port) == (broker.url, broker.host, broker.port)
        _, answer = connect(named)
        assert answer.startswith("CONNECTED")


@pytest.mark.broker
def test_without_a_named_broker_an_embedded_one_is_started(monkeypatch, tmp_path):
    monkeypatch.delenv("JMS_BROKER_URL", raising=False)
    with testing.broker(directory=tmp_path) as embedded:
        assert isinstance(embedded, EmbeddedArtemis)
        assert embedded.running
    assert not embedded.running


@pytest.mark.parametrize(
    "question",
    [
        lambda broker: broker.message_count("q"),
        lambda broker: broker.delivery_counts("q"),
        lambda broker: broker.dead_letters(),
        lambda broker: broker.create_queue("q"),
        lambda broker: broker.create_queue("q", topic=True),
        lambda broker: broker.purge("q"),
        lambda broker: broker.jvm,
    ],
)
def test_operations_that_need_the_jvm_are_errors(question):
    with pytest.raises(EmbeddedBrokerError, match=r"\[JMS_EMBEDDED_BROKER\].*stomp://somewhere:61613"):
        question(ExternalBroker("stomp://somewhere:61613"))


def test_a_failover_list_and_no_password_in_the_repr():
    named = ExternalBroker("stomp+ssl://one:1,stomp+ssl://two:2", "me", "sesame")
    assert (named.host, named.port) == ("one", 1)
    assert repr(named) == "<ExternalBroker stomp+ssl://one:1,stomp+ssl://two:2 user=me>"


@pytest.mark.parametrize("wrong", ["localhost", "stomp://localhost", "61613"])
def test_an_invalid_address_is_an_error(wrong):
    with pytest.raises(EmbeddedBrokerError, match=rf"\[JMS_EMBEDDED_BROKER\] JMS_BROKER_URL={wrong} "):
        ExternalBroker(wrong)
