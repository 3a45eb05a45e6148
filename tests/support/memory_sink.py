"""A protocol of the sink without bytes and broker: ``sink.links`` in memory, for the engine's own tests.

A message is the row's text, a block the lines of a batch. ``log`` has what the engine did, in order.
"""

import hashlib
from dataclasses import dataclass, field

from pyspark_jms.errors import ConnectionLostError, UnsupportedError


@dataclass
class MemorySink:
    """Protocol, link and ledger in one; ``lose_commit`` cuts the connection at the next commit: before or after it."""

    confirms_single_messages: bool = True
    transactions: bool = True
    lose_commit: str | None = None
    name: str = "memory"
    queue: str = "ledger"
    requirements: str = "Nothing is required."
    messages: list = field(default_factory=list)
    entries: list = field(default_factory=list)
    log: list = field(default_factory=list)
    _open: list = field(default_factory=list)

    # --- SinkProtocol, CommitLedger

    def connect(self, settings=None, *, patience=0.0):
        self.log.append(f"connect {patience:g}")
        return self

    def commit_ledger(self, settings, queue):
        self.queue = queue
        return self

    def find_for_task(self, task, *, write, execution):
        self.log.append(f"find {task}")
        return tuple(e for e in self.find_for_write(write) if e.task == task or e.execution != execution)

    def find_for_write(self, write):
        return tuple(entry for entry in self.entries if entry.task.rpartition("/")[0] == write)

    def find_late(self, task, *, may_arrive):
        self.log.append(f"find late {task}")
        return tuple(entry for entry in self.entries if entry.task == task)

    def delete_before_batch(self, batch):
        return self._keep(lambda entry: entry.batch >= batch)

    def delete_before_time(self, oldest_ms):
        return self._keep(lambda entry: entry.written_ms >= oldest_ms)

    def _keep(self, wanted):
        before = len(self.entries)
        self.entries = [entry for entry in self.entries if wanted(entry)]
        return before - len(self.entries)

    # --- SinkLink

    def require_transactions(self):
        if not self.transactions:
            raise UnsupportedError("memory has no transactions.")

    def encode(self, rows, *, first_row=0, in_transaction=True, confirm_each=False, **_):
        texts = rows.column("text").to_pylist()
        self.log.append(f"encode {first_row}+{len(texts)}" + " confirmed" * confirm_each + " open" * in_transaction)
        return [memoryview("".join(f"{text}\n" for text in texts).encode())]

    def send(self, block):
        self._open += bytes(block).decode().splitlines()

    def send_at_once(self, block):
        self.messages += bytes(block).decode().splitlines()

    def await_each(self, first_row, count):
        self.log.append(f"await {first_row}+{count}")

    def commit(self):
        self._commit(None)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self._open = []

    # --- LedgerLink

    def new_digest(self):
        return _Digest()

    def counts_from_now(self, schema, defaults):
        return False

    def commit_with_entry(self, entry, *, again):
        self._commit(entry)

    def _commit(self, entry):
        lost, self.lose_commit = self.lose_commit, None
        if lost != "before":
            self.messages += self._open
            self.entries += [entry] if entry else []
            self.log.append(f"commit {len(self._open)}")
        self._open = []
        if lost:
            raise ConnectionLostError("The connection is gone.")


class _Digest:
    def __init__(self):
        self._texts = []

    def add(self, blocks, rows):
        for block in blocks:
            self._texts += bytes(block).splitlines()

    def text(self):
        return hashlib.sha256(b"\n".join(sorted(self._texts))).hexdigest()
