"""Measures selectors: parsing, one message, Arrow batches.

Run it with ``python -m bench.selector_rates``.
"""

from functools import partial
from statistics import median

import numpy as np
import pyarrow as pa

from bench.in_memory import Case, each_turn
from jms_selector import Message, arrow, evaluate
from jms_selector.syntax.parse import _parse
from pyspark_jms.jms.headers import SELECTOR_SCHEMA

SELECTOR = "color = 'red' AND weight > 2500"
ROWS = 1_000_000
TURNS = 5


def batch(rows: int) -> pa.RecordBatch:
    """The columns that a selector reads, with six properties a row. Two of the properties have unique values."""
    chance = np.random.default_rng(7)
    values = np.empty(6 * rows, object)
    values[0::6] = np.array(["red", "green", "blue", "black", "white"])[chance.integers(0, 5, rows)]
    values[1::6] = chance.integers(0, 5000, rows).astype(str)
    values[2::6] = chance.integers(0, 1 << 60, rows).astype(str)
    values[3::6] = np.array(["alpha", "beta", "gamma"])[chance.integers(0, 3, rows)]
    values[4::6] = "true"
    values[5::6] = chance.random(rows).astype(str)
    keys = np.tile(np.array(["color", "weight", "order", "name", "flag", "price"]), rows)
    entries = pa.MapArray.from_arrays(
        np.arange(0, 6 * rows + 1, 6, dtype=np.int32), pa.array(keys.tolist()), pa.array(values.tolist())
    )
    none = pa.MapArray.from_arrays(np.zeros(rows + 1, np.int32), pa.array([], pa.string()), pa.array([], pa.string()))
    return pa.RecordBatch.from_arrays(
        [pa.array(chance.integers(0, 10, rows), pa.int32()), entries, none],
        names=["JMSPriority", "properties", "property_types"],
    )


def cases() -> dict[str, Case]:
    parsed = _parse.__wrapped__
    parsed(SELECTOR, False, "spec")  # noqa: FBT003 - the grammar is compiled by the first call
    message = Message.of(color="red", weight=3000)
    rows = batch(ROWS)
    unique = SELECTOR.replace("weight", '"order"')
    found = {
        "parse, short (1/s)": Case(100, lambda: [parsed(SELECTOR, False, "spec") for _ in range(100)]),  # noqa: FBT003
        "evaluate one message (1/s)": Case(10_000, lambda: [evaluate(SELECTOR, message) for _ in range(10_000)]),
        "Arrow, every value another (rows/s)": Case(ROWS, lambda: arrow.keep(unique, rows, schema=SELECTOR_SCHEMA)),
    }
    for dialect in ("spec", "artemis"):
        found[f"Arrow, {dialect} (rows/s)"] = Case(
            ROWS, partial(arrow.keep, SELECTOR, rows, dialect, schema=SELECTOR_SCHEMA)
        )
    return found


if __name__ == "__main__":
    for name, rates in each_turn(cases(), turns=TURNS).items():
        print(f"{name:40} {median(rates):>14,.0f}")
