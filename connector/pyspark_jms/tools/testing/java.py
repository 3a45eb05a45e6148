"""A Java virtual machine of this process, used through py4j. Independent of Artemis and Ivy.

The machine ends with this process: it exits when its standard input closes, which the operating system does even if
this process is killed. py4j converts a Byte, a Short and an Integer all to an int, so Java is asked for the class of a
value.
"""

import contextlib
import functools
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Self

from py4j.java_gateway import GatewayClient, GatewayParameters, JavaGateway
from py4j.protocol import get_return_value, is_error

from pyspark_jms.errors import EmbeddedBrokerError

__all__ = [
    "MINIMUM_JAVA",
    "JavaMachine",
    "JavaTypes",
    "find_java",
    "spark_jars",
    "strings",
    "tail",
]

MINIMUM_JAVA = 17
"""Artemis 2.55 and Spark 4 need it."""

_INSTALL = f"Install Java {MINIMUM_JAVA} or newer, or set JAVA_HOME to one."
_TAIL_LINES = 20
_FRAME = re.compile(r"\s+(at |\.\.\. \d+ more)")


def spark_jars() -> Path:
    """Return the folder of jars inside the installed pyspark, found without importing pyspark."""
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedBrokerError("pyspark is not installed.", "pip install pyspark.")
    return Path(spec.submodule_search_locations[0]) / "jars"


def find_java() -> str:
    """Return the ``java`` that Spark uses: that of JAVA_HOME, else the one on the PATH. An old version is an error."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        place = f"JAVA_HOME={home}" if home else "PATH"
        raise EmbeddedBrokerError(f"No java found in {place}.", _INSTALL)
    version = _major_version(java)
    if version < MINIMUM_JAVA:
        raise EmbeddedBrokerError(f"{java} is Java {version}; the broker needs {MINIMUM_JAVA}.", _INSTALL)
    return java


@functools.cache
def _major_version(java: str) -> int:
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise EmbeddedBrokerError(f"{java} -version failed: {error}.", _INSTALL) from None
    # "1.8.0_392" is Java 8, "17.0.15" is Java 17.
    match = re.search(r'version "(?:1\.)?(\d+)', output.stderr + output.stdout)
    if match is None:
        raise EmbeddedBrokerError(f"{java} -version prints no version.", _INSTALL)
    return int(match[1])


def tail(log: Path) -> str:
    """Return the end of a log without its stack frames, as the last paragraph of an error message."""
    try:
        lines = [line for line in log.read_text(errors="replace").splitlines() if not _FRAME.match(line)]
    except OSError:
        lines = []
    return "\n".join([f"The end of {log}:", *(f"    {line}" for line in lines[-_TAIL_LINES:] or ["(empty)"])])


class _ExceptionClient(GatewayClient):  # type: ignore[misc]  # py4j has no types
    """A client that raises Java's exceptions itself.

    PySpark replaces py4j's function for exceptions in every gateway of the process. The replacement looks up the
    exception in Spark's machine, where the same number is another object.
    """

    def send_command(self, command: str, *arguments: bool, **named: bool) -> Any:
        answer = super().send_command(command, *arguments, **named)
        if isinstance(answer, str) and is_error(answer)[0]:
            _, target, name, *_ = (*command.split("\n", 3), "", "")
            get_return_value(answer, self, target, name)
        return answer


class _Gateway(JavaGateway):  # type: ignore[misc]
    def _create_gateway_client(self) -> GatewayClient:
        return _ExceptionClient(gateway_parameters=self.gateway_parameters)


class JavaMachine:
    """One JVM with a py4j gateway. All output of Java goes to ``log``."""

    def __init__(self, classpath: Sequence[str], *, log: Path, options: Sequence[str] = ()) -> None:
        self._java = find_java()
        self._classpath = os.pathsep.join([str(next(spark_jars().glob("py4j-*.jar"))), *classpath])
        self._options = tuple(options)
        self._log = log
        self._gateway: JavaGateway | None = None
        self._process = self._spawn()

    def _spawn(self) -> subprocess.Popen[bytes]:
        command = [self._java, *self._options, "-classpath", self._classpath]
        command += ["py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._log.parent,
                start_new_session=True,  # Ctrl-C in the terminal must reach only Python, which stops the broker cleanly
            )

    def connect(self) -> Self:
        """Wait until the gateway answers."""
        port, token = self._stdout.readline().strip(), self._stdout.readline().strip()
        if not port.isdigit() or not token:
            raise EmbeddedBrokerError("The Java virtual machine did not start.", tail(self._log))
        self._gateway = _Gateway(
            gateway_parameters=GatewayParameters(
                port=int(port),
                auth_token=token.decode(),
                # Finalizers would call a Java virtual machine that may be dead.
                enable_memory_management=False,
            )
        )
        self.jvm.System.setOut(self.jvm.System.err)
        return self

    @property
    def _stdout(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    @property
    def gateway(self) -> Any:
        assert self._gateway is not None, "call connect() first"
        return self._gateway

    @property
    def jvm(self) -> Any:
        return self.gateway.jvm

    @property
    def pid(self) -> int:
        return self._process.pid

    def alive(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> None:
        self._process.wait()

    def kill(self) -> None:
        """Kill the machine, like a crash, and close all streams."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        if self._gateway is not None:
            self._gateway.close()

    @contextlib.contextmanager
    def killed_after(self, seconds: float) -> Iterator[None]:
        """Kill the machine after a time limit, because calls into Java have none."""
        timer = threading.Timer(seconds, self._process.kill)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()


