"""No local variable of a failure shows a secret: what Spark prints with tracebackWithLocals.enabled."""

import pickle
import socket
import threading
import traceback
from pathlib import Path

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import StringType, StructType

import pyspark_jms
from pyspark_jms.errors import JMSError
from pyspark_jms.jms.secret_text import SecretBytes, SecretText
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.spark.source import JmsDataSource
from pyspark_jms.stomp.link.connection import connect

SECRET = "S3CRET"
OURS = str(Path(pyspark_jms.__file__).parent)
ACCESS = {"brokerurl": "stomp://host:1", "user": "u", "password": SECRET, "queue": "q"}
ROW = StructType().add("text", StringType())


def test_a_secret_equals_its_text_and_its_repr_is_redacted():
    for secret, plain in ((SecretText(SECRET), SECRET), (SecretBytes(SECRET.encode()), SECRET.encode())):
        assert secret == plain
        assert pickle.loads(pickle.dumps(secret)) == plain
        for shown in (
            repr(secret),
            repr({"password": secret}),
            repr([secret]),
            repr(pickle.loads(pickle.dumps(secret))),
        ):
            assert SECRET not in shown
    assert f"{SecretText(SECRET)}" == SECRET


def shown(error):
    """Local variables of our own frames, as Spark's format of a traceback has them."""
    found, seen = [], set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename.startswith(OURS):
                found += [f"{frame.f_code.co_name}: {name} = {value!r}" for name, value in frame.f_locals.items()]
        found.append(repr(error))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return found


def leaks(error):
    found = shown(error)
    assert len(found) > 2, "no frame of ours: the test looks at nothing"
    return [line for line in found if SECRET in line]


def created(options):
    """As Spark does it: a mapping of its own, which is in its frame, too."""
    given = CaseInsensitiveDict(options)
    source = JmsDataSource(given)
    assert SECRET not in repr(given)
    return source


WRONG = {
    "a value": {"maxmessagespertrigger": "x"},
    "a key": {"passwrod": SECRET},
    "a key of Kafka": {"kafka.sasl.jaas.config": SECRET},
    "an address": {"brokerurl": f"stomp://u:{SECRET}@host:1"},
    "an address of another protocol": {"brokerurl": f"tcp://u:{SECRET}@host:1"},
    "two passwords": {"passwordfile": "/f"},
    "a key password without a key": {"sslkeypassword": SECRET},
    "a selector": {"selector": "a =="},
    "one of the other side": {"transaction": "task"},
    "a table and a topic": {"topic": "t"},
    "a path": {"path": SECRET},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_wrong_options_of_a_source(wrong):
    with pytest.raises(JMSError) as failed:
        created(ACCESS | wrong).schema()
    assert leaks(failed.value) == []


@pytest.mark.parametrize("wrong", [w for name, w in WRONG.items() if "other side" not in name], ids=str)
@pytest.mark.parametrize("writer", ["streamWriter", "writer"])
def test_wrong_options_of_a_sink(wrong, writer):
    with pytest.raises(JMSError) as failed:
        getattr(created(ACCESS | wrong), writer)(ROW, False)
    assert leaks(failed.value) == []


def test_a_column_that_a_sink_does_not_know():
    with pytest.raises(JMSError) as failed:
        created(ACCESS).streamWriter(StructType().add("nonsense", StringType()), False)
    assert leaks(failed.value) == []


def test_a_plain_mapping_of_a_caller_is_not_changed():
    given = dict(ACCESS)
    SourceOptions.parse(given)
    SinkOptions.parse(given)
    assert repr(given["password"]) == repr(SECRET)


# --- connections ---------------------------------------------------------------------------------------


def settings(port, **more):
    given = ACCESS | {"brokerurl": f"stomp://127.0.0.1:{port}", "connecttimeout": "500ms"} | more
    return SourceOptions.parse({name: text for name, text in given.items() if text is not None}).connection


@pytest.fixture
def server():
    """``server(act)``: a port where each connection is given to ``act`` and closed."""
    listeners, threads = [], []

    def server(act):
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def accept():
            try:
                while True:
                    with listener.accept()[0] as client:
                        client.settimeout(5)
                        act(client)
            except OSError:
                pass

        threads.append(threading.Thread(target=accept))
        threads[-1].start()
        return listener.getsockname()[1]

    yield server
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    for thread in threads:
        thread.join(10)


PEERS = {
    "closes at once": lambda _client: None,
    "reads and closes": lambda client: client.recv(4096),
    "says nothing": lambda client: client.recv(4096) and client.recv(1),
    "is no STOMP": lambda client: client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n") or client.recv(4096),
    "refuses": lambda client: (
        client.sendall(b"ERROR\nmessage:User name or password is invalid\n\n\0") or client.recv(9)
    ),
    "is unknown": lambda client: client.recv(4096) and client.sendall(b"CONNECTED\nversion:1.2\n\n\0"),
}


@pytest.mark.parametrize("act", PEERS.values(), ids=PEERS)
def test_a_peer_that_does_not_connect(server, act):
    with pytest.raises(JMSError) as failed:
        connect(settings(server(act)))
    assert leaks(failed.value) == []


@pytest.mark.parametrize(
    "secret", [f"{SECRET}\n", f"{SECRET}\0", f"{SECRET}\ud800"], ids=["line end", "NUL", "surrogate"]
)
def test_a_password_that_stomp_cannot_carry(server, secret):
    with pytest.raises(JMSError, match=r"JMS_INVALID_OPTION.*passcode") as failed:
        connect(settings(server(lambda client: client.recv(9)), password=secret))
    assert leaks(failed.value) == []


def test_a_password_from_a_file(server, tmp_path):
    (tmp_path / "password").write_text(SECRET)
    with pytest.raises(JMSError) as failed:
        connect(settings(server(lambda client: client.recv(9)), password=None, passwordfile=str(tmp_path / "password")))
    assert leaks(failed.value) == []


def test_the_password_of_a_key(tmp_path):
    (tmp_path / "cert.pem").write_text("no certificate")
    tls = {"brokerurl": "stomp+ssl://127.0.0.1:1", "sslcertfile": str(tmp_path / "cert.pem"), "sslkeypassword": SECRET}
    with pytest.raises(JMSError, match=r"\[JMS_TLS\]") as failed:
        connect(settings(1, **tls))
    assert leaks(failed.value) == []
