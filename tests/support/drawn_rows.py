"""Rows of the sink, drawn for the tests of both encoders: any subset of the columns, with nulls anywhere."""

import base64
import functools
import itertools

import column_types
import pyarrow as pa
from hypothesis import strategies as st

TYPES = column_types.TYPES | column_types.MILLISECONDS | {"JMSPriority": pa.int8()}
batch_of = functools.partial(column_types.batch_of, types=TYPES)
NASTY = ["", "\0", ":", "\\", "\r", "\n", "\r\n\n", "\\c", "a:b", "\n\n\0SEND\n"]
NASTY += ["\u0100", "é", "雪", "🐘", "\u2028", "\x85", "x" * 300]


anything = st.text(max_size=12) | st.lists(st.sampled_from(NASTY), max_size=4).map("".join)
without_nul = anything.map(lambda text: text.replace("\0", ""))
names = without_nul.filter(lambda text: text and "://" not in text)
VALUES = {
    "boolean": st.sampled_from(["true", "false", "TRUE"]),
    "byte": st.integers(-128, 127).map(str),
    "short": st.integers(-(2**15), 2**15 - 1).map(str),
    "int": st.integers(-(2**31), 2**31 - 1).map(str) | st.just("+7"),
    "long": st.integers(-(2**63), 2**63 - 1).map(str),
    "float": st.sampled_from(["1.0", "-0.0", "NaN", "3.4028235E38", "-Infinity"]),
    "double": st.sampled_from(["1.0", "-Infinity", "4.9E-324"])
    | st.floats(allow_nan=False, allow_infinity=False).map(str),
    "string": anything,
}
ELEMENT_VALUES = VALUES | {
    "char": st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]) | st.sampled_from(["\0", '"', "\\"]),
    "bytes": st.binary(max_size=300).map(lambda data: base64.b64encode(data).decode()),
}


@st.composite
def _typed(draw, values):
    kind = draw(st.sampled_from(sorted(values)))
    return {"type": kind, "value": draw(st.none() | values[kind])}


elements = _typed(ELEMENT_VALUES) | st.none() | st.just({"type": None, "value": None})
_instants = st.integers(-(10**13), 10**14)
COLUMN_VALUES = {
    "destination": st.builds(str.__add__, st.sampled_from(["", "queue://", "topic://"]), names),
    "JMSCorrelationID": anything,
    "JMSType": anything,
    "JMSDeliveryMode": st.integers(1, 2),
    "JMSPriority": st.integers(0, 9),
    "JMSExpiration": _instants,
    "JMSDeliveryTime": _instants,
    "time_to_live": st.integers(0, 10**12),
    "delivery_delay": st.integers(0, 10**12),
    "sequence": st.integers(0, 10),
}
"""Columns whose values mean the same over both protocols, and what is drawn for them."""

BODIES = {
    "text": anything,
    "bytes": st.binary(max_size=300),
    "map": st.dictionaries(anything.filter(bool), elements, max_size=3).map(lambda items: list(items.items())),
    "stream": st.lists(elements, max_size=3),
}


@st.composite
def rows_of_columns(draw, values, property_names, bodies=None):
    """The columns, and rows over them. Property names are often the same in every row."""
    columns = draw(st.lists(st.sampled_from(sorted(TYPES)), unique=True, min_size=1))
    lists = st.lists(property_names, max_size=4, unique=True)
    shared = draw(st.none() | lists)
    rows = draw(st.lists(st.builds(dict), min_size=1, max_size=6))
    for row, name in itertools.product(rows, columns):
        if name in values:
            row[name] = draw(st.none() | values[name])
    if "properties" in columns:
        for row in rows:
            own = shared if shared is not None else draw(lists)
            row["properties"] = draw(st.none() | st.just([(name, draw(st.none() | anything)) for name in own]))
            if "property_types" in columns:
                _draw_types(draw, row)
    for row in rows:
        _draw_body(draw, row, columns, BODIES | (bodies or {}))
    return columns, rows


def _draw_types(draw, row):
    """Types for some of the properties, in any order, and values to match."""
    values = dict(row["properties"] or [])
    own = draw(st.lists(st.sampled_from(sorted(values)), unique=True)) if values else []
    types = [(name, draw(st.none() | st.sampled_from(sorted(VALUES)))) for name in own]
    values |= {name: draw(VALUES[kind]) for name, kind in types if kind and values[name] is not None}
    row["properties"] = row["properties"] and list(values.items())
    row["property_types"] = draw(st.just(types)) if types or draw(st.booleans()) else None


def _draw_body(draw, row, columns, bodies):
    kind = draw(st.sampled_from([*(kind for kind in bodies if kind in columns), None]))
    if kind:
        row[kind] = draw(bodies[kind])
    if "body_type" in columns:
        stated = [kind or "message", None] + ["object"] * (kind == "bytes") + ["text", "map", "object"] * (not kind)
        row["body_type"] = draw(st.sampled_from(stated))


def rows_of_anything(property_names):
    """Rows that may be refused."""
    texts = st.text(max_size=4) | anything
    by_name = st.dictionaries(texts | property_names, texts, max_size=3).map(lambda found: list(found.items()))
    any_elements = st.fixed_dictionaries({"type": st.sampled_from(sorted(ELEMENT_VALUES)) | texts, "value": texts})
    columns = dict.fromkeys(["destination", *column_types.TEXT_HEADERS, "text", "body_type"], texts) | {
        "properties": by_name,
        "property_types": by_name,
        "bytes": st.binary(max_size=8),
        "map": st.dictionaries(texts, any_elements, max_size=2).map(lambda found: list(found.items())),
        "stream": st.lists(any_elements, max_size=2),
    }
    return st.lists(st.fixed_dictionaries({}, optional=columns), min_size=1, max_size=4)
