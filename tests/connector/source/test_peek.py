import pytest
from numbered import fill
from streaming import access
from waiting import await_count, await_value

from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.peek import peek
from pyspark_jms.stomp.source import StompSource


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
