import json
import uuid

import pytest
from amqp_sending import put, settings_of
from registers import ReaderQuery, left_registers
from waiting import wait_until

from pyspark_jms.tools import cli


@pytest.fixture
def command(broker, capsys, monkeypatch):
    settings_of(broker)  # skips without AMQP
    monkeypatch.setenv("SECRET", broker.password)

    def run(action, *arguments):
        access = ["--broker-url", broker.amqp_url, "--user", broker.user, "--password-env", "SECRET"]
        code = cli.main(["staging", action, *access, *arguments])
        return code, capsys.readouterr()

    return run


def test_the_queues_of_readers_are_listed_with_what_they_have(command, broker, queue):
    base = left_registers(broker, queue, "one", "two", "three")
    code, output = command("list", "--prefix", base, "--json")
    first, second = json.loads(output.out)
    assert code == 0
    assert [(each["name"], each["reader"]) for each in (first, second)] == [(f"{base}.0", 0), (f"{base}.1", 1)]
    assert first["stream"] == second["stream"] is not None
    assert (first["batch"], first["tokens"], first["owned"]) == (1, 1, False)
    assert first["messages"] + second["messages"] == 3
    lines = command("list")[1].out.splitlines()
    [line] = [each for each in lines if each.startswith(f"{base}.0  stream ")]
    assert line.endswith("1 token, no query uses it")


def test_what_the_queues_of_readers_have(command, broker, queue):
    base = left_registers(broker, queue, "one", "two", "three", readers=1)
    for name in (base, f"{base}.0"):
        code, output = command("show", "--queue", name, "--json")
        shown = json.loads(output.out)
        assert code == 0
        assert (shown["name"], shown["reader"], shown["batch"], shown["next"]) == (f"{base}.0", 0, 1, 3)
        assert (shown["messages"], shown["sources"]) == (3, [f"queue://{queue}"])
    assert "messages        3" in command("show", "--queue", base)[1].out


def test_the_queues_of_all_readers_are_deleted_together(command, broker, queue):
    base = left_registers(broker, queue, "one", "two")
    code, output = command("drop", "--queue", base)
    assert code == 1
    assert output.out.count("--yes deletes them") == 2
    assert broker.has_queue(f"{base}.0")
    code, output = command("drop", "--queue", base, "--yes")
    assert (code, output.out.count(": deleted, with")) == (0, 2)
    wait_until(lambda: not broker.has_queue(f"{base}.0") and not broker.has_queue(f"{base}.1"))


def test_the_queue_of_a_reader_is_not_deleted_while_the_query_waits_for_messages(command, broker, queue):
    base = f"pyspark-jms.staging.s{uuid.uuid4().hex[:8]}"
    running = ReaderQuery(broker, queue=queue, stagingQueue=base)
    put(broker, queue, "one")
    assert running.texts(1) == ["one"]
    for name in (base, f"{base}.0"):
        code, output = command("drop", "--queue", name, "--yes")
        assert code == 1
        assert "[JMS_SUBSCRIPTION_IN_USE]" in output.err
    assert command("list", "--prefix", base)[1].out.endswith("in use\n")
    put(broker, queue, "two")
    assert running.texts(1) == ["two"]
    running.source.stop()
    wait_until(lambda: command("list", "--prefix", base)[1].out.endswith("no query uses it\n"))
    assert command("drop", "--queue", base, "--yes")[0] == 0


@pytest.mark.parametrize("action", ["show", "drop"])
def test_a_staging_queue_that_is_not_there(command, queue, action):
    code, output = command(action, "--queue", f"{queue}.mine")
    assert code == 1
    assert f"[JMS_INVALID_DESTINATION] There is no staging queue {queue}.mine" in output.err


def test_another_protocol_is_refused(capsys, queue):
    assert cli.main(["staging", "list", "--broker-url", "stomp://localhost:61613"]) == 1
    assert "[JMS_UNSUPPORTED] A staging queue is reached over AMQP" in capsys.readouterr().err
