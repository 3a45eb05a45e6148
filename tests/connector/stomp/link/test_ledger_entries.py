"""A ledger entry on the wire, in both directions, and the selectors that find it. No broker."""

from dataclasses import replace

import pytest

from pyspark_jms.delivery.commit_entry import LedgerEntry
from pyspark_jms.errors import UnsupportedError
from pyspark_jms.stomp.dialects import ARTEMIS
from pyspark_jms.stomp.dialects.refusals import require_duplicate_detection
from pyspark_jms.stomp.link.ledger_entries import (
    add_sentinel,
    before_batch_selector,
    before_time_selector,
    encode_entry,
    encode_lock,
    encode_sentinel,
    encode_trial,
    is_sentinel,
    lock_queue,
    parse_entry,
    task_selector,
    write_selector,
)
from pyspark_jms.stomp.wire.frame import Frame, parse_frame

ENTRY = LedgerEntry(task="a:b/7/3", batch=7, rows=12, digest="1-abc", written_ms=1_700_000_000_000, execution="e-1")


def sent(entry=ENTRY, *, again=False):
    return encode_entry(entry, queue="pyspark-jms.commits.a", dialect=ARTEMIS, transaction="t", again=again)


def test_an_entry_is_in_the_transaction_and_its_duplicate_id_is_the_task():
    assert sent() == (
        b"SEND\ndestination:pyspark-jms.commits.a\ndestination-type:ANYCAST\npriority:9\npersistent:true\n"
        b"transaction:t\n_AMQ_DUPL_ID:a\\cb/7/3\ntask:a\\cb/7/3\nbatch:7\nrows:12\ndigest:1-abc\nat:1700000000000\n"
        b"execution:e-1\n\n\0"
    )


def test_a_second_entry_of_a_task_has_a_duplicate_id_of_its_own():
    frame = parse_frame(sent(again=True))
    assert frame.header("_AMQ_DUPL_ID") == "a:b/7/3/1-abc"
    assert parse_entry(frame) == ENTRY


def test_an_entry_is_read_back():
    frame = parse_frame(sent())
    assert parse_entry(Frame("MESSAGE", (("message-id", "1,2"), *frame.headers))) == ENTRY


def test_an_entry_without_an_execution_of_an_older_release_is_read_too():
    old = replace(ENTRY, execution=None)
    assert b"execution" not in sent(old)
    assert parse_entry(parse_frame(sent(old))) == old


@pytest.mark.parametrize("name", ["task", "batch", "rows", "digest", "at"])
def test_any_other_message_is_none(name):
    headers = parse_frame(sent()).headers
    assert parse_entry(Frame("MESSAGE", tuple(pair for pair in headers if pair[0] != name))) is None
    if name not in {"task", "digest"}:
        broken = tuple((key, "x" if key == name else value) for key, value in headers)
        assert parse_entry(Frame("MESSAGE", broken)) is None


def test_a_sentinel_comes_last_and_is_no_entry():
    frame = parse_frame(encode_sentinel("s-1", queue="q", dialect=ARTEMIS, now_ms=5))
    assert (frame.header("priority"), frame.header("persistent"), frame.header("at")) == ("0", "false", "5")
    assert is_sentinel(frame, "s-1")
    assert not is_sentinel(frame, "s-2")
    assert parse_entry(frame) is None


def test_selectors():
    assert task_selector("it's/0") == "task = 'it''s/0'"
    assert write_selector("it's") == "(task LIKE 'it''s/%' ESCAPE '!' AND NOT (task LIKE 'it''s/%/%' ESCAPE '!'))"
    assert write_selector("a_b%!").startswith("(task LIKE 'a!_b!%!!/%' ESCAPE '!' AND ")
    assert write_selector("a", except_execution="e").endswith("AND (execution IS NULL OR execution <> 'e'))")
    assert before_batch_selector(7, now_ms=4_000_000) == (
        "(task IS NOT NULL AND batch < 7) OR (sentinel IS NOT NULL AND at < 400000)"
    )
    assert before_time_selector(9, now_ms=4_000_000) == (
        "(task IS NOT NULL AND at < 9) OR (sentinel IS NOT NULL AND at < 400000)"
    )
    assert add_sentinel("a = 1", "s", ARTEMIS) == "convert_string_expressions:a = 1 OR sentinel = 's'"


def test_a_broker_without_duplicate_detection_is_refused_by_name():
    assert require_duplicate_detection(ARTEMIS) == "_AMQ_DUPL_ID"
    with pytest.raises(UnsupportedError, match=r"JMS_UNSUPPORTED.*other.*exactly-once"):
        require_duplicate_detection(replace(ARTEMIS, name="other", duplicate_id_header=None))


def test_a_trial_is_no_entry():
    frame = parse_frame(encode_trial(queue="l", dialect=ARTEMIS, transaction="trial"))
    assert (frame.command, frame.header("destination"), frame.header("transaction")) == ("SEND", "l", "trial")
    assert frame.header("_AMQ_DUPL_ID") is None
    assert parse_entry(frame) is None


def test_locks_of_a_ledger_are_one_message_group():
    frame = parse_frame(encode_lock(ledger="l", dialect=ARTEMIS))
    assert frame.header("destination") == lock_queue("l") == "l.lock"
    assert (frame.header("JMSXGroupID"), frame.header("persistent")) == ("lock", "false")
    assert parse_entry(frame) is None
