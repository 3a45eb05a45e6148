"""A model of everything around the commits of a streaming query: a broker, Spark's commit log, drivers, tasks, faults.

As in ``register_world``, the protocol under test decides, and this module carries out its commands. A batch has rows,
and each execution of the batch has them in the partitions of one of the world's layouts. A driver dies alone: its tasks
go on and have no driver then.
"""

from dataclasses import dataclass
from typing import NamedTuple

import sink_steps as steps
from sink_protocol import Attempt, CommitProtocol, Ended, Locked, NeverTakes, RowsSent, SendRows, Taken, TakeTokens
from sink_steps import Sighting

from pyspark_jms.delivery.commit_token import CommitToken, LedgerEntry
from pyspark_jms.errors import JMSError

BROKER_LIMIT = 10
_MUTATING = (steps.Commit, steps.CreateToken, steps.RenewToken)
_NAMES = "abcdefghijklmnop"


class Budget(NamedTuple):
    driver_deaths: int = 0
    task_deaths: int = 0
    closed: int = 0
    restarts: int = 0
    lost_answers: int = 0
    lost_tokens: int = 0
    speculations: int = 0
    """Attempts beside a running one."""


NO_FAULTS = Budget()


class Token(NamedTuple):
    value: CommitToken
    holder: int = 0
    delayed: bool = False
    deliveries: int = 0


class Connection(NamedTuple):
    number: int
    rows: str = ""
    """Sent in its open transaction."""
    locked: bool = False
    halved: bool = False
    """The broker has freed its lock, and nothing else yet."""
    pending: object = None
    client: bool = True


class Task(NamedTuple):
    """An attempt of a task, or a held partition that the driver commits."""

    attempt: Attempt
    situation: int
    connection: int = 0


class Driver(NamedTuple):
    batch: int = -1
    """-1: the driver has not read the commit log yet."""
    execution: str = ""
    layout: int = 0
    outcomes: tuple[str, ...] = ()
    """Of each partition: "" (no attempt has ended), "done" or "held"."""
    stopped: bool = False


class World(NamedTuple):
    driver: Driver
    tasks: tuple[Task, ...] = ()
    tokens: tuple[Token, ...] = ()
    connections: tuple[Connection, ...] = ()
    written: tuple[tuple[int, str], ...] = ()
    """(batch, rows of a partition) for each commit of the broker."""
    committed: int = 0
    existed: bool = False
    """Whether the subscription exists."""
    budget: Budget = Budget()
    tainted: bool = False
    violation: str | None = None


