"""A process that runs the engine of a read whose tasks receive, as Spark does, with its logs in files, and dies.

    python reader_driver.py FOLDER KILL_AT NTH OPTIONS

FOLDER has ``offsets``, ``commits`` and ``sink``. The process, which is driver and executor in one, dies by kill -9 when
it passes KILL_AT the NTH time. It ends by itself when the source is drained. Its exit code is FENCED or OVERTAKEN when
another driver of the same logs has gone on.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from pyspark_jms.amqp.link.connection import Connection
from pyspark_jms.amqp.reading import AmqpReaderLink
from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.errors import SourceFencedError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.readers.planner import ReaderSource
from pyspark_jms.source.readers.task import read_reader

FENCED, OVERTAKEN = 3, 4
CALLS = ("lock", "peek", "open", "take", "accept", "create", "subscribe", "browse")
POINTS = (
    *CALLS,
    "before discharge",
    "at discharge",
    "after discharge",
    "latest",
    "planned",
    "task",
    "rows",
    "sunk",
    "committed",
)


class Driver:
    def __init__(self, folder, kill_at, nth, options):
        self.folder, self._kill_at, self._left = Path(folder), kill_at, nth
        for name in ("offsets", "commits", "sink"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.options = SourceOptions.parse(options)
        self._wrap()
        self.source = ReaderSource(self.options, AmqpSource())
        self.source.drain()

    def at(self, point):
        if point == self._kill_at:
            self._left -= 1
            if not self._left:
                os.kill(os.getpid(), signal.SIGKILL)

    def _wrap(self):
        for name in CALLS:
            self._wrap_call(name)
        awaits, replace = Connection.await_, AmqpReaderLink.move

        def await_(connection, ready, what, timeout=None):
            if what == "the confirmation of the transaction":
                time.sleep(0.01 if self._kill_at == "at discharge" else 0)
                self.at("at discharge")
            return awaits(connection, ready, what, timeout)

        def moved(link, *given):
            self.at("before discharge")
            replace(link, *given)
            self.at("after discharge")

        Connection.await_, AmqpReaderLink.move = await_, moved

    def _wrap_call(self, name):
        original = getattr(AmqpReaderLink, name)

        def call(link, *given):
            answer = original(link, *given)
            self.at(name)
            return answer

        setattr(AmqpReaderLink, name, call)

    # --- as Spark ------------------------------------------------------------------------------

    def _last(self, log):
        return max((int(path.name) for path in (self.folder / log).iterdir() if path.name.isdigit()), default=-1)

    def _write(self, log, batch, value):
        path = self.folder / log / str(batch)
        draft = path.with_name(f".{batch}.{os.getpid()}")
        draft.write_text(json.dumps(value))
        if log != "offsets":
            draft.replace(path)
            return
        try:
            os.link(draft, path)  # as Spark's log: only one of two drivers writes an entry
        except FileExistsError:
            sys.exit(OVERTAKEN)
        finally:
            draft.unlink()

    def _offset(self, batch):
        if batch < 0:
            return self.source.initial_offset()
        return json.loads((self.folder / "offsets" / str(batch)).read_text())

    def run(self):
        batch = self._last("offsets")
        if batch > self._last("commits"):
            self._batch(batch)
        while True:
            start = self._offset(batch)
            end = self.source.latest_offset(start)
            self.at("latest")
            if end == start:
                break
            batch += 1
            self._write("offsets", batch, end)
            self.at("planned")
            if batch:
                self.source.commit(start)
            self._batch(batch)
        self.source.stop()

    def _batch(self, batch):
        tasks = self.source.partitions(self._offset(batch - 1), self._offset(batch))
        rows = [self._read(task) for task in tasks]
        again = [self._read(task) for task in tasks] if batch % 3 == 0 else rows  # a second action
        self.at("rows")
        earlier = self.folder / "sink" / str(batch)
        if again != rows or (earlier.exists() and json.loads(earlier.read_text()) != rows):
            (self.folder / f"different-{batch}").touch()
        self._write("sink", batch, rows)
        self.at("sunk")
        self._write("commits", batch, {})
        self.at("committed")

    def _read(self, task):
        self.at("task")
        return [row["text"] for part in read_reader(task, self.options, AmqpSource()) for row in part.to_pylist()]


if __name__ == "__main__":
    try:
        Driver(sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])).run()
    except SourceFencedError:
        sys.exit(FENCED)
