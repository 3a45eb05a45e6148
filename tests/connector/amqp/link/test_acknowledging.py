import pytest
from waiting import await_count, wait_until

from pyspark_jms.amqp.link.consumer import Consumer
from pyspark_jms.errors import ConnectionLostError


def test_a_confirmed_acknowledgement_survives_a_killed_broker(killable, queue, settings_for, put, subscription_to):
    broker = killable
    put(broker, queue, *map(str, range(100)))
    link = Consumer(settings_for(broker))
    link.subscribe(subscription_to(queue))
    wait_until(lambda: link.waiting()[0] == 100)
    [block] = link.take()
    link.has_receipt(link.acknowledge(block.ids[:40]), wait=True)
    broker.kill()
    wait_until(lambda: link.connection.is_down)
    with pytest.raises(ConnectionLostError):
        link.acknowledge(block.ids[40:])
    link.close()
    broker.start()
    await_count(broker, queue, 60)


def test_many_acknowledgements_wait_for_no_confirmation(broker, queue, settings_for, put, subscription_to, opened):
    put(broker, queue, *map(str, range(60)))
    link = opened(Consumer(settings_for(broker)))
    link.subscribe(subscription_to(queue))
    assert link.confirms_acknowledgements
    wait_until(lambda: link.waiting()[0] == 60)
    ids = [one for block in link.take() for one in block.ids]
    receipts = [link.acknowledge([one]) for one in reversed(ids)]
    for receipt in receipts:
        link.has_receipt(receipt, wait=True)
    await_count(broker, queue, 0)