@dataclass(kw_only=True)
class SinkWorld:
    """The rules of a world: which batches in which partitions, which faults, and which protocol."""

    layouts: tuple[tuple[str, ...], ...] = (("1", "2"),)
    """An execution has the rows of one of them: a partition is a text, and each letter is a row. "" has no rows."""
    batches: int = 2
    first_batch: int = 0
    budget: Budget = NO_FAULTS
    protocol: type[CommitProtocol] = CommitProtocol
    excludes: bool = True
    """Whether the broker refuses a second consumer of the lock."""
    patient: bool = True
    """Whether the engine's patience outlives every old connection and every delay."""
    delays: bool = False
    """Whether what returns from a dead transaction is invisible for a while (redelivery-delay)."""
    counts: bool = False
    """Whether a death counts as a delivery of the token that its connection held."""
    send_on_mismatch: bool = False
    may_refuse: tuple[str, ...] = ()
    """Results of a task that may end the query."""

    def __post_init__(self):
        self.partitions = [[(n, rows) for n, rows in enumerate(layout) if rows] for layout in self.layouts]
        self.last_batch = self.first_batch + self.batches - 1
        self.first = World(driver=Driver(), committed=self.first_batch, budget=self.budget)
        self.situations: list[tuple[object, object]] = []
        self._numbers: dict[object, int] = {}
        self._known_steps: dict[object, int] = {}
        self._recovered: dict[object, str | None] = {}

    # --- all moves ------------------------------------------------------------------------------------

    def moves(self, world):
        yield from self.driver_moves(world)
        for index, task in enumerate(world.tasks):
            yield from self.task_moves(world, index, task)
        yield from self._connection_moves(world)
        yield from self._token_moves(world)

    def fault(self, world):
        return world.violation or self._recovery(world)

    # --- the driver -----------------------------------------------------------------------------------

    def driver_moves(self, world, layouts=None):
        driver, budget = world.driver, world.budget
        if driver.stopped:
            return
        if driver.batch < 0:
            if world.committed <= self.last_batch:
                for layout in layouts or range(len(self.layouts)):
                    yield f"driver starts batch {world.committed}", self._start(world, layout)
            return
        if budget.driver_deaths:
            spent = budget._replace(driver_deaths=budget.driver_deaths - 1)
            yield "! driver dies", world._replace(driver=Driver(), budget=spent)
        running = [task for task in world.tasks if task.attempt.execution == driver.execution]
        if "" in driver.outcomes:
            yield from self._attempts(world, driver, running)
        elif "held" in driver.outcomes:
            if not any(task.attempt.whole for task in running):
                yield "driver commits a held partition", self._held(world, driver)
        elif world.committed > driver.batch:
            yield "driver finds the batch committed", world._replace(driver=Driver())
        else:
            yield "driver commits the batch", self._commit_batch(world, driver)

    def _start(self, world, layout):
        used = repr((world.tasks, world.tokens, world.connections))
        name = next(name for name in _NAMES if f"'{name}'" not in used)
        outcomes = ("",) * len(self.partitions[layout])
        return world._replace(driver=Driver(world.committed, name, layout, outcomes))

    def _attempts(self, world, driver, running):
        for (partition, rows), outcome in zip(self.partitions[driver.layout], driver.outcomes, strict=True):
            entry = _entry(driver, partition, rows)
            same = [task for task in running if task.attempt.entry == entry]
            if outcome or len(same) > 1 or (same and not world.budget.speculations):
                continue
            spent = world
            if same:
                left = world.budget._replace(speculations=world.budget.speculations - 1)
                spent = world._replace(budget=left)
            yield f"driver starts task {partition}", self._begin(spent, self._attempt(driver, entry))

    def _attempt(self, driver, entry, whole=None):
        return Attempt(
            batch=driver.batch,
            execution=driver.execution,
            entry=entry,
            whole=whole,
            send_on_mismatch=self.send_on_mismatch,
        )

    def _held(self, world, driver):
        whole = tuple(_entry(driver, partition, rows) for partition, rows in self.partitions[driver.layout])
        return self._begin(world, self._attempt(driver, whole[driver.outcomes.index("held")], whole=whole))

    def _begin(self, world, attempt):
        task = Task(attempt, self._step(attempt, -1, "begin"))
        return world._replace(tasks=_sorted(*world.tasks, task))

    def _commit_batch(self, world, driver):
        written = "".join(rows for batch, rows in world.written if batch == driver.batch)
        wanted = "".join(rows for _, rows in self.partitions[driver.layout])
        violation = world.violation
        if set(wanted) - set(written):
            violation = "A row is lost"
        elif set(written) - set(wanted) and not self.send_on_mismatch:
            violation = "Rows were written that the batch does not have"
        return world._replace(driver=Driver(), committed=driver.batch + 1, violation=violation)

    # --- tasks ----------------------------------------------------------------------------------------

    def task_moves(self, world, index, task):
        command, budget = self.situations[task.situation][1], world.budget
        what = f"{task.attempt.execution}{task.attempt.entry.task[-1]} {type(command).__name__}"
        if budget.task_deaths:
            spent = world._replace(budget=budget._replace(task_deaths=budget.task_deaths - 1))
            pending = command if isinstance(command, _MUTATING) else None
            yield f"! {what}, dies", self._leave(self._end(spent, index), task.connection, pending)
        connection = next((c for c in world.connections if c.number == task.connection), None)
        if task.connection and connection is None:
            lost = self._answer(world, index, task._replace(connection=0), steps.Lost())
            yield f"{what}, connection is gone", lost
            return
        if isinstance(command, SendRows):
            yield what, self._send_rows(world, index, task)
            return
        if isinstance(command, steps.Lock):
            if not self.excludes or not any(c.locked and not c.halved for c in world.connections):
                yield what, self._lock(world, index, task, connection)
            return
        for event, after in self._outcomes(world, connection, command):
            yield what, self._answer(after, index, task, event)
            if budget.lost_answers and isinstance(command, _MUTATING):
                spent = budget._replace(lost_answers=budget.lost_answers - 1)
                left = self._leave(after, task.connection, None)._replace(budget=spent)
                yield f"! {what}, answer lost", self._answer(left, index, task._replace(connection=0), steps.Lost())
        if budget.lost_answers and isinstance(command, _MUTATING):
            spent = budget._replace(lost_answers=budget.lost_answers - 1)
            left = self._leave(world, task.connection, command)._replace(budget=spent)
            yield f"! {what}, no answer", self._answer(left, index, task._replace(connection=0), steps.Lost())

    def _send_rows(self, world, index, task):
        used = {c.number for c in world.connections} | {task.connection for task in world.tasks}
        number = next(n for n in range(1, 99) if n not in used)
        connection = Connection(number, rows=task.attempt.entry.digest)
        world = world._replace(connections=_sorted(*world.connections, connection))
        return self._answer(world, index, task._replace(connection=number), RowsSent())

    def _lock(self, world, index, task, connection):
        existed = world.existed
        world = _swap(world, connection, connection._replace(locked=True))._replace(existed=True)
        return self._answer(world, index, task, Locked(existed=existed))

    def _answer(self, world, index, task, event):
        try:
            task = task._replace(situation=self._step(task.attempt, task.situation, event))
        except (AssertionError, JMSError) as error:
            return world._replace(violation=f"The protocol fails: {error!r}")
        command = self.situations[task.situation][1]
        if not isinstance(command, Ended):
            return world._replace(tasks=_sorted(*world.tasks[:index], task, *world.tasks[index + 1 :]))
        world = self.free(self._end(world, index), task.connection, dies=False)
        if task.attempt.execution != world.driver.execution or command.result == "failed":
            return world
        if command.result in ("committed", "already", "held"):
            return self._outcome(world, task.attempt, "held" if command.result == "held" else "done")
        allowed = command.result in self.may_refuse or (command.result == "missing" and world.tainted)
        world = world._replace(driver=Driver(stopped=True))
        return world if allowed else world._replace(violation=f"A task is refused: {command.result}")

    def _outcome(self, world, attempt, outcome):
        driver = world.driver
        partition = [rows for _, rows in self.partitions[driver.layout]].index(attempt.entry.digest)
        if driver.outcomes[partition] == "done":
            return world
        outcomes = (*driver.outcomes[:partition], outcome, *driver.outcomes[partition + 1 :])
        return world._replace(driver=driver._replace(outcomes=outcomes))

    def _end(self, world, index):
        return world._replace(tasks=world.tasks[:index] + world.tasks[index + 1 :])

    def _step(self, attempt, situation, event):
        key = (attempt, situation, event)
        if key not in self._known_steps:
            protocol = self.protocol(attempt)
            if situation >= 0:
                protocol.state = self.situations[situation][0]
            command = protocol.next(event)
            number = self._numbers.setdefault((protocol.state, command), len(self.situations))
            if number == len(self.situations):
                self.situations.append((protocol.state, command))
            self._known_steps[key] = number
        return self._known_steps[key]

    # --- the broker -----------------------------------------------------------------------------------

    def _outcomes(self, world, connection, command):
        visible = [t for t in world.tokens if not (t.holder or t.delayed)]
        match command:
            case steps.CreateToken(token):
                yield steps.TokenCreated(), world._replace(tokens=_sorted(*world.tokens, Token(token)))
            case steps.RenewToken(token):
                kept = [t for t in world.tokens if t.holder != connection.number]
                yield steps.Renewed(), world._replace(tokens=_sorted(*kept, Token(token)))
            case TakeTokens():
                yield from self._take(world, connection, visible)
            case steps.Commit(token):
                yield steps.Committed(), self._carry_out(world, connection, token)

    def _take(self, world, connection, visible):
        own = [t for t in world.tokens if t.holder == connection.number]
        if not (visible or own) and not self._patience_over(world, connection):
            return
        seen = tuple(Sighting(t.value, t.deliveries) for t in (*own, *visible))
        number = 0 if self.protocol is NeverTakes else connection.number
        held = (t._replace(holder=number) if t in visible else t for t in world.tokens)
        yield Taken(seen), world._replace(tokens=_sorted(*held))

    def _patience_over(self, world, connection):
        if not self.patient:
            return True
        others = any(c.halved or (c.locked and not c.client) for c in world.connections)
        return not others and not any(t.delayed for t in world.tokens)

    def _carry_out(self, world, connection, token):
        written = (*world.written, (token.batch, connection.rows))
        rows = [row for batch, part in written if batch == token.batch for row in part]
        twice = len(set(rows)) < len(rows) and not self.send_on_mismatch
        kept = [t for t in world.tokens if t.holder != connection.number]
        after = world._replace(
            tokens=_sorted(*kept, Token(token)),
            written=tuple(sorted(written)),
            violation="A row is written twice" if twice else world.violation,
        )
        return _swap(after, connection, connection._replace(rows=""))

    def _connection_moves(self, world):
        budget = world.budget
        for connection in world.connections:
            spent, sign = world, ""
            if connection.client and not connection.halved:
                if not budget.closed:
                    continue
                spent, sign = world._replace(budget=budget._replace(closed=budget.closed - 1)), "! "
            yield f"{sign}connection {connection.number} closes", self.free(spent, connection.number)
            if connection.locked and not connection.halved:
                halved = _swap(spent, connection, connection._replace(halved=True))
                yield f"{sign}connection {connection.number} loses its lock", halved
            if connection.pending is not None:
                for _, after in self._outcomes(world, connection, connection.pending):
                    now = next(c for c in after.connections if c.number == connection.number)
                    what = type(connection.pending).__name__
                    yield f"connection {now.number} carries out {what}", _swap(after, now, now._replace(pending=None))
        if budget.restarts and world.connections:
            after = world._replace(budget=budget._replace(restarts=budget.restarts - 1))
            for connection in world.connections:
                after = self.free(after, connection.number)
            yield "! broker restarts", after

    def _token_moves(self, world):
        budget = world.budget
        for token in world.tokens:
            rest = tuple(t for t in world.tokens if t is not token)
            if token.delayed:
                yield "token is visible", world._replace(tokens=_sorted(*rest, token._replace(delayed=False)))
            elif budget.lost_tokens and not token.holder:
                spent = budget._replace(lost_tokens=budget.lost_tokens - 1)
                yield "! token is deleted", world._replace(tokens=rest, budget=spent, tainted=True)

    def _leave(self, world, number, pending):
        connection = next((c for c in world.connections if c.number == number), None)
        if connection is None:
            return world
        return _swap(world, connection, connection._replace(client=False, pending=pending))

    def free(self, world, number, *, dies=True):
        count = 1 if self.counts and dies else 0
        tokens = _sorted(
            *(
                t._replace(holder=0, delayed=self.delays and dies, deliveries=t.deliveries + count)
                if t.holder == number and number
                else t
                for t in world.tokens
            )
        )
        return world._replace(
            tokens=tokens,
            connections=tuple(c for c in world.connections if c.number != number),
            violation="A dead letter" if any(t.deliveries >= BROKER_LIMIT for t in tokens) else world.violation,
        )

    # --- the end --------------------------------------------------------------------------------------

    def _recovery(self, world):
        """All clients die, the broker notices, and a fresh driver runs without faults to its end, in each layout."""
        for connection in world.connections:
            world = self.free(world, connection.number, dies=False)
        tokens = _sorted(*(t._replace(delayed=False) for t in world.tokens))
        world = world._replace(driver=Driver(), tasks=(), tokens=tokens, budget=Budget())
        if world not in self._recovered:
            results = [self._run_to_end(world, [layout]) for layout in range(len(self.layouts))]
            bad = [result for result in results if result not in (None, "refused")]
            may_miss = world.tainted or "missing" in self.may_refuse
            none_finishes = "No replay can finish" if None not in results and not may_miss else None
            self._recovered[world] = bad[0] if bad else none_finishes
        return self._recovered[world]

    def _run_to_end(self, world, layouts):
        for _ in range(400):
            moves = list(self.driver_moves(world, layouts))
            if world.tasks:
                moves = list(self.task_moves(world, 0, world.tasks[0]))
            if world.violation or not moves:
                break
            world = moves[0][1]
        if world.violation or world.driver.stopped:
            return world.violation or "refused"
        return None if world.committed > self.last_batch else "The query does not finish"

    def canonical(self, world):
        """The same world for all numbers of connections."""
        numbers = {0: 0}
        for task in world.tasks:
            numbers.setdefault(task.connection, len(numbers))
        for connection in world.connections:
            numbers.setdefault(connection.number, len(numbers))
        if all(a == b for a, b in numbers.items()):
            return world
        return world._replace(
            tokens=_sorted(*(t._replace(holder=numbers[t.holder]) for t in world.tokens)),
            connections=_sorted(*(c._replace(number=numbers[c.number]) for c in world.connections)),
            tasks=tuple(task._replace(connection=numbers[task.connection]) for task in world.tasks),
        )


def _entry(driver, partition, rows):
    return LedgerEntry(
        task=f"{driver.batch}/{partition}",
        batch=driver.batch,
        rows=len(rows),
        digest=rows,
        execution=driver.execution,
    )


def _order(item):
    match item:
        case Token(value, holder, delayed, deliveries):
            return value.batch, [(e.task, e.digest, e.execution) for e in value.entries], holder, delayed, deliveries
        case Connection(number):
            return number
        case Task(attempt, situation, connection):
            entry, held = attempt.entry, attempt.whole is not None
            return attempt.batch, attempt.execution, entry.task, entry.digest, held, situation, connection
    return item


def _sorted(*items):
    return tuple(sorted(items, key=_order)) if len(items) > 1 else tuple(items)


def _swap(world, connection, after):
    return world._replace(connections=_sorted(*(after if c == connection else c for c in world.connections)))
