"""The job that faults hit: a driver under spark-submit that starts and stops queries by orders.

    spark-submit hit_job.py SOCKET

Reads one JSON object a line from the Unix socket, answers with one. A query's description is in ``streams.py``.
"""

import json
import socket
import sys
from pathlib import Path

from breakpoint_source import BreakpointSource
from breakpoints import Breakpoints
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession


class Job:
    def __init__(self):
        self._spark = SparkSession.builder.getOrCreate()
        self._spark.dataSource.register(BreakpointSource)
        self._spark.range(1).count()  # what a first query would pay for
        self._query = None

    def start(self, source, sink, trigger, checkpoint):
        frame = self._spark.readStream.format(source["format"]).options(**source["options"])
        rows = frame.load(source.get("path")).selectExpr(*sink["columns"])
        writer = rows.writeStream.options(**sink.get("options", {})).option("checkpointLocation", checkpoint)
        writer = writer.foreachBatch(_Keeping(sink["folder"])) if "folder" in sink else writer.format("jms")
        self._query = writer.trigger(**trigger).start()

    def state(self):
        """Whether the query runs, and what ended it."""
        if self._query is None:
            return {"active": False, "error": None}
        active = self._query.isActive
        try:
            if not active:
                self._query.awaitTermination(1)
        except StreamingQueryException as error:
            return {"active": False, "error": str(error)}
        return {"active": active, "error": None}

    def completed_tasks(self):
        """Of the stages that run."""
        tracker = self._spark.sparkContext.statusTracker()
        running = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return sum(stage.numCompletedTasks for stage in running if stage)

    def stop(self):
        self._query.stop()


class _Keeping:
    """An idempotent sink: a file a batch, written anew when the batch is repeated."""

    def __init__(self, folder):
        self._folder = Path(folder)

    def __call__(self, frame, batch):
        rows = [row.asDict() for row in frame.collect()]
        draft = self._folder / f".{batch}"
        draft.write_text(json.dumps(rows))
        draft.replace(self._folder / f"batch-{batch}")
        Breakpoints.of_this_job().wait_at("sink done", batch)


def main():
    link = socket.socket(socket.AF_UNIX)
    link.connect(sys.argv[1])
    job = Job()
    with link.makefile("rw") as lines:
        print(json.dumps("ready"), file=lines, flush=True)
        for line in lines:
            order = json.loads(line)
            try:
                answer = {"done": getattr(job, order.pop("do"))(**order)}
            except Exception as error:  # noqa: BLE001 - any error goes to the sender of the order
                answer = {"failed": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=lines, flush=True)


if __name__ == "__main__":
    main()
