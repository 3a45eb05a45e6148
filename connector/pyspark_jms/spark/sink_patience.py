"""How long a task of the sink waits for a broker that is away, before the task has sent anything."""

from pyspark import TaskContext

from pyspark_jms.options.sink import SinkOptions

__all__ = ["task_patience"]


def task_patience(options: SinkOptions) -> float:
    """Seconds: ``reconnectTimeout`` in a running query, 0 in its first batch and in a ``df.write``.

    So a new query with a wrong address fails at once. Tasks inside ``foreachBatch`` belong to their query.
    """
    context = TaskContext.get()
    batch = context.getLocalProperty("streaming.sql.batchId") if context else None
    return options.connection.reconnect_timeout if int(batch or 0) > 0 else 0.0
