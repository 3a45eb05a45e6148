"""A model of everything around the commits of a streaming query: a broker, Spark's commit log, drivers, tasks, faults.

As ``staged_world``: the machine under test decides, and this module carries out its commands. A batch has rows, and each
execution of the batch has them in the partitions of one of the world's layouts. A driver dies alone: its tasks go on
and have no driver then. A task cannot send its rows again on a new connection, so such an attempt fails; the driver
can, for the rows that it holds.
"""

from typing import NamedTuple

from pyspark_jms.delivery.staging import steps
from pyspark_jms.delivery.staging.committer import CommitState, PartitionCommit
from pyspark_jms.delivery.staging.sink_decision import Attempt, Hold, Missing
from pyspark_jms.delivery.staging.sink_table import Begin, Done, Refuse
from pyspark_jms.delivery.staging.tokens import Entry, Sighting, SinkToken
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


class Token(NamedTuple):
    value: SinkToken
    holder: int = 0
    delayed: bool = False
    deliveries: int = 0


class Connection(NamedTuple):
    number: int
    rows: tuple[Entry, ...] = ()
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
    written: tuple[tuple[int, Entry], ...] = ()
    """(batch, partition) for each commit of the broker."""
    committed: int = 0
    existed: bool = False
    """Whether the subscription exists."""
    budget: Budget = Budget()
    tainted: bool = False
    violation: str | None = None


def entries(layout):
    """The entries of a layout: a tuple of partitions, each a string of rows. One without rows has no entry."""
    return tuple(Entry(partition=number, rows=len(rows), digest=rows) for number, rows in enumerate(layout) if rows)


