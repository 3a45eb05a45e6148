"""What an end of a query costs in delivery attempts: a stop nothing, a crash one of every message in flight."""

import pytest
from chosen_brokers import skip_as
from numbered import fill
from receivers import OpenReceiver
from streaming import access
from waiting import await_count, await_value, wait_until

from pyspark_jms.options.source import SourceOptions


def opened(broker, in_flight, **options):
    receiver = OpenReceiver(SourceOptions.parse(access(broker) | {"queue": "q"} | options))
    wait_until(lambda: receiver.progress()["inFlightMessages"] >= in_flight, what="the arrival of the messages")
    return receiver


@pytest.mark.deep
def test_more_stops_than_delivery_attempts_with_ten_thousand_messages_in_flight_cost_nothing(fresh_broker):
    broker = fresh_broker(max_delivery_attempts=10)
    fill(broker, "q", 10_000)
    for _ in range(12):
        receiver = opened(broker, 10_000)
        receiver.next_batch_end()  # some are offered and not done
        receiver.close()
    await_count(broker, "q", 10_000)
    await_value(lambda: set(broker.delivery_counts("q")), {0})
    await_count(broker, "DLQ", 0)


def test_crashes_cost_the_window_and_no_more(fresh_broker, report):
    skip_as("artemis-built-in", "it has no queue for dead letters")
    broker = fresh_broker(max_delivery_attempts=3)
    fill(broker, "q", 1000)
    for _ in range(3):
        receiver = opened(broker, 10, windowBytes="4k")
        in_flight = receiver.progress()["inFlightMessages"]
        receiver.crash()
        wait_until(lambda: broker.consumer_count("q") == 0, what="the end of the connection")
    counts = [0, 0]

    def all_there():  # a message on its way to the dead-letter queue is in neither
        counts[:] = broker.message_count("q"), broker.message_count("DLQ")
        return sum(counts) == 1000 and counts[1]

    wait_until(all_there, what="every message in one of the two queues")
    dead = counts[1]
    report(f"3 crashes of 3 allowed deliveries: {dead} of 1000 in the dead-letter queue, {in_flight} in the window")
    assert dead <= 2 * in_flight
