"""Every broker in under a minute: messages in, through Spark, out, and the refusals of what it cannot do."""

import pytest
from chosen_brokers import BROKER_AS
from commands import findings_of_check
from streaming import journal_in, run_available
from waiting import await_count, wait_until

COUNT = 600
TEXT = "text {}: äöü € 😀 \\ : \t\r\nend"


def texts():
    return [([("n", str(n)), ("key", f"value {n}: \\ ä\n")], TEXT.format(n)) for n in range(COUNT)]


def test_every_message_goes_through_spark(spark, stage, queues, tmp_path):
    source, target = queues
    with stage.client() as client:
        client.put(source, texts())
    if BROKER_AS != "classic-in-production":  # ends a browse after 400 messages, which is an error
        peek = spark.read.format("jms").options(**stage.access, queue=source).load()
        assert peek.count() == COUNT
    wait_until(lambda: stage.broker.message_count(source) == COUNT, what="the peek's messages to be back")

    stream = spark.readStream.format("jms").options(**stage.access, queue=source).load()
    run_available(stream, tmp_path / "checkpoint", "jms", **stage.access, queue=target)

    wait_until(lambda: stage.broker.message_count(source) == 0, what="the last acknowledgement")
    await_count(stage.broker, target, COUNT)
    with stage.client() as client:
        found = client.get(target, COUNT)
    wanted = {body: dict(headers) for headers, body in texts()}
    assert {message.body.decode() for message in found} == set(wanted)
    for message in found:
        headers = message.headers
        assert {name: headers[name] for name in ("n", "key")} == wanted[message.body.decode()]
        assert headers["persistent"] == "true"


def test_what_it_cannot_do_is_refused_where_the_options_are_read(spark, stage, tmp_path):
    """With the broker named; that a broker found by itself is refused too, test_refusals shows."""
    named = stage.access | {"broker": stage.name, "queue": "q"}
    journal = spark.readStream.format("jms").options(**named, **journal_in(tmp_path))
    if stage.dialect.stable_id_separator is None:
        with pytest.raises(Exception, match=r"\[JMS_UNSUPPORTED\].*journalLocation"):
            journal.load()
    else:
        journal.load()
    selected = spark.readStream.format("jms").options(**named, selector="n = '1'")
    if stage.dialect.selector_dialect is None:
        with pytest.raises(Exception, match=r"\[JMS_SELECTOR_RESIDUAL\]"):
            selected.load()
    selected.option("selectorInSpark", "residual").load()


def test_the_check_finds_no_problem(stage, capsys):
    """And agrees with the table of the broker's page."""
    findings = findings_of_check(stage.access, capsys)
    assert f"dialect {stage.name}" in findings["broker"]["value"]
    assert findings["body rule"]["verdict"] == "fine"
    exactly_once = {
        name for name in ("reading, journal", "writing, ledger") if findings[name]["value"].startswith("exactly-once")
    }
    dialect = stage.dialect
    assert ("reading, journal" in exactly_once) == (dialect.stable_id_separator is not None)
    assert "writing, ledger" not in exactly_once
    assert ("transaction=none" in findings["writing"]["advice"]) == (not dialect.has_transactions)
