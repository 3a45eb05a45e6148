"""A process that runs an exactly-once read as Spark does, with its logs in files, and dies where it is told.

    python reader_driver.py FOLDER KILL_AT NTH OPTIONS

FOLDER has ``offsets``, ``commits`` and ``sink``. The process, which is driver and executor in one, dies by kill -9 when
it passes KILL_AT the NTH time; with ``freeze:KILL_AT`` it stops there until it gets SIGCONT. It ends by itself when the
source is drained. Its exit code is FENCED or OVERTAKEN when another driver of the same logs has gone on, and POISON
when the source stops before a message becomes a dead letter.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from pyspark_jms.amqp.link.connection import Connection
from pyspark_jms.amqp.reading import ReaderLink
from pyspark_jms.delivery.register.token import needs_renewal
from pyspark_jms.errors import PoisonLoopError, SourceFencedError
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.readers.task import read_reader
from pyspark_jms.spark.protocols import query_of, reading_of

FENCED, OVERTAKEN, POISON = 3, 4, 5
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
        self.folder, self._left = Path(folder), nth
        self._signal = signal.SIGSTOP if kill_at.startswith("freeze:") else signal.SIGKILL
        self._kill_at, self._renews = kill_at.removeprefix("freeze:"), False
        for name in ("offsets", "commits", "sink"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.options = SourceOptions.parse(options)
        self._wrap()
        self.source = query_of(reading_of(self.options))
        self.source.drain()

    def read(self, tasks, batch):
        """The texts of each task, and those of a second action."""
        rows = [self._read(task) for task in tasks]
        return rows, [self._read(task) for task in tasks] if batch % 3 == 0 else rows

    def _read(self, task):
        self.at("task")
        return [row["text"] for part in read_reader(task, reading_of(self.options)) for row in part.to_pylist()]

    def at(self, point):
        if point == self._kill_at:
            self._left -= 1
            if not self._left:
                os.kill(os.getpid(), self._signal)

    def _wrap(self):
        for name in CALLS:
            self._wrap_call(name)
        awaits, replace, renew = Connection.await_, ReaderLink.replace_value, ReaderLink.replace

        def await_(connection, ready, what, timeout=None):
            if what == "the confirmation of the transaction":
                time.sleep(0.01 if self._kill_at == "at discharge" else 0)
                self.at("at discharge")
            return awaits(connection, ready, what, timeout)

        def replaced(link, *given):
            self.at("before discharge")
            replace(link, *given)
            self.at("after discharge")

        def renewed(link, *given):
            renew(link, *given)
            self._renews = False

        Connection.await_, ReaderLink.replace_value, ReaderLink.replace = await_, replaced, renewed

    def _wrap_call(self, name):
        original = getattr(ReaderLink, name)

        def call(link, *given, **named):
            answer = original(link, *given, **named)
            if name == "peek":
                self._renews = needs_renewal(answer)
            if not (self._renews and name in {"take", "accept"}):  # no client can keep a token whose renewal dies
                self.at(name)
            return answer

        setattr(ReaderLink, name, call)

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
        rows, again = self.read(tasks, batch)
        self.at("rows")
        earlier = self.folder / "sink" / str(batch)
        if again != rows or (earlier.exists() and json.loads(earlier.read_text()) != rows):
            (self.folder / f"different-{batch}").touch()
        self._write("sink", batch, rows)
        self.at("sunk")
        self._write("commits", batch, {})
        self.at("committed")


if __name__ == "__main__":
    try:
        Driver(sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])).run()
    except SourceFencedError:
        sys.exit(FENCED)
    except PoisonLoopError:
        sys.exit(POISON)
