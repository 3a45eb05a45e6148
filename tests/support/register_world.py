"""A model of everything around the registers of a read: brokers, Spark's logs, drivers, tasks, and their faults.

A world is a tuple of small values, so that it can be compared and counted. ``RegisterWorld.moves`` gives the worlds
that may follow; a label that begins with ``!`` is a fault. The product's machines decide every step of the protocol:
this module carries out commands, and knows no rule.

A command is carried out and answered in one move, or carried out and its answer is lost, or it stays in a connection
whose client is gone: then the broker carries it out later, or never. A connection ends in one move, or in two: first
the lock is free and what no transaction has returns, later the rest.
"""

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from pyspark_jms.delivery.register import plan, steps
from pyspark_jms.delivery.register.keeper import TokenKeeper
from pyspark_jms.delivery.register.outcomes import (
    Answer,
    BlocksMissing,
    Fenced,
    Kept,
    Read,
    SetBack,
    SharedRegister,
    Stop,
    TokenMissing,
)
from pyspark_jms.delivery.register.reader import MAX_SOURCE_DELIVERIES, ReaderTask
from pyspark_jms.delivery.register.token import Offset, StoredToken, Token
from pyspark_jms.errors import JMSError


class Budget(NamedTuple):
    """How many faults of each kind a world has left."""

    deaths: int = 0
    """Of a task or a driver."""
    closed: int = 0
    """Connections that the broker closes, in one move or in two."""
    answers: int = 0
    """Answers that are lost."""
    extra: int = 0
    """Second attempts: speculation, a second action, a stream united with itself."""
    skips: int = 0
    """Readers whose rows Spark does not need."""
    tokens: int = 0
    """Tokens that are deleted."""
    blocks: int = 0
    """Blocks that are deleted."""
    restarts: int = 0
    full: int = 0
    """Times at which the broker begins to take no messages."""


NO_FAULTS = Budget()
BROKER_LIMIT = 10
"""Deliveries after which the broker moves a message to its dead-letter queue."""
_NAMES = [*"abcdefghijklmnopqrstuvwxyz", *(f"name{number}" for number in range(200))]
_MUTATING = (steps.Replace, steps.Renew, steps.Create)
_SENDING = (steps.Open, *_MUTATING)
_LOSSES = (TokenMissing, BlocksMissing, SetBack)


class Message(NamedTuple):
    id: int
    broker: int = 0
    holder: int = 0
    deliveries: int = 0
    claimed: int = 0
    """Of the deliveries that are shown, those that its producer wrote."""


class Item(NamedTuple):
    """A message of a register."""

    kind: str
    """T token, B block."""
    value: object
    """A ``Token``, or (stream, batch, message)."""
    holder: int = 0
    in_transaction: bool = False
    deliveries: int = 0


class Connection(NamedTuple):
    number: int
    register: int
    halved: bool = False
    """The broker has freed its lock, and not ended its transaction yet."""
    client: bool = True
    pending: object = None
    """A command that was sent and not yet carried out, of a client that is gone."""


class Task(NamedTuple):
    query: int
    read: Read
    driver: int = -1
    """That waits for it; -1: none."""
    place: int = 0
    situation: int = -1
    connection: int = 0
    register: int = 0
    rows: tuple = ()


class Driver(NamedTuple):
    stage: str = "boot"
    """boot, idle, plan (the machine has given a command), log, run, stopped."""
    query: int = 0
    place: int = 0
    start: Offset = Offset()
    end: Offset = Offset()
    stream: str = ""
    readers: int = 0
    keeps: tuple = ()
    kept: tuple = ()
    situation: int = -1
    connection: int = 0
    register: int = 0
    got: tuple = ()
    """(reader, rows) of the batch that runs."""


class Log(NamedTuple):
    """What a query has in its checkpoint and its sink."""

    offsets: tuple = ()
    committed: int = 0
    answers: tuple = ()
    """((batch, reader), rows): the first answer ever given."""
    sink: tuple = ()
    skipped: tuple = ()


class World(NamedTuple):
    source: tuple
    registers: tuple
    connections: tuple = ()
    drivers: tuple = ()
    tasks: tuple = ()
    logs: tuple = (Log(),)
    gone: frozenset = frozenset()
    """Messages whose block was deleted."""
    coming: int = 0
    budget: Budget = NO_FAULTS
    tainted: bool = False
    """Something was deleted, so a loss may be reported."""
    is_full: bool = False
    violation: str | None = None


