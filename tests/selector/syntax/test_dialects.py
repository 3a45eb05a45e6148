import pytest

from jms_selector.errors import UnsupportedSelectorError
from jms_selector.syntax.dialects import ARTEMIS, CLASSIC, DIALECTS, IBM, SPEC, dialect_of, with_null_on_both_sides
from pyspark_jms.jms.headers import SELECTOR_SCHEMA


def test_by_name_and_by_value():
    assert [dialect_of(name).name for name in DIALECTS] == [
        "spec",
        "artemis",
        "classic",
        "artemis-amqp",
        "classic-amqp",
        "amqp",
        "ibm",
    ]
    assert dialect_of(ARTEMIS) is ARTEMIS
    with pytest.raises(
        UnsupportedSelectorError, match=r"\[JMS_UNSUPPORTED_SELECTOR\].*spec, artemis, classic, artemis-amqp"
    ):
        dialect_of("rabbitmq")


def test_the_specification_sets_no_flag():
    assert not SPEC.activemq
    assert IBM.faults_decide
    assert with_null_on_both_sides(CLASSIC).null_on_the_right is False
    assert CLASSIC.null_on_the_right is True


def test_every_alias_is_of_a_header_or_of_the_group():
    assert set(ARTEMIS.aliases.values()) <= {*SELECTOR_SCHEMA.kinds, "JMSXGroupID"}


def test_names_that_frames_do_not_contain():
    assert not ARTEMIS.shows("AMQSize")
    assert not ARTEMIS.shows("_AMQ_X")
    assert ARTEMIS.shows("color")
    assert SPEC.shows("AMQSize")
