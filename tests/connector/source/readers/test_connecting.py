import pytest

from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.readers.connecting import queue_of, subscriptions_of

GIVEN = {"brokerUrl": "amqp://h:1", "deliveryGuarantee": "exactly-once"}


def options(**more):
    return SourceOptions.parse(GIVEN | more)


def test_the_staging_queue_is_named_by_the_stream_or_by_the_user():
    assert queue_of(options(queue="q"), "abc") == "pyspark-jms.staging.abc"
    assert queue_of(options(queue="q", stagingQueue="mine"), "abc") == "mine"


@pytest.mark.parametrize(("most", "each"), [(None, None), ("10", 5), ("1", 1)])
def test_the_limits_of_a_batch_are_shared_among_the_sources(most, each):
    class Link:
        from pyspark_jms.amqp.dialects import ARTEMIS as dialect  # noqa: N811

    limits = {"maxBytesPerTrigger": "1000"} | ({"maxMessagesPerTrigger": most} if most else {})
    made = subscriptions_of(options(queue='["a", "b"]', selector="x = 1", **limits), Link())
    assert [str(one.destination) for one in made] == ["queue://a", "queue://b"]
    assert {(one.window_bytes, one.window_messages, one.selector) for one in made} == {(500, each, "x = 1")}
