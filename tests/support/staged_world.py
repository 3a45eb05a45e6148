"""A model of everything around the owner of a staged stream: a broker, Spark's logs, drivers, and their faults.

A world is a tuple of small values, so that it can be compared and counted. ``StagedWorld.moves`` gives the worlds that
may follow; a label that begins with ``!`` is a fault. The machine under test decides every step of the protocol: this
module carries out commands, and knows no rule.

A command is carried out and answered in one move, or carried out and its answer is lost, or it stays in a connection
whose client is gone: then the broker carries it out later, or never. A connection ends in one move, or in two: first
the lock is free, later the rest returns.
"""

import itertools
from dataclasses import dataclass
from typing import NamedTuple

from pyspark_jms.delivery.staging import steps
from pyspark_jms.delivery.staging.offset import Offset
from pyspark_jms.delivery.staging.owner import SourceOwner
from pyspark_jms.delivery.staging.owner_steps import OwnerState
from pyspark_jms.delivery.staging.owner_table import Deliver, Fenced, Loss, Plan, Planned, Read, Stop
from pyspark_jms.delivery.staging.tokens import Sighting, SourceToken
from pyspark_jms.errors import JMSError


class Budget(NamedTuple):
    """How many faults of each kind a world has left."""

    deaths: int = 0
    closed: int = 0
    """Connections that the broker closes, in one move or in two."""
    restarts: int = 0
    lost_answers: int = 0
    rivals: int = 0
    """Messages that another consumer of the source takes."""
    lost_tokens: int = 0
    """Tokens that are deleted, or end in a dead-letter queue."""
    lost_blocks: int = 0


NO_FAULTS = Budget()


class Message(NamedTuple):
    id: int
    """Of two messages in one queue, the lower one was sent first."""
    queue: int = 0
    holder: int = 0
    deliveries: int = 0


class Block(NamedTuple):
    stream: str
    first: int
    messages: tuple[int, ...]
    holder: int = 0
    delayed: bool = False

    @property
    def end(self):
        return self.first + len(self.messages)


class Token(NamedTuple):
    value: SourceToken
    holder: int = 0
    delayed: bool = False
    deliveries: int = 0


class Connection(NamedTuple):
    number: int
    queue: str
    """The staging queue that it attached."""
    halved: bool = False
    """The broker has freed its lock, and nothing else yet."""
    pending: object = None
    """A command that was sent and not yet carried out, of a client that is gone."""
    client: bool = True
    reads_source: bool = False


class Driver(NamedTuple):
    stage: str = "boot"
    """boot, run (the machine has given a command), log, sink, commit, idle, stopped."""
    query: int = 0
    situation: int = -1
    """The machine's state and the command that it has given, as a number of ``StagedWorld.situations``."""
    connection: int = 0
    batch: int = 0
    start: Offset = Offset()
    end: Offset = Offset()
    memory: tuple[tuple[int, int], ...] = ()
    """(number, message) of what the engine has in memory."""
    rows: tuple[tuple[int, ...], ...] = ()


class Log(NamedTuple):
    """What a query has in its checkpoint and its sink."""

    offsets: tuple[Offset, ...] = ()
    committed: int = 0
    sink: tuple[tuple[tuple[int, ...], ...], ...] = ()
    """The rows of each batch, in partitions."""


class World(NamedTuple):
    source: tuple[Message, ...]
    blocks: tuple[Block, ...] = ()
    tokens: tuple[Token, ...] = ()
    connections: tuple[Connection, ...] = ()
    drivers: tuple[Driver, ...] = ()
    logs: tuple[Log, ...] = (Log(),)
    gone: frozenset[int] = frozenset()
    """Messages that a rival took, or whose block was deleted."""
    coming: int = 0
    """Messages that producers send later."""
    budget: Budget = Budget()
    tainted: bool = False
    """Something was deleted, so a loss may be reported."""
    violation: str | None = None


_MUTATING = (steps.Commit, steps.CreateToken, steps.RenewToken)
_NAMES = "abcdefghijklmnop"
BROKER_LIMIT = 10
"""Deliveries after which the broker moves a message to its dead-letter queue."""


