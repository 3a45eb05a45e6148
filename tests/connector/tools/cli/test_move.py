import time

import pytest
from addresses import create_in
from numbered import fill, in_queue
from rawstomp import RawStomp, frame
from waiting import await_count, await_value

from pyspark_jms.testing import EmbeddedArtemis, JmsClient
from pyspark_jms.tools import cli

NOWHERE = ["move", "--broker-url", "stomp://127.0.0.1:1"]


def test_messages_go_to_another_queue_all_or_some_or_those_that_match(commands, broker, queue):
    fill(broker, queue, 2_500)
    to = f"{queue}.to"
    over_amqp = commands.access[1].startswith("amqp")
    certain = [] if over_amqp else ["--only-text-and-bytes"]
    assert commands("move", "--queue", queue, "--to", to, "--max", "7", *certain) == 0
    assert commands.output.startswith(f"moved 7 messages from {queue} to {to} (")
    assert ("one transaction" if over_amqp else "at-least-once") in commands.output
    assert commands("move", "--queue", queue, "--to", to, "--selector", "n = '2000'", *certain) == 0
    assert commands.output.startswith("moved 1 message ")
    await_value(lambda: (broker.message_count(queue), broker.message_count(to)), (2_492, 8))
    (found,) = commands.json("move", "--queue", queue, "--to", to, *certain)
    guarantee = "exactly-once" if over_amqp else "at-least-once"
    assert found == {"moved": 2492, "targets": {to: 2492}, "left": {}, "guarantee": guarantee}
    await_value(lambda: (broker.message_count(queue), broker.message_count(to)), (0, 2_500))
    assert in_queue(broker, to) == dict.fromkeys(range(2_500), 1)


def test_a_move_of_nothing_says_why(commands, broker, queue):
    to = ["--to", f"{queue}.to", "--only-text-and-bytes"]
    assert commands("move", "--queue", queue, *to) == 1
    assert commands.errors.startswith(f"[JMS_INVALID_DESTINATION] There is no queue {queue} on this broker.")
    assert not broker.has_queue(queue)
    broker.create_queue(queue)
    assert commands("move", "--queue", queue, *to) == 0
    assert commands.output == f"moved nothing from {queue}: the queue is empty\n"
    fill(broker, queue, 3)
    assert commands("move", "--queue", queue, *to, "--selector", "n = 'x'") == 0
    assert commands.output.startswith(f"moved nothing from {queue}: it has no message that matches the selector")
    with RawStomp(broker) as other:
        other.write(frame("SUBSCRIBE", [("id", "held"), ("destination", queue), ("ack", "client-individual")]))
        assert [other.receive().command for _ in range(3)] == ["MESSAGE"] * 3
        assert commands("move", "--queue", queue, *to) == 0
    assert commands.output.startswith(f"moved nothing from {queue}: the broker delivered none of its 3 messages: ")
    await_value(lambda: broker.delivering_count(queue), 0)
    assert commands("move", "--queue", queue, *to[2:]) == 1
    assert commands.output == f"moved nothing from {queue}: its messages stay there\n"
    assert "left 3 on" in commands.errors


@pytest.mark.parametrize("address", ["amqp_url", pytest.param("url", marks=pytest.mark.deep)])
def test_dead_letters_of_the_broker_go_back_and_other_messages_stay(commands_on, killable, queue, address):
    expiry, broker = "ExpiryQueue", killable  # on ``broker``, messages of other tests expire, too
    commands = commands_on(broker, getattr(broker, address))
    with RawStomp(broker) as raw:
        for name in ("a", "b"):
            soon = int(time.time() * 1000) + 50
            raw.send(f"{queue}.{name}", [([("expires", soon), ("n", name)], name)])
            time.sleep(0.2)  # the message expires
            raw.read(f"{queue}.{name}", quiet=0.3)
    selector = ["--selector", f"_AMQ_ORIG_QUEUE LIKE '{queue}.%' OR n = '{queue}'"]
    with RawStomp(broker) as raw:
        raw.send(expiry, [([("n", queue)], "of nobody")])
    if commands.access[1].startswith("amqp"):
        selector = []
    assert commands("move", "--queue", expiry, *selector, "--only-text-and-bytes") == 1
    assert "moved 2 messages from ExpiryQueue to where they came from" in commands.output
    assert f"  1 to {queue}.a\n" in commands.output
    assert "left 1 on ExpiryQueue: neither the broker nor a property names the queue" in commands.errors
    with JmsClient(broker) as java:
        assert [java.receive(f"{queue}.{name}").body for name in ("a", "b")] == ["a", "b"]
        assert java.receive(expiry).body == "of nobody"


