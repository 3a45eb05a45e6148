"""Spark's daemon of Python workers, which has imported this connector before it forks the first worker.

Spark ends workers that were idle for a minute, and each new one imports everything again: 0.5 s of CPU or more. Workers
of this daemon have the modules already, and share their memory. To use it, set ``spark.python.daemon.module`` to
``pyspark_jms.spark.daemon``.

Spark's own daemon leaves imports to its workers, because threads do not survive a fork. ``import pyarrow`` starts one
thread, of an allocator that pyarrow does not use by default and that expects forks; numpy's threads end before a fork.
"""

import gc
import importlib

from pyspark.daemon import manager

__all__ = ["MODULES", "main"]

MODULES = (
    "pyspark.worker",
    "pyspark.sql.worker.write_into_data_source",  # the function that writes and
    "pyspark.sql.worker.plan_data_source_read",  # the one that reads are unpickled by their modules
    "pandas",  # pyarrow imports it for the first array
    "pyspark_jms.spark.source",
    "pyspark_jms.spark.stream_reading",
    "pyspark_jms.spark.stream_reader",  # needs Spark 4.2
    "pyspark_jms.spark.writers",
    "pyspark_jms.spark.worker",
    "pyspark_jms.stomp.sink",
    "pyspark_jms.stomp.source",
    "pyspark_jms.amqp.sink",
    "pyspark_jms.amqp.source",
    "pyspark_jms.sink.sending_once",
    "pyspark_jms.source.readers.task",
)


def main() -> None:
    """Import all, but leave out what is not installed: a worker that needs it reports that with the error of its
    import.
    """
    for name in MODULES:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    gc.freeze()  # so that collections of the workers leave these pages shared
    manager()


if __name__ == "__main__":
    main()
