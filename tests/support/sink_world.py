"""A model of everything around the writes of a query or a job: a broker, Spark's commit log, drivers, tasks, faults.

As in ``register_world``, the product's machine decides, and this module carries out its commands; what is admitted is
asked of ``sink.replay``. A batch has rows, and each execution of the batch has them in the partitions of one of the
world's layouts. A driver dies alone: its tasks go on and have no driver then.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from pyspark_jms.delivery.commit_token import (
    CommitToken,
    LedgerEntry,
    LedgerOwner,
    finished_entry,
    is_finished,
    write_of,
)
from pyspark_jms.delivery.register import steps
from pyspark_jms.delivery.register.committer import (
    Commit,
    CommitState,
    Committer,
    Done,
    Failed,
    Find,
    Finish,
    LaterBatch,
    NoToken,
    OtherOwner,
)
from pyspark_jms.delivery.register.outcomes import Stop
from pyspark_jms.delivery.register.token import StoredToken
from pyspark_jms.errors import JMSError
from pyspark_jms.sink.replay import CommitDecision, Plan, admission, contains_rows, plan

BROKER_LIMIT = 10
QUERY = LedgerOwner("query", "q")
_MUTATING = (steps.Create, steps.Renew, steps.Replace)
_NEEDS_LOCK = (steps.Peek, steps.Take, steps.AcceptValue, steps.Renew)
_ENDS = (Done, Failed, Stop)
_REFUSED = {LaterBatch: "fenced", NoToken: "missing", OtherOwner: "other owner"}
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
    accepted: bool = False
    """Whether the transaction accepts the tokens that the connection holds."""
    locked: bool = False
    halved: bool = False
    """The broker has freed its lock, and has taken back what the transaction does not accept."""
    pending: object = None
    client: bool = True


class Attempt(NamedTuple):
    """What one machine is asked for, by a task or by the driver."""

    request: object
    batch: int
    execution: str
    entry: LedgerEntry | None = None
    """Of the rows; None: the driver ends the batch."""
    whole: tuple[LedgerEntry, ...] | None = None
    """The entries of all partitions, which only the driver has."""


class Start(NamedTuple):
    """Open a connection, send the rows, and give the machine its request."""


class Task(NamedTuple):
    attempt: Attempt
    situation: int
    connection: int = 0
    second: int = 0
    """The connection that makes a register."""


class Driver(NamedTuple):
    batch: int = -1
    """-1: the driver has not read the commit log yet."""
    execution: str = ""
    layout: int = 0
    outcomes: tuple[str, ...] = ()
    """Of each partition: "" (no attempt has ended), "done", "held", or "finished": the write has one entry."""
    ended: bool = False
    """Whether the batch has its token, and the write its one entry."""
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
    begun: bool = False
    """Whether the broker drops a token that is sent once."""
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
    empty: tuple[int, ...] = ()
    """Batches without rows."""
    budget: Budget = NO_FAULTS
    owner: LedgerOwner = QUERY
    machine: type[Committer] = Committer
    admission: Callable[..., CommitDecision] = admission
    excludes: bool = True
    """Whether the broker refuses a second consumer of the lock."""
    patient: bool = True
    """Whether the engine's patience outlives every old connection and every delay."""
    races: bool = False
    """Whether the broker ends one of two connections that make the register at the same moment."""
    delays: bool = False
    """Whether what returns from a dead transaction is invisible for a while (redelivery-delay)."""
    counts: bool = False
    """Whether a death counts as a delivery of the token that its connection held."""
    looks: bool = False
    """Whether a task looks at the token before it sends its rows."""
    begun: CommitToken | None = None
    """The token that is in the register at the beginning. None: there is no register."""
    wear: int = 0
    """How often this token was delivered before without an acknowledgement."""
    recovers: bool = True
    """Whether a fresh driver must finish from every state."""
    send_on_mismatch: bool = False
    may_refuse: tuple[str, ...] = ()
    """Results of a task that may end the query."""

    def __post_init__(self):
        self.layouts_of_rows = [[(n, rows) for n, rows in enumerate(layout) if rows] for layout in self.layouts]
        self.last_batch = self.first_batch + self.batches - 1
        self.first = World(
            driver=Driver(),
            committed=self.first_batch,
            budget=self.budget,
            tokens=(Token(self.begun, deliveries=self.wear),) if self.begun else (),
            existed=self.begun is not None,
            begun=self.begun is not None,
        )
        self.situations: list[tuple[CommitState, object]] = []
        self.arrows: set[tuple[str, str, str]] = set()
        """The moves of the machine that were taken."""
        self._numbers: dict[object, int] = {}
        self._known_steps: dict[object, int] = {}
        self._recovered: dict[object, str | None] = {}

    def partitions(self, driver):
        return [] if driver.batch in self.empty else self.layouts_of_rows[driver.layout]

    # --- all moves ------------------------------------------------------------------------------------

    def moves(self, world):
        yield from self.driver_moves(world)
        for index, task in enumerate(world.tasks):
            yield from self.task_moves(world, index, task)
        yield from self._connection_moves(world)
        yield from self._token_moves(world)

    def fault(self, world):
        return world.violation or (self._recovery(world) if self.recovers else None)

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
        elif self._last_request(driver) is not None:
            if not any(task.attempt.entry is None for task in running):
                attempt = Attempt(self._last_request(driver), driver.batch, driver.execution)
                yield "driver ends the batch", self._begin(world, attempt)
        else:
            yield "driver commits the batch", self._commit_batch(world, driver)

    def _last_request(self, driver):
        """As ``sink.writing.finish_write``."""
        return Finish(f"{driver.batch}") if self.owner.kind == "job" and not driver.ended else None

    def _start(self, world, layout):
        used = repr((world.tasks, world.tokens, world.connections))
        name = next(name for name in _NAMES if f"'{name}'" not in used)
        driver = Driver(world.committed, name, layout)
        return world._replace(driver=driver._replace(outcomes=("",) * len(self.partitions(driver))))

    def _attempts(self, world, driver, running):
        for (partition, rows), outcome in zip(self.partitions(driver), driver.outcomes, strict=True):
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
        request = Find() if self.looks and whole is None else Commit(entry)
        return Attempt(request, driver.batch, driver.execution, entry, whole)

    def _held(self, world, driver):
        whole = tuple(_entry(driver, partition, rows) for partition, rows in self.partitions(driver))
        return self._begin(world, self._attempt(driver, whole[driver.outcomes.index("held")], whole=whole))

    def _begin(self, world, attempt):
        task = Task(attempt, self._situation(CommitState(), Start()))
        return world._replace(tasks=_sorted(*world.tasks, task))

    def _commit_batch(self, world, driver):
        written = "".join(rows for batch, rows in world.written if batch == driver.batch)
        wanted = "".join(rows for _, rows in self.partitions(driver))
        violation = world.violation
        if set(wanted) - set(written):
            violation = "A row is lost"
        elif set(written) - set(wanted) and not self.send_on_mismatch:
            violation = "Rows were written that the batch does not have"
        return world._replace(driver=Driver(), committed=driver.batch + 1, violation=violation)

    # --- tasks ----------------------------------------------------------------------------------------

    def task_moves(self, world, index, task):
        command, budget = self.situations[task.situation][1], world.budget
        what = f"{_name(task.attempt)} {type(command).__name__}"
        if budget.task_deaths:
            spent = world._replace(budget=budget._replace(task_deaths=budget.task_deaths - 1))
            yield f"! {what}, dies", self._die(self._end(spent, index), task, command)
        if isinstance(command, Start):
            yield what, self._send_rows(world, index, task)
            return
        if isinstance(command, steps.Lock) and task.second:
            left = self.free(world, task.second, dies=False)
            tasks = (*left.tasks[:index], task._replace(second=0), *left.tasks[index + 1 :])
            yield f"{what}, first closes the second connection", left._replace(tasks=_sorted(*tasks))
            return
        present = {c.number: c for c in world.connections}
        current = task.second or task.connection
        if current not in present:
            yield f"{what}, connection is gone", self._answer(world, index, task, steps.Lost())
            return
        yield from self._carried_out(world, index, task, present[current], what)
        if budget.lost_answers and isinstance(command, _MUTATING):
            spent = world._replace(budget=budget._replace(lost_answers=budget.lost_answers - 1))
            yield f"! {what}, no answer", self._lose(self._leave(spent, current, command), index, task)

    def _carried_out(self, world, index, task, connection, what):
        command, budget = self.situations[task.situation][1], world.budget
        if isinstance(command, _NEEDS_LOCK) and connection.halved:
            yield f"{what}, the lock is gone", self._lose(self._leave(world, connection.number), index, task)
            return
        if isinstance(command, steps.Lock | steps.Make):
            yield from self._locks(world, index, task, connection, what)
            return
        for event, after in self._outcomes(world, connection, command):
            yield what, self._answer(after, index, task, event)
            if budget.lost_answers and isinstance(command, _MUTATING):
                spent = after._replace(budget=budget._replace(lost_answers=budget.lost_answers - 1))
                yield f"! {what}, answer lost", self._lose(self._leave(spent, connection.number), index, task)

    def _send_rows(self, world, index, task):
        world, number = self._connected(world)
        if isinstance(task.attempt.request, Commit):
            connection = world.connections[-1]
            world = _swap(world, connection, connection._replace(rows=task.attempt.entry.digest))
        return self._answer(world, index, task._replace(connection=number), task.attempt.request)

    def _connected(self, world):
        used = {c.number for c in world.connections}
        used |= {number for task in world.tasks for number in (task.connection, task.second)}
        number = next(n for n in range(1, 99) if n not in used)
        return world._replace(connections=(*world.connections, Connection(number))), number

    def _locks(self, world, index, task, connection, what):
        command = self.situations[task.situation][1]
        makes = isinstance(command, steps.Make)
        if not world.existed and not makes and not command.create:
            yield what, self._answer(world, index, task, steps.NoRegister())
            return
        if self.races and not world.existed and self._makes_too(world, index):
            raced = world._replace(existed=True)  # the one that the broker ends has made the register, and no token
            yield f"{what}, the broker ends one of two", self._answer(raced, index, task, steps.Lost())
        is_free = not any(c.locked and not c.halved for c in world.connections)
        if is_free or not self.excludes:
            number = connection.number
            if makes:
                world, number = self._connected(world)
                task = task._replace(second=number)
            locking = next(c for c in world.connections if c.number == number)
            world = _swap(world, locking, locking._replace(locked=True))._replace(existed=True)
            yield what, self._answer(world, index, task, steps.Locked())

    def _makes_too(self, world, index):
        others = (self.situations[task.situation][1] for n, task in enumerate(world.tasks) if n != index)
        return any(isinstance(each, steps.Make) or (isinstance(each, steps.Lock) and each.create) for each in others)

    def _admit(self, world, index, task, known):
        """``sink.committing`` raises what is neither a commit nor one that was there before."""
        entry, whole = task.attempt.entry, task.attempt.whole
        match self.admission(known, entry, whole=whole, send_on_mismatch=self.send_on_mismatch):
            case CommitDecision.COMMIT:
                return self._answer(world, index, task, steps.Admitted())
            case CommitDecision.ALREADY:
                return self._answer(world, index, task, steps.Declined())
            case CommitDecision.MISMATCH:
                return self._over(world, index, task, "mismatch")
        return self._over(world, index, task, "failed" if self.looks else "held")

    def _answer(self, world, index, task, event):
        try:
            task = task._replace(situation=self._step(task.situation, event))
        except (AssertionError, JMSError) as error:
            return world._replace(violation=f"The protocol fails: {error!r}")
        command = self.situations[task.situation][1]
        if isinstance(command, steps.Admit):  # nothing of the broker takes part
            return self._admit(world, index, task, command.known)
        if isinstance(command, Failed) and world.budget == self.budget:
            return world._replace(violation="An attempt fails without a fault")
        if isinstance(command, _ENDS):
            return self._over(world, index, task, self._result(task.attempt, command))
        return world._replace(tasks=_sorted(*world.tasks[:index], task, *world.tasks[index + 1 :]))

    def _lose(self, world, index, task):
        lost = task._replace(second=-1) if task.second else task._replace(connection=-1)
        return self._answer(world, index, lost, steps.Lost())

    def _result(self, attempt, answer):
        """What the engine does with the answer of a machine."""
        if isinstance(answer, Stop):
            return _REFUSED[type(answer.reason)]
        if attempt.entry is None:
            return "ended" if isinstance(answer, Done) or self.owner.kind == "job" else "failed"
        if isinstance(answer, Failed):
            return "in doubt" if answer.in_doubt else "failed"
        if isinstance(attempt.request, Commit):
            return "done"
        known = [each for each in answer.token.entries if write_of(each) == write_of(attempt.entry)]
        return self._late(known, attempt.entry) if attempt.whole == () else self._planned(known, attempt)

    def _late(self, known, entry):
        """The look-up after a commit in doubt, as ``sink.committing``."""
        own = [each for each in known if each.task == entry.task]
        if contains_rows(own, entry):
            return "done"
        return "mismatch" if own and not self.send_on_mismatch else "failed"

    def _planned(self, known, attempt):
        """The look-up before the rows are sent, as ``sink.sending_once``."""
        entry = attempt.entry
        match plan(known, entry.task, attempt.execution, send_on_mismatch=self.send_on_mismatch):
            case Plan.SEND:
                return Commit(entry)
            case Plan.COMPARE:
                own = [each for each in known if each.task == entry.task]
                return "done" if contains_rows(own, entry) else "mismatch"
            case Plan.HOLD:
                return "held"
        return "finished" if self._is_same_write(known, attempt) else "mismatch"

    def _is_same_write(self, known, attempt):
        """As the driver compares it, with the outcomes of all tasks."""
        layouts = [[_entry(attempt, n, rows) for n, rows in layout] for layout in self.layouts_of_rows]
        mine = next(entries for entries in layouts if attempt.entry in entries)
        found = [each for each in known if is_finished(each)]
        return contains_rows(found, finished_entry(write_of(attempt.entry), mine))

    def _over(self, world, index, task, result):
        """An attempt has ended: the driver learns it, or the same task goes on."""
        attempt = task.attempt
        world = self._end(world, index)
        for number in (task.second, task.connection):
            world = self.free(world, number, dies=False)
        if isinstance(result, Commit):
            return self._begin(world, attempt._replace(request=result))
        if result == "in doubt":
            return self._begin(world, attempt._replace(request=Find(), whole=()))
        if attempt.execution != world.driver.execution:
            return world
        if result == "failed":
            return world if attempt.entry else world._replace(driver=Driver())
        if result == "ended":
            return world._replace(driver=world.driver._replace(ended=True))
        if result in ("done", "held", "finished"):
            return self._outcome(world, attempt, result)
        allowed = result in self.may_refuse or (result == "missing" and world.tainted)
        world = world._replace(driver=Driver(stopped=True))
        return world if allowed else world._replace(violation=f"A task is refused: {result}")

    def _outcome(self, world, attempt, outcome):
        driver = world.driver
        partition = [rows for _, rows in self.partitions(driver)].index(attempt.entry.digest)
        if driver.outcomes[partition] == "done":
            return world
        outcomes = (*driver.outcomes[:partition], outcome, *driver.outcomes[partition + 1 :])
        return world._replace(driver=driver._replace(outcomes=outcomes))

    def _end(self, world, index):
        return world._replace(tasks=world.tasks[:index] + world.tasks[index + 1 :])

    def _step(self, situation, event):
        key = (situation, event)
        if key not in self._known_steps:
            machine = self.machine(self.owner)
            machine.state = before = self.situations[situation][0]
            command = machine.next(event)
            self.arrows.add((before.phase.value, type(event).__name__, machine.state.phase.value))
            self._known_steps[key] = self._situation(machine.state, command)
        return self._known_steps[key]

    def _situation(self, state, command):
        number = self._numbers.setdefault((state, command), len(self.situations))
        if number == len(self.situations):
            self.situations.append((state, command))
        return number

    # --- the broker -----------------------------------------------------------------------------------

    def _outcomes(self, world, connection, command):
        visible = [t for t in world.tokens if not (t.holder or t.delayed)]
        match command:
            case steps.Peek():
                yield steps.Peeked(_seen(visible)), world
            case steps.Take(_, patient):
                yield from self._take(world, connection, visible, patient=patient)
            case steps.Create(_, once) if once and world.begun:
                yield steps.Created(), world
            case steps.Create(token, once):
                tokens = _sorted(*world.tokens, Token(token))
                yield steps.Created(), world._replace(tokens=tokens, begun=world.begun or once)
            case steps.Renew(token):
                kept = [t for t in world.tokens if t.holder != connection.number]
                yield steps.Renewed(), world._replace(tokens=_sorted(*kept, Token(token)))
            case steps.AcceptValue():
                yield steps.ValueAccepted(), _swap(world, connection, connection._replace(accepted=True))
            case steps.Replace(token):
                yield steps.Replaced(), self._carry_out(world, connection, token)

    def _take(self, world, connection, visible, *, patient):
        own = [t for t in world.tokens if t.holder == connection.number]
        if not (visible or own) and patient and not self._patience_over(world, connection):
            return
        held = (t._replace(holder=connection.number) if t in visible else t for t in world.tokens)
        yield steps.Taken(_seen([*own, *visible])), world._replace(tokens=_sorted(*held))

    def _patience_over(self, world, connection):
        if not self.patient:
            return True
        others = any(c.halved or (c.locked and not c.client) for c in world.connections)
        return not others and not any(t.delayed for t in world.tokens)

    def _carry_out(self, world, connection, token):
        written, violation = world.written, world.violation
        if connection.rows:
            written = tuple(sorted((*written, (token.batch, connection.rows))))
            rows = [row for batch, part in written if batch == token.batch for row in part]
            twice = len(set(rows)) < len(rows) and not self.send_on_mismatch
            violation = "A row is written twice" if twice else violation
        kept = [t for t in world.tokens if not (connection.accepted and t.holder == connection.number)]
        after = world._replace(tokens=_sorted(*kept, Token(token)), written=written, violation=violation)
        return _swap(after, connection, connection._replace(rows="", accepted=False))

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
                yield f"{sign}connection {connection.number} loses its lock", self._halved(spent, connection)
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

    def _halved(self, world, connection):
        after = _swap(world, connection, connection._replace(halved=True))
        return after if connection.accepted else self._given_back(after, connection.number, dies=True)

    def _die(self, world, task, command):
        pending = command if isinstance(command, _MUTATING) else None
        world = self._leave(world, task.second or task.connection, pending)
        return self._leave(world, task.connection) if task.second else world

    def _leave(self, world, number, pending=None):
        """The client is gone. The broker may still carry out the command that it has sent."""
        connection = next((c for c in world.connections if c.number == number), None)
        if connection is None:
            return world
        return _swap(world, connection, connection._replace(client=False, pending=pending))

    def free(self, world, number, *, dies=True):
        world = self._given_back(world, number, dies=dies)
        return world._replace(connections=tuple(c for c in world.connections if c.number != number))

    def _given_back(self, world, number, *, dies):
        count = 1 if self.counts and dies else 0
        tokens = _sorted(
            *(
                t._replace(holder=0, delayed=self.delays and dies, deliveries=t.deliveries + count)
                if t.holder == number and number
                else t
                for t in world.tokens
            )
        )
        dead = any(t.deliveries >= BROKER_LIMIT for t in tokens)
        return world._replace(tokens=tokens, violation="A dead letter" if dead else world.violation)

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
        """Return the world with the numbers of its connections replaced by their order."""
        numbers = {-1: -1, 0: 0}
        for task in world.tasks:
            for number in (task.connection, task.second):
                numbers.setdefault(number, len(numbers) - 1)
        for connection in world.connections:
            numbers.setdefault(connection.number, len(numbers) - 1)
        if all(a == b for a, b in numbers.items()):
            return world
        return world._replace(
            tokens=_sorted(*(t._replace(holder=numbers[t.holder]) for t in world.tokens)),
            connections=_sorted(*(c._replace(number=numbers[c.number]) for c in world.connections)),
            tasks=tuple(
                task._replace(connection=numbers[task.connection], second=numbers[task.second]) for task in world.tasks
            ),
        )


