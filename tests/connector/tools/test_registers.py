"""The commands are tested in tests/connector/tools/cli/test_staging.py; here are names, and locks that others have."""

from dataclasses import replace

import pytest
from amqp_sending import put, settings_of, subscription_to
from registers import left_registers

from pyspark_jms.amqp.link.consumer import Consumer
from pyspark_jms.amqp.link.read_register import ReadRegister, RegisterName
from pyspark_jms.errors import InvalidDestinationError, SubscriptionInUseError
from pyspark_jms.jms.model import DurableSubscription
from pyspark_jms.tools.registers import (
    drop_registers,
    list_registers,
    names_of_registers,
    registers_in,
    show_register,
    staged_in,
)


def test_queues_are_found_by_their_names():
    queues = ["a.b.0", "a.b.12", "a.b.token", "a.b.owner", "c1.a.b.3", "other.1", "a.b"]
    assert list(registers_in(queues, "a.")) == [
        RegisterName("a.b", 0),
        RegisterName("a.b", 12),
        RegisterName("a.b", 3, "c1"),
    ]
    assert all(each.queue.partition("::")[2] in queues for each in registers_in(queues, "a."))
    assert list(registers_in([r"a\.b.0", r"c\.1.a\.b\.3"], "a.")) == [
        RegisterName("a.b", 0),
        RegisterName("a.b", 3, "c.1"),
    ]


def test_a_task_that_has_a_lock_keeps_all_queues(broker, queue):
    base, settings = left_registers(broker, queue, "one", "two"), settings_of(broker)
    names = names_of_registers(settings, base, None)
    assert names == [RegisterName(base, 0), RegisterName(base, 1)]
    task = ReadRegister(settings, names[1])
    task.lock()
    assert [each.owned for each in list_registers(settings, base)] == [False, True]
    with pytest.raises(SubscriptionInUseError, match=rf"A query uses {base}\.1\. Nothing was deleted"):
        drop_registers(settings, names)
    task.close()
    counts = [staged_in(settings, each) for each in names]
    assert sum(count[f"queue://{queue}"] for count, _ in counts) == 2
    assert {batch for _, batch in counts} == {1}
    drop_registers(settings, names)
    assert list_registers(settings, base) == []


def test_a_queue_that_is_no_register_is_not_listed(broker, queue):
    broker.create_queue(f"{queue}.5")
    assert list_registers(settings_of(broker), queue) == []
    shown = show_register(settings_of(broker), RegisterName(queue, 5))
    assert (shown.tokens, shown.batch, shown.messages) == ((), None, 0)


def test_looking_for_a_staging_queue_makes_none(broker, queue):
    name, settings = RegisterName(queue, 0), settings_of(broker)
    assert show_register(settings, name).tokens == ()
    drop_registers(settings, [name])
    assert not broker.has_queue(f"{queue}.0")


@pytest.mark.parametrize("texts", [(), ("theirs",)])
def test_a_subscription_that_is_named_as_a_register_is_not_deleted(broker, queue, texts):
    base, settings = queue.replace(".", "-"), settings_of(broker)
    theirs = Consumer(replace(settings, client_id=base))
    theirs.subscribe(subscription_to(f"{base}.0", kind="topic", durable=DurableSubscription("0", base)))
    theirs.close()
    for text in texts:
        put(broker, f"{base}.0", text, kind="topic")
    with pytest.raises(InvalidDestinationError, match=r"may be no staging queue: it has .*Nothing was deleted"):
        drop_registers(settings, names_of_registers(settings, base, None))
    assert broker.message_count(f"{base}.0") == len(texts)


def test_a_register_to_which_others_have_sent_is_not_deleted(broker, queue):
    base, settings = left_registers(broker, queue, "one", readers=1), settings_of(broker)
    put(broker, f"{base}.0", "theirs", kind="topic")
    with pytest.raises(InvalidDestinationError, match="it has 1 message of another application"):
        drop_registers(settings, [RegisterName(base, 0)])
    assert staged_in(settings, RegisterName(base, 0))[0][f"queue://{queue}"] == 1
