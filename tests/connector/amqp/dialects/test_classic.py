import pytest

from pyspark_jms.amqp.dialects import ARTEMIS, CLASSIC
from pyspark_jms.errors import InvalidDestinationError


@pytest.mark.parametrize("name", ["a,b", "a?b=c", " a", "a\t", "🐘", "a.*", "a.>"])
def test_classic_misreads_some_names(name):
    for by_row in (False, True):
        with pytest.raises(InvalidDestinationError):
            CLASSIC.send.check_name(name, by_row=by_row)
    ARTEMIS.send.check_name(name, by_row=True)


def test_classic_addresses_begin_with_their_kind():
    assert CLASSIC.send.address("topic", "t") == "topic://t"
    assert CLASSIC.send.address("temp-queue", "ID:1") == "temp-queue://ID:1"
    assert set(CLASSIC.destination_prefixes) == {
        CLASSIC.send.address(kind, "") for kind in CLASSIC.send.address_prefixes
    }
