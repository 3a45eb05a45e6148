import pytest
from model_broker import BY_PRODUCER, RECOGNITION, block_of, run, text

from pyspark_jms.delivery.message_range import MessageRange
from pyspark_jms.delivery.states import WITH_JOURNAL, WITHOUT_JOURNAL, MessageState
from pyspark_jms.delivery.subscription_ledger import (
    DeliveryLedger,
    ExpectedRedeliveries,
    ExpectedRedelivery,
    SubscriptionLedger,
    other_content,
)
from pyspark_jms.errors import IllegalStateError, OtherBrokerError

BareLedger = type("BareLedger", (DeliveryLedger,), dict.fromkeys(DeliveryLedger.__abstractmethods__))
"""What both ledgers have in common, alone."""


def test_says_what_happened_and_what_to_do():
    error = other_content()
    assert isinstance(error, OtherBrokerError)
    assert str(error).startswith("[JMS_OTHER_BROKER] ")
    assert "brokerUrl" in error.remedy


def ledger_of(table, recognition=RECOGNITION, confirmed=None):
    return SubscriptionLedger(
        ExpectedRedeliveries(table, recognition), [].append if confirmed is None else confirmed.append
    )


def expecting(*messages, table=WITHOUT_JOURNAL, state=MessageState.ACK_ON_REDELIVERY):
    source = ExpectedRedeliveries(table, RECOGNITION)
    for index, message in enumerate(messages):
        known = run(1, message)
        one = ExpectedRedelivery(RECOGNITION.fingerprint(known, 0), state, MessageRange(0, known, 0, 1), index)
        source.expect(b"%d" % message, one)
    return source


def test_ids_are_due_until_their_acks_are_sent_and_unconfirmed_until_the_receipt():
    ledger = ledger_of(WITHOUT_JOURNAL, confirmed=(confirmed := []))
    ledgers = BareLedger([ledger])
    ledger.add_round([b"1,5", b"1,6"], "a batch", MessageState.DONE)
    [ack] = ledgers.due(0)
    assert (ack.ids, ledgers.unconfirmed(0)) == ([b"1,5", b"1,6"], [])
    ack.sent("r1")
    ledger.add_round([b"1,7"], "another", MessageState.DONE)
    assert [due.what for due in ledgers.due(0)] == ["another"]
    assert ledgers.unconfirmed(0) == [ack]
    assert (ack.confirmed(), ack.state, confirmed) == (2, MessageState.ACKNOWLEDGED, ["a batch"])
    assert [left.what for left in ledger.rounds] == ["another"]


@pytest.mark.parametrize(
    ("table", "allowed", "after"),
    [
        (WITHOUT_JOURNAL, MessageState.DONE, MessageState.ACK_ON_REDELIVERY),
        (WITH_JOURNAL, MessageState.DURABLE, MessageState.LOST),
    ],
)
def test_a_lost_connection_ends_what_has_no_receipt(table, allowed, after):
    ledger = ledger_of(table)
    ledger.add_round([b"1,5"], "sent", allowed)
    [sent] = ledger.rounds
    sent.sent("r1")
    ledger.add_round([b"1,6"], "due", allowed)
    assert [(due.what, due.state) for due in ledger.lose()] == [("sent", after), ("due", after)]
    assert ledger.rounds == []
    with pytest.raises(IllegalStateError, match=f"'receipt' .*'{after.value}'"):
        sent.confirmed()


def test_no_ack_for_what_may_not_be_acknowledged():
    ledger = ledger_of(WITHOUT_JOURNAL)
    ledger.add_round([b"1,5"], None, MessageState.OFFERED)
    with pytest.raises(IllegalStateError, match=r"'ack' .*without a journal .*'offered'"):
        ledger.rounds[0].sent("r1")


@pytest.mark.parametrize(
    ("awaited", "upto", "new", "again"),
    [
        ([], 5, [(0, 5)], []),
        ([], 0, [], []),
        ([99], 5, [(0, 5)], []),
        ([10], 5, [(1, 5)], [0]),
        ([12], 5, [(0, 2), (3, 5)], [2]),
        ([14, 99], 5, [(0, 4)], [4]),
        ([11, 12], 5, [(0, 1), (3, 5)], [1, 2]),
        ([10, 11, 12, 13, 14], 5, [], [0, 1, 2, 3, 4]),
        ([11, 13], 3, [(0, 1), (2, 3)], [1, 3]),
        ([11, 13], 0, [], [1, 3]),
    ],
)
def test_sifts_what_is_new_from_what_came_again(awaited, upto, new, again):
    source = expecting(*awaited)
    found = source.split_redelivered(run(2, 10, 11, 12, 13, 14), upto)
    assert found[0] == new
    assert [index for index, _ in found[1]] == again
    assert all(one.state is MessageState.DONE for _, one in found[1])
    assert set(source.expected) == {b"%d" % message for message in awaited} - {b"%d" % (10 + index) for index in again}


