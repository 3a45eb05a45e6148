"""Selector rates: parse, one message, Arrow batches, a Spark column. `python bench/selector_rates.py [--no-spark]`."""

import os
import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from jms_selector import Message, arrow, column, evaluate
from jms_selector.parse import _parse

SELECTOR = "color = 'red' AND weight > 2500"
MIXED = "JMSPriority >= 4 AND (color IN ('red', 'blue') OR NOT (name LIKE 'a%')) AND weight BETWEEN 10 AND 4000"
LONG = " OR ".join(f"a{n} = {n}" for n in range(3000))
ROWS = 1_000_000


def best(action: Callable[[], object], times: int = 5) -> float:
    """Seconds of the fastest of several runs: the others measured the machine."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        action()
        taken.append(time.perf_counter() - began)
    return min(taken)


def batch(rows: int) -> pa.RecordBatch:
    """The connector's columns that a selector reads; six properties a row, two of them never the same."""
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


def run(*, spark: bool = True) -> dict[str, float]:
    """Operations or rows a second, by name."""
    parsed = _parse.__wrapped__
    parsed(SELECTOR, False, "spec")  # noqa: FBT003 - the grammar is compiled by the first call
    message = Message.of(color="red", weight=3000)
    found = {
        "parse, short (1/s)": 100 / best(lambda: [parsed(SELECTOR, False, "spec") for _ in range(100)]),  # noqa: FBT003
        "parse, 3,000 terms (1/s)": 1 / best(lambda: parsed(LONG, False, "spec"), 3),  # noqa: FBT003
        "evaluate one message (1/s)": 10_000 / best(lambda: [evaluate(SELECTOR, message) for _ in range(10_000)]),
    }
    rows = batch(ROWS)
    for dialect in ("spec", "artemis"):
        for name, text in (("short", SELECTOR), ("mixed", MIXED)):
            rate = ROWS / best(lambda text=text, dialect=dialect: arrow.keep(text, rows, dialect))  # type: ignore[misc]
            found[f"Arrow, {name}, {dialect} (rows/s)"] = rate
    unique = SELECTOR.replace("weight", '"order"')
    found["Arrow, every value another (rows/s)"] = ROWS / best(lambda: arrow.keep(unique, rows), 3)
    return found | (_spark_rates() if spark else {})


def _spark_rates() -> dict[str, float]:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        n = F.col("id")
        entries = (
            F.lit("color"), F.when(n % 5 == 0, "red").otherwise("blue"), F.lit("weight"), (n % 5000).cast("string")
        )  # fmt: skip
        frame = session.range(ROWS).select(
            F.lit(4).alias("JMSPriority"),
            F.create_map(*entries).alias("properties"),
            F.expr("map_from_arrays(cast(array() as array<string>), cast(array() as array<string>))").alias(
                "property_types"
            ),
        )
        frame = frame.persist()
        frame.count()
        matching = frame.where(column(SELECTOR))
        matching.count()
        return {"Spark column, one core (rows/s)": ROWS / best(matching.count, 3)}
    finally:
        session.stop()


if __name__ == "__main__":
    for name, rate in run(spark="--no-spark" not in sys.argv).items():
        print(f"{name:40} {rate:>14,.0f}")
