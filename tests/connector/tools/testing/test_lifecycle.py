"""The life cycle of a broker, with a process that sleeps. The tests of each broker test the same with the broker."""

import subprocess
import sys
import time

import pytest

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.tools.testing.lifecycle import OwnBroker


class Sleeper(OwnBroker):
    """A Python process that sleeps instead of a broker."""

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
            raise EmbeddedBrokerError("Faulty launch.")

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
        assert broker.pid == first, "a running broker is not started again"
        broker.restart()
        assert broker.pid != first
        assert broker.port == port
    assert not broker.running
    assert tmp_path.is_dir()
    assert broker.log.with_suffix(".log.1").read_text() == "launched"


def test_a_temporary_folder_is_removed_with_its_broker():
    with Sleeper() as broker:
        folder = broker.directory
        assert folder.is_dir()
    assert not folder.exists()


def test_a_folder_has_one_broker(tmp_path):
    with Sleeper(tmp_path), pytest.raises(EmbeddedBrokerError, match=rf"\[JMS_EMBEDDED_BROKER\].*{tmp_path}"):
        Sleeper(tmp_path).start()
    with Sleeper(tmp_path):
        pass


def test_a_failed_start_leaves_nothing(tmp_path):
    broker = Sleeper(tmp_path, faulty=True)
    with pytest.raises(EmbeddedBrokerError, match=r"\[JMS_EMBEDDED_BROKER\] Faulty launch"):
        broker.start()
    assert not broker.running
    with Sleeper(tmp_path):
        pass


def test_the_start_timeout_limits_the_wait_for_an_answer(tmp_path):
    with Sleeper(tmp_path) as broker, pytest.raises(EmbeddedBrokerError, match=r"\[JMS_EMBEDDED_BROKER\].* CONNECT"):
        broker._wait_until_ready(time.monotonic() + 0.2, broker.port)


def test_the_wait_for_an_answer_ends_with_the_process(tmp_path):
    with Sleeper(tmp_path) as broker:
        broker.process.kill()
        broker.wait()
        with pytest.raises(EmbeddedBrokerError, match=r"\[JMS_EMBEDDED_BROKER\].* CONNECT"):
            broker._wait_until_ready(time.monotonic() + 60, broker.port)
        with pytest.raises(EmbeddedBrokerError, match=r"\[JMS_EMBEDDED_BROKER\].*start\(\)"):
            broker._require_running()


def test_repr_has_the_url_but_no_password(tmp_path):
    broker = Sleeper(tmp_path)
    assert f"Sleeper {broker.url} user=me" in repr(broker)
    assert "sesame" not in repr(broker)
