"""What every dialect must answer, whatever the broker."""

import ast
import inspect
from itertools import pairwise

import pytest

from pyspark_jms.columns.schema import COLUMNS, SINK_ONLY
from pyspark_jms.jms.model import DestinationKind
from pyspark_jms.jms.names import RefusedName
from pyspark_jms.management.attributes import Management
from pyspark_jms.stomp.dialects import DIALECTS
from pyspark_jms.stomp.dialects.addresses import Addresses
from pyspark_jms.stomp.dialects.base import Dialect
from pyspark_jms.stomp.dialects.subscription_headers import DurableSubscriptionHeaders

PLUMBING = {
    "@message-id",
    "@destination",
    "@subscription",
    "@ack",
    "@content-length",
    "@body",
    "@types",
    "@stored-size",
    "@message-type",
    "@transformation",
}
every_dialect = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)


@every_dialect
def test_message_headers_lead_to_columns(dialect):
    targets = set(dialect.message_headers.values())
    assert targets <= {*COLUMNS} | PLUMBING
    assert {"@message-id", "@content-length", "JMSTimestamp", "JMSRedelivered"} <= targets


@every_dialect
def test_a_header_is_one_thing(dialect):
    assert not dialect.property_names.keys() & dialect.message_headers.keys()
    columns = {name for name, target in dialect.message_headers.items() if not target.startswith("@")}
    assert not columns & dialect.ignored_headers
    assert not dialect.property_names.keys() & dialect.ignored_headers


@every_dialect
def test_both_kinds_of_destination(dialect):
    assert {*dialect.subscribe_headers} == {*dialect.send_destination_headers} == {*DestinationKind}


@every_dialect
def test_what_a_send_sets_is_not_for_properties(dialect):
    own = {name for headers in dialect.send_destination_headers.values() for name in headers}
    own |= {*dialect.send_headers.values()}
    own |= {*dialect.send_property_names.values(), "destination", "content-length", "receipt", "transaction"}
    assert own <= dialect.reserved_properties


@every_dialect
def test_headers_by_column(dialect):
    for name, target in dialect.message_headers.items():
        assert dialect.message_headers[dialect.header_of(target).decode()] == target, name
    assert dialect.header_of("no such column") is None


@every_dialect
def test_no_error_means_two_things(dialect):
    texts = [
        *dialect.security_errors,
        *dialect.send_errors,
        *dialect.ack_errors,
        *dialect.selector_errors,
        *dialect.destination_errors,
        *dialect.declaration_errors,
        *dialect.lost_errors,
    ]
    assert all(texts)
    assert not [(a, b) for a in texts for b in texts if a is not b and a in b]


@every_dialect
def test_a_column_that_is_carried_is_one_of_the_sink(dialect):
    assert {*dialect.send_headers} <= {*COLUMNS, *SINK_ONLY}


@every_dialect
def test_a_property_is_reserved_or_left_out_or_the_client_s(dialect):
    assert not dialect.set_by_broker & dialect.reserved_properties
    assert not dialect.set_by_broker & dialect.set_by_client
    assert all(name.startswith(dialect.reserved_prefixes) for name in dialect.set_by_client)


@pytest.mark.parametrize(
    "data",
    [
        Addresses,
        Dialect,
        DurableSubscriptionHeaders,
        Management,
        RefusedName,
    ],
)
def test_every_field_is_documented(data):
    [definition] = ast.parse(inspect.getsource(data)).body
    undocumented = [
        statement.target.id
        for statement, following in pairwise([*definition.body, ast.Pass()])
        if isinstance(statement, ast.AnnAssign) and not _is_text(following)
    ]
    assert undocumented == []


def _is_text(statement):
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
