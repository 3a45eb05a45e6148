import os
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.tools.testing.java import JavaMachine, find_java, tail


def fake_java(folder, answer):
    """A program named java that prints an answer as `java -version` does, to standard error."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{answer}\nEND\n")
    java.chmod(0o755)
    return str(java)


def test_no_java_on_the_path(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmbeddedBrokerError, match=r"\[JMS_EMBEDDED_BROKER\].* PATH.* 17 "):
        find_java()


def test_java_home_without_java(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EmbeddedBrokerError, match=rf"\[JMS_EMBEDDED_BROKER\].*JAVA_HOME={tmp_path}"):
        find_java()


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ('java version "1.8.0_392"\nJava(TM) SE Runtime Environment', 8),
        ('openjdk version "11.0.21" 2023-10-17', 11),
        ('openjdk version "16-ea" 2021-03-16', 16),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx="17"\nopenjdk version "11.0.21" 2023-10-17', 11),
    ],
)
def test_old_java_is_refused(monkeypatch, tmp_path, answer, version):
    java = fake_java(tmp_path, answer)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EmbeddedBrokerError) as caught:
        find_java()
    assert str(caught.value).startswith(f"[JMS_EMBEDDED_BROKER] {java} is Java {version}; the broker needs 17.")


@pytest.mark.parametrize("answer", ['openjdk version "17.0.15" 2025-04-15', 'openjdk version "21" 2023-09-19'])
def test_new_java_is_taken_from_java_home(monkeypatch, tmp_path, answer):
    java = fake_java(tmp_path, answer)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == java


def test_java_without_a_version_is_an_error(monkeypatch, tmp_path):
    java = fake_java(tmp_path, "The operation couldn't be completed. Unable to locate a Java Runtime.")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EmbeddedBrokerError, match=rf"\[JMS_EMBEDDED_BROKER\] {java} -version "):
        find_java()


def test_java_that_cannot_run(monkeypatch, tmp_path):
    Path(fake_java(tmp_path, "")).write_text("#!/bin/sh\nexit 3\n")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EmbeddedBrokerError, match=rf"\[JMS_EMBEDDED_BROKER\] {tmp_path}/bin/java -version .*status 3"):
        find_java()


def test_the_machine_logs_to_its_file_and_ends(tmp_path):
    log = tmp_path / "java.log"
    machine = JavaMachine([], log=log, options=["-Xmx64m", "-Dgreeting=hello"]).connect()
    pid = machine.pid
    assert machine.jvm.System.getProperty("greeting") == "hello"
    machine.jvm.System.out.println("said on out")
    machine.jvm.System.err.println("said on err")
    assert machine.alive()
    machine.kill()
    assert not machine.alive()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert log.read_text() == "said on out\nsaid on err\n"


def test_the_log_is_quoted_if_the_machine_cannot_start(tmp_path):
    machine = JavaMachine([], log=tmp_path / "java.log", options=["-XX:NoSuchFlag=1"])
    with pytest.raises(EmbeddedBrokerError, match="Unrecognized VM option 'NoSuchFlag=1'"):
        machine.connect()
    machine.kill()


def test_killed_after_ends_a_hanging_call(tmp_path):
    machine = JavaMachine([], log=tmp_path / "java.log").connect()
    with pytest.raises(Exception, match="Java"), machine.killed_after(0.2):
        machine.jvm.Thread.sleep(60_000)
    machine.wait()  # the call ends with the signal, the process a moment later
    assert not machine.alive()
    machine.kill()


def test_tail_omits_stack_frames(tmp_path):
    log = tmp_path / "a.log"
    log.write_text("first\n\tat java.base/x.y(Z.java:1)\n\t... 24 more\nCaused by: second\n")
    assert tail(log) == f"The end of {log}:\n    first\n    Caused by: second"
    log.write_text("".join(f"{line}\n" for line in range(100)))
    assert tail(log).splitlines()[1:] == [f"    {line}" for line in range(80, 100)]
    log.unlink()
    assert tail(log).endswith("(empty)")


@pytest.mark.spark
def test_a_java_exception_is_the_right_one_beside_spark(spark, tmp_path):
    """PySpark looks up what other gateways throw in its own machine, where the number is another object's."""
    machine = JavaMachine([], log=tmp_path / "java.log").connect()
    for _ in range(200):  # past the objects that Spark's machine keeps for Python
        with pytest.raises(Py4JJavaError, match="NumberFormatException"):
            machine.jvm.Integer.valueOf("x")
    with pytest.raises(Py4JJavaError, match=r"calling o\d+\.charAt"):
        machine.jvm.StringBuilder("abc").charAt(7)
    machine.kill()
