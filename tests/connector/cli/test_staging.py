import json
import uuid

import pytest
from amqp_sending import put, settings_of
from registers import ReaderQuery, left_registers
from streaming import left
from waiting import await_count, wait_until

from pyspark_jms import cli
from pyspark_jms.amqp.link.staging_queue import Names, StagingQueue
from pyspark_jms.blocks.block import MessageBlock, index_of
from pyspark_jms.blocks.staged import pack
from pyspark_jms.delivery.staging.tokens import SourceToken


@pytest.fixture
def command(broker, capsys, monkeypatch):
    settings_of(broker)  # skips without AMQP
    monkeypatch.setenv("SECRET", broker.password)

    def run(action, *arguments):
        access = ["--broker-url", broker.amqp_url, "--user", broker.user, "--password-env", "SECRET"]
        code = cli.main(["staging", action, *access, *arguments])
        return code, capsys.readouterr()

    return run


@pytest.fixture
def staged(broker):
    """A staging queue with a token and three messages, whose query has ended."""
    name = f"pyspark-jms.staging.{uuid.uuid4().hex[:8]}"
    queue = StagingQueue(settings_of(broker), Names(name, "s1"))
    queue.lock()
    queue.create_token(SourceToken(id="s1", name="s1", next=10, floor=7).text())
    queue.take_tokens()
    messages = MessageBlock(b"abc", ends=index_of_ends(1, 2, 3))
    token = SourceToken(id="s1", name="s1", next=10, floor=7).text()
    queue.send_blocks([(7, 3, pack(messages, 0, 3, source="queue://q", dialect="artemis"))])
    queue.commit(token)
    queue.close()
    return name


def index_of_ends(*ends):
    import numpy as np

    return index_of(np.array(ends))


def test_a_queue_that_no_query_uses_is_listed_and_not_deleted(command, staged, broker):
    code, output = command("list", "--json")
    [own] = [each for each in json.loads(output.out) if each["name"] == staged]
    assert (code, own) == (0, {"name": staged, "blocks": 1, "tokens": 1, "owned": False})
    _, output = command("list", "--prefix", staged)
    assert output.out == f"{staged}  1 blocks, 1 tokens, no query uses it\n"
    await_count(broker, f"{staged}.owner", 1)


def test_what_a_queue_has(command, staged):
    code, output = command("show", "--queue", staged, "--json")
    shown = json.loads(output.out)
    assert 0 <= shown.pop("oldest_seconds") < 60
    assert code == 0
    assert len(shown.pop("tokens")) == 1
    assert shown == {
        "name": staged, "streams": ["s1"], "next": 10, "floor": 7, "blocks": 1, "messages": 3, "bytes": 3,
        "sources": ["queue://q"],
    }  # fmt: skip
    _, output = command("show", "--queue", staged)
    assert "messages        3" in output.out


def test_drop_deletes_only_with_yes(command, staged, broker):
    code, output = command("drop", "--queue", staged)
    assert (code, output.out) == (1, f"{staged} has 3 messages in 1 blocks. --yes deletes them\n")
    assert left(broker, f"{staged}.owner", 1) == 1
    code, output = command("drop", "--queue", staged, "--yes")
    assert (code, output.out) == (0, f"{staged}: deleted, with 3 messages in 1 blocks\n")
    wait_until(lambda: not broker.has_queue(f"{staged}.owner"))
    wait_until(lambda: not broker.has_queue(f"{staged}.token") or not broker.message_count(f"{staged}.token"))


def test_a_queue_in_use_is_not_deleted(command, staged, broker):
    owner = StagingQueue(settings_of(broker), Names(staged, "s1"))
    owner.lock()
    code, output = command("drop", "--queue", staged, "--yes")
    assert code == 1
    assert "[JMS_SUBSCRIPTION_IN_USE]" in output.err
    assert f"{staged}  1 blocks, 1 tokens, in use\n" in command("list")[1].out
    owner.close()
    assert left(broker, f"{staged}.owner", 1) == 1


# --- queues of readers ----------------------------------------------------------------------------------


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
    assert line.endswith("1 tokens, no query uses it")


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
    base = f"pyspark-jms.staging.{uuid.uuid4().hex[:8]}"
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


def test_another_protocol_is_refused(capsys, queue):
    assert cli.main(["staging", "list", "--broker-url", "stomp://localhost:61613"]) == 1
    assert "[JMS_UNSUPPORTED] A staging queue is reached over AMQP" in capsys.readouterr().err
