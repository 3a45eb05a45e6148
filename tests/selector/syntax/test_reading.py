import pytest

from jms_selector.errors import InvalidSelectorError
from jms_selector.syntax.dialects import ARTEMIS
from jms_selector.syntax.kinds import NO_HEADERS
from jms_selector.syntax.reading import Reading


def test_a_position_in_the_body_becomes_one_in_the_text():
    prefix = "hyphenated_props:"
    reading = Reading(f"{prefix}a-b =", len(prefix), ARTEMIS, strict=False, hyphens=True, schema=NO_HEADERS)
    assert reading.body == "a-b ="
    with pytest.raises(InvalidSelectorError) as caught:
        reading.refuse(4, "= cannot stand here")
    assert caught.value.text[caught.value.position] == "="
