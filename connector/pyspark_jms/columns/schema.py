"""The schema of ``format("jms")``: the columns of the source, of which the sink takes any subset.

Each column has a type in Spark's DDL and in Arrow. They stand side by side, because Spark compares them field by field
(``to_arrow_schema(…, timezone="UTC")``). There are no arrays here: pyarrow imports pandas, in 0.3 s of CPU, to make the
first array of a process, and processes of Spark that only plan need no arrays.
"""

import pyarrow as pa

__all__ = [
    "ARROW_SCHEMA",
    "BODY_COLUMNS",
    "BY_LOWER_NAME",
    "COLUMNS",
    "DDL",
    "DDL_TYPES",
    "FIRST_MS",
    "IGNORED_BY_SINK",
    "LAST_MS",
    "PROPERTY_MAPS",
    "SINK_ONLY",
    "TIMESTAMP",
    "TYPED_VALUE",
]

TYPED_VALUE = pa.struct([pa.field("type", pa.string()), pa.field("value", pa.string())])
"""One element of a MapMessage or StreamMessage: its JMS type, and its JMS string rendering."""

TIMESTAMP = pa.timestamp("us", tz="UTC")

FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999: the range of timestamps in Spark SQL and of ``datetime`` in Python."""

_COLUMNS: tuple[tuple[str, str, pa.DataType], ...] = (
    ("sequence", "bigint", pa.int64()),
    ("JMSMessageID", "string", pa.string()),
    ("JMSDestination", "string", pa.string()),
    ("JMSTimestamp", "timestamp", TIMESTAMP),
    ("JMSCorrelationID", "string", pa.string()),
    ("JMSType", "string", pa.string()),
    ("JMSReplyTo", "string", pa.string()),
    ("JMSDeliveryMode", "int", pa.int32()),
    ("JMSPriority", "int", pa.int32()),
    ("JMSExpiration", "timestamp", TIMESTAMP),
    ("JMSDeliveryTime", "timestamp", TIMESTAMP),
    ("JMSRedelivered", "boolean", pa.bool_()),
    ("properties", "map<string,string>", pa.map_(pa.string(), pa.string())),
    ("property_types", "map<string,string>", pa.map_(pa.string(), pa.string())),
    ("body_type", "string", pa.string()),
    ("text", "string", pa.string()),
    ("bytes", "binary", pa.binary()),
    ("map", "map<string,struct<type:string,value:string>>", pa.map_(pa.string(), TYPED_VALUE)),
    ("stream", "array<struct<type:string,value:string>>", pa.list_(TYPED_VALUE)),
    ("content_type", "string", pa.string()),
    ("body_error", "string", pa.string()),
    ("delivery_id", "string", pa.string()),
)

COLUMNS: tuple[str, ...] = tuple(name for name, _, _ in _COLUMNS)
BY_LOWER_NAME: dict[str, str] = {name.lower(): name for name in COLUMNS}
"""The columns as Spark finds them, in upper or lower case."""

BODY_COLUMNS = frozenset({"body_type", "text", "bytes", "map", "stream"})
PROPERTY_MAPS = frozenset({"properties", "property_types"})
DDL_TYPES: dict[str, str] = {name: ddl for name, ddl, _ in _COLUMNS}
DDL: str = ", ".join(f"`{name}` {ddl}" for name, ddl in DDL_TYPES.items())
ARROW_SCHEMA: pa.Schema = pa.schema([pa.field(name, arrow) for name, _, arrow in _COLUMNS])

SINK_ONLY: tuple[str, ...] = ("destination", "time_to_live", "delivery_delay")
"""Columns of the sink that the source does not have: the destination, and two durations in milliseconds."""

IGNORED_BY_SINK: frozenset[str] = frozenset(
    {
        "sequence",
        "JMSMessageID",
        "JMSDestination",
        "JMSTimestamp",
        "JMSRedelivered",
        "body_error",
        "delivery_id",
    }
)
"""Columns that the provider sets on send (JMS 3.1 §3.4), or that mean nothing to a consumer."""
