import json

import pytest

from pyspark_jms.delivery.journal.binding import JournalMark
from pyspark_jms.delivery.register.token import Offset
from pyspark_jms.errors import IllegalStateError
from pyspark_jms.source.offsets import mark_of, offset, selector_digest, selector_of, sequence


@pytest.mark.parametrize("count", [0, 1, 2**62])
def test_an_offset_survives_sparks_log(count):
    assert sequence(json.loads(json.dumps(offset(count)))) == count


@pytest.mark.parametrize("foreign", [{}, {"offset": 3}, {"seq": None}, {"seq": "x"}, None])
def test_refuses_an_offset_of_another_source(foreign):
    with pytest.raises(IllegalStateError, match="checkpointLocation"):
        sequence(foreign)


def test_the_selector_of_a_durable_subscription_goes_with_the_offset():
    digest = selector_digest("colour = 'red'")
    assert json.dumps(offset(3, digest)) == f'{{"seq": 3, "selector": "{digest}"}}'
    assert selector_of(offset(3, digest)) == digest
    assert sequence(offset(3, digest)) == 3
    assert selector_of(offset(3)) is None
    assert len({selector_digest(None), digest, selector_digest("colour = 'blue'")}) == 3


def test_the_journal_goes_with_the_offset():
    mark = JournalMark("abc", 9)
    made = offset(3, journal=mark)
    assert json.dumps(made) == '{"seq": 3, "journal": "abc", "next": 9}'
    assert mark_of(json.loads(json.dumps(made))) == mark
    assert (sequence(made), selector_of(made)) == (3, None)
    assert mark_of({"seq": 3}) is None  # as earlier releases wrote it


@pytest.mark.parametrize("foreign", [{"seq": 1, "journal": "abc"}, {"seq": 1, "journal": "abc", "next": "x"}])
def test_refuses_half_a_mark(foreign):
    with pytest.raises(IllegalStateError, match="checkpointLocation"):
        mark_of(foreign)


def test_refuses_the_offset_of_a_staged_read():
    kept = Offset(stream="a", address="p", broker="b", batch=3, names=("n",), used=(3,))
    with pytest.raises(IllegalStateError, match="deliveryGuarantee=exactly-once over AMQP"):
        sequence(json.loads(kept.text()))