@dataclass(kw_only=True)
class StagedWorld:
    """The rules of a world: how many messages, which faults, and which machine."""

    messages: int
    queues: int = 1
    """Sources of the query, among which the messages are dealt in turn."""
    late: int = 0
    """How many of them are sent at any time, and not before the first driver starts."""
    drivers: int = 1
    """Of each query."""
    queries: int = 1
    budget: Budget = NO_FAULTS
    owner: type[SourceOwner] = SourceOwner
    per_batch: int = 2
    fifo: bool = True
    """Whether a source delivers the oldest of its messages first."""
    halves: bool = True
    """Whether the broker may free the lock of a connection before it gives back what the connection held."""
    ordered: bool = False
    """Whether a message must have a lower number than those that were sent to the same source after it."""
    cuts: bool = True
    """Whether a batch has a partition for each block, or one for all."""
    lags: bool = False
    """Whether the batch before the start is never certain to be in the commit log."""
    atomic: bool = True
    """Whether messages are accepted in the transaction that sends their blocks."""
    excludes: bool = True
    """Whether the broker refuses a second consumer of the lock."""
    patient: bool = True
    """Whether the engine's patience outlives every old connection and every delay."""
    delays: bool = False
    """Whether what returns from a dead transaction is invisible for a while (redelivery-delay)."""
    durable_source: bool = False
    """Whether the source has one consumer at a time."""
    shared_name: bool = False
    """Whether all queries use one staging queue."""
    counts: bool = False
    """Whether a death counts as a delivery of all that its connection held."""
    fail_on_data_loss: bool = True
    may_stop: tuple[type, ...] = ()
    """Reasons with which a query may end."""

    def __post_init__(self):
        source = tuple(map(self._message, range(1, self.messages - self.late + 1)))
        starting = tuple(Driver(query=query) for query in range(self.queries) for _ in range(self.drivers))
        logs = (Log(),) * self.queries
        self.first = World(source=source, drivers=starting, budget=self.budget, logs=logs, coming=self.late)
        self.situations: list[tuple[OwnerState, object]] = []
        self.arrows: set[tuple[str, str, str]] = set()
        """The moves of the machine's table that were taken."""
        self._numbers: dict[tuple[OwnerState, object], int] = {}
        self._known_steps: dict[object, int | None] = {}
        self._recovered: dict[object, str | None] = {}

    def _message(self, number):
        return Message(number, (number - 1) % self.queues)

    # --- all moves ------------------------------------------------------------------------------------

    def moves(self, world):
        for number, driver in enumerate(world.drivers):
            yield from self.driver_moves(world, number, driver)
        yield from self._connection_moves(world)
        yield from self._losses(world)
        if world.coming:
            yield "a message is sent", self._send(world)

    def _send(self, world):
        new = self._message(self.messages - world.coming + 1)
        return world._replace(source=(*world.source, new), coming=world.coming - 1)

    def fault(self, world):
        """What is wrong in this world, or with what fresh drivers make of it."""
        return world.violation or self._recovery(world)

    def driver_moves(self, world, number, driver):
        if driver.stage == "boot":
            yield f"{number} boots", self._boot(world, number, driver)
            return
        if driver.stage == "stopped":
            return
        if driver.stage == "run":
            yield from self._command_moves(world, number, driver)
        else:
            yield from getattr(self, f"_{driver.stage}")(world, number, driver)
        budget = world.budget
        if budget.deaths:
            command = self.situations[driver.situation][1] if driver.stage == "run" else None
            dead = self._leave(world, driver.connection, command if isinstance(command, _MUTATING) else None)
            what = type(command).__name__ if command else driver.stage
            spent = budget._replace(deaths=budget.deaths - 1)
            yield f"! {number} dies at {what}", put(dead, number, Driver(query=driver.query))._replace(budget=spent)
            if not self.atomic and isinstance(command, steps.Commit):
                accepted = tuple(m for m in world.source if m.holder != driver.connection)
                between = put(dead, number, Driver(query=driver.query))._replace(budget=spent, source=accepted)
                yield f"! {number} dies between two transactions", between

    def _connection_moves(self, world):
        budget = world.budget
        for connection in world.connections:
            spent, sign = world, ""
            if connection.client and not connection.halved:
                if not budget.closed:
                    continue
                spent, sign = world._replace(budget=budget._replace(closed=budget.closed - 1)), "! "
            yield f"{sign}connection {connection.number} closes", self.free(spent, connection.number)
            if not connection.halved and self.halves:
                halved = connection._replace(halved=True)
                yield f"{sign}connection {connection.number} loses its lock", _swap(spent, connection, halved)
            if connection.pending is not None:
                yield from self._late(world, connection)
        if budget.restarts and world.connections:
            after = world._replace(budget=budget._replace(restarts=budget.restarts - 1))
            for connection in world.connections:
                after = self.free(after, connection.number)
            yield "! broker restarts", after

    def _late(self, world, connection):
        """The broker carries out what a client sent before it was gone."""
        for _, after, _ in self._outcomes(world, connection, connection.pending):
            now = next(c for c in after.connections if c.number == connection.number)
            what = type(connection.pending).__name__
            yield f"connection {connection.number} carries out {what}", _swap(after, now, now._replace(pending=None))

    def _losses(self, world):
        budget = world.budget
        for message in world.source if budget.rivals else ():
            if not message.holder:
                yield (
                    f"! rival takes {message.id}",
                    world._replace(
                        source=tuple(m for m in world.source if m != message),
                        gone=world.gone | {message.id},
                        budget=budget._replace(rivals=budget.rivals - 1),
                    ),
                )
        for token in world.tokens:
            rest = _without(world.tokens, token)
            if token.delayed:
                yield "token is visible", world._replace(tokens=_sorted(*rest, token._replace(delayed=False)))
            elif budget.lost_tokens and not token.holder:
                spent = budget._replace(lost_tokens=budget.lost_tokens - 1)
                yield "! token is deleted", world._replace(tokens=rest, budget=spent)
        for block in world.blocks:
            rest = _without(world.blocks, block)
            if block.delayed:
                yield "block is visible", world._replace(blocks=_sorted(*rest, block._replace(delayed=False)))
            elif budget.lost_blocks and not block.holder:
                spent = budget._replace(lost_blocks=budget.lost_blocks - 1)
                gone = world.gone | set(block.messages)
                yield (
                    f"! block {block.first} is deleted",
                    world._replace(blocks=rest, gone=gone, budget=spent, tainted=True),
                )

    def canonical(self, world):
        """The same world for all orders of the drivers, and all numbers of connections."""
        drivers = tuple(sorted(world.drivers, key=lambda d: (d.query, d.stage, d.situation, d.batch, d.memory, d.rows)))
        numbers = {0: 0}
        for driver in drivers:
            numbers.setdefault(driver.connection, len(numbers))
        for connection in world.connections:
            numbers.setdefault(connection.number, len(numbers))
        if drivers == world.drivers and all(a == b for a, b in numbers.items()):
            return world
        return world._replace(
            source=tuple(m._replace(holder=numbers[m.holder]) if m.holder else m for m in world.source),
            blocks=tuple(b._replace(holder=numbers[b.holder]) if b.holder else b for b in world.blocks),
            tokens=_sorted(*(t._replace(holder=numbers[t.holder]) if t.holder else t for t in world.tokens)),
            connections=_sorted(*(c._replace(number=numbers[c.number]) for c in world.connections)),
            drivers=tuple(d._replace(connection=numbers[d.connection]) if d.connection else d for d in drivers),
        )

    # --- a driver -------------------------------------------------------------------------------------

    def _boot(self, world, number, driver):
        """Spark reads its logs, and asks for the batch that is planned and not committed, or for the next one."""
        log = world.logs[driver.query]
        offsets, batch = (Offset(), *log.offsets), log.committed
        driver = Driver(query=driver.query, batch=batch, start=offsets[batch])
        if len(log.offsets) == batch:
            return self._ask(world, number, driver, Plan(driver.start))
        driver = driver._replace(end=log.offsets[batch])
        return self._ask(world, number, driver, Read(driver.start, driver.end))

    def _log(self, world, number, driver):
        log = world.logs[driver.query]
        if len(log.offsets) > driver.batch:
            yield f"{number} finds that the offset log has batch {driver.batch}", self._end(world, number, driver)
            return
        logs = _at(world.logs, driver.query, log._replace(offsets=(*log.offsets, driver.end)))
        after = self._ask(world._replace(logs=logs), number, driver, Read(driver.start, driver.end))
        yield f"{number} logs batch {driver.batch}", after

    def _sink(self, world, number, driver):
        log, rows = world.logs[driver.query], driver.rows
        label = f"{number} writes batch {driver.batch}"
        if len(log.sink) > driver.batch:
            differs = log.sink[driver.batch] != rows and not world.tainted
            world = world._replace(violation="A repeated batch differs") if differs else world
            yield label, put(world, number, driver._replace(stage="commit", rows=()))
            return
        written = {message for other in world.logs for batch in other.sink for rows_ in batch for message in rows_}
        new = {message for part in rows for message in part}
        if new & written or new & world.gone - (world.gone if world.tainted else frozenset()):
            world = world._replace(violation="A message is written twice")
        logs = _at(world.logs, driver.query, log._replace(sink=(*log.sink, rows)))
        yield label, put(world._replace(logs=logs), number, driver._replace(stage="commit", rows=()))

    def _commit(self, world, number, driver):
        log = world.logs[driver.query]
        if log.committed > driver.batch:
            yield f"{number} finds that the commit log has batch {driver.batch}", self._end(world, number, driver)
            return
        logs = _at(world.logs, driver.query, log._replace(committed=driver.batch + 1))
        driver = driver._replace(batch=driver.batch + 1, start=driver.end, end=Offset())
        certain = log.offsets[-2].seq if self.lags and len(log.offsets) > 1 else None
        after = self._ask(world._replace(logs=logs), number, driver, Plan(driver.start, certain))
        yield f"{number} commits batch {driver.batch - 1}", after

    def _idle(self, world, number, driver):
        """Spark asks again while the source has messages."""
        if world.source:
            yield f"{number} asks again", self._ask(world, number, driver, Plan(driver.start))

    def _end(self, world, number, driver):
        """The driver's process ends in order, and starts anew."""
        return put(self.free(world, driver.connection, dies=False), number, Driver(query=driver.query))

    # --- the machine ----------------------------------------------------------------------------------

    def _ask(self, world, number, driver, request):
        gone = driver.connection and not any(c.number == driver.connection for c in world.connections)
        if gone and driver.situation >= 0:
            driver = driver._replace(situation=self._step(world, driver, steps.Lost()), connection=0)
        if isinstance(request, Plan):
            kept = tuple(pair for pair in driver.memory if pair[0] >= request.start.seq)
            driver = driver._replace(memory=kept)
        return self._answer(world, number, driver, request)

    def _answer(self, world, number, driver, event, learned=()):
        """Give the machine an event, and its command to the driver."""
        try:
            situation = self._step(world, driver, event)
        except (AssertionError, JMSError) as error:
            return world._replace(violation=f"The machine fails: {error!r}")
        memory = tuple(sorted({**dict(driver.memory), **dict(learned)}.items())) if learned else driver.memory
        driver = driver._replace(situation=situation, memory=memory, stage="run")
        match self.situations[situation][1]:
            case Planned(offset):
                driver = driver._replace(stage="idle" if offset == driver.start else "log", end=offset)
            case Deliver(start, end, cuts, _):
                driver = driver._replace(stage="sink", rows=_partitions(driver.memory, start, end, cuts))
            case Stop(reason):
                return self._stop(world, number, driver, reason)
        return put(world, number, driver)

    def _stop(self, world, number, driver, reason):
        world = self._end(world, number, driver)
        if isinstance(reason, Fenced) and len(world.drivers) > 1:
            return world
        named = driver.end if driver.end.id else driver.start
        known = any((t.value.id, t.value.name) == (named.id, named.token) for t in world.tokens)
        unknown = len(world.drivers) > 1 and not known  # a stale driver, and the token that would tell is lost
        allowed = isinstance(reason, self.may_stop) or (isinstance(reason, Loss) and (world.tainted or unknown))
        world = put(world, number, Driver(stage="stopped", query=driver.query))
        return world if allowed else world._replace(violation=f"The query stops with {type(reason).__name__}")

    def _step(self, world, driver, event):
        """The number of the situation after the event; known steps are looked up."""
        key = (driver.situation, event)
        known = self._known_steps.get(key, -1)
        if known is not None and known >= 0:
            return known
        name = self._unused_name(world) if known is None else None
        if known is None and (key, name) in self._known_steps:
            return self._known_steps[key, name]
        asked = []
        name = name or self._unused_name(world)
        owner = self.owner(lambda: asked.append(name) or name, fail_on_data_loss=self.fail_on_data_loss)
        if driver.situation >= 0:
            owner.state = self.situations[driver.situation][0]
        before = owner.state.phase
        command = owner.next(event)
        self.arrows.add((before.value, type(event).__name__, owner.state.phase.value))
        number = self._numbers.setdefault((owner.state, command), len(self.situations))
        if number == len(self.situations):
            self.situations.append((owner.state, command))
        if asked:
            self._known_steps[key] = None
            self._known_steps[key, name] = number
        else:
            self._known_steps[key] = number
        return number

    def _unused_name(self, world):
        """A name that occurs nowhere is as good as a new one, and keeps the number of worlds small."""
        values = [*world.tokens, *world.connections, *(o for log in world.logs for o in log.offsets)]
        values += [d for driver in world.drivers for d in (driver.start, driver.end)]
        values += [self.situations[d.situation] for d in world.drivers if d.situation >= 0]
        text = repr(values)
        return next(
            name for name in _NAMES if f"'{name}'" not in text and not any(b.stream == name for b in world.blocks)
        )

    # --- commands -------------------------------------------------------------------------------------

    def _command_moves(self, world, number, driver):
        command = self.situations[driver.situation][1]
        what = f"{number} {type(command).__name__}"
        connection = next((c for c in world.connections if c.number == driver.connection), None)
        if driver.connection and connection is None:
            yield (
                f"{number} sees that its connection is gone",
                self._answer(world, number, driver._replace(connection=0), steps.Lost()),
            )
            return
        if isinstance(command, steps.Lock):
            yield from self._lock(world, number, driver, command)
            return
        if isinstance(command, steps.Drop):
            dropped = self._leave(world, driver.connection, None)
            yield what, self._answer(dropped, number, driver._replace(connection=0), steps.Dropped())
            return
        budget = world.budget
        for event, after, learned in self._outcomes(world, connection, command):
            yield f"{what} {_short(event)}", self._answer(after, number, driver, event, learned)
            if budget.lost_answers and isinstance(command, _MUTATING):
                spent = after._replace(budget=budget._replace(lost_answers=budget.lost_answers - 1))
                alone = self._leave(spent, driver.connection, None)
                lost = self._answer(alone, number, driver._replace(connection=0), steps.Lost())
                yield f"! {what}, answer lost", lost
        if budget.lost_answers and isinstance(command, _MUTATING):
            spent = world._replace(budget=budget._replace(lost_answers=budget.lost_answers - 1))
            alone = self._leave(spent, driver.connection, command)
            yield f"! {what}, no answer", self._answer(alone, number, driver._replace(connection=0), steps.Lost())

    def _lock(self, world, number, driver, command):
        name = self._lock_name(command.id)
        if self.excludes and any(c.queue == name and not c.halved for c in world.connections):
            return
        used = {c.number for c in world.connections} | {d.connection for d in world.drivers}
        new = next(n for n in range(1, 99) if n not in used)
        after = world._replace(connections=_sorted(*world.connections, Connection(new, name)))
        yield f"{number} locks {name}", self._answer(after, number, driver._replace(connection=new), steps.Locked())

    def _lock_name(self, stream):
        return "shared" if self.shared_name else stream

    def _outcomes(self, world, connection, command):
        """(event, world, what the engine learns) for each way in which the broker may carry out a command."""
        match command:
            case steps.FindTokens(patience, name):
                yield from self._find_tokens(world, connection, patience, name)
            case steps.CreateToken(token):
                yield steps.TokenCreated(), world._replace(tokens=_sorted(*world.tokens, Token(token))), ()
            case steps.RenewToken(token):
                kept = _without_all(world.tokens, self._visible_tokens(world, connection))
                yield steps.Renewed(), world._replace(tokens=_sorted(*kept, Token(token))), ()
            case steps.TakeTokens():
                visible = self._visible_tokens(world, connection)
                held = [t._replace(holder=connection.number) if t in visible else t for t in world.tokens]
                taken = tuple(t.value for t in held if t.holder == connection.number)
                yield steps.TokensTaken(taken), world._replace(tokens=_sorted(*held)), ()
            case steps.TakeFinished(id_, below):
                held = tuple(
                    b._replace(holder=connection.number)
                    if b.stream == id_ and b.end <= below and not (b.holder or b.delayed)
                    else b
                    for b in world.blocks
                )
                yield steps.FinishedTaken(), world._replace(blocks=held), ()
            case steps.Receive():
                yield from self._receive(world, connection)
            case steps.Commit(token, first):
                yield self._carry_out(world, connection, token, first)
            case steps.BrowseBlocks(id_, start, end):
                yield from self._browse(world, connection, id_, start, end)

    def _find_tokens(self, world, connection, patience, name):
        """All tokens that are visible: as soon as the wanted one is, or when the patience is over."""
        visible = self._visible_tokens(world, connection)
        wanted = any(name is None or t.value.name == name for t in visible)
        if not wanted and patience is not steps.Patience.ONCE and not self._patience_over(world, connection):
            return
        seen = tuple(Sighting(t.value, t.deliveries) for t in visible)
        yield steps.TokensSeen(seen), world, ()

    def _visible_tokens(self, world, connection):
        queue = connection.queue
        return [t for t in world.tokens if self._lock_name(t.value.id) == queue and not (t.holder or t.delayed)]

    def _patience_over(self, world, connection):
        """No connection is left that had the lock before, and nothing is invisible."""
        if not self.patient:
            return True
        others = [c for c in world.connections if c.queue == connection.queue and (c.halved or not c.client)]
        hidden = any(t.delayed for t in world.tokens) or any(b.delayed for b in world.blocks)
        return not (others or hidden)

    def _receive(self, world, connection):
        if self.durable_source:
            if any(c.reads_source for c in world.connections if c.number != connection.number):
                return
            world = _swap(world, connection, connection._replace(reads_source=True))
        free = [m for m in world.source if not m.holder]
        if not free:
            yield steps.Received(0), world, ()
        for chosen in self._choices(free):
            held = tuple(m._replace(holder=connection.number) if m in chosen else m for m in world.source)
            deliveries = max(m.deliveries for m in chosen)
            yield steps.Received(len(chosen), deliveries), world._replace(source=held), ()

    def _choices(self, free):
        """What a receiver may get, up to the limit of a batch: of each source its oldest messages."""
        sources = [[m for m in free if m.queue == queue] for queue in range(self.queues)]
        limit = self.per_batch
        each = [[s[:n] for n in range(limit + 1)[: len(s) + 1]] if self.fifo else _subsets(s, limit) for s in sources]
        joined = [[m for part in parts for m in part] for parts in itertools.product(*each)]
        return sorted((chosen for chosen in joined if 0 < len(chosen) <= limit), key=len)

    def _carry_out(self, world, connection, token, first):
        """The transaction: everything or nothing."""
        held = [m.id for m in sorted(world.source, key=lambda m: m.queue) if m.holder == connection.number]
        numbered = tuple((first + index, message) for index, message in enumerate(held))
        new = [Block(token.id, first + index, (message,)) for index, message in enumerate(held)]
        kept = [b for b in world.blocks if b.holder != connection.number]
        taken = any(t.holder == connection.number and t.value.id != token.id and t.value.next for t in world.tokens)
        twice = any(b.stream == n.stream and b.first < n.end and n.first < b.end for b in world.blocks for n in new)
        after = world._replace(
            source=tuple(m for m in world.source if m.holder != connection.number),
            blocks=_sorted(*kept, *new),
            tokens=_sorted(*(t for t in world.tokens if t.holder != connection.number), Token(token)),
            violation=(twice and "A number is given twice")
            or (taken and "A token of another query is accepted")
            or (self.ordered and self._overtaken(world, held) and "A message is overtaken")
            or world.violation,
        )
        cuts = tuple(block.first for block in new[1:]) if self.cuts else ()
        return steps.Committed(cuts), after, numbered

    def _overtaken(self, world, held):
        """Whether a later message of the same source has a lower number."""
        earlier = {message for block in world.blocks for message in block.messages}
        earlier |= {m for log in world.logs for batch in log.sink for part in batch for m in part}
        return any(a < b and (b - a) % self.queues == 0 for a in held for b in earlier)

    def _browse(self, world, connection, stream, start, end):
        """The visible blocks: as soon as they are whole, or when the patience is over."""
        seen = [b for b in world.blocks if b.stream == stream and not (b.holder or b.delayed)]
        seen = sorted(b for b in seen if b.first >= start and (end is None or b.end <= end))
        numbers = {n for b in seen for n in range(b.first, b.end)}
        whole = end is None or numbers >= set(range(start, end))
        if not whole and not self._patience_over(world, connection):
            return
        learned = tuple((b.first + index, message) for b in seen for index, message in enumerate(b.messages))
        yield steps.BlocksSeen(tuple((b.first, b.end) for b in seen)), world, learned

    # --- connections ----------------------------------------------------------------------------------

    def _leave(self, world, number, pending):
        """The client is gone; the broker has not noticed."""
        connection = next((c for c in world.connections if c.number == number), None)
        if connection is None:
            return world
        return _swap(world, connection, connection._replace(client=False, pending=pending))

    def free(self, world, number, *, dies=True):
        """The broker ends the connection, and what it held returns."""
        count = 1 if self.counts and dies else 0

        def returned(item):
            if not number or item.holder != number:
                return item
            changes = {"holder": 0}
            if not isinstance(item, Message):
                changes["delayed"] = self.delays and dies
            if not isinstance(item, Block):
                changes["deliveries"] = item.deliveries + count
            return item._replace(**changes)

        source = tuple(map(returned, world.source))
        tokens = _sorted(*map(returned, world.tokens))
        worn = any(item.deliveries >= BROKER_LIMIT for item in (*source, *tokens))
        return world._replace(
            source=source,
            tokens=tokens,
            blocks=tuple(map(returned, world.blocks)),
            connections=tuple(c for c in world.connections if c.number != number),
            violation="A dead letter" if worn else world.violation,
        )

    # --- the end --------------------------------------------------------------------------------------

    def _recovery(self, world):
        """All drivers die, the broker notices, and a fresh driver of each query runs without faults to its end."""
        for connection in world.connections:
            world = self.free(world, connection.number, dies=False)
        while world.coming:
            world = self._send(world)
        world = world._replace(
            drivers=tuple(Driver(query=query) for query in range(len(world.logs))),
            tokens=_sorted(*(t._replace(delayed=False) for t in world.tokens)),
            blocks=_sorted(*(b._replace(delayed=False) for b in world.blocks)),
            budget=NO_FAULTS,
        )
        if world not in self._recovered:
            self._recovered[world] = self._run_to_end(world)
        return self._recovered[world]

    def _run_to_end(self, world):
        for query in range(len(world.logs)):
            for _ in range(300):
                moves = list(self.driver_moves(world, query, world.drivers[query]))
                if world.violation or not moves:
                    break
                world = moves[-1][1]
            if world.violation:
                return world.violation
            if world.drivers[query].stage == "run":
                return f"Stuck at {type(self.situations[world.drivers[query].situation][1]).__name__}"
            world = self.free(world, world.drivers[query].connection, dies=False)
        written = {m for log in world.logs for batch in log.sink for part in batch for m in part}
        missing = set(range(1, self.messages + 1)) - written - world.gone
        if not missing or any(driver.stage == "stopped" for driver in world.drivers):
            return None
        staged = {message for block in world.blocks for message in block.messages}
        return "A message is stranded in a staging queue" if missing & staged else "A message is lost"


def _subsets(items, limit):
    return [list(each) for n in range(limit + 1) for each in itertools.combinations(items, n)]


def _order(item):
    match item:
        case Token(value, holder, delayed, deliveries):
            return value.id, value.name, value.next, value.floor, holder, delayed, deliveries
        case Connection(number):
            return number
    return item


def _sorted(*items):
    return tuple(sorted(items, key=_order)) if len(items) > 1 else tuple(items)


def _without(items, item):
    return tuple(other for other in items if other is not item)


def _without_all(items, others):
    return tuple(item for item in items if item not in others)


def _at(items, index, item):
    return (*items[:index], item, *items[index + 1 :])


def put(world, number, driver):
    return world._replace(drivers=_at(world.drivers, number, driver))


def _swap(world, connection, after):
    return world._replace(connections=_sorted(*(after if c == connection else c for c in world.connections)))


def _partitions(memory, start, end, cuts):
    """The rows of a batch: a partition begins at each cut."""
    known = dict(memory)
    bounds = (start, *cuts, end)
    return tuple(
        tuple(known[number] for number in range(a, b) if number in known) for a, b in itertools.pairwise(bounds)
    )


def _short(event):
    return {"Received": lambda: f"{event.messages}"}.get(type(event).__name__, str)()
