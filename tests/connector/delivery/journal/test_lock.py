import json
import os
import subprocess
import sys

import pytest

from pyspark_jms.delivery.journal.lock import WriterLock
from pyspark_jms.errors import JournalError, JournalLockedError

HOLD = """
import sys
from pathlib import Path
from pyspark_jms.delivery.journal.lock import WriterLock
lock = WriterLock(Path(sys.argv[1]), query="orders → lake", wait_seconds=0, pause=print)
print("locked", flush=True)
sys.stdin.read()
"""


def never(seconds):
    raise AssertionError(seconds)


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "locked\n"
    yield process
    process.kill()
    process.communicate()


def test_the_error_names_the_holder(tmp_path, holder):
    pauses = []
    with pytest.raises(JournalLockedError) as refused:
        WriterLock(tmp_path / "lock", query="mine", wait_seconds=1, pause=pauses.append)
    assert str(refused.value).startswith("[JMS_JOURNAL_LOCKED]")
    assert f"process {holder.pid} on host {os.uname().nodename} (query orders → lake)" in refused.value.fact
    assert sum(pauses) == pytest.approx(1)


def test_a_killed_holder_holds_nothing(tmp_path, holder):
    def kill(_):
        holder.kill()
        holder.wait()

    lock = WriterLock(tmp_path / "lock", query="mine", wait_seconds=1, pause=kill)
    assert lock.held
    assert json.loads((tmp_path / "lock").read_text())["query"] == "mine"
    lock.release()


def test_released_is_free(tmp_path):
    first = WriterLock(tmp_path / "lock", query="a", wait_seconds=0, pause=never)
    with pytest.raises(JournalLockedError):
        WriterLock(tmp_path / "lock", query="b", wait_seconds=0, pause=never)
    first.release()
    first.release()
    assert not first.held
    WriterLock(tmp_path / "lock", query="b", wait_seconds=0, pause=never).release()


def test_a_program_started_meanwhile_does_not_keep_the_lock(tmp_path):
    lock = WriterLock(tmp_path / "lock", query="a", wait_seconds=0, pause=never)
    child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        lock.release()
        WriterLock(tmp_path / "lock", query="b", wait_seconds=0, pause=never).release()
    finally:
        child.kill()
        child.wait()


def test_a_wait_can_be_given_up(tmp_path, holder):
    def give_up(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        WriterLock(tmp_path / "lock", query="mine", wait_seconds=10, pause=give_up)


def test_a_holder_that_tells_nothing(tmp_path, holder):
    (tmp_path / "lock").write_bytes(b"")
    with pytest.raises(JournalLockedError, match="nother process"):
        WriterLock(tmp_path / "lock", query="mine", wait_seconds=0, pause=never)


def test_the_lock_of_a_deleted_file_excludes_nobody(tmp_path):
    """Deleted while it was held: who comes next locks the new file, and that one holds."""
    old = WriterLock(tmp_path / "lock", query="a", wait_seconds=0, pause=never)
    (tmp_path / "lock").unlink()
    new = WriterLock(tmp_path / "lock", query="b", wait_seconds=0, pause=never)
    old.release()
    with pytest.raises(JournalLockedError, match="query b"):
        WriterLock(tmp_path / "lock", query="c", wait_seconds=0, pause=never)
    new.release()


DELETED_MEANWHILE = """
import sys
from pathlib import Path
from pyspark_jms.errors import JournalError, JournalLockedError
from pyspark_jms.delivery.journal.lock import WriterLock
path, calls, pauses = Path(sys.argv[1]), [], []

def delete_before_the_first_lock(event, arguments):
    if event == "fcntl.flock":
        calls.append(event)
        if len(calls) == 1:
            path.unlink()

sys.addaudithook(delete_before_the_first_lock)
lock = WriterLock(path, query="a", wait_seconds=1, pause=pauses.append)
try:
    WriterLock(path, query="b", wait_seconds=0, pause=pauses.append)
except JournalLockedError:
    print("one writer", len(pauses))
"""


def test_a_lock_on_a_file_that_was_deleted_meanwhile_is_none(tmp_path):
    program = [sys.executable, "-c", DELETED_MEANWHILE, tmp_path / "lock"]
    assert subprocess.run(program, capture_output=True, text=True, check=True).stdout == "one writer 1\n"


def test_a_holder_notices_that_its_lock_file_was_removed_or_replaced(tmp_path):
    lock = WriterLock(tmp_path / "lock", query="a", wait_seconds=0, pause=never)
    lock.require()
    lock.require()
    (tmp_path / "lock").unlink()
    with pytest.raises(JournalLockedError, match="removed or replaced"):
        lock.require()
    (tmp_path / "lock").touch()
    with pytest.raises(JournalLockedError, match="removed or replaced"):
        lock.require()
    lock.release()


def test_a_symbolic_link_is_no_lock_file(tmp_path):
    (tmp_path / "elsewhere").touch()
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(JournalError, match="symbolic link"):
        WriterLock(tmp_path / "lock", query="a", wait_seconds=0, pause=never)
