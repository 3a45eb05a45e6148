"""Topics on every broker: plain, durable, shared, by a pattern; a changed selector; the end of a subscription."""

import itertools
import json
import uuid
from collections import Counter, defaultdict

import commands
import pytest
from streaming import journal_in, run_available
from waiting import wait_until

slow = pytest.mark.slow


@pytest.fixture
def topic():
    return f"t.{uuid.uuid4().hex[:8]}"


@pytest.fixture
def reading(spark, stage, tmp_path, topic):
    """``reading(folder, **options)``: one AvailableNow run of a query on the topic; the texts that it found."""
    seen = defaultdict(Counter)

    def read(folder="one", topic=topic, **options):
        stream, out = stream_of(spark, stage, topic, **options), str(tmp_path / f"{folder}.out")
        run_available(stream.select("text"), tmp_path / folder, "parquet", path=out)
        found = Counter(row.text for row in spark.read.schema("text string").parquet(out).collect())
        fresh = found - seen[folder]
        seen[folder] = found
        return sorted(fresh.elements())

    return read


def stream_of(spark, stage, topic, **options):
    options |= {"topic": topic, "idleTimeout": "300ms"}
    return spark.readStream.format("jms").options(**stage.access, **options).load()


def durable(name="daily", client="app", **options):
    return {"subscriptionName": name, "clientId": client} | options


def publish(stage, topic, *texts, **properties):
    with stage.client() as client:
        client.publish(topic, *texts, **properties)


def unsubscribe(stage, topic, subscription, client=None):
    named = ["--topic", topic, "--subscription-name", subscription, *(["--client-id", client] if client else [])]
    return commands.run(stage.access, "unsubscribe", *named)


@pytest.mark.deep
def test_a_durable_subscription_keeps_what_is_sent_while_nobody_reads(stage, topic, reading, documented, capsys):
    """Also what was sent before it was ended is gone with it."""
    assert documented["topics, durable subscriptions"] == "yes"
    client = f"c{topic[2:]}"
    assert reading(**durable(client=client)) == []
    publish(stage, topic, "a", "b", "c")
    assert reading(**durable(client=client)) == ["a", "b", "c"]
    publish(stage, topic, "d")
    assert unsubscribe(stage, topic, "daily", client) == 0
    assert f"{client}.daily: ended" in capsys.readouterr().out
    publish(stage, topic, "e")
    assert reading(**durable(client=client)) == []
    assert unsubscribe(stage, topic, "daily", client) == 0


def test_the_end_of_a_subscription_that_is_not_there_is_an_error(stage, topic, capsys):
    assert unsubscribe(stage, topic, "daily", f"c{topic[2:]}") == 1
    assert f"[JMS_INVALID_DESTINATION] There is no durable subscription c{topic[2:]}.daily" in capsys.readouterr().err
    assert unsubscribe(stage, topic, topic[2:]) == 1
    documented = "[JMS_UNSUPPORTED]" if stage.name == "classic" else f"There is no durable subscription {topic[2:]}."
    assert documented in capsys.readouterr().err


@slow
def test_a_plain_subscription_has_what_is_sent_while_it_is_connected(spark, stage, topic, tmp_path, reading):
    publish(stage, topic, "before")
    assert reading() == []
    name = f"plain_{topic[2:]}"
    stream = stream_of(spark, stage, topic)
    writer = stream.writeStream.format("memory").queryName(name).option("checkpointLocation", str(tmp_path / "live"))
    query = writer.start()
    wait_until(lambda: latest(query).get("broker"), what="the subscription")
    assert latest(query)["guarantee"] == "at-most-once (plain topic subscription)"
    publish(stage, topic, "while")
    wait_until(lambda: spark.table(name).count() == 1, what="its message")
    query.stop()
    publish(stage, topic, "after")
    assert reading() == []


def latest(query):
    progress = query.lastProgress
    return json.loads(progress.sources[0].latestOffset or "{}") if progress else {}


@slow
def test_a_pattern_reads_many_topics_and_a_row_says_which(spark, stage, topic, tmp_path):
    pattern = f"{topic}.>" if stage.name == "classic" else f"{topic}.#"
    stream = stream_of(spark, stage, pattern, **durable(client=f"c{topic[2:]}"))
    name = f"pattern_{topic[2:]}"
    run_available(stream, tmp_path / "first", "noop")
    publish(stage, f"{topic}.eu", "one")
    publish(stage, f"{topic}.us.east", "two")
    publish(stage, f"{topic}x", "three")
    run_available(stream, tmp_path / "second", "memory", name=name)
    found = {row.text: row.JMSDestination for row in spark.table(name).collect()}
    assert found == {"one": f"topic://{topic}.eu", "two": f"topic://{topic}.us.east"}
    unsubscribe(stage, pattern, "daily", f"c{topic[2:]}")


