import pytest

from jms_selector.errors import UnsupportedSelectorError
from jms_selector.meaning.lenient import HEADERS
from jms_selector.syntax.dialects import ARTEMIS, CLASSIC, DIALECTS, IBM, SPEC, dialect_of, intended


def test_by_name_and_by_value():
    assert [dialect_of(name).name for name in DIALECTS] == ["spec", "artemis", "classic", "ibm"]
    assert dialect_of(ARTEMIS) is ARTEMIS
    with pytest.raises(UnsupportedSelectorError, match="spec, artemis, classic, ibm"):
        dialect_of("rabbitmq")


def test_the_specification_is_what_no_flag_changes():
    assert not SPEC.activemq
    assert IBM.faults_decide
    assert intended(CLASSIC).null_on_the_right is False
    assert CLASSIC.null_on_the_right is True


def test_every_alias_is_of_a_header_or_of_the_group():
    assert set(ARTEMIS.aliases.values()) <= {*HEADERS, "JMSXGroupID"}


def test_what_no_frame_tells():
    assert not ARTEMIS.shows("AMQSize")
    assert not ARTEMIS.shows("_AMQ_X")
    assert ARTEMIS.shows("color")
    assert SPEC.shows("AMQSize")