@dataclass(kw_only=True)
class RegisterWorld:
    """The rules of a world: how many messages and readers, which faults, and which machines."""

    messages: int
    late: int = 0
    """How many of them are sent at any time."""
    readers: int = 1
    vary: bool = False
    """Whether a batch has any number of readers."""
    drivers: int = 1
    queries: int = 1
    budget: Budget = NO_FAULTS
    quota: int = 1
    batches: int = 2
    """Batches that are planned before the world is left to a fresh driver."""
    reader: type[ReaderTask] = ReaderTask
    keeper: type[TokenKeeper] = TokenKeeper
    plan: object = plan
    fail_on_data_loss: bool = True
    brokers: int = 1
    """Of a failover list, each with messages and registers of its own."""
    tells: bool = True
    """Whether a broker tells its identity."""
    addresses: int = 1
    """Of the registers: somebody changes the option between two runs."""
    counts: bool = False
    """Whether a death counts as a delivery of all that its connection held."""
    polite: bool = True
    """Whether a time-out gives messages back before the connection ends."""
    poison: int = 0
    """The message that kills every task that would commit it."""
    equal: bool = False
    """Whether messages cannot be told apart, and each one that follows claims one more delivery."""
    claims: int = 0
    """The delivery-count that the producer of the first message has written."""
    may_stop: tuple = ()
    excludes: bool = True
    patient: bool = True
    atomic: bool = True
    log_first: bool = True
    """Whether Spark starts tasks after the batch is in its offset log."""
    commit_first: bool = True
    """Whether Spark plans a batch after the batch before is in its commit log."""

    def __post_init__(self):
        now = range(1, self.messages - self.late + 1)
        places = self.brokers * self.addresses
        self.first = World(
            source=tuple(map(self._message, now)),
            registers=((),) * (self.readers * places),
            drivers=tuple(Driver(query=query) for query in range(self.queries) for _ in range(self.drivers)),
            logs=(Log(),) * self.queries,
            budget=self.budget,
            coming=self.late,
        )
        self.situations = []
        self.arrows = set()
        self._numbers, self._known, self._recovered, self._keys = {}, {}, {}, {}
        self._recovering = False

    def _message(self, number):
        claimed = self.claims + number - 1 if self.equal else self.claims if number == 1 else 0
        return Message(number, (number - 1) % self.brokers, claimed=claimed)

    # --- all moves ------------------------------------------------------------------------------------

    def moves(self, world):
        for number, driver in enumerate(world.drivers):
            yield from self._driver_moves(world, number, driver)
        for task in dict.fromkeys(world.tasks):
            yield from self._task_moves(world, task)
        for connection in world.connections:
            yield from self._connection_moves(world, connection)
        yield from self._losses(world)
        if world.coming:
            yield "a message is sent", self._send(world)

    def _send(self, world):
        new = self._message(self.messages - world.coming + 1)
        return world._replace(source=(*world.source, new), coming=world.coming - 1)

    def fault(self, world):
        """What is wrong in this world, or with what fresh drivers make of it."""
        return world.violation or self._recovery(world)

    def canonical(self, world):
        """Return the world with the numbers of its connections replaced by their order."""
        numbers = {0: 0}
        for actor in (*world.drivers, *world.tasks):
            numbers.setdefault(actor.connection, len(numbers))
        for connection in sorted(world.connections, key=_connection_key):
            numbers.setdefault(connection.number, len(numbers))
        if all(a == b for a, b in numbers.items()):
            return world
        registers = tuple(
            tuple(sorted((i._replace(holder=numbers[i.holder]) if i.holder else i for i in items), key=self._key))
            for items in world.registers
        )
        return world._replace(
            source=tuple(m._replace(holder=numbers[m.holder]) if m.holder else m for m in world.source),
            registers=registers,
            connections=_sorted(*(c._replace(number=numbers[c.number]) for c in world.connections)),
            drivers=tuple(d._replace(connection=numbers[d.connection]) for d in world.drivers),
            tasks=_sorted_tasks(*(t._replace(connection=numbers[t.connection]) for t in world.tasks)),
        )

    def _connection_moves(self, world, connection):
        budget, number = world.budget, connection.number
        spent, sign = world, ""
        if connection.pending is not None:
            after = self._outcome(world, connection, connection.pending)[0]
            now = next(c for c in after.connections if c.number == number)
            yield f"{number} carries out {_name(connection.pending)}", _swap(after, now, now._replace(pending=None))
        if connection.client and not connection.halved:
            if not budget.closed:
                return
            spent, sign = world._replace(budget=budget._replace(closed=budget.closed - 1)), "! "
        yield f"{sign}connection {number} closes", self.free(spent, number)
        if not connection.halved:
            yield f"{sign}connection {number} loses its lock", self._halve(spent, connection)

    def _halve(self, world, connection):
        items = [
            item._replace(holder=0) if item.holder == connection.number and not item.in_transaction else item
            for item in world.registers[connection.register]
        ]
        return _swap(self._put(world, connection.register, items), connection, connection._replace(halved=True))

    def _losses(self, world):
        budget = world.budget
        if budget.restarts and world.connections:
            spent = world._replace(budget=budget._replace(restarts=budget.restarts - 1))
            yield "! broker restarts", self._free_all(spent)
        if world.is_full:
            yield "the broker takes messages again", world._replace(is_full=False)
        elif budget.full:
            yield (
                "! the broker takes no messages",
                world._replace(is_full=True, budget=budget._replace(full=budget.full - 1)),
            )
        for register, items in enumerate(world.registers):
            for item in items:
                field = "tokens" if item.kind == "T" else "blocks"
                if item.holder or not getattr(budget, field):
                    continue
                rest = list(items)
                rest.remove(item)
                gone = {item.value[2]} if item.kind == "B" else set()
                yield (
                    f"! one of {field} is deleted",
                    self._put(world, register, rest)._replace(
                        budget=budget._replace(**{field: getattr(budget, field) - 1}),
                        tainted=True,
                        gone=world.gone | gone,
                    ),
                )

    # --- the driver -----------------------------------------------------------------------------------

    def _driver_moves(self, world, number, driver):
        budget = world.budget
        match driver.stage:
            case "boot":
                yield from self._boots(world, number, driver)
            case "idle":
                yield from self._plans(world, number, driver)
            case "plan":
                yield from self._machine_moves(world, driver, f"driver {number}", _OfDriver(number))
            case "log":
                yield f"driver {number} logs", self._log(world, number, driver)
                if not self.log_first:
                    yield f"driver {number} runs before the log", self._run(world, number, driver)
            case "run":
                yield from self._runs(world, number, driver)
        if budget.deaths and driver.stage not in {"boot", "stopped"}:
            dead = self._leave(world, driver.connection, self._pending(driver)) if driver.connection else world
            dead = self._orphan(dead, number)._replace(budget=budget._replace(deaths=budget.deaths - 1))
            yield f"! driver {number} dies at {driver.stage}", _put_driver(dead, number, Driver(query=driver.query))

    def _boots(self, world, number, driver):
        log = world.logs[driver.query]
        places = range(self.brokers * self.addresses)
        if self._recovering:  # whoever repairs the query uses the place of its checkpoint
            # Of brokers that do not tell who they are, anybody may be the one.
            places = [int(log.offsets[-1].broker or log.offsets[-1].address)] if log.offsets else [0]
        for place in places:
            yield f"driver {number} boots at {place}", self._boot(world, number, driver._replace(place=place), log)

    def _boot(self, world, number, driver, log):
        offsets = (Offset(), *log.offsets)
        last = offsets[-1]
        stop = self.plan.require_place(last, str(self._address(driver.place)), self._identity(driver.place))
        if stop is not None:
            return self._stopped(world, number, driver, stop.reason)
        if len(log.offsets) > log.committed:
            batch = log.committed + 1
            return self._run(world, number, driver._replace(start=offsets[batch - 1], end=offsets[batch]))
        return _put_driver(world, number, driver._replace(stage="idle", start=last, end=Offset()))

    def _address(self, place):
        return place if self.addresses > 1 else 0

    def _identity(self, place):
        return str(place) if self.brokers > 1 and self.tells else None

    def _plans(self, world, number, driver):
        """Spark asks when there is a message; ``start`` is in its commit log."""
        log = world.logs[driver.query]
        broker = driver.place if self.brokers > 1 else 0
        is_empty = all(message.broker != broker for message in world.source)
        if is_empty or (driver.start.batch >= self.batches and not self._recovering):
            return
        if driver.start.batch > log.committed + (not self.commit_first):
            return
        for readers in range(1, self.readers + 1) if self.vary and not self._recovering else (self.readers,):
            stream = driver.start.stream or self._unused(world)
            keeps = self.plan.keeps(driver.start, stream, readers)
            asking = driver._replace(stage="plan", stream=stream, readers=readers, keeps=keeps, kept=())
            yield f"driver {number} plans {readers} readers", self._next_keep(world, number, asking)

    def _next_keep(self, world, number, driver):
        if driver.keeps:
            keep = driver.keeps[0]
            register = self._register(driver.place, keep.reader)
            driver = driver._replace(keeps=driver.keeps[1:], situation=-1, connection=0, register=register)
            return self._advance(world, driver, _OfDriver(number), keep)
        end = self.plan.planned(driver.start, dict(driver.kept), driver.readers, stream=driver.stream)
        place = str(self._address(driver.place))
        end = Offset(
            stream=end.stream,
            address=place,
            broker=self._identity(driver.place),
            batch=end.batch,
            names=end.names,
            used=end.used,
            next=end.next,
        )
        return _put_driver(world, number, driver._replace(stage="log", end=end, situation=-1, kept=(), connection=0))

    def _register(self, place, reader):
        return place * self.readers + reader

    def _log(self, world, number, driver):
        log = world.logs[driver.query]
        if len(log.offsets) >= driver.end.batch:
            return self._stop_driver(world, number, driver)
        logs = _at(world.logs, driver.query, log._replace(offsets=(*log.offsets, driver.end)))
        return self._run(world._replace(logs=logs), number, driver)

    def _run(self, world, number, driver):
        tasks = [Task(driver.query, read, number, driver.place) for read in self.plan.reads(driver.start, driver.end)]
        world = _put_driver(world, number, driver._replace(stage="run", got=()))
        for task in tasks:
            world = self._begin(world, task)
        return world

    def _begin(self, world, task):
        """A task may reach any broker of the failover list."""
        return world._replace(tasks=_sorted_tasks(*world.tasks, task))

    def _runs(self, world, number, driver):
        budget, known = world.budget, {reader for reader, _ in driver.got}
        readers = driver.end.readers
        if len(known) == len(readers):
            yield f"driver {number} commits", self._commit(world, number, driver)
        if budget.skips:
            for reader in set(readers) - known:
                spent = world._replace(budget=budget._replace(skips=budget.skips - 1))
                yield f"! reader {reader} is not read", self._skip(spent, number, driver, reader)
        if budget.extra:
            spent = world._replace(budget=budget._replace(extra=budget.extra - 1))
            for read in self.plan.reads(driver.start, driver.end):
                waits = -1 if read.reader in known else number
                task = Task(driver.query, read, waits, driver.place)
                yield f"! a second attempt of reader {read.reader}", self._begin(spent, task)

    def _skip(self, world, number, driver, reader):
        log = world.logs[driver.query]
        skipped = tuple(sorted({*log.skipped, (driver.end.batch, reader)}))
        tasks = _sorted_tasks(
            *(
                task._replace(driver=-1) if task.driver == number and task.read.reader == reader else task
                for task in world.tasks
            )
        )
        world = world._replace(logs=_at(world.logs, driver.query, log._replace(skipped=skipped)), tasks=tasks)
        got = tuple(sorted((*driver.got, (reader, ()))))
        return _put_driver(world, number, driver._replace(got=got))

    def _commit(self, world, number, driver):
        log, batch = world.logs[driver.query], driver.end.batch
        if log.committed >= batch:
            return self._stop_driver(world, number, driver)
        if not self.log_first and len(log.offsets) < batch:
            log = log._replace(offsets=(*log.offsets, driver.end))
        rows = tuple(message for _, got in driver.got for message in got)
        violation = world.violation
        if len(log.sink) >= batch:
            if log.sink[batch - 1] != rows and not world.tainted:
                violation = "A repeated batch differs in the sink"
        else:
            log = log._replace(sink=(*log.sink, rows))
        log = log._replace(committed=batch if self.commit_first else max(log.committed, batch - 1))
        if self.commit_first:
            log = log._replace(answers=tuple(each for each in log.answers if each[0][0] > batch))
        world = self._orphan(world._replace(logs=_at(world.logs, driver.query, log), violation=violation), number)
        written = Counter(message for each in world.logs for batch_ in each.sink for message in batch_)
        if max(written.values(), default=0) > 1:
            world = world._replace(violation="A message is written twice")
        return _put_driver(world, number, driver._replace(stage="idle", start=driver.end, end=Offset(), got=()))

    def _orphan(self, world, number):
        tasks = (task._replace(driver=-1) if task.driver == number else task for task in world.tasks)
        return world._replace(tasks=_sorted_tasks(*tasks))

    def _stop_driver(self, world, number, driver):
        world = self.free(world, driver.connection, dies=False) if driver.connection else world
        return _put_driver(self._orphan(world, number), number, Driver("stopped", query=driver.query))

    def _stopped(self, world, number, driver, reason):
        """A query ends with an error."""
        is_wrong = not (
            isinstance(reason, self.may_stop)
            or (isinstance(reason, _LOSSES) and world.tainted)
            or (isinstance(reason, Fenced) and (self.drivers > 1 or world.tainted))
            or (isinstance(reason, SharedRegister) and self.drivers > 1 and driver.start.stream is None)
        )
        world = self._stop_driver(world, number, driver)
        return world._replace(violation=f"The query stops with {type(reason).__name__}") if is_wrong else world

    # --- a task ---------------------------------------------------------------------------------------

    def _task_moves(self, world, task):
        budget = world.budget
        label = f"{task.read.batch}/{task.read.reader}"
        if task.situation < 0:
            for place in self._reachable(task):
                register = self._register(place, task.read.reader)
                began = task._replace(place=place, register=register)
                swapped = _swap_task(world, task, began)
                yield f"{label} begins at {place}", self._advance(swapped, began, _OfTask(began), task.read)
            return
        command = self.situations[task.situation][1]
        must_die = self.poison in task.rows and isinstance(command, steps.Replace)
        if not must_die:
            yield from self._machine_moves(world, task, label, _OfTask(task))
        if budget.deaths or must_die:
            spent = world if must_die else world._replace(budget=budget._replace(deaths=budget.deaths - 1))
            dead = self._leave(spent, task.connection, None if must_die else self._pending(task))
            if must_die:
                dead = self.free(dead, task.connection)
            sign = "" if must_die else "! "
            yield f"{sign}{label} dies at {_name(command)}", self._again(dead, task)
        if not self.atomic and budget.deaths and isinstance(command, steps.Replace):
            rest = tuple(m for m in world.source if m.holder != task.connection)
            spent = world._replace(source=rest, budget=budget._replace(deaths=budget.deaths - 1))
            yield f"! {label} dies between two transactions", self._again(self._leave(spent, task.connection), task)

    def _reachable(self, task):
        if self.brokers == 1 or self._recovering:
            return (task.place,)
        return range(self.brokers)

    def _again(self, world, task):
        """Spark starts a failed task again while its driver waits for it."""
        if task.driver < 0:
            return _swap_task(world, task, None)
        fresh = Task(task.query, task.read, task.driver, world.drivers[task.driver].place)
        return _swap_task(world, task, fresh)

    def _answer(self, world, task):
        log, key = world.logs[task.query], (task.read.batch, task.read.reader)
        known, is_waited = dict(log.answers), task.driver >= 0
        violation = world.violation
        if is_waited and key[0] > log.committed and known.setdefault(key, task.rows) != task.rows and not world.tainted:
            violation = "A repeated batch differs"
        logs = _at(world.logs, task.query, log._replace(answers=tuple(sorted(known.items()))))
        world = self.free(world, task.connection, dies=False)._replace(logs=logs, violation=violation)
        if is_waited:
            driver = world.drivers[task.driver]
            got = dict(driver.got)
            got.setdefault(task.read.reader, task.rows)
            world = _put_driver(world, task.driver, driver._replace(got=tuple(sorted(got.items()))))
        return _swap_task(world, task, None)

    def _task_stops(self, world, task, reason):
        world = self.free(world, task.connection, dies=False) if task.connection else world
        world = _swap_task(world, task, None)
        if task.driver < 0:
            return world
        return self._stopped(world, task.driver, world.drivers[task.driver], reason)

    # --- the machines ---------------------------------------------------------------------------------

    def _advance(self, world, actor, of, event):
        """Give the machine an event, and its command to the task or the driver."""
        try:
            situation = self._step(world, actor, event)
            while isinstance(self.situations[situation][1], steps.Open) and not self.budget.full:
                actor = actor._replace(situation=situation)
                situation = self._step(world, actor, steps.Opened())
        except (AssertionError, JMSError) as error:
            return world._replace(violation=f"The machine fails: {error!r}")
        after = actor._replace(situation=situation)
        match self.situations[situation][1]:
            case steps.Lock() if isinstance(after, Task):
                after = after._replace(rows=())
            case Stop(reason):
                if isinstance(after, Task):
                    return self._task_stops(_swap_task(world, of.task, after), after, reason)
                return self._stopped(world, of.number, after, reason)
            case Kept(token):
                world = self.free(world, after.connection, dies=False) if after.connection else world
                reader = after.register % self.readers
                return self._next_keep(world, of.number, after._replace(kept=(*after.kept, (reader, _numbered(token)))))
        return of.put(world, after)

    def _step(self, world, actor, event):
        """The number of the situation after the event; known steps are looked up."""
        is_task = isinstance(actor, Task)
        key = (is_task, actor.situation, event)
        known = self._known.get(key)
        if known is not None:
            return known
        asked = []
        if is_task:
            machine = self.reader(fail_on_data_loss=self.fail_on_data_loss)
        else:
            machine = self.keeper(
                lambda: asked.append(1) or self._unused(world, actor), fail_on_data_loss=self.fail_on_data_loss
            )
        if actor.situation >= 0:
            machine.state = self.situations[actor.situation][0]
        before = machine.state.phase
        command = machine.next(event)
        self.arrows.add((is_task, before.value, type(event).__name__, machine.state.phase.value))
        number = self._numbers.setdefault((machine.state, command), len(self.situations))
        if number == len(self.situations):
            self.situations.append((machine.state, command))
        if not asked:
            self._known[key] = number
        return number

    def _unused(self, world, driver=None):
        """A name that occurs nowhere is as good as a new one, and keeps the number of worlds small."""
        values = [world.registers, world.logs, world.connections, world.tasks]
        values += [(d.start, d.end, d.stream, d.kept) for d in world.drivers]
        values += [self.situations[a.situation] for a in (*world.drivers, *world.tasks) if a.situation >= 0]
        text = repr([*values, driver])
        return next(name for name in _NAMES if f"'{name}'" not in text)

    def _machine_moves(self, world, actor, label, of):
        command = self.situations[actor.situation][1]
        what = f"{label} {_name(command)}"
        connection = next((c for c in world.connections if c.number == actor.connection), None)
        if actor.connection and connection is None and not isinstance(command, Answer):
            lost = actor._replace(connection=0)
            yield f"{label} finds its connection closed", self._advance(world, lost, of, steps.Lost())
            return
        match command:
            case steps.Lock():
                yield from self._lock(world, actor, what, of, connection)
            case steps.Drop():
                dropped = self._leave(world, actor.connection)
                yield what, self._advance(dropped, actor._replace(connection=0), of, steps.Dropped())
            case steps.GiveBack():
                back = self.free(world, actor.connection, dies=False)
                given = actor._replace(connection=0, **_no_rows(actor))
                yield what, self._advance(back, given, of, steps.GivenBack())
            case Answer():
                yield f"{label} answers {actor.rows}", self._answer(world, actor)
            case steps.Peek(name, patient):
                yield from self._peek(world, actor, connection, what, of, name, patient)
            case steps.Take() | steps.AcceptValue() | steps.ProveLink() if connection.halved:
                yield f"{what} in vain", self._lose(world, actor, of)
            case steps.Receive():
                yield from self._receive(world, actor, connection, what, of, command)
            case steps.Browse():
                yield from self._browse(world, actor, connection, what, of, command)
            case _ if isinstance(command, _SENDING) and world.is_full:
                yield f"{what} is not answered", self._time_out(world, actor, of)
            case _:
                yield from self._carry_out(world, actor, connection, what, of, command)

    def _lose(self, world, actor, of, pending=None):
        alone = self._leave(world, actor.connection, pending)
        return self._advance(alone, actor._replace(connection=0), of, steps.Lost())

    def _time_out(self, world, actor, of):
        after = self.free(world, actor.connection, dies=not self.polite)
        return self._advance(after, actor._replace(connection=0, **_no_rows(actor)), of, steps.Lost())

    def _lock(self, world, actor, what, of, connection):
        if connection is not None:
            world = self._leave(world, connection.number)
        if self.excludes and any(c.register == actor.register and not c.halved for c in world.connections):
            return
        used = {c.number for c in world.connections} | {a.connection for a in (*world.drivers, *world.tasks)}
        number = next(n for n in range(1, 99) if n not in used)
        after = world._replace(connections=_sorted(*world.connections, Connection(number, actor.register)))
        yield what, self._advance(after, actor._replace(connection=number, **_no_rows(actor)), of, steps.Locked())

    def _visible(self, world, register, kind):
        return [item for item in world.registers[register] if item.kind == kind and not item.holder]

    def _is_quiet(self, world, register, connection):
        """No connection is left that had the lock before."""
        number = connection.number if connection else 0
        others = (c for c in world.connections if c.register == register and c.number != number)
        return not self.patient or not any(c.halved or not c.client for c in others)

    def _peek(self, world, actor, connection, what, of, name, patient):
        seen = self._visible(world, actor.register, "T")
        is_there = any(name in {None, item.value.name} for item in seen)
        if not is_there and patient and not self._is_quiet(world, actor.register, connection):
            return
        event = steps.Peeked(tuple(StoredToken(item.value, item.deliveries) for item in seen))
        yield what, self._advance(world, actor, of, event)

    def _receive(self, world, actor, connection, what, of, command):
        broker = actor.place if self.brokers > 1 else 0
        there = [m for m in world.source if not m.holder and m.broker == broker]
        most = min(self.quota, len(there))
        is_certain = self.readers == self.queries == self.drivers == 1 and not self.late
        for count in range(min(most, is_certain), most + 1):
            chosen, suspects = self._chosen(there[:count], command.alone)
            held = tuple(m._replace(holder=connection.number) if m in chosen else m for m in world.source)
            deliveries = _shown(chosen[0]) if suspects else 0
            rows = tuple(m.id for m in chosen)
            suspect = self._name(chosen[0]) if suspects else None
            received = steps.Received(len(chosen), len(chosen), deliveries, suspect, suspects or 1)
            after = actor._replace(rows=rows)
            yield f"{what} {count}", self._advance(world._replace(source=held), after, of, received)

    def _chosen(self, window, alone):
        """What the engine receives of a window, and how many suspected messages it begins with."""
        bad = [_shown(m) >= MAX_SOURCE_DELIVERIES for m in window]
        at = next((n for n, m in enumerate(window) if alone and self._name(m) == alone.message and _shown(m)), None)
        if at is not None:
            many = min(alone.many, next((n for n, each in enumerate(bad[at:]) if not each), len(bad) - at) or 1)
            return window[at : at + many], many
        healthy = next((n for n, each in enumerate(bad) if each), len(bad))
        if healthy or not window:
            return window[:healthy], 0
        return window, next((n for n, each in enumerate(bad) if not each), len(bad))

    def _name(self, message):
        return "equal" if self.equal else str(message.id)

    def _browse(self, world, actor, connection, what, of, command):
        seen = self._visible(world, actor.register, "B")
        rows = tuple(item.value[2] for item in seen if item.value[:2] == (command.stream, command.batch))
        is_whole = command.blocks is not None and len(rows) >= command.blocks
        if not is_whole and not self._is_quiet(world, actor.register, connection):
            return
        yield what, self._advance(world, actor._replace(rows=rows), of, steps.BlocksSeen(len(rows)))

    def _carry_out(self, world, actor, connection, what, of, command):
        budget = world.budget
        after, event = self._outcome(world, connection, command)
        yield what, self._advance(after, actor, of, event)
        if not budget.answers or not isinstance(command, _MUTATING):
            return
        left = budget._replace(answers=budget.answers - 1)
        yield f"! {what}, answer lost", self._lose(after._replace(budget=left), actor, of)
        yield f"! {what}, no answer", self._lose(world._replace(budget=left), actor, of, command)

    def _outcome(self, world, connection, command):
        """The world after a command, and its event."""
        number, register = connection.number, connection.register
        items = world.registers[register]
        match command:
            case steps.Open():
                return world, steps.Opened()
            case steps.ProveLink():
                return world, steps.Proven()
            case steps.Take():
                held = [item._replace(holder=number) if not item.holder else item for item in items]
                mine = [item for item in held if item.holder == number]
                tokens = tuple(StoredToken(item.value, item.deliveries) for item in mine if item.kind == "T")
                blocks = tuple(sorted({item.value[:2] for item in mine if item.kind == "B"}))
                return self._put(world, register, held), steps.Taken(tokens, blocks)
            case steps.AcceptValue():
                held = [item._replace(in_transaction=True) if item.holder == number else item for item in items]
                return self._put(world, register, held), steps.ValueAccepted()
            case steps.Create(token):
                return self._put(world, register, [*items, Item("T", token)]), steps.Created()
            case steps.Renew(token):
                kept = [item for item in items if item.holder != number or not item.in_transaction]
                return self._put(world, register, [*kept, Item("T", token)]), steps.Renewed()
            case steps.Replace(token):
                return self._replace(world, connection, token), steps.Replaced()
        raise AssertionError(command)

    def _replace(self, world, connection, token):
        number, register = connection.number, connection.register
        accepted = [item for item in world.registers[register] if item.holder == number and item.in_transaction]
        kept = [item for item in world.registers[register] if item not in accepted]
        held = [m for m in world.source if m.holder == number]
        blocks = [Item("B", (token.stream, token.batch, m.id)) for m in held]
        other = any(
            (item.value.stream if item.kind == "T" else item.value[0]) != token.stream
            and (item.kind == "B" or item.value.batch)
            for item in accepted
        )
        if other:
            world = world._replace(violation="A value of another query is accepted")
        rest = tuple(m for m in world.source if m.holder != number)
        return self._put(world._replace(source=rest), register, [*kept, Item("T", token), *blocks])

    def _put(self, world, register, items):
        return world._replace(registers=_at(world.registers, register, tuple(sorted(items, key=self._key))))

    def _key(self, item):
        key = self._keys.get(item)
        if key is None:
            key = self._keys[item] = repr(item)
        return key

    # --- connections ----------------------------------------------------------------------------------

    def _pending(self, actor):
        command = self.situations[actor.situation][1] if actor.situation >= 0 else None
        return command if isinstance(command, _MUTATING) else None

    def _leave(self, world, number, pending=None):
        """The client is gone; the broker has not noticed."""
        connection = next((c for c in world.connections if c.number == number), None)
        if connection is None:
            return world
        return _swap(world, connection, connection._replace(client=False, pending=pending))

    def free(self, world, number, *, dies=True):
        """The broker ends the connection, and what it held returns."""
        connection = next((c for c in world.connections if c.number == number), None)
        if connection is None:
            return world
        count = 1 if self.counts and dies else 0
        items = [
            item._replace(holder=0, in_transaction=False, deliveries=item.deliveries + count)
            if item.holder == number
            else item
            for item in world.registers[connection.register]
        ]
        source = tuple(
            m._replace(holder=0, deliveries=m.deliveries + count) if m.holder == number else m for m in world.source
        )
        needs_renewal = any(each.deliveries >= BROKER_LIMIT for each in (*items, *source))
        world = self._put(world, connection.register, items)
        return world._replace(
            source=source,
            connections=tuple(c for c in world.connections if c.number != number),
            violation="A dead letter" if needs_renewal else world.violation,
        )

    def _free_all(self, world):
        """Every connection ends; no delivery counts."""
        if not world.connections:
            return world
        registers = tuple(
            tuple(sorted((i._replace(holder=0, in_transaction=False) if i.holder else i for i in items), key=self._key))
            for items in world.registers
        )
        source = tuple(m._replace(holder=0) if m.holder else m for m in world.source)
        return world._replace(registers=registers, source=source, connections=())

    # --- the end --------------------------------------------------------------------------------------

    def _recovery(self, world):
        """All drivers and tasks die, the broker notices, and a fresh driver of each query runs to its end."""
        drivers = tuple(Driver(query=query) for query in range(self.queries))
        world = world._replace(tasks=(), drivers=drivers, is_full=False, budget=NO_FAULTS)
        world = self._free_all(world)
        while world.coming:
            world = self._send(world)
        if world not in self._recovered:
            self._recovering = True
            try:
                self._recovered[world] = self._run_to_end(world)
            finally:
                self._recovering = False
        return self._recovered[world]

    def _run_to_end(self, world):
        for _ in range(400):
            if world.violation:
                return f"{world.violation} (a fresh driver)"
            moves = [move for move in self.moves(world) if not move[0].startswith("!")]
            if not moves:
                break
            world = moves[-1][1]
        else:
            return "A fresh driver does not end"
        stages = [driver.stage for driver in world.drivers]
        if any(stage not in {"idle", "stopped"} for stage in stages):
            return f"A fresh driver is stuck at {stages}"
        if "stopped" in stages:
            return None
        written = {m for log in world.logs for batch in log.sink for m in batch}
        unread = {m.id for m in world.source if self.brokers > 1}
        lost = set(range(1, self.messages + 1)) - written - world.gone - unread
        if self.fail_on_data_loss and world.gone - written and not any(log.skipped for log in world.logs):
            return "A loss is not reported"
        allowed = sum(len(log.skipped) for log in world.logs) * self.quota
        if len(lost) > allowed:
            return "A message is lost"
        return None