@slow
@pytest.mark.parametrize("client", [None, "team"], ids=["no client id", "client id"])
def test_queries_that_share_a_subscription_have_each_message_once(spark, stage, topic, tmp_path, documented, client):
    shared = topic.replace(".", "-")
    options = {"subscriptionName": shared, "sharedSubscription": "true"} | ({"clientId": client} if client else {})
    if documented["shared durable subscriptions (`sharedSubscription`)"] == "refused":
        with pytest.raises(Exception, match=r"\[JMS_UNSUPPORTED\].*Consumer\.GROUP\.VirtualTopic"):
            run_available(stream_of(spark, stage, topic, **options), tmp_path, "noop")
        assert instead(spark, stage, topic, tmp_path) == ["one", "two"]
        return
    streams = [stream_of(spark, stage, topic, windowBytes="8k", **options) for _ in range(2)]
    names = [f"share{number}_{topic[2:]}" for number in range(2)]
    queries = [
        stream.writeStream.format("memory").queryName(name).option("checkpointLocation", str(tmp_path / name)).start()
        for stream, name in zip(streams, names, strict=True)
    ]
    for query in queries:
        wait_until(lambda: latest(query).get("broker"), what="the subscription")  # noqa: B023
    texts = [f"{number:03}" for number in range(200)]
    publish(stage, topic, *texts)

    def found():
        return [[row.text for row in spark.table(name).collect()] for name in names]

    wait_until(lambda: sum(map(len, found())) >= len(texts), what="all messages")
    shares = found()
    assert sorted(itertools.chain(*shares)) == texts
    assert all(shares), "one query had all of them"
    for query in queries:
        query.stop()
    publish(stage, topic, "kept")
    late = f"late_{topic[2:]}"
    run_available(streams[0], tmp_path / late, "memory", name=late)
    assert [row.text for row in spark.table(late).collect()] == ["kept"]
    assert unsubscribe(stage, topic, shared, client) == 0


def instead(spark, stage, topic, folder):
    """The remedy in the refusal: a virtual topic."""
    queue = f"Consumer.GROUP.VirtualTopic.{topic}"
    stage.broker.create_queue(queue)
    publish(stage, f"VirtualTopic.{topic}", "one", "two")
    stream = spark.readStream.format("jms").options(**stage.access, queue=queue).load()
    run_available(stream, folder / "virtual", "memory", name=f"virtual_{topic[2:]}")
    return sorted(row.text for row in spark.table(f"virtual_{topic[2:]}").collect())


@slow
@pytest.mark.parametrize("checkpoint", ["the same", "another"])
def test_a_changed_selector_is_noticed_before_anything_is_lost(stage, topic, reading, checkpoint):
    """By the checkpoint, on every broker that has selectors; by Artemis itself also without it."""
    if stage.dialect.selector_dialect is None or (
        checkpoint == "another" and not stage.dialect.durable_subscriptions.ignores_changed_selector
    ):
        return
    client = f"c{topic[2:]}"
    folders = ("one", "one") if checkpoint == "the same" else ("one", "two")
    assert reading(folders[0], **durable(client=client, selector="colour = 'red'")) == []
    publish(stage, topic, "red", colour="red")
    publish(stage, topic, "blue", colour="blue")
    assert reading(folders[0], **durable(client=client, selector="colour = 'red'")) == ["red"]
    publish(stage, topic, "more", colour="red")
    with pytest.raises(Exception, match=r"\[JMS_SELECTOR_CHANGED\].*pyspark-jms unsubscribe"):
        reading(folders[1], **durable(client=client, selector="colour = 'blue'"))
    assert reading(folders[0], **durable(client=client, selector="colour = 'red'")) == ["more"]
    assert unsubscribe(stage, topic, "daily", client) == 0


@slow
def test_a_selector_of_a_shared_subscription_needs_a_client_id_where_it_would_be_ignored(spark, stage, topic, tmp_path):
    if stage.dialect.durable_subscriptions.destination_without_client_id is None:
        return
    options = {"subscriptionName": topic.replace(".", "-"), "sharedSubscription": "true", "selector": "colour = 'red'"}
    with pytest.raises(Exception, match=r"\[JMS_UNSUPPORTED\].*clientId"):
        run_available(stream_of(spark, stage, topic, **options), tmp_path, "noop")


@slow
def test_a_subscription_to_another_topic_is_not_taken_for_this_one(stage, topic, reading):
    if not stage.dialect.durable_subscriptions.ignores_changed_selector:
        return
    client = f"c{topic[2:]}"
    assert reading(**durable(client=client)) == []
    with pytest.raises(Exception, match=rf"\[JMS_INVALID_DESTINATION\].*{topic}"):
        reading("two", **durable(client=client, topic=f"{topic}.other"))
    assert unsubscribe(stage, topic, "daily", client) == 0


@slow
def test_a_journal_keeps_a_durable_subscription_too(stage, topic, reading, tmp_path):
    if stage.dialect.stable_id_separator is None:
        return
    options = durable(client=f"c{topic[2:]}", **journal_in(tmp_path / "journal"))
    assert reading(**options) == []
    publish(stage, topic, "a", "b")
    assert reading(**options) == ["a", "b"]
    publish(stage, topic, "c")
    assert reading(**options) == ["c"]
    assert unsubscribe(stage, topic, "daily", f"c{topic[2:]}") == 0


@slow
def test_what_is_read_by_another_is_not_ended(spark, stage, topic, tmp_path, capsys):
    """RabbitMQ ends it under the reader."""
    client = f"c{topic[2:]}"
    stream = stream_of(spark, stage, topic, **durable(client=client))
    writer = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "live"))
    query = writer.start()
    wait_until(lambda: latest(query).get("broker"), what="the subscription")
    if stage.dialect.management is not None:
        wait_until(lambda: latest(query).get("depth") == 0, what="the depth of the subscription's queue")
    if stage.name != "rabbitmq":
        assert unsubscribe(stage, topic, "daily", client) == 1
        assert "[JMS_SUBSCRIPTION_IN_USE]" in capsys.readouterr().err
    query.stop()
    wait_until(lambda: unsubscribe(stage, topic, "daily", client) == 0, what="the query's end")
