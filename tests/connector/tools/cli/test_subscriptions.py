import pytest
from rawstomp import RawStomp
from waiting import await_count, await_value

from pyspark_jms.tools import cli


@pytest.mark.parametrize("client", [["--client-id", "c"], []])
def test_the_broker_keeps_what_is_sent_before_the_first_reader(commands, broker, queue, client):
    alone = queue.replace(".", "-")
    name = [*client, "--subscription-name", alone]
    stored = f"c.{alone}" if client else alone
    assert commands("subscribe", "--topic", f"news.{queue}", *name) == 0
    assert commands.output == f"{stored}: the broker keeps the messages of topic news.{queue} from now on\n"
    with RawStomp(broker) as raw:
        raw.send(f"news.{queue}", [([], "early")], topic=True)
    assert commands("subscribe", "--topic", f"news.{queue}", *name) == 0  # it exists: nothing changes
    found = [name for name in {stored, f"{stored}:global"} if broker.has_queue(name)]
    await_value(lambda: [broker.message_count(q) for q in found], [1])
    assert commands("unsubscribe", "--topic", f"news.{queue}", *name) == 0
    assert not any(map(broker.has_queue, found))


def test_another_selector_is_refused(commands, broker, queue):
    name = ["--topic", f"news.{queue}", "--client-id", queue, "--subscription-name", "s"]
    (made,) = commands.json("subscribe", *name, "--selector", "a = 'x'")
    assert made == {"subscription": f"{queue}.s", "topic": f"news.{queue}", "selector": "a = 'x'"}
    assert commands("subscribe", *name, "--selector", "a = 'y'") == 1
    assert commands.errors.startswith("[JMS_SELECTOR_CHANGED]")
    with RawStomp(broker) as raw:
        raw.send(f"news.{queue}", [([("a", "x")], "kept"), ([("a", "y")], "not")], topic=True)
    await_count(broker, f"{queue}.s", 1)


@pytest.mark.parametrize("command", ["subscribe", "unsubscribe"])
def test_wrong_options_are_refused_before_it_connects(command, capsys):
    given = [command, "--broker-url", "stomp://127.0.0.1:1", "--topic", "t", "--subscription-name", "s"]
    assert cli.main([*given, "--option", "broker=classic"]) == 1
    assert "[JMS_UNSUPPORTED] classic " in capsys.readouterr().err
    assert cli.main(given) == 1
    assert "[JMS_BROKER_UNREACHABLE]" in capsys.readouterr().err
