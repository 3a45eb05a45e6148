"""A broker's life, with a process that is no broker. What real ones make of it, their own tests tell."""

import subprocess
import sys
import time

import pytest

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.testing.lifecycle import OwnBroker


class Sleeper(OwnBroker):
    """A Python that sleeps. Its log says what happened."""

    process = None

    def __init__(self, directory=None, *, faulty=False):
        super().__init__(directory, 0, "me", "sesame", host="127.0.0.1", start_timeout=10)
        self.faulty = faulty

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self):
        return self.process.pid

    def _fetch(self):
        pass

    def _configure(self):
        (self.directory / "settings").write_text("x")

    def _launch(self, deadline):
        assert deadline > time.monotonic()
        self.log.write_text("launched")
        self.process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        if self.faulty:
            raise EmbeddedBrokerError("It did not like it.")

    def stop(self):
        if self.process is not None:
            self.process.terminate()
        self.kill()

    def _end(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.process = None

    def wait(self):
        self.process.wait()


def test_start_stop_restart(tmp_path):
    broker = Sleeper(tmp_path)
    assert not broker.running
    with broker:
        first, port = broker.pid, broker.port
        assert broker.start() is broker
        assert broker.pid == first, "it runs already"
        broker.restart()
        assert broker.pid != first
        assert broker.port == port
    assert not broker.running
    assert tmp_path.is_dir()
    assert broker.log.with_suffix(".log.1").read_text() == "launched"


def test_a_temporary_folder_goes_with_its_broker():
    with Sleeper() as broker:
        folder = broker.directory
        assert folder.is_dir()
    assert not folder.exists()


def test_a_folder_has_one_broker(tmp_path):
    with Sleeper(tmp_path), pytest.raises(EmbeddedBrokerError, match="Another broker runs in"):
        Sleeper(tmp_path).start()
    with Sleeper(tmp_path):
        pass


def test_a_failed_start_leaves_nothing(tmp_path):
    broker = Sleeper(tmp_path, faulty=True)
    with pytest.raises(EmbeddedBrokerError, match="did not like it"):
        broker.start()
    assert not broker.running
    with Sleeper(tmp_path):
        pass


def test_nobody_who_answers_is_not_waited_for_without_limit(tmp_path):
    with Sleeper(tmp_path) as broker, pytest.raises(EmbeddedBrokerError, match="to a CONNECT"):
        broker._wait_until_ready(time.monotonic() + 0.2, broker.port)


def test_a_process_that_ended_is_not_waited_for_either(tmp_path):
    with Sleeper(tmp_path) as broker:
        broker.process.kill()
        broker.wait()
        with pytest.raises(EmbeddedBrokerError, match="to a CONNECT"):
            broker._wait_until_ready(time.monotonic() + 60, broker.port)
        with pytest.raises(EmbeddedBrokerError, match="not running"):
            broker._require_running()


def test_repr_says_where_and_not_the_password(tmp_path):
    broker = Sleeper(tmp_path)
    assert f"Sleeper {broker.url} user=me" in repr(broker)
    assert "sesame" not in repr(broker)
