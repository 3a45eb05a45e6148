"""Nine selector engines in their released jars, each in a Java virtual machine of its own."""

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from urllib.parse import quote_plus

sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

from ivy_archive import archive

from jms_selector.meaning.conversions import java_text
from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.tools.testing.jars import resolve

JAVA = Path(__file__).parent / "java"
SECONDS = 300
"""For the cases of one engine, which take some 20 s."""

SELECTED, REFUSED, THROWN = "TPX"
"""What the harness writes for a message; ``F``: not selected."""


class NotRunError(Exception):
    """The engine cannot be had, or did not end: the text says why."""


@dataclass(frozen=True)
class Engine:
    title: str
    version: str
    java: str
    """The class in ``java/`` that calls it."""

    module: str = ""
    """``ORGANISATION:MODULE``, with its dependencies."""

    suffix: str = ""
    """Of the version."""

    archives: tuple[tuple[str, str, str], ...] = ()
    """Where the jars are inside of archives: module, extension, and a part of the names of the jars."""

    def classpath(self, folder):
        if not self.archives:
            return resolve((f"{self.module}:{self.version}{self.suffix}",))
        found = []
        for module, extension, part in self.archives:
            packed = archive(*module.split(":"), self.version, extension=extension)
            jars = (name for name in packed.namelist() if name.endswith(".jar") and part in name)
            found += [packed.extract(name, folder) for name in jars]
        return found

    def verdicts(self, groups, home=None):
        """For each (selectors, messages), for each selector a letter a message."""
        with tempfile.TemporaryDirectory() as folder:
            try:
                path = ":".join([folder, *self.classpath(folder)])
            except (EmbeddedBrokerError, AssertionError) as error:
                raise NotRunError(str(error)) from None
            sources = [str(JAVA / f"{name}.java") for name in ("Harness", self.java)]
            _run([_program("javac", home), "-nowarn", "-d", folder, "-cp", path, *sources], "")
            lines = [line for selectors, messages in groups for line in _lines(selectors, messages)]
            found = iter(_run([_program("java", home), "-cp", path, "Harness", self.java], "\n".join(lines)).split())
        return [[next(found) for _ in selectors] for selectors, _ in groups]


_LIBERTY = (
    ("io.openliberty.features:wasJmsServer-1.0", "esa", "com.ibm.ws.messaging."),
    ("io.openliberty:openliberty-kernel", "zip", "lib/com.ibm.ws.logging_"),
)
_OPENMQ = (("org.glassfish.mq:mq-distribution", "zip", "/imqutil.jar"),)
ENGINES = (
    Engine("Artemis", "2.55.0", "Artemis", "org.apache.artemis:artemis-selector"),
    Engine("Classic", "6.3.1", "Classic", "org.apache.activemq:activemq-client"),
    Engine("Broker-J", "9.2.1", "BrokerJ", "org.apache.qpid:qpid-broker-core"),
    Engine("IBM MQ JMS", "9.4.5.0", "IbmMQ", "com.ibm.mq:com.ibm.mq.allclient"),
    Engine("Liberty", "26.0.0.3", "Liberty", archives=_LIBERTY),
    Engine("HornetQ", "2.4.7", "HornetQ", "org.hornetq:hornetq-server", ".Final"),
    Engine("OpenMQ", "6.7.0", "OpenMQ", archives=_OPENMQ),
    Engine("JORAM", "5.10.0", "Joram", "org.ow2.joram:joram-shared"),
    Engine("FFMQ", "4.0.14", "Ffmq", "net.timewalker.ffmq:ffmq4-core"),
)
BIG = ENGINES[:5]


def _program(name, home):
    return str(Path(home) / "bin" / name) if home else shutil.which(name) or name


def _run(command, given):
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotRunError(f"{command[0]}: {error}"[:300]) from None
    if done.returncode:
        lines = (line for line in done.stderr.splitlines() if re.search("error|exception", line, re.IGNORECASE))
        raise NotRunError(f"{Path(command[0]).name}: {' '.join(islice(lines, 3))[:600]}")
    return done.stdout


def _lines(selectors, messages):
    yield "begin"
    for message in messages:
        yield "\t".join(["message", *(field for each in _parts(message).items() for field in _property(*each))])
    for selector in selectors:
        yield f"selector\t{quote_plus(selector)}"


def _parts(message):
    return {**message.headers, **message.properties}


def _property(name, value):
    return quote_plus(name), str(value.kind), quote_plus(java_text(value))
