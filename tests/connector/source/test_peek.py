import pytest
from amqp_messages import binary, block_of, section
from amqp_sending import settings_of
from numbered import fill
from streaming import access
from waiting import await_count, await_value

from pyspark_jms.amqp.link.producer import Producer
from pyspark_jms.amqp.wire.definitions import Target
from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.peek import peek
from pyspark_jms.source.subscribing import create_subscription
from pyspark_jms.spark.protocols import source_protocol
from pyspark_jms.stomp.source import StompSource
from pyspark_jms.testing import EmbeddedArtemis, User


@pytest.fixture(params=["stomp", "amqp"])
def look(request, broker):
    """``look(queue, **options)``: the texts that a batch read shows."""
    if request.param == "amqp" and not hasattr(broker, "amqp_url"):
        pytest.skip("needs an embedded broker")

    def look(queue, on=broker, **options):
        url = on.amqp_url if request.param == "amqp" else on.url
        given = access(on) | {"brokerUrl": url, "queue": queue, "idleTimeout": "300ms"} | options
        parsed = SourceOptions.parse(given, "batch")
        return [text for batch in peek(parsed, source_protocol(parsed)) for text in batch.column("text").to_pylist()]

    return look


@pytest.mark.parametrize(
    ("bounds", "shown"), [({}, 20), ({"maxMessages": "7"}, 7), ({"maxBytes": "1"}, 1), ({"idleTimeout": "300ms"}, 20)]
)
def test_shows_what_is_there_within_the_bounds_and_takes_nothing(broker, queue, bounds, shown):
    fill(broker, queue, 20)
    options = SourceOptions.parse(access(broker) | {"queue": queue, "idleTimeout": "1s"} | bounds, "batch")
    batches = list(peek(options, StompSource()))
    assert [n for batch in batches for n in batch.column("sequence").to_pylist()] == list(range(shown))
    await_count(broker, queue, 20)
    await_value(lambda: set(broker.delivery_counts(queue)), {0})


@pytest.mark.parametrize("bounds", [{"maxMessages": "7"}, {"maxBytes": "1"}])
def test_warns_of_the_messages_that_it_does_not_show(broker, look, queue, caplog, bounds):
    fill(broker, queue, 20)
    shown = len(look(queue, **bounds))
    assert 1 <= shown < 20
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"! the read shows {shown} of the 20 messages of queue {queue}. Raise maxMessages and ")


def test_over_amqp_a_read_without_bounds_shows_all_that_was_there_at_the_start(broker, queue, caplog):
    """More than the bounds that hold elsewhere by default, and nothing twice. What is sent meanwhile does not count."""
    count = 10_500
    fill(broker, queue, count)
    options = SourceOptions.parse(access(broker) | {"brokerUrl": broker.amqp_url, "queue": queue}, "batch")
    batches = peek(options, source_protocol(options))
    found = next(batches)
    fill(broker, queue, 3)
    rows = [found, *batches]
    assert [n for rows in rows for n in rows.column("sequence").to_pylist()] == list(range(count))
    assert [text for each in rows for text in each.column("text").to_pylist()] == [f"text {n}" for n in range(count)]
    assert caplog.text == ""
    assert broker.message_count(queue) == count + 3


def test_is_silent_if_it_shows_all(broker, look, queue, caplog):
    fill(broker, queue, 7)
    assert len(look(queue, maxMessages="7")) == 7
    assert len(look(queue, selector="n = '3'")) == 1
    assert caplog.text == ""


def test_bounds_are_of_all_queues_and_the_warnings_of_each(broker, look, queue, caplog):
    for name in ("a", "b", "c"):
        fill(broker, f"{queue}.{name}", 4)
    assert len(look(f'["{queue}.a", "{queue}.b", "{queue}.c"]', maxMessages="6")) == 6
    lines = [record.getMessage().split(". Raise")[0] for record in caplog.records]
    assert lines == [
        f"! the read shows 2 of the 4 messages of queue {queue}.b",
        f"! the read shows 0 of the 4 messages of queue {queue}.c",
    ]


def test_warns_of_messages_that_another_consumer_has(broker, look, queue, caplog):
    fill(broker, queue, 5)
    options = SourceOptions.parse(access(broker) | {"queue": queue, "idleTimeout": "1m"}, "batch")
    other = peek(options, StompSource())
    held = next(other).num_rows
    while held < 5:
        held += next(other).num_rows
    caplog.clear()
    assert look(queue) == []
    assert f"the read shows 0 of the 5 messages of queue {queue}" in caplog.text
    assert ("Raise maxMessages" in caplog.text) is ("in delivery to another consumer" not in caplog.text)
    other.close()


def test_where_the_number_is_not_known_there_may_be_more(look, queue, caplog):
    permissions = {"send", "consume", "browse", "createAddress", "createDurableQueue"}
    with EmbeddedArtemis(users=[User("worker", "pw", permissions=permissions)]) as broker:
        fill(broker, queue, 3)
        assert len(look(queue, broker, user="worker", password="pw", maxMessages="2")) == 2
        assert f"the read shows 2 messages of queue {queue} and reached its limit: there may be more" in caplog.text
        caplog.clear()
        assert len(look(queue, broker, user="worker", password="pw")) == 3
        assert "the read shows" not in caplog.text


def test_a_queue_that_does_not_exist_is_warned_of_and_not_made(broker, look, queue, caplog):
    fill(broker, queue, 2)
    assert len(look(f'["{queue}.Misspelled", "{queue}"]')) == 2
    assert f"queue {queue}.Misspelled does not exist on the broker, so the read shows no messages of it" in caplog.text
    assert not broker.has_queue(f"{queue}.Misspelled")


@pytest.mark.parametrize("name", ["{topic}-c.n", "other::{topic}-c.n"])
def test_the_queue_of_a_subscription_has_one_name(broker, look, queue, name):
    wanted = {"topic": queue, "subscriptionName": "n", "clientId": f"{queue}-c"}
    create_subscription(SourceOptions.parse(access(broker) | wanted), StompSource())
    with pytest.raises(InvalidDestinationError, match=rf"Did you mean {queue}::{queue}-c\.n\?"):
        look(name.format(topic=queue))
    assert look(f"{queue}::{queue}-c.wrong") == []


def test_over_stomp_artemis_sends_the_first_of_several_data_sections(broker, queue):
    with Producer(settings_of(broker)) as producer:
        producer.open(Target(address=queue, capabilities=("queue",)))
        producer.send(block_of([section(0x75, binary(b"one")) + section(0x75, binary(b"two"))]))
        producer.commit()
    for url, expected in ((broker.url, b"one"), (broker.amqp_url, b"onetwo")):
        parsed = SourceOptions.parse(access(broker) | {"brokerUrl": url, "queue": queue}, "batch")
        [batch] = peek(parsed, source_protocol(parsed))
        assert batch.column("bytes").to_pylist() == [expected]
