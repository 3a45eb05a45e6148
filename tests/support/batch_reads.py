"""What tests of batch reads do on every broker: generated rows of a schema go through it, and a read shows its texts.

The rows have a property of each type, and headers.
"""

from generated import generated
from hypothesis import strategies as st
from pyspark.sql import functions as F

from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.peek import peek
from pyspark_jms.spark.protocols import reading_of

_CHARACTERS = {"codec": "utf-8", "exclude_categories": ("Cs",), "exclude_characters": "\0"}
_TYPES = {
    "ok": ("BOOLEAN", st.booleans()),
    "b": ("TINYINT", st.integers(-128, 127)),
    "s": ("SMALLINT", st.integers(-(1 << 15), (1 << 15) - 1)),
    "i": ("INT", st.integers(-(1 << 31), (1 << 31) - 1)),
    "l": ("BIGINT", st.integers(-(1 << 63), (1 << 63) - 1)),
    "f": ("FLOAT", st.floats(width=32, allow_nan=False)),
    "d": ("DOUBLE", st.floats(allow_nan=False)),
    "Region": ("STRING", st.text(st.characters(**_CHARACTERS))),
    "at": ("TIMESTAMP", st.integers(-62_135_510_400_000, 253_402_214_400_000)),
    "price": ("DECIMAL(12,3)", st.decimals(-999_999_999, 999_999_999, places=3)),
    "JMSType": ("STRING", st.sampled_from(["order", "invoice"])),
    "JMSXGroupID": ("STRING", st.just("g")),
}
_OF_CLASSIC = {name: of for name, of in _TYPES.items() if name != "JMSXGroupID"} | {
    "Region": ("STRING", st.text(st.characters(max_codepoint=0xFFFF, **_CHARACTERS)))
}
"""Over STOMP, Classic has neither the group of a message nor characters outside the Basic Multilingual Plane."""


def assert_written_as_read(spark, *hops, stomp_of_classic=False):
    """Send the rows through the queues of ``hops``, options of reads and writes: each writes what was read before."""
    types = _OF_CLASSIC if stomp_of_classic else _TYPES
    made = generated(st.fixed_dictionaries({name: st.none() | values for name, (_, values) in types.items()}), 40, 39)
    schema = ", ".join(["n INT", *(f"{name} {kind}" for name, (kind, _) in types.items())])
    local = schema.replace("at TIMESTAMP", "at BIGINT")
    rows = [(n, *(row[name] for name in types)) for n, row in enumerate(made)]
    rows = spark.createDataFrame(rows, local).withColumn("at", F.timestamp_millis("at"))
    frame = rows
    for options in hops:
        frame.write.format("jms").options(**options, propertyColumns="*").mode("append").save()
        ends = {"maxMessagesPerTrigger": len(made), "idleTimeout": "60s"}  # at the last row, however slow the broker is
        frame = spark.read.format("jms").options(**options, **ends).schema(schema).load()
    assert [row.asDict() for row in frame.orderBy("n").collect()] == [
        row.asDict() for row in rows.orderBy("n").collect()
    ]


def shown_of(options):
    """The texts that a batch read shows, in this process: with its log."""
    parsed = SourceOptions.parse(options, "batch")
    return [text for batch in peek(reading_of(parsed)) for text in batch.column("text").to_pylist()]
