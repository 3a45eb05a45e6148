from pyspark_jms.columns.schema import COLUMNS, IGNORED_BY_SINK
from pyspark_jms.jms.headers import HEADERS, SELECTOR_SCHEMA, TEXT_FIELDS, HeaderField, PropertiesField


def test_a_field_has_one_header_and_a_header_one_name():
    fields = [(type(h.amqp), h.amqp) for h in HEADERS]
    for names in (fields, [h.stomp for h in HEADERS if h.stomp], [h.name for h in HEADERS]):
        assert len(names) == len(set(names))


def test_fields_have_the_names_of_the_specification():
    assert [field.title for field in HeaderField] == ["durable", "priority", "ttl", "first-acquirer", "delivery-count"]
    assert [PropertiesField.ABSOLUTE_EXPIRY_TIME.title, PropertiesField(12).title] == [
        "absolute-expiry-time",
        "reply-to-group-id",
    ]


def test_columns_that_are_the_text_of_one_field():
    assert [(field.title, header.name) for field, header in TEXT_FIELDS.items()] == [
        ("message-id", "JMSMessageID"),
        ("subject", "JMSType"),
        ("correlation-id", "JMSCorrelationID"),
        ("content-type", "content_type"),
    ]


def test_every_row_is_a_column_and_what_the_sink_does_not_send_it_ignores():
    assert [name for name in COLUMNS if name in {h.name for h in HEADERS}] == [h.name for h in HEADERS]
    assert not IGNORED_BY_SINK & {h.name for h in HEADERS if h.sent}


def test_a_selector_may_name_what_the_specification_allows():
    assert sorted(SELECTOR_SCHEMA.nameable) == [
        "JMSCorrelationID",
        "JMSDeliveryMode",
        "JMSMessageID",
        "JMSPriority",
        "JMSTimestamp",
        "JMSType",
    ]
    assert SELECTOR_SCHEMA.nameable <= SELECTOR_SCHEMA.kinds.keys()