def test_another_content_is_another_broker_and_nothing_has_changed():
    source = expecting(10, 11)
    with pytest.raises(OtherBrokerError):
        source.split_redelivered(block_of([b"2,10", b"2,11"], [text(10), b"other"]), 2)
    assert [one.state for [one] in source.expected.values()] == [
        MessageState.ACK_ON_REDELIVERY,
        MessageState.ACK_ON_REDELIVERY,
    ]


def test_a_broker_that_sends_a_message_twice_on_one_connection_is_named():
    source = expecting(10)
    with pytest.raises(IllegalStateError, match=r"'recognise' .*without a journal .*'done'"):
        source.split_redelivered(run(2, 10, 10), 2)


def equal(consumer, *contents):
    return block_of([b"%d,%d" % (consumer, index) for index in range(len(contents))], contents)


def expecting_equal(*contents, state=MessageState.ACK_ON_REDELIVERY):
    source = ExpectedRedeliveries(WITHOUT_JOURNAL, BY_PRODUCER)
    block = equal(1, *contents)
    for index in range(len(contents)):
        range_ = MessageRange(0, block, 0, len(contents))
        one = ExpectedRedelivery(BY_PRODUCER.fingerprint(block, index), state, range_, index)
        source.expect(source.identity(block, index), one)
    return source


@pytest.mark.parametrize(
    ("expected", "contents", "new", "again"),
    [
        ([b"a", b"a"], [b"a", b"a"], [], [(0, 0), (1, 1)]),
        ([b"a", b"a"], [b"a", b"a", b"a"], [(2, 3)], [(0, 0), (1, 1)]),
        ([b"a"], [b"b", b"a", b"a"], [(0, 1), (2, 3)], [(1, 0)]),
        ([b"a", b"b", b"a"], [b"a", b"b"], [], [(0, 0), (1, 1)]),
        ([b"a", b"a"], [b"b", b"b"], [(0, 2)], []),  # other content: another message, whatever its id
    ],
)
def test_equal_messages_are_recognised_first_come_first_served(expected, contents, new, again):
    source = expecting_equal(*expected)
    found = source.split_redelivered(equal(2, *contents), len(contents))
    assert (found[0], [(index, one.index) for index, one in found[1]]) == (new, again)
    assert source.expected_messages == len(expected) - len(again)


def test_of_equal_messages_those_that_may_be_given_up_are():
    source = expecting_equal(b"a", b"a", b"a")
    [known] = source.expected.values()
    known[0].state = MessageState.LOST  # its batch is open
    identity = source.identity(equal(1, b"a"), 0)
    source.give_up([identity])
    assert [(one.index, one.state) for one in known] == [(0, MessageState.LOST), (2, MessageState.ACK_ON_REDELIVERY)]


def test_gives_up():
    source = expecting(10, 11)
    source.give_up([b"10"])
    assert source.split_redelivered(run(2, 10, 11), 2)[0] == [(0, 1)]
    with pytest.raises(IllegalStateError, match=r"'give up' .* 'lost'"):
        expecting(10, state=MessageState.LOST).give_up([b"10"])


def test_subscriptions_are_apart():
    ledgers = BareLedger([SubscriptionLedger(expecting(10), [].append), ledger_of(WITHOUT_JOURNAL, None)])
    ledgers._ledgers[1].add_round([b"1,5", b"1,6"], None, MessageState.DONE)
    assert [ledgers.expects(subscription) for subscription in (0, 1)] == [True, False]
    assert [[ack.ids for ack in ledgers.due(subscription)] for subscription in (0, 1)] == [[], [[b"1,5", b"1,6"]]]
    ledgers.due(1)[0].sent("r1")
    assert [[ack.receipt for ack in ledgers.unconfirmed(subscription)] for subscription in (0, 1)] == [[], ["r1"]]
    assert ledgers.due(1) == []
