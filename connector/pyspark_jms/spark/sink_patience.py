"""How long a task of the sink tries to reach a broker that is away, before it has sent anything."""

from pyspark import TaskContext

from pyspark_jms.options.parsing import SinkOptions

__all__ = ["task_patience"]


def task_patience(options: SinkOptions) -> float:
    """Seconds. A query that was under way waits ``reconnectTimeout``; its first batch and a ``df.write`` fail at once.

    Whoever starts something new with a wrong address is told so without a wait. Also inside ``foreachBatch``.
    """
    context = TaskContext.get()
    batch = context.getLocalProperty("streaming.sql.batchId") if context else None
    return options.connection.reconnect_timeout if int(batch or 0) > 0 else 0.0
