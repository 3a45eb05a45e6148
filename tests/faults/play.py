"""Plays one cell: sends messages, causes the fault at the point, starts the job again, and counts the messages."""

import time
import traceback
from dataclasses import dataclass, field

import points
from cells import FROM_FILES, IN_DOUBT
from drivers import JobError
from injection import inject_fault
from stage import NotReachedError, Stage
from streams import expected, has_id
from waiting import wait_until

_END_SECONDS = 30


@dataclass
class Result:
    cell: object
    evidence: list = field(default_factory=list)
    """Shows that the point was reached."""
    sent: int = 0
    seen: int = 0
    lost: int = 0
    duplicated: int = 0
    without_id: int = 0
    """Those of the duplicated ones that have no id, where the query reads them again if it is in doubt."""
    in_flight: int = 0
    """How many messages could be in doubt: they were in delivery at the fault."""
    queue: int = 0
    delivering: int = 0
    dead: int = 0
    """Messages that went to the dead-letter queue."""
    runs: int = 0
    endings: list = field(default_factory=list)
    errors: list = field(default_factory=list, repr=False)
    problem: str | None = None
    seconds: float = 0

    @property
    def verdict(self):
        if self.problem:
            return self.problem
        wrong = {"lost": self.lost, "left": self.queue, "in delivery": self.delivering, "dead": self.dead}
        allowed = self.cell.most_duplicates(self.endings)
        beyond = self.duplicated - min(self.without_id, self.in_flight)
        if allowed is not None and beyond > allowed:
            wrong["duplicated"] = beyond
        if "did not go on" in self.endings:
            wrong["stuck"] = 1
        return ", ".join(f"{count} {what}" for what, count in wrong.items() if count) or "ok"

    @property
    def ok(self):
        return self.verdict == "ok"


def play(slot, cell):
    """Return the result. An error is the result's verdict."""
    result, began = Result(cell), time.monotonic()
    try:
        with Stage(slot, cell) as stage:
            try:
                _play(stage, cell, result)
            finally:
                result.runs, result.endings, result.errors = stage.runs, stage.endings, stage.errors
    except NotReachedError as error:
        result.problem = f"not reached: {error}"
    except (JobError, AssertionError, OSError) as error:
        result.problem = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - the matrix goes on, and the cell has failed
        result.problem = traceback.format_exc()
    result.seconds = time.monotonic() - began
    return result


def _play(stage, cell, result):
    dead = stage.broker.message_count("DLQ")
    result.evidence.append(points.reach(stage, cell))
    if stage.mode in IN_DOUBT:
        result.in_flight = stage.input.in_delivery()
    inject_fault(stage, cell)
    stage.input.send(points.LATE)
    seen = False

    def back():
        nonlocal seen
        if not seen:
            seen = True
            result.evidence.append(points.meanwhile(stage, cell))

    if not stage.ended():
        back()
        stage.go_on()
    stage.recover(back)
    result.evidence.append(points.afterwards(stage, cell))
    count(stage, result)
    result.dead = stage.broker.message_count("DLQ") - dead


def count(stage, result):
    """Compare the messages at the sink with those that were sent, after all readers and writers have ended.

    Both are multisets: of two equal messages that were sent, two must arrive.
    """
    if stage.mode not in FROM_FILES:
        wait_until(lambda: not stage.input.consumers(), _END_SECONDS, "the end of the subscription")
        result.delivering = stage.input.in_delivery()
    compare(result, expected(stage.input.sent), stage.output.counted())
    result.queue = stage.input.left()


def compare(result, sent, counted):
    again = counted - sent
    result.sent, result.seen, result.lost = sent.total(), (sent & counted).total(), (sent - counted).total()
    result.duplicated = again.total()
    if result.cell.mode in IN_DOUBT:
        result.without_id = sum(count for number, count in again.items() if not has_id(number))
