import pytest
from amqp_messages import application_properties, block_of, map_, section, string
from amqp_sending import put, put_encoded, settings_of, subscription_to
from proton_broker import ProtonBroker
from waiting import await_count, await_value, wait_until

from pyspark_jms.errors import TransactionRolledBackError, UnsupportedError
from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.spark.protocols import reading_of
from pyspark_jms.tools.moving.amqp import AmqpMover, _annotations_and_properties
from pyspark_jms.tools.moving.engine import move

QUEUE = DestinationKind.QUEUE


@pytest.fixture
def mover(broker, queue):
    link = AmqpMover(settings_of(broker))
    yield link
    link.close()


def _annotated(**values):
    return section(0x72, map_([(string(name.replace("_", "-")), string(value)) for name, value in values.items()]))


def test_facts_of_the_broker_are_annotations_and_properties():
    message = _annotated(x_opt_a="1") + application_properties(b=string("2")) + section(0x77, string("body"))
    assert list(_annotations_and_properties(message)) == [{"x-opt-a": "1"}, {"b": "2"}]
    assert list(_annotations_and_properties(b"\x00")) == []


@pytest.mark.parametrize(
    ("head", "origin"),
    [
        (_annotated(x_opt_ORIG_QUEUE="q", x_opt_ORIG_ADDRESS="q"), Destination(QUEUE, "q")),
        (application_properties(_AMQ_ORIG_QUEUE=string("q")), Destination(QUEUE, "q")),
        (_annotated(x_opt_ORIG_QUEUE="c.s", x_opt_ORIG_ADDRESS="topic"), None),
        (
            _annotated(x_opt_ORIG_QUEUE="q") + application_properties(_AMQ_ORIG_QUEUE=string("p")),
            Destination(QUEUE, "q"),
        ),
        (_annotated(x_opt_other="p") + application_properties(_AMQ_ORIG_QUEUE=string("q")), Destination(QUEUE, "q")),
        (b"", None),
    ],
)
def test_the_origin_is_a_queue_whose_address_has_its_name(mover, head, origin):
    assert mover.origin(block_of([head + section(0x77, string("body"))]), 0) == origin


def test_when_the_broker_refuses_to_commit_every_message_is_back_on_its_queue(broker, queue):
    """Artemis refuses at the discharge what has the duplicate id of another message."""
    repeated = application_properties(_AMQ_DUPL_ID=string(queue)) + section(0x77, string("body"))
    put_encoded(broker, f"{queue}.to", [repeated])
    queues = [f"{queue}.{number}" for number in range(12)]
    for name in queues:
        put(broker, name, *map(str, range(3)))
        link = AmqpMover(settings_of(broker))
        link.subscribe(subscription_to(name))
        wait_until(lambda link=link: link.waiting()[0] == 3)
        ids = [one for block in link.take() for one in block.ids]
        with pytest.raises(TransactionRolledBackError, match=r"did not commit: .*Nothing of this transaction was sent"):
            link.forward(ids, [(Destination(QUEUE, f"{queue}.to"), [block_of([repeated])])])
        link.close()
    for name in queues:
        await_value(lambda name=name: (broker.message_count(name), broker.delivering_count(name)), (3, 0))
    await_count(broker, f"{queue}.to", 1)


@pytest.mark.parametrize("ends", ["link", "session", "nothing"])
def test_without_transactions_nothing_is_moved(ends):
    with ProtonBroker(coordinator=ends) as peer:
        peer.queues["q"] = ["one"]
        options = SourceOptions.parse({"brokerUrl": peer.amqp_url, "queue": "q"})
        with pytest.raises(UnsupportedError, match=r"no transactions over AMQP.*Nothing was moved.*transaction=none"):
            move(reading_of(options), AmqpMover, to=Destination(QUEUE, "other"), limit=None, on_moved=print)
        assert (peer.queues["q"], peer.deliveries) == (["one"], 0)
