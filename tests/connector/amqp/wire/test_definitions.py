import dataclasses

from pyspark_jms.amqp.wire.definitions import Accepted, Source, Target


def test_a_target_has_the_fields_of_a_source_that_it_shares():
    source, target = ([field.name for field in dataclasses.fields(cls)] for cls in (Source, Target))
    assert target[:6] == source[:6]
    assert target[-1] == source[-1] == "capabilities"


def test_outcomes_are_values():
    assert Accepted() == Accepted()
