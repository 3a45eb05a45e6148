"""A process that runs the engine of a staged read as Spark does, with its logs in files, and dies where it is told.

    python staged_driver.py FOLDER KILL_AT NTH OPTIONS

FOLDER has ``offsets``, ``commits`` and ``sink``. The process dies by kill -9 when it passes KILL_AT the NTH time; with
``freeze:KILL_AT`` it stops there until it gets SIGCONT. It ends by itself when the source is drained. Its exit code is
FENCED or OVERTAKEN when another driver of the same logs has gone on, and POISON when the source stops before a message
becomes a dead letter.
"""

import sys

from dying_driver import FENCED, OVERTAKEN, Driver

from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.amqp.staging import AmqpStagedLink
from pyspark_jms.errors import PoisonLoopError
from pyspark_jms.source.staged.stream import StagedSource
from pyspark_jms.source.task_inputs import read_task

__all__ = ["FENCED", "OVERTAKEN", "POINTS", "POISON", "RENEWAL"]

POISON = 5
CALLS = ("lock", "tokens", "create_token", "subscribe", "take_tokens", "take_finished", "blocks")
POINTS = (
    *CALLS, "before discharge", "at discharge", "after discharge", "latest", "planned", "rows", "sunk", "committed",
)  # fmt: skip


RENEWAL = "renew_token"
"""A worn token is received, and not replaced yet: reached only after some deaths with the token."""


class StagedDriver(Driver):
    link, calls = AmqpStagedLink, CALLS
    renews = False

    def start(self):
        self._wrap_renewal()
        return StagedSource(self.options, AmqpSource())

    def read(self, tasks, _batch):
        rows = [
            [row["text"] for part in read_task(task, self.options, AmqpSource()) for row in part.to_pylist()]
            for task in tasks
        ]
        return rows, rows

    def point_of(self, name):
        return RENEWAL if name == "take_tokens" and self.renews else name

    def _wrap_renewal(self):
        renew = AmqpStagedLink.renew_token

        def renewed(link, *given):
            self.renews = True
            renew(link, *given)
            self.renews = False

        AmqpStagedLink.renew_token = renewed


if __name__ == "__main__":
    try:
        StagedDriver.main()
    except PoisonLoopError:
        sys.exit(POISON)
