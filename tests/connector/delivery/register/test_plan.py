from pyspark_jms.delivery.register.outcomes import Keep, OtherPlace, Read, Stop
from pyspark_jms.delivery.register.plan import keeps, planned, reads, require_place
from pyspark_jms.delivery.register.token import Offset, Token

PLACE = {"stream": "s", "address": "here", "broker": "b"}
FOUR = Offset(batch=4, names=("t", "u", "v"), used=(4, 4, 2), next=(40, 30, 20), **PLACE)


def kept(*names, number=0):
    return {
        reader: Token(stream="s", name=name, reader=reader, batch=0, next=number) for reader, name in enumerate(names)
    }


def test_the_first_batch_has_tokens_that_no_log_names():
    assert keeps(Offset(), "s", 2) == tuple(
        Keep(stream="s", name=None, reader=reader, batch=0, used=0) for reader in (0, 1)
    )
    first = planned(Offset(address="here"), kept("t", "u"), 2, stream="s")
    assert first == Offset(stream="s", address="here", batch=1, names=("t", "u"), used=(1, 1), next=(0, 0))
    assert reads(Offset(), first)[1] == Read(stream="s", name="u", reader=1, batch=1, since=0)


def test_l10_any_batch_has_any_number_of_readers():
    """The readers of the last batch are asked for too, because nobody may have read them."""
    assert [(keep.reader, keep.name, keep.used) for keep in keeps(FOUR, "s", 1)] == [(0, "t", 4), (1, "u", 4)]
    fewer = planned(FOUR, kept("t", "u"), 1, stream="s")
    assert (fewer.names, fewer.used, fewer.readers) == (("t", "u", "v"), (5, 4, 2), (0,))
    assert [(keep.reader, keep.name, keep.used) for keep in keeps(fewer, "s", 4)] == [
        (0, "t", 5),
        (1, "u", 4),
        (2, "v", 2),
        (3, None, 5),
    ]
    more = planned(fewer, kept("t", "u", "v", "w"), 4, stream="s")
    assert [(read.reader, read.batch, read.since) for read in reads(fewer, more)] == [
        (0, 6, 5),
        (1, 6, 4),
        (2, 6, 2),
        (3, 6, 5),
    ]


def test_a_token_that_was_made_anew_has_another_name_in_the_next_offset():
    assert planned(FOUR, kept("new", "u"), 2, stream="s").names == ("new", "u", "v")


def test_the_numbers_of_all_readers_are_in_each_offset():
    assert [keep.next for keep in keeps(FOUR, "s", 4)] == [40, 30, 20, 0]
    five = planned(FOUR, kept("t", "u", number=50), 2, stream="s")
    assert five.next == (50, 50, 20)
    assert [read.next for read in reads(FOUR, five)] == [50, 50]


def test_an_offset_without_a_stream_has_no_tasks():
    assert reads(Offset(), Offset()) == ()


def test_l16_registers_that_the_log_names_are_nowhere_else():
    assert require_place(Offset(), "there", "z") is None
    assert require_place(FOUR, "here", "b") is None
    assert require_place(FOUR, "here", None) is None, "the broker does not tell"
    assert require_place(FOUR, "there", "b") == Stop(OtherPlace("address", "here", "there"))
    assert require_place(FOUR, "here", "z") == Stop(OtherPlace("broker", "b", "z"))
