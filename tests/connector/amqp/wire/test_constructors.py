import pytest

from pyspark_jms.amqp.wire import constructors
from pyspark_jms.amqp.wire.constructors import FIXED_WIDTHS, SIZE_WIDTHS
from pyspark_jms.amqp.wire.values import decode
from pyspark_jms.errors import MalformedFrameError

NAMED = {
    name: code
    for name, code in vars(constructors).items()
    if name.isupper() and isinstance(code, int) and name != "WIDE"
}


def test_each_constructor_has_one_name_and_one_width():
    assert len(set(NAMED.values())) == len(NAMED)
    assert {*FIXED_WIDTHS, *SIZE_WIDTHS, constructors.DESCRIBED} == set(NAMED.values())
    assert not FIXED_WIDTHS.keys() & SIZE_WIDTHS.keys()


@pytest.mark.parametrize("name", [name for name, code in NAMED.items() if SIZE_WIDTHS.get(code) == 1])
def test_the_wide_form_of_a_constructor(name):
    assert NAMED[name] + constructors.WIDE == NAMED[f"{name.removesuffix('8')}32"]


@pytest.mark.parametrize("code", range(1, 256))
def test_values_are_read_for_these_constructors_and_no_others(code):
    # Zeros are a value of every type, but for the size of a compound one, and the constructor of an array's elements.
    widths = FIXED_WIDTHS | SIZE_WIDTHS
    if code in {constructors.ARRAY8, constructors.ARRAY32}:
        value = bytes(
            (2, 0, constructors.NULL) if code == constructors.ARRAY8 else (0, 0, 0, 5, 0, 0, 0, 0, constructors.NULL)
        )
    elif code in {constructors.LIST8, constructors.MAP8, constructors.LIST32, constructors.MAP32}:
        value = bytes(widths[code] - 1) + bytes((widths[code],)) + bytes(widths[code])
    else:
        value = bytes(widths.get(code, 4))
    message = bytes((code,)) + value
    if code in widths:
        assert decode(message, 0, len(message))[1] == len(message)
    else:
        with pytest.raises(MalformedFrameError, match=f"0x{code:02x} is not a constructor"):
            decode(message, 0, len(message))
