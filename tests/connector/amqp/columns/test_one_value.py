"""One value at a time."""

import pytest
from amqp_messages import Messages, binary, int_, string, symbol, uint
from plain_amqp import NotJmsError, take, typed

from pyspark_jms.amqp.columns.one_value import Unreadable, number, typed_text
from pyspark_jms.amqp.columns.one_value import binary as binary_of
from pyspark_jms.amqp.columns.one_value import string as string_of
from pyspark_jms.amqp.columns.one_value import symbol as symbol_of
from pyspark_jms.jms.conversions import ValueType
from pyspark_jms.jms.rules import PROPERTY_TYPES


@pytest.mark.parametrize("element", [True, False])
def test_typed_texts_are_those_of_the_plain_decoder(element):
    makes = Messages(2, 0.4)
    allowed = frozenset(ValueType) if element else PROPERTY_TYPES
    for _ in range(2000):
        value = makes.value(element=element)
        if value[0] <= 1:
            continue  # described, or no value
        try:
            wanted = typed(take(value)[0], element=element)
        except NotJmsError:
            with pytest.raises(Unreadable):
                typed_text(value, 0, allowed)
        else:
            assert typed_text(value, 0, allowed) == wanted


def test_a_reason_names_the_type_of_amqp():
    with pytest.raises(Unreadable, match="uuid"):
        typed_text(b"\x98" + bytes(16), 0, frozenset(ValueType))


def test_numbers_have_one_of_the_constructors():
    assert number(int_(-3), 0, b"\x54") == -3
    assert number(uint(300), 0, b"\x70\x52") == 300
    assert number(b"\x41", 0, b"\x41\x42") == 1
    assert number(int_(-3), 0, b"\x71") is None
    assert number(b"\x56\x02", 0, b"\x56") is None


def test_strings_symbols_and_binaries():
    assert (string_of(string("é"), 0), symbol_of(symbol("s"), 0), binary_of(binary(b"\xff"), 0)) == ("é", "s", b"\xff")
    assert binary_of(string("a"), 0) is None
    for read, wrong in ((string_of, symbol("s")), (symbol_of, string("s")), (string_of, b"\xa1\x01\xff")):
        with pytest.raises(Unreadable):
            read(wrong, 0)