class SinkWorld:
    def __init__(
        self,
        *,
        layouts=(("1", "2"),),
        batches=2,
        first_batch=0,
        budget=Budget(),
        committer=PartitionCommit,
        patient=True,
        excludes=True,
        delays=False,
        counts=False,
        send_on_mismatch=False,
        may_refuse=(),
    ):
        self.layouts = tuple(entries(layout) for layout in layouts)
        self.last_batch, self.committer = first_batch + batches - 1, committer
        self.patient, self.excludes, self.delays, self.counts = patient, excludes, delays, counts
        self.send_on_mismatch, self.may_refuse = send_on_mismatch, may_refuse
        self.first = World(driver=Driver(), committed=first_batch, budget=budget)
        self.situations: list[tuple[CommitState, object]] = [(CommitState(), None)]
        self.arrows: set[tuple[str, str, str]] = set()
        self._numbers: dict[object, int] = {}
        self._known_steps: dict[object, int] = {}
        self._recovered: dict[object, str | None] = {}

    # --- all moves ------------------------------------------------------------------------------------

    def moves(self, world):
        yield from self._driver_moves(world)
        for index, task in enumerate(world.tasks):
            yield from self._task_moves(world, index, task)
        yield from self._connection_moves(world)
        yield from self._token_moves(world)

    def fault(self, world):
        return world.violation or self._recovery(world)

    # --- the driver -----------------------------------------------------------------------------------

    def _driver_moves(self, world, layouts=None):
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
        outcomes = ("",) * len(self.layouts[layout])
        return world._replace(driver=Driver(world.committed, name, layout, outcomes))

    def _attempts(self, world, driver, running):
        for entry, outcome in zip(self.layouts[driver.layout], driver.outcomes, strict=True):
            same = [task for task in running if task.attempt.entry == entry]
            if outcome or len(same) > 1 or (same and not world.budget.speculations):
                continue
            spent = world
            if same:
                left = world.budget._replace(speculations=world.budget.speculations - 1)
                spent = world._replace(budget=left)
            yield f"driver starts task {entry.partition}", self._begin(spent, self._attempt(driver, entry))

    def _attempt(self, driver, entry, whole=None):
        return Attempt(
            batch=driver.batch,
            execution=driver.execution,
            entry=entry,
            whole=whole,
            send_on_mismatch=self.send_on_mismatch,
        )

    def _held(self, world, driver):
        layout = self.layouts[driver.layout]
        return self._begin(world, self._attempt(driver, layout[driver.outcomes.index("held")], whole=frozenset(layout)))

    def _begin(self, world, attempt):
        task = Task(attempt, self._step(Task(attempt, 0), Begin()))
        return world._replace(tasks=_sorted(*world.tasks, task))

    def _commit_batch(self, world, driver):
        written = "".join(entry.digest for batch, entry in world.written if batch == driver.batch)
        wanted = "".join(entry.digest for entry in self.layouts[driver.layout])
        violation = world.violation
        if set(wanted) - set(written):
            violation = "A row is lost"
        elif set(written) - set(wanted) and not self.send_on_mismatch:
            violation = "Rows were written that the batch does not have"
        return world._replace(driver=Driver(), committed=driver.batch + 1, violation=violation)

    # --- tasks ----------------------------------------------------------------------------------------

    def _task_moves(self, world, index, task):
        command, budget = self.situations[task.situation][1], world.budget
        what = f"{task.attempt.execution}{task.attempt.entry.partition} {type(command).__name__}"
        if budget.task_deaths:
            spent = world._replace(budget=budget._replace(task_deaths=budget.task_deaths - 1))
            pending = command if isinstance(command, _MUTATING) else None
            yield f"! {what}, dies", self._leave(self._end(spent, index), task.connection, pending)
        connection = next((c for c in world.connections if c.number == task.connection), None)
        if task.connection and connection is None:
            lost = self._answer(world, index, task._replace(connection=0), steps.Lost())
            yield f"{what}, connection is gone", lost
            return
        if isinstance(command, steps.SendRows):
            yield what, self._send_rows(world, index, task)
            return
        if isinstance(command, steps.Drop):
            left = self._leave(world, task.connection, None)
            yield what, self._answer(left, index, task._replace(connection=0), steps.Dropped())
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
        again = self.situations[task.situation][0] != self.situations[self._step(Task(task.attempt, 0), Begin())][0]
        if (again or task.connection) and task.attempt.whole is None:
            return self._leave(self._end(world, index), task.connection, None)
        world, number = self._connect(world, rows=(task.attempt.entry,))
        task = task._replace(connection=number)
        return self._answer(world, index, task, steps.RowsSent())

    def _lock(self, world, index, task, connection):
        if connection is None:
            world, number = self._connect(world)
            task = task._replace(connection=number)
            connection = next(c for c in world.connections if c.number == number)
        existed = world.existed
        world = _swap(world, connection, connection._replace(locked=True))._replace(existed=True)
        return self._answer(world, index, task, steps.Locked(existed=existed))

    def _connect(self, world, rows=()):
        used = {c.number for c in world.connections} | {task.connection for task in world.tasks}
        number = next(n for n in range(1, 99) if n not in used)
        return world._replace(connections=_sorted(*world.connections, Connection(number, rows))), number

    def _answer(self, world, index, task, event):
        try:
            task = task._replace(situation=self._step(task, event))
        except (AssertionError, JMSError) as error:
            return world._replace(violation=f"The machine fails: {error!r}")
        match self.situations[task.situation][1]:
            case Done(result):
                world = self._free(self._end(world, index), task.connection, dies=False)
                return self._outcome(world, task.attempt, "held" if isinstance(result, Hold) else "done")
            case Refuse(reason):
                world = self._free(self._end(world, index), task.connection, dies=False)
                return self._refused(world, task.attempt, reason)
        return world._replace(tasks=_sorted(*world.tasks[:index], task, *world.tasks[index + 1 :]))

    def _outcome(self, world, attempt, outcome):
        driver = world.driver
        if attempt.execution != driver.execution:
            return world
        partition = self.layouts[driver.layout].index(attempt.entry)
        if driver.outcomes[partition] == "done":
            return world
        outcomes = (*driver.outcomes[:partition], outcome, *driver.outcomes[partition + 1 :])
        return world._replace(driver=driver._replace(outcomes=outcomes))

    def _refused(self, world, attempt, reason):
        if attempt.execution != world.driver.execution:
            return world
        allowed = isinstance(reason, self.may_refuse) or (isinstance(reason, Missing) and world.tainted)
        world = world._replace(driver=Driver(stopped=True))
        return world if allowed else world._replace(violation=f"A task is refused: {type(reason).__name__}")

    def _end(self, world, index):
        return world._replace(tasks=world.tasks[:index] + world.tasks[index + 1 :])

    def _step(self, task, event):
        key = (task.attempt, task.situation, event)
        if key not in self._known_steps:
            machine = self.committer("query", task.attempt)
            machine.state = self.situations[task.situation][0]
            before = machine.state.phase
            command = machine.next(event)
            self.arrows.add((before.value, type(event).__name__, machine.state.phase.value))
            number = self._numbers.setdefault((machine.state, command), len(self.situations))
            if number == len(self.situations):
                self.situations.append((machine.state, command))
            self._known_steps[key] = number
        return self._known_steps[key]

    # --- the broker -----------------------------------------------------------------------------------

    def _outcomes(self, world, connection, command):
        visible = [t for t in world.tokens if not (t.holder or t.delayed)]
        match command:
            case steps.FindTokens():
                if visible or self._patience_over(world, connection):
                    yield steps.TokensSeen(tuple(Sighting(t.value, t.deliveries) for t in visible)), world
            case steps.CreateToken(token):
                yield steps.TokenCreated(), world._replace(tokens=_sorted(*world.tokens, Token(token)))
            case steps.RenewToken(token):
                kept = [t for t in world.tokens if t not in visible]
                yield steps.Renewed(), world._replace(tokens=_sorted(*kept, Token(token)))
            case steps.TakeTokens():
                held = [t._replace(holder=connection.number) if t in visible else t for t in world.tokens]
                taken = tuple(t.value for t in held if t.holder == connection.number)
                yield steps.TokensTaken(taken), world._replace(tokens=_sorted(*held))
            case steps.Commit(token):
                yield steps.Committed(), self._carry_out(world, connection, token)

    def _patience_over(self, world, connection):
        if not self.patient:
            return True
        others = any(c.halved or (c.locked and not c.client) for c in world.connections)
        return not others and not any(t.delayed for t in world.tokens)

    def _carry_out(self, world, connection, token):
        written = (*world.written, *((token.batch, entry) for entry in connection.rows))
        rows = [row for batch, entry in written if batch == token.batch for row in entry.digest]
        twice = len(set(rows)) < len(rows) and not self.send_on_mismatch
        kept = [t for t in world.tokens if t.holder != connection.number]
        after = world._replace(
            tokens=_sorted(*kept, Token(token)),
            written=tuple(sorted(written)),
            violation="A row is written twice" if twice else world.violation,
        )
        return _swap(after, connection, connection._replace(rows=()))

    def _connection_moves(self, world):
        budget = world.budget
        for connection in world.connections:
            spent, sign = world, ""
            if connection.client and not connection.halved:
                if not budget.closed:
                    continue
                spent, sign = world._replace(budget=budget._replace(closed=budget.closed - 1)), "! "
            yield f"{sign}connection {connection.number} closes", self._free(spent, connection.number)
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
                after = self._free(after, connection.number)
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

    def _free(self, world, number, *, dies=True):
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
            world = self._free(world, connection.number, dies=False)
        tokens = _sorted(*(t._replace(delayed=False) for t in world.tokens))
        world = world._replace(driver=Driver(), tasks=(), tokens=tokens, budget=Budget())
        if world not in self._recovered:
            results = [self._run_to_end(world, [layout]) for layout in range(len(self.layouts))]
            bad = [result for result in results if result not in (None, "refused")]
            may_miss = world.tainted or Missing in self.may_refuse
            none_finishes = "No replay can finish" if None not in results and not may_miss else None
            self._recovered[world] = bad[0] if bad else none_finishes
        return self._recovered[world]

    def _run_to_end(self, world, layouts):
        for _ in range(400):
            moves = list(self._driver_moves(world, layouts))
            if world.tasks:
                moves = list(self._task_moves(world, 0, world.tasks[0]))
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


def _order(item):
    match item:
        case Token(value, holder, delayed, deliveries):
            return value.batch, value.execution, sorted(value.entries), holder, delayed, deliveries
        case Connection(number):
            return number
        case Task(attempt, situation, connection):
            held = attempt.whole is not None
            return attempt.batch, attempt.execution, attempt.entry, held, situation, connection
    return item


def _sorted(*items):
    return tuple(sorted(items, key=_order)) if len(items) > 1 else tuple(items)


def _swap(world, connection, after):
    return world._replace(connections=_sorted(*(after if c == connection else c for c in world.connections)))