def _entry(run, partition, rows):
    """``run``: a driver or one of its attempts."""
    return LedgerEntry(
        task=f"{run.batch}/{partition}",
        batch=run.batch,
        rows=len(rows),
        digest=rows,
        execution=run.execution,
    )


def _name(attempt):
    return f"{attempt.execution}{attempt.entry.task[-1] if attempt.entry else ''} {type(attempt.request).__name__}"


def _seen(tokens):
    return tuple(StoredToken(t.value, t.deliveries) for t in tokens)


def _order(item):
    match item:
        case Token(value, holder, delayed, deliveries):
            return (
                value.batch,
                [(e.task, e.digest, e.execution or "") for e in value.entries],
                holder,
                delayed,
                deliveries,
            )
        case Connection(number):
            return number
        case Task(attempt, situation, connection, second):
            entry = attempt.entry or attempt
            name = type(attempt.request).__name__, getattr(entry, "task", ""), getattr(entry, "digest", "")
            return attempt.batch, attempt.execution, name, attempt.whole is not None, situation, connection, second
    return item


def _sorted(*items):
    return tuple(sorted(items, key=_order)) if len(items) > 1 else tuple(items)


def _swap(world, connection, after):
    return world._replace(connections=_sorted(*(after if c == connection else c for c in world.connections)))