# --- the Java class of a value ----------------------------------------------------------------------

_JMS_NAMES = {"Integer": "int", "Character": "char", "byte[]": "bytes"}


class JavaTypes:
    """Calls a getter and stores the result in a Java list, where its class can be read."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm
        self._lookup = jvm.java.lang.invoke.MethodHandles.publicLookup()
        self._method_type = jvm.java.lang.invoke.MethodType.methodType
        self._object = self.named("java.lang.Object")
        get = self._virtual("java.util.ArrayList", "get", self._object, jvm.java.lang.Integer.TYPE)
        get_class = self._virtual("java.lang.Object", "getClass", self.named("java.lang.Class"))
        self._class_at = jvm.java.lang.invoke.MethodHandles.filterReturnValue(get, get_class)

    def named(self, name: str) -> Any:
        return self._jvm.java.lang.Class.forName(name)

    def typed(self, target: Any, owner: str, getter: str, *name: str) -> tuple[str, Any] | None:
        """Return ``target.getter(name)`` as (JMS type name, value), or None for null."""
        box = self._jvm.java.util.ArrayList()
        add = self._virtual("java.util.ArrayList", "add", self._jvm.java.lang.Boolean.TYPE, self._object)
        get = self._virtual(owner, getter, self._object, *[self.named("java.lang.String")] * len(name))
        into_box = self._jvm.java.lang.invoke.MethodHandles.filterReturnValue(get, add.bindTo(box))
        into_box.invokeWithArguments(self._list(target, *name))
        value = box.get(0)
        if value is None:
            return None
        name_of_class = str(self._class_at.invokeWithArguments(self._list(box, 0)).getSimpleName())
        return _JMS_NAMES.get(name_of_class, name_of_class.lower()), value

    def _virtual(self, owner: str, method: str, result: Any, *parameters: Any) -> Any:
        signature = self._method_type(result, *parameters)
        return self._lookup.findVirtual(self.named(owner), method, signature)

    def _list(self, *values: Any) -> Any:
        arguments = self._jvm.java.util.ArrayList()
        for value in values:
            arguments.add(value)
        return arguments


def strings(enumeration: Any) -> list[str]:
    """Return the elements of a ``java.util.Enumeration<String>``."""
    found = []
    while enumeration.hasMoreElements():
        found.append(str(enumeration.nextElement()))
    return found
