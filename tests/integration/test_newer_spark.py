"""What Spark can do since 4.2: sources with names, and state of the user's functions in RocksDB."""

from collections import Counter

import pytest
from numbered import fill, in_queue
from pyspark.sql import Row
from streaming import access, run_available
from waiting import await_count

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.deep]


@pytest.mark.parametrize("guarantee", ["exactly-once", pytest.param("at-least-once", marks=pytest.mark.slow)])
def test_named_sources_are_removed_and_put_back(spark, artemis, queue, set_spark, tmp_path, guarantee):
    """Spark repeats an interrupted batch without a source that was removed since, and takes its messages for done."""
    set_spark("spark.sql.streaming.queryEvolution.enableSourceEvolution", "true")
    options = access(artemis) | {"brokerUrl": artemis.amqp_url, "deliveryGuarantee": guarantee, "idleTimeout": "500ms"}
    seen, fails = Counter(), []

    def write(batch, _):
        numbers = [row.n for row in batch.collect()]
        assert not fails
        seen.update(numbers)

    def run(step, *names):
        for place, name in enumerate("abc"):
            fill(artemis, f"{queue}.{name}", 5, first=100 * step + 10 * place)
        one, other = (
            spark.readStream.name(name).format("jms").options(**options, queue=f"{queue}.{name}").load()
            for name in names
        )
        rows = one.unionByName(other).selectExpr("CAST(properties['n'] AS INT) AS n")
        run_available(rows, tmp_path / "checkpoint", each=write)

    run(1, "a", "b")
    run(2, "b", "c")
    fails.append("in the middle of a batch")
    with pytest.raises(Exception, match="in the middle of a batch"):
        run(3, "c", "a")
    fails.clear()
    run(4, "a", "b")
    run(5, "b", "c")
    numbers = {100 * step + 10 * place + each for step in range(1, 6) for place in range(3) for each in range(5)}
    of_c_in_the_interrupted_batch = {number for number in numbers if 320 <= number < 330}
    left = {number for number in numbers if 500 <= number < 510}
    assert seen == Counter(numbers - left - (of_c_in_the_interrupted_batch if guarantee == "exactly-once" else set()))
    await_count(artemis, f"{queue}.a", len(left))
    await_count(artemis, f"{queue}.c", 0)


def test_state_of_a_function_in_rocksdb(spark, artemis, queue, set_spark, tmp_path):
    """A transformWithState in RocksDB with checkpoints of the second format, exactly-once from queue to queue."""
    from pyspark.sql.streaming import StatefulProcessor

    class Count(StatefulProcessor):
        def init(self, handle):
            self._count = handle.getValueState("count", "count INT")

        def handleInputRows(self, key, rows, timers):  # noqa: N802 - Spark's name
            count = (self._count.get() or (0,))[0] + sum(1 for _ in rows)
            self._count.update((count,))
            yield Row(text=f"text {10 * key[0] + count}", n=str(10 * key[0] + count))

    state = "spark.sql.streaming.stateStore"
    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    set_spark(f"{state}.providerClass", provider)
    set_spark(f"{state}.checkpointFormatVersion", "2")
    once = access(artemis) | {"brokerUrl": artemis.amqp_url, "deliveryGuarantee": "exactly-once"}
    for first in (0, 4):
        fill(artemis, queue, 4, first=first)
        rows = spark.readStream.format("jms").options(**once, queue=queue, idleTimeout="500ms").load()
        counts = (
            rows.selectExpr("CAST(properties['n'] AS INT) % 2 AS k")
            .groupBy("k")
            .transformWithState(Count(), "text STRING, n STRING", outputMode="Append", timeMode="None")
            .selectExpr("text", "map('n', n) AS properties")
        )
        run_available(counts, tmp_path / "checkpoint", sink="jms", **once, queue=f"{queue}.counts")
    assert in_queue(artemis, f"{queue}.counts") == Counter([2, 4, 12, 14])
    await_count(artemis, queue, 0)