@pytest.mark.deep
def test_the_queues_that_a_property_names_are_printed_and_used_with_yes(commands, broker, queue):
    named = [[("spark_jms_source", f"queue://{queue}.{name}")] for name in ("a", "a", "b")]
    with RawStomp(broker) as raw:
        raw.send(queue, [(properties, "body") for properties in named])
    certain = [] if commands.access[1].startswith("amqp") else ["--only-text-and-bytes"]
    assert commands("move", "--queue", queue, *certain) == 1
    assert commands.output == f"moved nothing from {queue}: its messages stay there\n"
    left = [
        f"left {count} on {queue}: property spark_jms_source names queue '{queue}.{name}'"
        for name, count in (("a", 2), ("b", 1))
    ]
    assert all(line in commands.errors for line in left)
    assert "give --yes" in commands.errors
    assert commands("move", "--queue", queue, "--yes", *certain) == 0
    assert f"  2 to {queue}.a\n  1 to {queue}.b\n" in commands.output
    seen_before = f"{queue} has 2 messages for {queue}.a\n{queue} has 1 message for {queue}.b\n" in commands.errors
    assert seen_before is (not certain)


def test_stomp_refuses_a_queue_whose_bodies_it_does_not_carry(broker, commands_on, queue):
    commands = commands_on(broker)
    with JmsClient(broker) as java:
        java.send(queue, {"a": 1})
        java.send(queue, "text")
    assert commands("move", "--queue", queue, "--to", f"{queue}.to") == 1
    assert commands.errors.startswith(f"[JMS_UNSUPPORTED] Queue {queue} has messages that STOMP does not carry. Map ")
    await_count(broker, queue, 2)
    fill(broker, f"{queue}.many", 300)
    assert commands("move", "--queue", f"{queue}.many", "--to", f"{queue}.to") == 1
    assert "The broker lists the bodies of 200 of the 300 messages" in commands.errors
    assert commands("move", "--queue", f"{queue}.many", "--to", f"{queue}.to", "--only-text-and-bytes") == 0


def test_no_message_is_moved_to_a_queue_whose_address_has_another_name(broker, commands_on, queue):
    if not isinstance(broker, EmbeddedArtemis):
        pytest.skip("needs an embedded Artemis")
    create_in(broker, f"{queue}.address", f"{queue}.to")
    fill(broker, queue, 1)
    for url in (broker.url, broker.amqp_url):
        commands = commands_on(broker, url)
        assert commands("move", "--queue", queue, "--to", f"{queue}.to") == 1
        error = f"[JMS_INVALID_DESTINATION] Queue {queue}.to belongs to address {queue}.address. "
        assert commands.errors.startswith(error)
    await_count(broker, queue, 1)


def test_an_empty_text_stays_on_its_queue_over_stomp(broker, commands_on, queue):
    commands = commands_on(broker)
    with JmsClient(broker) as java:
        java.send(queue, "")
        java.send(queue, "text")
    assert commands("move", "--queue", queue, "--to", f"{queue}.to") == 1
    assert "left 1 on" in commands.errors
    assert "move it over AMQP" in commands.errors
    await_value(lambda: (broker.message_count(queue), broker.message_count(f"{queue}.to")), (1, 1))
    if hasattr(broker, "amqp_url"):
        assert commands_on(broker, broker.amqp_url)("move", "--queue", queue, "--to", f"{queue}.to") == 0


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (["--queue", "a", "--to", "a"], "[JMS_INVALID_OPTION] --to and --queue name the same queue."),
        (["--queue", "a", "--max", "0"], "[JMS_INVALID_OPTION] --max is 0."),
        (["--queue", "a.#"], "[JMS_INVALID_OPTION] --queue is not one plain name."),
        (["--queue", '["a", "b"]'], "[JMS_INVALID_OPTION] --queue is not one plain name."),
        (["--queue", "a", "--selector", "("], "[JMS_INVALID_SELECTOR]"),
        (["--queue", "a"], "[JMS_BROKER_UNREACHABLE]"),
    ],
)
def test_wrong_arguments_are_refused_before_it_connects(arguments, refusal, capsys):
    assert cli.main([*NOWHERE, *arguments]) == 1
    assert capsys.readouterr().err.startswith(refusal)
