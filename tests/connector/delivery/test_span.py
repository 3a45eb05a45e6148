from model_broker import run

from pyspark_jms.delivery.span import Batch, Span
from pyspark_jms.delivery.states import State


def test_a_span_knows_its_part_of_the_run():
    span = Span(3, run(1, 4, 5, 6), 1, 3)
    assert (len(span), span.begin, span.end, span.octets) == (2, 10, 30, 20)
    assert span.ids == [b"1,5", b"1,6"]
    assert Span(3, run(1, 4, 5, 6), 0, 1).begin == 0


def test_what_is_cut_stays_in_the_same_state():
    one, two = Span(3, run(1, 4, 5, 6), 1, 3, State.OFFERED).cut(1)
    assert (one.first, one.last, two.first, two.last) == (1, 2, 2, 3)
    assert (one.lane, two.lane) == (3, 3)
    assert one.state is two.state is State.OFFERED
    assert Span(0, run(1, 4), 0, 1).state is State.RECEIVED


def test_a_batch_is_its_spans():
    span = Span(0, run(1, 4, 5), 0, 2)
    assert Batch(10, 12, (span,)).spans == (span,)
