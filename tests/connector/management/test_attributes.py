"""What every dialect that answers questions must say about them."""

import pytest

from pyspark_jms.amqp.dialects import DIALECTS as AMQP_DIALECTS
from pyspark_jms.jms.model import BodyType
from pyspark_jms.management.attributes import ARTEMIS_MANAGEMENT
from pyspark_jms.stomp.dialects import DIALECTS as STOMP_DIALECTS

STATED = [each.management for each in STOMP_DIALECTS.values()] + [each.management for each in AMQP_DIALECTS.values()]
WORDS = [each for each in STATED if each is not None]
every_management = pytest.mark.parametrize("words", WORDS)


@every_management
def test_text_and_bytes_are_never_lost(words):
    assert not {BodyType.TEXT, BodyType.BYTES} & words.losses.keys()


@every_management
def test_four_headers_that_are_not_each_other(words):
    headers = {words.resource_header, words.attribute_header, words.operation_header, words.success_header}
    assert len(headers) == 4


def test_artemis_answers():
    assert STOMP_DIALECTS["artemis"].management is ARTEMIS_MANAGEMENT
    assert AMQP_DIALECTS["artemis"].management.losses == {}