class _OfDriver(NamedTuple):
    number: int

    def put(self, world, driver):
        return _put_driver(world, self.number, driver)


class _OfTask(NamedTuple):
    task: Task

    def put(self, world, task):
        return _swap_task(world, self.task, task)


def _no_rows(actor):
    return {"rows": ()} if isinstance(actor, Task) else {}


def _name(command):
    return type(command).__name__


def _task_key(task):
    read = task.read
    return (
        task.query,
        read.batch,
        read.reader,
        read.name,
        task.driver,
        task.place,
        task.situation,
        task.connection,
        task.rows,
    )


def _sorted_tasks(*tasks):
    return tuple(sorted(tasks, key=_task_key))


def _swap_task(world, task, after):
    tasks = list(world.tasks)
    tasks.remove(task)
    return world._replace(tasks=_sorted_tasks(*tasks, *([] if after is None else [after])))


def _connection_key(connection):
    return connection.register, connection.halved, connection.client, repr(connection.pending), connection.number


def _sorted(*connections):
    return tuple(sorted(connections, key=lambda each: each.number))


def _swap(world, connection, after):
    return world._replace(connections=_sorted(*(after if c == connection else c for c in world.connections)))


def _at(items, index, item):
    return (*items[:index], item, *items[index + 1 :])


def _shown(message):
    return message.deliveries + message.claimed


def _numbered(token):
    """What the next offset has of a token."""
    return Token(stream="", name=token.name, reader=0, batch=0, next=token.next)


def _put_driver(world, number, driver):
    return world._replace(drivers=_at(world.drivers, number, driver))
