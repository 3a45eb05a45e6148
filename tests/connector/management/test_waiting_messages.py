import time

from amqp_messages import annotations, long, section, string
from amqp_sending import put, put_encoded
from waiting import wait_until

from pyspark_jms.management.waiting_messages import WaitingMessages


def test_messages_in_delivery_and_for_later_do_not_wait(broker, settings_for, open_link, queue, consume):
    put(broker, queue, "one", "two")
    put(broker, f"{queue}.2", "three")
    later = annotations(delivery_time=long(int(time.time() * 1000) + 3_600_000))
    put_encoded(broker, queue, [later + section(0x77, string("later"))])
    waiting = WaitingMessages(open_link, settings_for(broker), [queue, f"{queue}.2"])
    assert waiting.count() == 3
    consume(settings_for(broker), queue)
    wait_until(lambda: waiting.count() == 1)
    waiting.close()
    assert waiting.count() == 1, "it connects again"
    waiting.close()
