"""What batch reads show on every broker over STOMP. test_over_amqp has the same over AMQP."""

import pytest
from batch_reads import assert_written_as_read, shown_of
from chosen_brokers import BROWSE_ENDS, skip_as

WHOLE = 10_500
LIMIT = 10_000
"""Where the broker cannot browse."""


def test_rows_that_were_read_with_a_schema_are_written_as_they_are(spark, stage, queues):
    hops = (stage.access | {"queue": name} for name in queues)
    assert_written_as_read(spark, *hops, stomp_of_classic=stage.name == "classic")


@pytest.mark.deep
def test_a_batch_read_shows_the_whole_queue_or_says_that_it_does_not(stage, queues, caplog):
    skip_as("classic-in-production", BROWSE_ENDS)
    queue, _ = queues
    with stage.client() as client:
        client.put(queue, [([], f"text {n}") for n in range(WHOLE)])
    shown = shown_of(stage.access | {"queue": queue})
    browses = stage.name == "classic"
    assert shown == [f"text {n}" for n in range(WHOLE if browses else LIMIT)]
    assert ("Raise maxMessagesPerTrigger and maxBytesPerTrigger" in caplog.text) is not browses
