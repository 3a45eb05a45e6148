"""The selector library with the headers of the connector's schema."""

from functools import partial

import jms_selector
from jms_selector import Message, arrow
from jms_selector.meaning import lenient
from jms_selector.syntax.kinds import Kind
from jms_selector.syntax.tree import Literal
from jms_selector.targets.arrow.candidates import SchemaColumns
from pyspark_jms.jms.headers import SELECTOR_SCHEMA

parse, push, may_match, keep, masks, outcomes, candidates, schema_columns = (
    partial(function, schema=SELECTOR_SCHEMA)
    for function in (
        *(jms_selector.parse, jms_selector.push, jms_selector.may_match, arrow.keep, arrow.masks),
        *(lenient.outcomes, lenient.candidates, SchemaColumns),
    )
)


def message_of(headers=None, **properties):
    return Message.of(headers, SELECTOR_SCHEMA, **properties)


def integer(value, kind=Kind.INT):
    return Literal(value, kind)
